#!/usr/bin/env python3
"""docs-api.py [--check]: writes docs/api.md from src/api/openapi.yaml; --check only says whether it is current."""
import json
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/api/openapi.yaml"
PAGE = ROOT / "docs/api.md"
METHODS = ("get", "post", "put", "patch", "delete")
ROLES = {"none": "anybody who can reach the daemon", "viewer": "`viewer`", "user": "`user`", "queue-admin": "`queue-admin`",
         "admin": "`admin`"}

HEAD = """# The API

<!-- Written by scripts/docs-api.py from src/api/openapi.yaml; change that, then run it. -->

{description}
The source of this page is [the OpenAPI document](../src/api/openapi.yaml), which the daemon serves at
`/api/v1/openapi.json`. Who has which role is in [security](security.md).

## Conventions

The examples use the Unix socket. Over the network they read `curl --cacert CA.pem -H "Authorization: Bearer $TOKEN"
https://HOST:7400/api/v1/...`.

**Revision.** One counter for everything that happens. A list answers with the `revision` it is of; `GET /events?since=`
with that number goes on behind it, so to list and then to watch has no gap.

**Watch.** `GET /events?watch=1` is a stream of server-sent events: `id` is the revision, `event` the kind, `data` the event
as JSON on one line. It takes `kinds` and `since`. A reader that was cut off goes on with the header `Last-Event-ID`.
Revisions that are no longer kept are answered with 410: list again, then watch.

**Pages.** A list that is longer than `limit` answers with `next`; give it as `cursor`. No object that is there all the time
is skipped or repeated. `fields=id,status.phase` leaves out the rest.

**Filter and sort.** `filter=phase=running,gpus>=4,labels.team=vision`: conditions with commas between, all of which must hold,
with `=`, `!=`, `>=`, `<=`, `>`, `<` and `~` (contains). `sort=-priority`: a minus sign for the largest first. Of keys inside
`status` and `spec` the last word is enough; of a list inside an object one item must meet the condition (`jobs.user=ana` of
GPUs). What a list does not know is refused with what it does. Lists of what happened (events, decisions, checkpoints, the
audit) stand by their number and take no other `sort`; with a `filter` a page of them looks at so many records and no more, so it may be empty and
have a `next`.

**`dry_run=1`** checks everything, the right to do it included, and changes nothing.

**`Idempotency-Key`** on every POST that changes something: when an answer was lost, send the same request with the same key
again. It is not carried out twice, also when the daemon was started again meanwhile; the answer is the first one. Another
request with that key is answered with 409. A token's secret is not kept, so a repeated `createToken` is 409 with the id of the
token that was made.

**`ETag` and `If-Match`.** An edit of one thing, with the ETag that was read, is refused with 412 when somebody else was quicker.
Its answer has the new ETag.

**Errors** are problem documents (`application/problem+json`):

```json
{{"title": "queue \\"vison\\" does not exist", "status": 422, "code": "invalid", "hint": "did you mean vision?", "path": "queue",
 "errors": [{{"message": "queue \\"vison\\" does not exist", "hint": "did you mean vision?", "path": "queue"}}]}}
```

{problem}

| status | when |
|---|---|
| 400 | an unknown parameter, or one that is no such value |
| 401 | no token, or one that is wrong, has expired or was revoked |
| 403 | the role is not enough |
| 404 | it does not exist, or the caller may not see it |
| 405 | there is no such method here; `Allow` says which there are |
| 409 | not with the present state: a job that has ended cannot be resumed; or the key of another request |
| 410 | events that are no longer kept |
| 412 | `If-Match` is of an older state |
| 413 | the body is longer than the call takes |
| 422 | the body is wrong; every mistake is named |
| 429 | too many requests; `Retry-After` says when to come back |
| 503 | the store cannot be written, or there is too much to do; nothing was changed |

Each call lists those that it can answer with. Beside them any request can be refused by the server itself: 405, 408 (it came
too slowly), 413, 431 (its head is too long), and 500 is a fault of ours.

## Calls

"""


def follow(document, node):
    while isinstance(node, dict) and "$ref" in node:
        at = document
        for word in node["$ref"].lstrip("#/").split("/"):
            at = at[word]
        node = at
    return node


def one_line(text):
    return " ".join((text or "").split())


def cell(text):
    return one_line(text).replace("|", "\\|")


def kind(document, schema):
    """A schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].split("/")[-1]
        target = follow(document, schema)
        if target.get("type") in ("object", None):
            calls = {operation["operationId"].lower() for item in document["paths"].values() for operation in item.values()
                     if isinstance(operation, dict)}
            return f"[{name}](#{name.lower()}{'-1' if name.lower() in calls else ''})"  # the second heading of that name
        if "enum" in target:
            return "one of " + ", ".join(f"`{value}`" for value in target["enum"])
        return {"Time": "time", "Revision": "whole number", "Amount": 'number or "unlimited"'}.get(name, str(target.get("type")))
    if "enum" in schema:
        return "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(kind(document, one) for one in schema["anyOf"])
    types = schema.get("type", "any value")
    types = types if isinstance(types, list) else [types]
    words = {"integer": "whole number", "boolean": "true or false", "string": "text"}
    text = " or ".join(words.get(one, one) for one in types)
    if types == ["array"]:
        items = schema.get("items", {})
        text = "list of objects" if items.get("type") == "object" and "$ref" not in items else "list of " + kind(document, items)
    if types == ["object"] and isinstance(schema.get("additionalProperties"), dict):
        text = "map to " + kind(document, schema["additionalProperties"])
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        text += f", {low} to {high}"
    elif low is not None:
        text += f", from {low}"
    if "default" in schema:
        text += f", default `{schema['default']}`"
    if "maxLength" in schema:
        text += f", at most {schema['maxLength']} characters"
    return text


def keys(document, schema, depth=0):
    """Rows of a table of the object's keys; objects without a name of their own are shown inside."""
    rows = []
    for name, value in schema.get("properties", {}).items():
        need = "" if name in schema.get("required", []) else ", may be absent"
        about = cell(value.get("description") or ("" if "$ref" not in value else follow(document, value).get("description")))
        rows.append(f"| {'&nbsp;&nbsp;' * depth}`{name}` | {kind(document, value)}{need} | {about} |")
        inner = value.get("items", {}) if value.get("type") == "array" else value
        if "$ref" not in inner and inner.get("properties"):
            rows += keys(document, inner, depth + 1)
    return rows


def table(document, schema):
    rows = keys(document, schema)
    return ["| key | value | |", "|---|---|---|", *rows, ""] if rows else []


def example(method, path, operation, parameters):
    names = {"job": "17", "node": "local-0", "queue": "vision/detection", "user": "ana", "token": "k3v9", "policy": "current", "simulation": "1", "reservation": "demo"}
    path = re.sub(r"\{(\w+)\}", lambda found: names[found.group(1)], path)
    given = {"min": "2", "max": "8", "value": "75", "port": "8888", "command": "%5B%22nvidia-smi%22%5D"}
    query = "&".join(f"{one['name']}={given[one['name']]}" for one in parameters if one.get("required") and one["in"] == "query")
    url = f"http://localhost/api/v1{path}" + (f"?{query}" if query else "")
    words = ["curl", "--unix-socket /run/muster/musterd.sock"]
    if method != "get":
        words.append(f"-X {method.upper()}")
    body = operation.get("requestBody")
    if body and "application/yaml" in body["content"]:
        words.append("--data-binary @" + next((file for word, file in (("Job", "job.yaml"), ("Policy", "policy.yaml")) if word in operation["operationId"]), "queues.yaml"))
    elif body:
        wish = {"queue": "vision", "gpus": 8, "from": "2026-11-20T09:00Z", "to": "2026-11-20T13:00Z"}
        values = {"editJob": {"priority": "high"}, "putUser": {"role": "viewer"}, "createToken": {"name": "laptop", "expires": "30d"},
                  "createSimulation": {"kind": "policy-diff", "since": "7d", "policy": {"preempt": "off"}},
                  "createReservation": {"name": "demo", **wish}, "putReservation": wish}
        words.append("-d '" + json.dumps(values[operation["operationId"]]) + "'")
    if operation["responses"].get("101"):
        words[1:1] = ["--http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' "
                      "-H 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='"]
    return " ".join(words) + f" '{url}'"


def call(document, method, path, item, operation):
    parameters = [follow(document, one) for one in item.get("parameters", []) + operation.get("parameters", [])]
    out = [f"### {operation['operationId']}", "", f"`{method.upper()} {path}`: {one_line(operation['summary'])}.", ""]
    if operation.get("description"):
        out += [operation["description"].strip(), ""]
    out += [f"Role: {ROLES[operation['x-role']]}.", ""]
    if parameters:
        out += ["| parameter | in | value | |", "|---|---|---|---|"]
        for one in parameters:
            must = ", required" if one.get("required") and one["in"] != "path" else ""
            out.append(f"| `{one['name']}` | {one['in']} | {kind(document, one['schema'])}{must} | {cell(one.get('description'))} |")
        out.append("")
    body = operation.get("requestBody")
    if body:
        kinds = list(body["content"])
        most = operation.get("x-max-body", 1 << 20) >> 20
        out += [f"Body: {' or '.join(f'`{name}`' for name in kinds)}, at most {most} MiB"
                + (" ([files](files.md))." if "application/yaml" in kinds else ":"), ""]
        out += table(document, follow(document, body["content"][kinds[-1]].get("schema", {})))
    out += ["| status | answer |", "|---|---|"]
    own = []
    for status, response in operation["responses"].items():
        if status == "default" or status >= "400":
            continue
        response = follow(document, response)
        shown = []
        for name, content in response.get("content", {}).items():
            schema = content.get("schema", {})
            shown.append(kind(document, schema) if "$ref" in schema else f"`{name}`")
            if "$ref" not in schema:
                own = table(document, schema)
        headers = "".join(f"; header `{name}`" for name in response.get("headers", {}))
        out.append(f"| {status} | {cell(response['description'])}" + (f": {', '.join(shown)}" if shown else "") + headers + " |")
    refused = sorted(status for status in operation["responses"] if status.startswith(("4", "5")))
    out.append(f"| {', '.join(refused)} | [Problem](#problem) |")
    out += ["", *own, "```sh", example(method, path, operation, parameters), "```", ""]
    return out


def page():
    document = yaml.safe_load(SOURCE.read_text())
    schemas = document["components"]["schemas"]
    problem = "\n".join(table(document, schemas["Problem"])).strip()
    out = [HEAD.format(description=document["info"]["description"], problem=problem).rstrip(), ""]
    calls = [(method, path, item, item[method]) for path, item in document["paths"].items() for method in METHODS if method in item]
    out += ["| call | | role |", "|---|---|---|"]
    for method, path, _, operation in calls:
        name = operation["operationId"]
        out.append(f"| [`{method.upper()} {path}`](#{name.lower()}) | {cell(operation['summary'])} | {operation['x-role']} |")
    out.append("")
    for one in calls:
        out += call(document, *one)
    out += ["## Objects", ""]
    for name, schema in schemas.items():
        if schema.get("type") == "object":
            out += [f"### {name}", ""]
            out += [one_line(schema["description"]) + ".", ""] if schema.get("description") else []
            out += table(document, schema)
        elif "$ref" in schema:
            out += [f"### {name}", "", f"The same as {kind(document, schema)}.", ""]
    return "\n".join(out).rstrip() + "\n"


def main():
    text = page()
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("docs/api.md is not what src/api/openapi.yaml says: run scripts/docs-api.py and commit it")
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
