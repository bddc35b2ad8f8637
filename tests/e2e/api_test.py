#!/usr/bin/env python3
"""api_test.py BUILD: the API against its OpenAPI document, in both directions, and who may do what, call by call.

Every documented call is made against a real musterd and its answer checked against the schema of that status; what is not
documented must not answer. The same calls are then made as every kind of caller.
"""
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import jsonschema

import e2e_test
from daemon import Refused
from e2e_test import TELLS, Case, job, moment

QUEUES = {"queues": [{"name": "open"},
                     {"name": "vision", "quota": {"gpus": 2}, "members": {"user:mail": "queue-admin", "user:games": "user",
                                                                          "user:news": "viewer"}},
                     {"name": "vision/detection"}, {"name": "vision/empty"}]}


LISTEN = "exec python3 -m http.server {} --bind 127.0.0.1 --directory /proc/self/fdinfo"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def parse_metrics(text):
    """The families of the text format; fails on anything that is not of it, on series twice and on histograms that do not add up."""
    families, now = {}, None
    label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
    line_form = re.compile(rf"([a-z_:][a-z0-9_:]*)(?:\{{({label}(?:,{label})*)\}})? ([-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|Inf))")
    assert text.endswith("\n")
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if line.startswith("# HELP "):
            now = line.split(" ", 3)[2]
            assert now not in families, f"{now} is headed twice"
            kind = lines[index + 1].split(" ")
            assert kind[:3] == ["#", "TYPE", now] and kind[3] in ("counter", "gauge", "histogram"), lines[index + 1]
            families[now] = {"type": kind[3], "series": {}}
            assert (kind[3] == "counter") == now.endswith("_total") or now == "muster_revision", now
            assert now.startswith(("muster_", "process_")), now
            continue
        if line.startswith("# TYPE "):
            continue
        found = line_form.fullmatch(line)
        assert found, line
        name, labels, value = found.groups()
        ends = ("_bucket", "_sum", "_count") if families[now]["type"] == "histogram" else ("",)
        assert name in [now + end for end in ends], f"{name} under {now}"
        pairs = (one.split("=", 1) for one in re.findall(label, labels or ""))
        key = name, tuple(sorted((word, text[1:-1]) for word, text in pairs))
        assert key not in families[now]["series"], f"{key} stands twice"
        families[now]["series"][key] = float(value)
    for name, family in families.items():
        if family["type"] != "histogram":
            continue
        for (series, labels), count in family["series"].items():
            if series != name + "_count":
                continue
            buckets = [(float(dict(of)["le"].replace("+Inf", "inf")), value) for (one, of), value in family["series"].items()
                       if one == name + "_bucket" and {pair for pair in of if pair[0] != "le"} == set(labels)]
            assert [bound for bound, _ in buckets] == sorted(bound for bound, _ in buckets) and buckets[-1] == (float("inf"), count), series
            assert [value for _, value in buckets] == sorted(value for _, value in buckets), series
    return families


class Documented(Case):
    options = ("--traces", str(e2e_test.ROOT / "examples" / "lab"))

    def setUp(self):
        super().setUp()
        self.called, self.refused = set(), set()
        self.document = self.daemon.call("GET", "openapi.json")
        self.operations = {}
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                if method in ("get", "post", "put", "patch", "delete"):
                    self.operations[operation["operationId"]] = (method.upper(), path, operation)
        self.daemon.heard = self.hear
        self.daemon.call("POST", "queues", QUEUES)
        self.daemon.call("PUT", "users/eva", {"role": "viewer", "groups": ["staff"]})

    def hear(self, method, path, status):
        """Every answer must have its status in the document, by its own number."""
        path = "/" + urllib.parse.unquote(path.split("?")[0])
        for known, documented, operation in self.operations.values():
            pattern = "".join(r".+" if part == "{queue}" else r"[^/]+" if part.startswith("{") else re.escape(part)
                              for part in re.split(r"(\{\w+\})", documented))
            if known == ("GET" if method == "HEAD" else method) and re.fullmatch(pattern, path) and (":" in documented) == bool(re.search(r":\w+$", path)):
                if status != 405:  # of another method on the same path
                    self.assertIn(str(status), operation["responses"], f"{method} {path} answers with {status}, which is not documented")
                return
        self.assertIn(status, (404, 405), f"{method} {path}")

    def raw(self, method, path, body=None, headers=None):
        link = self.daemon.connect()
        link.request(method, "/api/v1/" + path, body if body is None or isinstance(body, (str, bytes)) else json.dumps(body),
                     headers or {})
        answer = link.getresponse()
        data = answer.read()
        link.close()
        self.hear(method, path, answer.status)
        return answer, data

    def check(self, name, path, body=None, headers=None, status=None):
        """Makes the call and holds its answer against the document."""
        method, _, operation = self.operations[name]
        answer, data = self.raw(method, path, body, headers)
        responses = operation["responses"]
        said = responses[str(answer.status)]
        if status is not None:
            self.assertEqual(answer.status, status, f"{name}: {data[:500]}")
        elif answer.status >= 400:
            self.fail(f"{name}: {answer.status} {data[:500]}")
        while "$ref" in said:
            said = self.follow(said["$ref"])
        kind = answer.headers.get_content_type()
        self.assertIn(kind, said.get("content", {kind: {}}), f"{name} answers with {kind}")
        schema = said.get("content", {}).get(kind, {}).get("schema")
        value = json.loads(data) if kind.endswith("json") else data
        if schema:
            jsonschema.Draft202012Validator({**schema, "components": self.document["components"]}).validate(value)
        for header in said.get("headers", {}) if "dry_run" not in path else ():
            self.assertIsNotNone(answer.headers.get(header), f"{name} has no header {header}")
        (self.called if answer.status < 400 else self.refused).add(name)
        return value

    def socket(self, name, path):
        """Asks for a WebSocket, which is all that is documented of the call."""
        link = self.daemon.connect()
        link.request("GET", "/api/v1/" + path, headers={"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                                                        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        answer = link.getresponse()
        self.assertEqual((answer.status, answer.reason), (101, "Switching Protocols"), name)
        self.assertIn("101", self.operations[name][2]["responses"])
        link.close()
        self.called.add(name)

    def follow(self, reference):
        at = self.document
        for word in reference.lstrip("#/").split("/"):
            at = at[word]
        return at

    def reporting(self, submit, name):
        """A job that has told a step and a model, and runs on."""
        one = submit({**job("", name=name, queue="open", checkpoint={"grace": "0s"}), "gpus": 0, "command": [sys.executable, "-c", TELLS]})
        self.until(lambda: any(run["name"] == name and {"step", "model"} <= run["status"].keys() for run in self.daemon.call("GET", "runs")["runs"]))
        return one

    def test_every_documented_call_answers_as_documented(self):
        made = self.check("submitJobs", "jobs", job("echo hi; sleep 600", name="one", queue="open", labels={"a": "b"}))
        one = made["jobs"][0]["id"]
        self.daemon.wait(one, ("running",))
        port = free_port()
        shell = self.daemon.submit({**job(LISTEN.format(port), name="shell", queue="open"), "gpus": 0, "terminal": True})
        self.until(lambda: listens(port))
        for name, path in (("attachJob", "attach"), ("execJob", "exec?command=%5B%22true%22%5D"), ("forwardPort", f"forward?port={port}")):
            self.socket(name, f"jobs/{shell}/{path}")
        self.check("submitJobs", "jobs?dry_run=1", job("true", queue="open"), status=200)
        array = self.check("submitJobs", "jobs", {"jobs": [job("true", name="arr", array="0-3", queue="open")]})["jobs"][0]["id"]
        self.check("submitJobs", "jobs", "name: [", status=422)
        self.check("listJobs", "jobs?all=1&limit=2")
        self.check("listJobs", "jobs?filter=phase=running&sort=-priority&queue=open&user=root")
        self.check("listJobs", "jobs?limit=0", status=400)
        self.daemon.wait(self.daemon.submit(job("exit 1", name="bad", queue="open")), ("failed",))
        for query in ("phase=failed", "filter=phase=failed", "filter=status.phase=failed,name=bad"):
            self.assertEqual([item["name"] for item in self.check("listJobs", "jobs?" + query)["jobs"]], ["bad"], query)
        self.assertIn("newest first", self.check("listJobs", "jobs?phase=failed&sort=name", status=400)["title"])
        placed = [event["facts"] for event in self.check("listJobEvents", f"jobs/{one}/events")["events"] if event["kind"] == "worker-placed"]
        self.assertEqual([type(gpu) for gpu in placed[0]["devices"]], [int])
        self.assertEqual(self.check("getJob", f"jobs/{one}")["labels"], {"a": "b"})
        self.check("getJob", f"jobs/{array}")
        self.check("getJob", "jobs/nothing", status=404)
        self.check("explainJob", f"jobs/{one}/explain")
        for spec in ({"gpus": 4}, {"gpus": 1, "workers": "4..9"}):
            much = self.daemon.submit({**job("true", queue="open"), **spec})
            self.assertIn("gate", self.check("explainJob", f"jobs/{much}/explain"))
            self.check("cancelJob", f"jobs/{much}:cancel")
        self.check("listWorkers", f"jobs/{one}/workers")
        self.check("listJobEvents", f"jobs/{one}/events")
        self.assertTrue(self.check("listJobDecisions", f"jobs/{one}/decisions")["decisions"])
        self.check("listCheckpoints", f"jobs/{one}/checkpoints")
        self.check("listArrays", "arrays")
        self.check("readLogs", f"jobs/{one}/logs")
        self.check("planJob", "plan", job("true", queue="open"))
        self.check("editJob", f"jobs/{one}", {"priority": "high"})
        for verb in ("priority?value=60", "scale?min=1&max=1", "checkpoint", "suspend"):
            name = {"priority": "prioritizeJob"}.get(verb.split("?")[0], verb.split("?")[0] + "Job")
            self.check(name, f"jobs/{one}:{verb.replace('?', '?dry_run=1&') if '?' in verb else verb + '?dry_run=1'}")
            self.check(name, f"jobs/{one}:{verb}")
        self.until(lambda: self.phase(one) == "suspended")
        self.check("resumeJob", f"jobs/{one}:resume")
        self.daemon.wait(one, ("running",))
        self.check("requeueJob", f"jobs/{one}:requeue")
        held = self.check("submitJobs", "jobs?held=1", job("true", queue="open"))["jobs"][0]["id"]
        self.check("planWaitingJob", f"jobs/{held}/plan")
        self.check("planWaitingJob", "jobs/nothing/plan", status=404)
        self.check("holdJob", f"jobs/{held}:hold")
        self.check("releaseJob", f"jobs/{held}:release")
        self.check("cancelJob", f"jobs/{one}:cancel")
        self.check("cancelJob", "jobs/9999:cancel", status=404)
        node = self.check("listNodes", "nodes")["nodes"][0]["name"]
        self.check("getNode", f"nodes/{node}")
        for verb in ("cordon", "drain", "uncordon"):
            self.check(verb + "Node", f"nodes/{node}:{verb}")
        self.check("listGpus", "gpus")
        self.check("listPools", "pools")
        self.check("getTopology", "topology")
        self.check("listQueues", "queues")
        self.check("applyQueues", "queues", QUEUES)
        self.check("getQueue", "queues/vision/detection")
        self.check("putQueue", "queues/open", {"queues": [{"name": "open", "weight": 2}]})
        self.check("putQueue", "queues/open", {"queues": [{"name": "open"}]}, {"If-Match": '"old"'}, status=412)
        self.check("deleteQueue", "queues/vision/detection")
        self.check("applyPolicy", "policies?dry_run=1", {"policy": {"grow": "off"}})
        self.check("applyPolicy", "policies", "policy: {decay_half_life: 3d}\nname: slow\n")
        self.check("applyPolicy", "policies", {"policy": {"grow": "never"}}, status=422)
        self.check("applyPolicy", "policies", {"policy": {}}, {"If-Match": '"old"'}, status=412)
        for policy in ("current", "default", "1"):
            self.check("getPolicy", f"policies/{policy}")
        self.check("getPolicy", "policies/2", status=404)
        self.check("undoPolicy", "policies/default:undo", status=409)
        self.check("undoPolicy", "policies/1:undo")
        self.check("undoPolicy", "policies/current:undo", status=409)
        self.check("listPolicies", "policies")
        wish = {"name": "demo", "queue": "vision", "gpus": 2, "from": moment(360000), "to": moment(367200), "about": "for ana"}
        self.check("createReservation", "reservations?dry_run=1", wish, status=200)
        self.check("createReservation", "reservations", wish, status=201)
        self.check("createReservation", "reservations", wish, status=409)
        self.check("createReservation", "reservations", {"name": "more", "gpus": 3, "from": moment(360000), "to": moment(367200)}, status=422)
        self.check("listReservations", "reservations?filter=phase=upcoming&sort=-spec.from")
        spec = self.check("getReservation", "reservations/demo")["spec"]
        self.check("putReservation", "reservations/demo?dry_run=1", {**spec, "gpus": 1})
        self.check("putReservation", "reservations/demo", {**spec, "gpus": 1})
        self.check("getReservation", "reservations/none", status=404)
        self.check("deleteReservation", "reservations/demo")
        self.check("deleteReservation", "reservations/demo", status=404)
        run = self.reporting(self.daemon.submit, "tells")
        self.check("listRuns", "runs?filter=status.step>=7&sort=-status.loss".replace(">", "%3E"))
        self.assertEqual([point["numbers"] for point in self.check("getRun", f"runs/{run}")["points"]], [{"loss": 0.5, "odd": "nan"}])
        self.assertEqual(self.check("getRun", "runs/tells")["status"]["model"], {"path": "/m", "hash": "00ff", "numbers": {"test_loss": "inf"}})
        self.check("getRun", f"runs/{one}", status=404)
        self.check("listDecisions", "decisions")
        for by in ("user", "queue", "job"):
            self.check("getUsage", f"usage?by={by}")
        self.check("watchEvents", "events?limit=5")
        self.check("listAudit", "audit")
        self.check("listUsers", "users")
        self.check("putUser", "users/max", {"role": "user"})
        self.check("getUser", "users/max")
        self.check("deleteUser", "users/max")
        token = self.check("createToken", "tokens", {"name": "laptop"})
        self.check("listTokens", "tokens")
        self.check("getToken", f"tokens/{token['id']}")
        self.check("revokeToken", f"tokens/{token['id']}")
        replay = self.check("createSimulation", "simulations", {"kind": "policy-diff", "since": "1h", "policy": {"grow": "off"}}, status=202)["id"]
        self.until(lambda: self.check("getSimulation", f"simulations/{replay}")["status"]["phase"] == "done")
        self.assertIn("recorded", self.check("getSimulation", f"simulations/{replay}")["result"]["totals"])
        self.check("listSimulations", "simulations?filter=status.phase=done")
        self.check("deleteSimulation", f"simulations/{replay}")
        self.check("deleteSimulation", f"simulations/{replay}", status=404)
        wrong = self.check("createSimulation", "simulations", {"kind": "policy-diff", "policy": {"grw": "off"}}, status=422)
        self.assertEqual(wrong["path"], "policy.grw")
        trace = {"kind": "jobs", "trace": "name,user,queue,submit_s,gpus,duration_s\na,u,q,0,1,60\nb,u,q,10,1,60\n", "node_count": 1, "gpus_per_node": 1, "policy": {}}
        replay = self.check("createSimulation", "simulations", trace, status=202)["id"]
        self.until(lambda: self.check("getSimulation", f"simulations/{replay}")["status"]["phase"] == "done")
        self.assertEqual(self.check("getSimulation", f"simulations/{replay}")["result"]["totals"]["new"]["wait_s"], 25)
        self.assertEqual(self.check("createSimulation", "simulations", {**trace, "trace": "a,b\n1,2\n"}, status=422)["path"], "trace")
        made = self.check("createSimulation", "simulations", {"kind": "jobs", "generate": {"jobs": 20, "seed": 3}, "policy": {}}, status=202)["id"]
        self.until(lambda: self.check("getSimulation", f"simulations/{made}")["status"]["phase"] == "done")
        self.assertEqual(self.check("getSimulation", f"simulations/{made}")["result"]["jobs"], 20)
        self.check("getSimulationReport", "simulations/999/report", status=404)
        for wish, runs in (({"kind": "pollux", "profiles": "pollux", "policies": ["tiresias", "muster"], "seeds": 2}, 4),
                           ({"kind": "jobs", "workload": "jobs.csv", "policies": ["muster", "tiresias"]}, 2),
                           ({"kind": "jobs", "generate": {"jobs": 20}, "policies": ["fifo"], "node_count": 9}, 1),
                           ({"kind": "openb", "nodes": "openb/nodes.csv", "pods": "openb/pods.csv", "policies": ["fgd"], "seed": 42}, 1)):
            made = self.check("createSimulation", "simulations", wish, status=202)["id"]
            self.until(lambda: self.check("getSimulation", f"simulations/{made}")["status"]["phase"] == "done")
            self.assertEqual(len(self.check("getSimulation", f"simulations/{made}")["runs"]), runs)
            self.assertIn(b"<h1>", self.check("getSimulationReport", f"simulations/{made}/report"))
        wrong = self.check("createSimulation", "simulations", {"kind": "openb", "nodes": "a", "pods": "b", "policies": ["tetris"]}, status=422)
        self.assertEqual(wrong["path"], "policies")
        for wish, path in (({"kind": "openb", "nodes": "../x", "pods": "openb/pods.csv", "policies": ["fgd"]}, "nodes"),
                           ({"kind": "pollux", "profiles": "moon", "policies": ["muster"]}, "profiles"),
                           ({"kind": "pollux", "profiles": "pollux", "policies": ["muster"], "node_count": 2000}, "node_count"),
                           ({"kind": "jobs", "workload": "../jobs.csv", "policies": ["muster"]}, "workload")):
            self.assertEqual(self.check("createSimulation", "simulations", wish, status=422)["path"], path)
        for wish in ({"kind": "jobs", "workload": "jobs.csv"}, {"kind": "jobs", "workload": "jobs.csv", "generate": {"jobs": 9}, "policy": {}}):
            self.check("createSimulation", "simulations", wish, status=422)
        for name, path in (("whoAmI", "whoami"), ("exportSnapshot", "snapshots"), ("exportPast", "snapshots/past?since=1h"), ("getHealth", "health"), ("getReady", "ready"),
                           ("getVersion", "version"), ("getOpenApi", "openapi.json"), ("getMetrics", "metrics")):
            self.check(name, path)
        self.assertEqual(set(self.operations) - self.called, set(), "documented and not called here")

    def test_the_metrics_are_lines_of_the_format_and_tell_of_muster_itself(self):
        self.raw("GET", "nothing")
        self.daemon.call("GET", "jobs")
        one = self.daemon.submit({**job("true", queue="open"), "gpus": 0})
        self.daemon.wait(one)
        stream = self.daemon.connect()
        stream.request("GET", "/api/v1/events?watch=1")
        watch = stream.getresponse()
        self.assertEqual(watch.status, 200)
        self.until(lambda: b"muster_watchers 1\n" in self.raw("GET", "metrics")[1])
        answer, data = self.raw("GET", "metrics")
        watch.close()
        stream.close()
        self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        types, series = parse_metrics(data.decode()), {}
        for family in types.values():
            series.update(family["series"])
        value = lambda name, **labels: series[name, tuple(sorted(labels.items()))]
        self.assertGreater(value("muster_store_commit_seconds_count"), 0)
        self.assertGreater(value("muster_scheduler_cycle_seconds_count"), 0)
        self.assertGreater(value("muster_store_bytes"), 1000)
        self.assertEqual((value("muster_store_writable"), value("muster_store_commit_errors_total")), (1, 0))
        self.assertEqual(value("muster_http_answers_total", **{"operation": "none", "class": "4xx"}), 1)
        self.assertEqual(value("muster_http_answers_total", **{"operation": "submitJobs", "class": "2xx"}), 1)
        self.assertEqual(value("muster_http_answer_seconds_count", operation="submitJobs"), 1)
        self.assertGreaterEqual(value("muster_http_connections"), 2)
        self.assertEqual((value("muster_http_streams"), value("muster_watchers")), (1, 1))
        operations = {dict(labels).get("operation", "none") for _, labels in series} - {"none"}
        self.assertLessEqual(operations, set(self.operations))

    def lists(self):
        """Every list call, as (name, path, noun, key that tells its items apart, a sort, a filter that holds for some or all)."""
        one = self.daemon.submit({**job("sleep 600", name="gang", queue="open"), "workers": 3, "gpus": 1})
        self.daemon.wait(one, ("running",))
        saves = self.daemon.submit({**job("", name="saves", queue="open", checkpoint={"grace": "0s"}), "workers": 3, "gpus": 0, "framework": "muster", "command": [
            sys.executable, "-c", "import json, os, socket, time\n"
            "link = socket.socket(socket.AF_UNIX); link.connect(os.environ['MUSTER_SOCKET'])\n"
            "for said in ({'type': 'hello', 'version': 1}, {'type': 'report', 'step': 7, 'numbers': {'loss': 0.5}}, {'type': 'checkpointed', 'step': 7, 'path': 'p'}):\n"
            "    link.sendall(json.dumps(said).encode() + b'\\n')\n"
            "time.sleep(600)"]})
        self.until(lambda: len(self.daemon.call("GET", f"jobs/{saves}/checkpoints")["checkpoints"]) == 3)
        self.reporting(self.daemon.submit, "second")
        self.daemon.call("PUT", "users/max", {"role": "user"})
        for name in ("sweep", "other"):
            self.daemon.call("POST", "jobs?held=1", {**job("true", name=name, queue="open", array="0-1"), "gpus": 0})
        self.daemon.call("POST", "tokens", {"name": "a"})
        self.daemon.call("POST", "tokens", {"name": "b"})
        for limit in (1, 2):
            self.daemon.call("POST", "policies", {"policy": {"move_limit": limit}})
        for name, gpus in (("now", 1), ("soon", 2)):
            self.daemon.call("POST", "reservations", {"name": name, "queue": "open", "gpus": gpus, "from": moment(360000), "to": moment(367200)})
        replays = [self.daemon.call("POST", "simulations", {"kind": "policy-diff", "since": "1h", "policy": {}})["id"] for _ in range(2)]
        self.until(lambda: all(self.daemon.call("GET", f"simulations/{one}")["status"]["phase"] == "done" for one in replays))
        return [("listNodes", "nodes", "nodes", "id", "-gpus_total", "phase=ready"),
                ("listPolicies", "policies", "policies", "id", "id", "in_force=true,policy.move_limit=2"),
                ("listGpus", "gpus", "gpus", "id", "-gpu", "phase=held"),
                ("listPools", "pools", "pools", "id", "-name", "spec.nodes>=1"),
                ("listQueues", "queues", "queues", "id", "-gpu_quota", "name~vision"),
                ("listUsers", "users", "users", "id", "role", "role!=viewer"),
                ("listArrays", "arrays", "arrays", "id", "-name", "status.tasks>=2"),
                ("listTokens", "tokens", "tokens", "id", "-created_at", "name=b"),
                ("listReservations", "reservations", "reservations", "id", "-spec.gpus", "phase=upcoming,spec.gpus>=2"),
                ("listRuns", "runs", "runs", "id", "-status.best_loss", "phase=running,best_loss<1,numbers.loss=0.5"),
                ("listSimulations", "simulations", "simulations", "id", "-id", "status.phase=done"),
                ("listWorkers", f"jobs/{one}/workers", "workers", "id", "-worker", "phase=running,worker>=1"),
                ("listJobEvents", f"jobs/{one}/events", "events", "revision", "revision", "kind~worker,facts.worker>=1"),
                ("watchEvents", "events", "events", "revision", "-revision", "kind=job-submitted"),
                ("listDecisions", "decisions", "decisions", "revision", "revision", "worker>0"),
                ("listJobDecisions", f"jobs/{one}/decisions", "decisions", "revision", "revision", "what=start,worker=2"),
                ("listCheckpoints", f"jobs/{saves}/checkpoints", "checkpoints", "revision", "revision", "step>=1"),
                ("listAudit", "audit", "audit", "id", "-id", "operation=submitJobs"),
                ("getUsage", "usage?by=job", "usage", "id", "-gpu_hours", "running>=1"),
                ("listJobs", "jobs", "jobs", "id", "-priority", "phase=running")]

    def walk(self, name, path, noun):
        """All items, page by page; each page is as documented."""
        items, cursor = [], ""
        while True:
            page = self.check(name, path + cursor)
            self.assertIn("revision", page)
            self.assertLessEqual(len(page[noun]), 1)
            items += page[noun]
            if "next" not in page:
                return items
            cursor = "&cursor=" + page["next"]

    def test_every_list_is_paged_filtered_sorted_and_picked_from(self):
        self.called = set()
        lists = self.lists()
        listing = {name for name, (_, _, operation) in self.operations.items()
                   if any(p.get("$ref", "").endswith("/fields") for p in operation.get("parameters", []))}
        self.assertEqual({name for name, *_ in lists}, listing - {"getJob"}, "every list is in here")
        self.daemon.call("POST", "nodes/" + self.daemon.call("GET", "nodes")["nodes"][0]["name"] + ":cordon")  # nothing happens
        for name, path, noun, key, sort, wanted in lists:
            path += "&" if "?" in path else "?"
            with self.subTest(name):
                whole = self.check(name, path + "limit=1000")
                self.assertNotIn("next", whole)
                of = lambda items: [item[key] for item in items if key != "revision" or item[key] <= whole["revision"]]  # what is new is left out
                ids = of(whole[noun])
                self.assertEqual(len(ids), len(set(ids)))
                self.assertEqual(sorted(of(self.walk(name, path + "limit=1", noun))), sorted(ids))
                ordered = of(self.check(name, path + "limit=1000&sort=" + sort)[noun])
                self.assertEqual(sorted(ordered), sorted(ids))
                self.assertEqual(of(self.walk(name, path + "limit=1&sort=" + sort, noun)), ordered)
                wanted = wanted.replace("phase=ready", "phase=cordoned").replace("<", "%3C").replace(">", "%3E")
                some = [item[key] for item in self.check(name, path + "limit=1000&filter=" + wanted)[noun]]
                self.assertTrue(some, wanted)
                self.assertEqual([one for one in ids if one in some], sorted(some, key=ids.index))
                self.assertEqual({item[key] for item in self.walk(name, path + "limit=1&filter=" + wanted, noun)}, set(some))
                picked = json.loads(self.raw("GET", path + "limit=2&fields=" + key)[1])[noun]
                self.assertTrue(all(set(item) == {key} for item in picked), picked)
                for wrong, where in (("filter=colour=red", "filter"), ("filter=ready", "filter"), ("sort=colour", "sort"),
                                     ("cursor=zz", "cursor"), ("limit=0", "limit"), ("fields=" + "a," * 40, "fields"),
                                     ("fields=colour", "fields"), (f"fields={key},colour.red", "fields")):
                    problem = self.check(name, path + wrong, status=400)
                    self.assertEqual((problem["code"], problem["path"]), ("usage", where), wrong)
                    if wrong == "fields=colour":
                        self.assertIn(key, problem["hint"])
        self.assertLess(len(self.check("listGpus", "gpus?filter=phase=held")["gpus"]), len(self.check("listGpus", "gpus")["gpus"]))

    def test_objects_have_one_shape_and_say_when_they_changed(self):
        self.called = set()
        self.lists()
        for noun in ("nodes", "gpus", "pools", "queues", "users", "tokens", "reservations"):
            for item in self.daemon.call("GET", noun)[noun]:
                self.assertLessEqual({"id", "name", "spec", "status", "created_at", "revision"}, set(item), noun)
                self.assertGreater(item["revision"], 0)
        node = self.daemon.call("GET", "nodes")["nodes"][0]
        self.daemon.call("POST", f"nodes/{node['id']}:cordon")
        now = self.daemon.call("GET", f"nodes/{node['id']}")
        self.assertGreater(now["revision"], node["revision"])
        self.assertEqual((now["spec"]["cordoned"], now["status"]["phase"]), (True, "cordoned"))
        before = {queue["id"]: queue["revision"] for queue in self.daemon.call("GET", "queues")["queues"]}
        self.daemon.call("PUT", "queues/open", {"queues": [{"name": "open", "quota": {"gpus": "unlimited"}}]})
        after = {queue["id"]: queue["revision"] for queue in self.daemon.call("GET", "queues")["queues"]}
        self.assertEqual([name for name in after if after[name] != before[name]], ["open"])
        self.assertNotIn("9223372036854775807", json.dumps(self.daemon.call("GET", "events?limit=1000")))
        self.assertEqual(self.daemon.call("GET", "queues/open")["spec"]["quota"], {"gpus": "unlimited"})

    def test_words_that_are_not_listed_are_refused_with_those_that_are(self):
        self.called = set()
        for name, path, listed in (("watchEvents", "events?kinds=foo", "job-ended"), ("watchEvents", "events?watch=1&kinds=job-ended,foo", "job-held"),
                                   ("listAudit", "audit?operation=shout", "cancelJob"), ("getUsage", "usage?by=colour", "queue"),
                                   ("listJobs", "jobs?phase=asleep", "running")):
            problem = self.check(name, path, status=400)
            self.assertIn(listed, problem["title"])
        self.check("watchEvents", "events?kinds=job-ended,cycle-ran")
        for name in self.operations:
            if self.operations[name][0] != "GET" and name not in ("planJob", "createSimulation", "deleteSimulation"):
                self.check("listAudit", "audit?operation=" + name)

    def test_nothing_undocumented_answers(self):
        self.assertEqual(self.raw("POST", "nothing", {"a": 1})[0].status, 404, "with a body as well")
        for method, path, status in (("GET", "nothing", 404), ("GET", "jobs/1/secrets", 404), ("POST", "jobs/1:explode", 404),
                                     ("DELETE", "jobs", 405), ("PUT", "nodes", 405), ("GET", "jobs?colour=red", 400),
                                     ("GET", "../metrics", 404), ("GET", "", 404), ("GET", "jobs/", 404), ("GET", "/jobs", 404),
                                     ("GET", "queues/vision//detection", 404), ("POST", "jobs/", 404), ("HEAD", "plan", 405)):
            answer, data = self.raw(method, path)
            self.assertEqual(answer.status, status, f"{method} {path}: {data[:200]}")
            self.assertEqual(answer.headers.get_content_type(), "application/problem+json")
        self.assertEqual(self.raw("PUT", "jobs")[0].headers["Allow"], "GET, HEAD, POST")

    def test_the_head_of_an_answer_can_be_had_alone(self):
        one = self.daemon.submit({**job("echo hi; sleep 600", queue="open"), "gpus": 0})
        self.daemon.wait(one, ("running",))
        for path in (f"jobs/{one}", "jobs", "version", f"jobs/{one}/logs?follow=1", "events?watch=1", "metrics"):
            link = self.daemon.connect()
            link.request("HEAD", "/api/v1/" + path)
            answer = link.getresponse()
            self.assertEqual((answer.status, answer.read()), (200, b""), path)
            link.request("GET", "/api/v1/health")  # nothing of the first answer is in the way
            self.assertEqual(json.loads(link.getresponse().read()), {"status": "ok"}, path)
            link.close()
        self.assertEqual(self.raw("HEAD", f"jobs/{one}")[0].headers["ETag"], self.raw("GET", f"jobs/{one}")[0].headers["ETag"])
        self.assertEqual(self.raw("HEAD", "jobs/nothing")[0].status, 404)

    def test_jobs_are_found_by_all_that_they_show_and_gpus_by_who_holds_them(self):
        one = self.daemon.submit(job("sleep 600", name="one", queue="open"))
        two = self.daemon.submit(job("sleep 600", name="two", queue="open"))
        for each in (one, two):
            self.daemon.wait(each, ("running",))
        ids = lambda query: [item["id"] for item in self.check("listJobs", "jobs?sort=id&filter=" + urllib.parse.quote(query))["jobs"]]
        made = self.daemon.call("GET", f"jobs/{two}")["created_at"]
        self.assertEqual(ids("status.phase=running,created_at>=2020-01-01,status.gpus=1,workers_running=1"), [one, two])
        self.assertIn(two, ids(f"created_at={made}"))
        self.assertEqual(ids("created_at<2020-01-01"), [])
        self.assertEqual([item["id"] for item in self.check("listJobs", "jobs?sort=-status.gpus_asked")["jobs"]], [two, one])
        held = lambda query: [item["status"]["jobs"][0]["id"] for item in self.check("listGpus", "gpus?filter=" + query)["gpus"]]
        self.assertEqual(held(f"jobs.id={two}"), [two])
        self.assertEqual(sorted(held("status.jobs.user=root")), [one, two])
        self.assertEqual(len(self.check("listGpus", "gpus?filter=jobs.user!=root")["gpus"]), 2)
        problem = self.check("listJobs", "jobs?filter=status.colour=red", status=400)
        self.assertIn("status.workers_running", problem["hint"])

    def test_a_stream_refuses_what_is_for_pages(self):
        for more in ("fields=kind", "limit=5", "sort=revision", "cursor=5", "filter=kind=job-ended"):
            problem = self.check("watchEvents", "events?watch=1&" + more, status=400)
            self.assertEqual((problem["path"], problem["hint"]), (more.split("=")[0], "it takes kinds and since"))

    def test_a_caller_has_few_choices_of_kinds_and_gets_one_back_when_a_stream_ends(self):
        kinds = self.daemon.call("GET", "openapi.json")["components"]["schemas"]["EventKind"]["enum"]
        links = []
        for number in range(16):
            link = self.daemon.connect()
            link.request("GET", f"/api/v1/events?watch=1&kinds={kinds[number]},{kinds[number + 1]}")
            self.assertEqual(link.getresponse().status, 200)
            links.append(link)
        same = self.daemon.connect()
        same.request("GET", f"/api/v1/events?watch=1&kinds={kinds[1]},{kinds[0]},{kinds[1]}")
        self.assertEqual(same.getresponse().status, 200)  # a choice that is there, in other words
        self.check("watchEvents", f"events?watch=1&kinds={kinds[0]},{kinds[5]}", status=503)
        for link in (*links, same):
            link.close()

        def again():
            link = self.daemon.connect()
            link.request("GET", f"/api/v1/events?watch=1&kinds={kinds[0]},{kinds[5]}")
            status = link.getresponse().status
            link.close()
            return status == 200
        self.until(again)

    def test_what_is_no_upgrade_is_no_entry_and_actions_take_no_body(self):
        one = self.daemon.submit(job("sleep 600", name="entered", queue="open"))
        self.until(lambda: self.daemon.call("GET", f"jobs/{one}")["status"]["phase"] == "running")
        self.assertEqual(self.raw("GET", f"jobs/{one}/exec?command=%5B%22id%22%5D")[0].status, 400)
        self.assertEqual([row["operation"] for row in self.daemon.call("GET", f"audit?object=job%20{one}")["audit"]], ["submitJobs"])
        answer, data = self.raw("POST", f"jobs/{one}:cancel?dry_run=1", "{}")
        self.assertEqual((answer.status, "takes no body" in json.loads(data)["title"]), (400, True))
        for method in ("GET", "PUT"):
            answer, _ = self.raw(method, f"jobs/{one}:cancel")
            self.assertEqual((answer.status, answer.getheader("Allow")), (405, "POST"))

    def test_the_workers_of_a_batch_are_bounded_together(self):
        batch = {"jobs": [{**job("true", name=f"j{i}", queue="open"), "workers": "1..100000", "gpus": 0} for i in range(11)]}
        answer, data = self.raw("POST", "jobs?dry_run=1", batch)
        self.assertEqual((answer.status, "1100000 workers" in json.loads(data)["title"]), (422, True), data)

    def test_an_array_is_an_object_that_is_listed_and_explained(self):
        array = self.daemon.submit({**job("sleep 600", name="sweep", queue="open", array="0-5", env={"A": "b"}), "gpus": 1})
        self.until(lambda: self.daemon.call("GET", f"jobs/{array}")["status"]["active"] == 4)
        got = self.check("getJob", f"jobs/{array}")
        self.assertEqual((got["spec"]["array"], got["spec"]["env"]), ("0-5", {"A": "b"}))
        self.assertGreater(got["revision"], 0)
        self.assertEqual([(one["id"], one["status"]["tasks"]) for one in self.check("listArrays", "arrays")["arrays"]], [(array, 6)])
        why = self.check("explainJob", f"jobs/{array}/explain")
        self.assertEqual((why["array"], why["phase"], why["tasks"]["active"], why["tasks"]["waiting"]), (array, "waiting", 4, 2))
        self.assertIn("gate", why)
        workers = self.check("listWorkers", f"jobs/{array}/workers?limit=2")
        self.assertEqual([one["id"] for one in workers["workers"]], [f"{int(array) + 1}/0", f"{int(array) + 2}/0"])
        rest = self.check("listWorkers", f"jobs/{array}/workers?limit=2&cursor=" + workers["next"])["workers"]
        self.assertEqual([one["job"] for one in rest], [str(int(array) + 3), str(int(array) + 4)])
        for name, path in (("readLogs", "logs"), ("attachJob", "attach")):
            problem = self.check(name, f"jobs/{array}/{path}", status=422)
            self.assertIn("sweep[0]", problem["hint"])
        tag = {"If-Match": self.raw("GET", f"jobs/{array}")[0].headers["ETag"]}
        self.assertEqual(self.raw("POST", f"jobs/{array}:cancel", headers=tag)[0].status, 200)
        self.assertEqual(self.raw("POST", f"jobs/{array}:cancel", headers=tag)[0].status, 412)
        self.until(lambda: self.daemon.call("GET", f"jobs/{array}")["status"]["cancelled"] == 6)
        why = self.check("explainJob", f"jobs/{array}/explain")
        self.assertIn("6 cancelled", why["sentence"])

    def test_usage_by_job_has_a_row_for_each(self):
        ones = [self.daemon.submit({**job("sleep 600", name="twin", queue="open"), "gpus": 0}) for _ in range(2)]
        rows = self.check("getUsage", "usage?by=job")["usage"]
        self.assertEqual([(row["id"], row["name"], row["jobs"]) for row in rows], [(one, "twin", 1) for one in ones])
        self.assertEqual([(row["id"], row["jobs"]) for row in self.check("getUsage", "usage?by=user")["usage"]], [("root", 2)])

    def test_a_change_answers_with_the_tag_of_what_it_made(self):
        one = self.daemon.submit({**job("sleep 600", name="tagged", queue="open"), "gpus": 0})
        self.daemon.wait(one, ("running",))
        tag = self.raw("GET", f"jobs/{one}")[0].headers["ETag"]
        for method, path, body in (("POST", f"jobs/{one}:priority?value=60", None), ("PATCH", f"jobs/{one}", {"priority": "high"}),
                                   ("POST", f"jobs/{one}:priority?value=low", None)):
            answer, data = self.raw(method, path, body, {"If-Match": tag})
            self.assertEqual(answer.status, 200, data)
            self.assertNotEqual(answer.headers["ETag"], tag)
            tag = answer.headers["ETag"]
        self.assertEqual(self.raw("GET", f"jobs/{one}")[0].headers["ETag"], tag)
        self.assertEqual(self.daemon.call("GET", f"jobs/{one}")["priority"], 25)

    def test_parameters_that_make_no_sense_are_named_with_what_does(self):
        one = self.daemon.submit({**job("sleep 600", queue="open"), "gpus": 0})
        for name, verb, path, hint in (("prioritizeJob", "priority?value=urgent", "value", "critical"), ("prioritizeJob", "priority?value=-1", "value", "1000000"),
                                       ("scaleJob", "scale?min=3&max=2", "max", "min")):
            problem = self.check(name, f"jobs/{one}:{verb}", status=400)
            self.assertEqual(problem["path"], path)
            self.assertIn(hint, problem["hint"])
        problem = self.check("scaleJob", f"jobs/{self.daemon.submit(job('true', queue='open'))}:scale?min=90&max=90", status=422)
        self.assertEqual(problem["path"], "min")

    def test_a_dry_run_says_so_and_tells_what_would_become(self):
        self.assertTrue(self.check("submitJobs", "jobs?dry_run=1", job("true", queue="open"))["dry_run"])
        self.assertTrue(self.check("applyQueues", "queues?dry_run=1", QUEUES)["dry_run"])
        self.assertNotIn("dry_run", self.check("applyQueues", "queues", QUEUES))
        runs = self.daemon.submit({**job("sleep 600", queue="open"), "gpus": 0})
        self.daemon.wait(runs, ("running",))
        waits = self.check("submitJobs", "jobs?held=1", job("true", queue="open"))["jobs"][0]["id"]
        for one, verb, phase in ((runs, "cancel", "stopping"), (runs, "suspend", "stopping"), (runs, "requeue", "stopping"), (runs, "checkpoint", "running"),
                                 (runs, "priority?value=60", "running"), (waits, "cancel", "cancelled"), (waits, "release", "waiting"),
                                 (waits, "suspend", "suspended"), (waits, "hold", "held")):
            path = f"jobs/{one}:{verb}" + ("&" if "?" in verb else "?") + "dry_run=1"
            answer, data = self.raw("POST", path)
            self.assertEqual((answer.status, json.loads(data)["phase"], json.loads(data)["dry_run"]), (200, phase, True), path)
        self.assertEqual((self.phase(runs), self.phase(waits)), ("running", "held"))
        self.assertEqual(json.loads(self.raw("POST", f"jobs/{waits}:suspend")[1])["phase"], "suspended", "as it was told")

    def test_a_page_ends_where_the_next_begins_and_a_watch_goes_on_without_a_gap(self):
        self.daemon.call("POST", "nodes/" + self.daemon.call("GET", "nodes")["nodes"][0]["name"] + ":cordon")
        ids = [self.daemon.submit(job("true", name=f"n{i}", queue="open")) for i in range(7)]
        seen, cursor = [], ""
        while True:
            page = self.daemon.call("GET", "jobs?limit=3&sort=id" + cursor)
            seen += [one["id"] for one in page["jobs"]]
            if "next" not in page:
                break
            cursor = "&cursor=" + page["next"]
        self.assertEqual(seen, ids)
        link = self.daemon.connect()
        link.request("GET", f"/api/v1/events?watch=1&since={page['revision']}")
        stream = link.getresponse()
        late = self.daemon.submit(job("true", name="late", queue="open"))
        revisions, kinds = [], []
        while "job-submitted" not in kinds:
            line = stream.fp.readline().decode().strip()
            if line.startswith("id: "):
                revisions.append(int(line[4:]))
            if line.startswith("event: "):
                kinds.append(line[7:])
        self.assertEqual(revisions, list(range(page["revision"] + 1, page["revision"] + 1 + len(revisions))))
        link.close()
        again = self.daemon.connect()
        again.request("GET", "/api/v1/events?watch=1&kinds=job-submitted", headers={"Last-Event-ID": str(page["revision"])})
        stream = again.getresponse()
        text = ""
        while "data:" not in text:
            text += stream.fp.readline().decode()
        self.assertIn(f'"job":"{late}"', text)
        self.assertNotRegex(text, r'data: .*[,:] ["\d]', "no space is sent that means nothing")
        again.close()

    def test_watchers_that_join_while_much_happens_see_every_event_once(self):
        self.daemon.call("POST", "nodes/" + self.daemon.call("GET", "nodes")["nodes"][0]["name"] + ":cordon")
        busy = threading.Thread(target=lambda: [self.daemon.submit(job("true", name=f"b{i}", queue="open")) for i in range(200)])
        busy.start()
        streams = []
        while busy.is_alive() or not streams:
            since = self.daemon.call("GET", "jobs?limit=1")["revision"]
            link = self.daemon.connect()
            link.request("GET", f"/api/v1/events?watch=1&since={since}")
            streams.append((since, link, link.getresponse()))
        busy.join()
        self.daemon.submit(job("true", name="last", queue="open"))
        last = self.daemon.call("GET", "jobs?limit=1")["revision"]
        for since, link, stream in streams:
            seen = []
            while not seen or seen[-1] < last:
                line = stream.fp.readline().decode()
                if line.startswith("id: "):
                    seen.append(int(line[4:]))
            self.assertEqual(seen, list(range(since + 1, seen[-1] + 1)))
            link.close()

    def test_what_no_node_has_and_names_that_are_numbers_are_refused(self):
        for more, path in (({"resources": {"fpga": 1}}, "resources.fpga"), ({"name": "17"}, "name")):
            with self.assertRaises(Refused) as refusal:
                self.daemon.call("POST", "jobs", {**job("true", queue="open"), **more})
            self.assertEqual((refusal.exception.status, json.loads(refusal.exception.body)["path"]), (422, path))

    def test_a_job_that_can_never_run_is_told_which_key_is_the_reason(self):
        spec = {"name": "x", "queue": "open", "command": ["true"]}
        for more, path, hint in (({"gpus": 64}, "gpus", "less"), ({"resources": {"gpus": 64}}, "resources.gpus", "less"),
                                 ({"gpus": 1, "memory": "60Ti"}, "memory", "less"), ({"gpus": 1, "workers": 50}, "workers", "less"),
                                 ({"roles": {"w": {"count": 1, "resources": {"gpus": 64}}}}, "roles.w.resources.gpus", "less"),
                                 ({"gpus": 1, "gpu_types": ["H900"]}, "gpu_types", "type"), ({"gpus": 1, "nodes": {"zone": "moon"}}, "nodes", "labels"),
                                 ({"gpus": 1, "topology": {"require": "galaxy"}}, "topology", "level")):
            problem = self.check("submitJobs", "jobs", {**spec, **more}, status=422)
            self.assertEqual(problem["path"], path, problem)
            self.assertIn(hint, problem["hint"])
            self.assertIn("can never run here", problem["title"])

    def test_mistakes_of_all_stages_are_told_at_once(self):
        good = job("true", name="good", queue="open")
        bad = [{**good, "gpus": "many"}, {**good, "queue": "nowhere"}, {**good, "name": "next", "gpus": 64, "after": ["good:ok"]}, {**good, "queue": "nowhere", "colour": 1}]
        problem = self.check("submitJobs", "jobs", {"jobs": [good, *bad]}, status=422)
        self.assertEqual([one["path"] for one in problem["errors"]],
                         ["jobs[1].gpus", "jobs[2].queue", "jobs[3].gpus", "jobs[4].colour", "jobs[4].queue"])
        problem = self.check("submitJobs", "jobs", {**good, "gpus": "many", "queue": "nowhere"}, status=422)
        self.assertEqual(sorted(one["path"] for one in problem["errors"]), ["gpus", "queue"])
        self.assertEqual(self.daemon.call("GET", "jobs?all=1")["jobs"], [])

    def test_a_batch_is_taken_as_a_whole(self):
        with self.assertRaises(Refused) as refusal:
            self.daemon.call("POST", "jobs", {"jobs": [job("true", name="a", queue="open"), job("true", name="b", queue="nowhere")]})
        self.assertIn("none was accepted", refusal.exception.body)
        self.assertEqual(self.daemon.call("GET", "jobs?all=1")["jobs"], [])
        made = self.daemon.call("POST", "jobs", {"jobs": [job("true", name="first", queue="open"),
                                                          job("true", name="second", queue="open", after=["first:ok"])]})
        self.assertEqual(self.daemon.wait(made["jobs"][1]["id"])["status"]["phase"], "succeeded")

    def test_every_change_is_in_the_audit_trail(self):
        one = self.daemon.submit(job("sleep 600", name="secret", queue="open", env={"PASSWORD": "hunter2"}))
        self.daemon.call("POST", f"jobs/{one}:priority?value=60")
        self.daemon.call("POST", f"jobs/{one}:cancel?dry_run=1")
        rows = self.daemon.call("GET", f"audit?object=job%20{one}")["audit"]
        self.assertEqual([row["operation"] for row in rows], ["prioritizeJob", "submitJobs"])
        self.assertEqual((rows[0]["before"]["priority"], rows[0]["after"]["priority"]), (50, 60))
        self.assertEqual(rows[0]["user"], "root")
        self.assertNotIn("hunter2", json.dumps(rows))

    def test_a_key_stands_for_one_request(self):
        key = {"Idempotency-Key": "k1"}
        first = json.loads(self.raw("POST", "jobs", job("true", name="a"), key)[1])["jobs"][0]["id"]
        again = json.loads(self.raw("POST", "jobs", job("true", name="a"), key)[1])["jobs"][0]["id"]
        self.assertEqual(first, again)
        answer, data = self.raw("POST", "jobs", job("true", name="b"), key)
        self.assertEqual(answer.status, 409, data)
        answer, data = self.raw("POST", "jobs", {"jobs": [job("true", name="a"), job("true", name="b")]}, key)
        self.assertEqual(answer.status, 409, data)

    def test_a_watch_that_cannot_go_on_is_told(self):
        now = self.daemon.call("GET", "jobs")["revision"]
        self.assertEqual(self.raw("GET", f"events?watch=1&since={now + 1000}")[0].status, 410)
        self.assertEqual(self.raw("GET", "events?watch=1", headers={"Last-Event-ID": "abc"})[0].status, 400)

    def test_what_was_read_must_still_be_so(self):
        one = self.daemon.submit({**job("sleep 600", name="tagged"), "gpus": 0})
        self.daemon.wait(one, ("running",))
        answer, _ = self.raw("GET", f"jobs/{one}")
        tag = {"If-Match": answer.headers["ETag"]}
        self.assertEqual(self.raw("POST", f"jobs/{one}:priority?value=60", headers=tag)[0].status, 200)
        self.assertEqual(self.raw("POST", f"jobs/{one}:priority?value=70", headers=tag)[0].status, 412)
        self.assertEqual(self.raw("PUT", "queues/ghost", {"queues": [{"name": "ghost"}]}, {"If-Match": '"x"'})[0].status, 412)

    def test_several_of_one_name_are_told_apart_before_one_is_changed(self):
        ones = [self.daemon.submit({**job("sleep 600", name="twin"), "gpus": 0}) for _ in range(2)]
        answer, data = self.raw("POST", "jobs/twin:cancel")
        self.assertEqual(answer.status, 409, data)
        for one in ones:
            self.assertIn(one, json.loads(data)["title"])
        self.assertEqual(self.raw("POST", f"jobs/{ones[0]}:cancel")[0].status, 200)
        self.daemon.wait(ones[0])
        self.assertEqual(self.raw("POST", "jobs/twin:cancel")[0].status, 200)

    def test_the_trail_tells_before_and_after_of_every_kind_of_change(self):
        call = self.daemon.call
        el = self.daemon.submit({**job("sleep 600", name="el"), "gpus": 0, "workers": "1..3"})
        self.daemon.wait(el, ("running",))
        call("POST", f"jobs/{el}:scale?min=1&max=2")
        array = self.daemon.submit({**job("sleep 600", name="arr"), "gpus": 0, "array": "0-3"})
        call("POST", f"jobs/{array}:suspend")
        call("POST", "tokens", {"name": "t", "user": "eva"})
        call("PUT", "users/eva", {"role": "user"})
        call("DELETE", "users/eva?dry_run=1")
        call("DELETE", "users/eva")
        rows = call("GET", "audit?limit=100")["audit"]
        of = lambda name: next(row for row in rows if row["operation"] == name)
        self.assertEqual(of("scaleJob")["after"]["asked"], "workers 1..2")
        self.assertEqual(of("suspendJob")["before"]["tasks"], 4)
        self.assertEqual(len(of("deleteUser")["before"]["tokens"]), 1)
        self.assertEqual(of("putUser")["after"]["groups"], ["staff"], "those it has stay")
        self.assertEqual([row["operation"] for row in rows].count("deleteUser"), 1, "a dry run leaves no trace")


@unittest.skipUnless(os.geteuid() == 0, "only root's daemon runs jobs of several users")
class Many(Case):
    def test_one_page_looks_at_so_many_jobs_and_the_pages_together_find_what_is_rare(self):
        self.daemon.call("POST", "nodes/" + self.daemon.call("GET", "nodes")["nodes"][0]["name"] + ":cordon")
        rare = self.daemon.submit(job("true", name="rare", queue="default"))
        many = self.daemon.submit(job("true", name="many", queue="default", array="1-25000"))
        for sort in ("", "&sort=-name", "&sort=priority", "&sort=-user", "&sort=queue", "&sort=gpus"):
            found, sizes, cursor = [], [], ""
            while cursor is not None:
                page = self.daemon.call("GET", "jobs?filter=name=rare" + sort + cursor)
                found += [one["id"] for one in page["jobs"]]
                sizes.append(len(page["jobs"]))
                cursor = "&cursor=" + page["next"] if "next" in page else None
            self.assertEqual((found, len(sizes)), ([rare], 2), f"{sort}: {sizes}")
        shown = self.daemon.muster("ps", "--filter", "name=rare", "-o", "name")
        self.assertEqual(shown.stdout.split(), [str(rare)], shown.stderr)
        self.daemon.call("POST", f"jobs/{many}:cancel")

    def test_where_a_page_ends_tells_nothing_of_jobs_that_may_not_be_seen(self):
        self.folder.chmod(0o711)
        self.daemon.call("POST", "nodes/" + self.daemon.call("GET", "nodes")["nodes"][0]["name"] + ":cordon")
        self.daemon.call("POST", "queues", {"queues": [{"name": "secret", "members": {"user:mail": "user"}}]})
        many = self.daemon.submit(job("true", name="zeta", queue="secret", array="1-25000"))
        ask = ("import http.client, socket, sys\n"
               "link = http.client.HTTPConnection('x')\n"
               "link.sock = socket.socket(socket.AF_UNIX)\n"
               "link.sock.connect(sys.argv[1])\n"
               "link.request('GET', sys.argv[2])\n"
               "print(link.getresponse().read().decode())")
        for sort in ("name", "-queue", "user"):
            cursor = ""
            for page in range(2):
                got = subprocess.run(["/usr/bin/python3", "-c", ask, str(self.daemon.socket), f"/api/v1/jobs?sort={sort}{cursor}"],
                                     user="games", capture_output=True, text=True, check=True, cwd="/")
                shown = json.loads(got.stdout)
                self.assertEqual(shown["jobs"], [])
                self.assertEqual("next" in shown, page == 0)
                self.assertNotRegex(got.stdout, "zeta|secret|root")
                cursor = "&cursor=" + shown.get("next", "")
        self.daemon.call("POST", f"jobs/{many}:cancel")


class Rights(Documented):
    """Callers are made by tokens, for accounts that every Debian has; the daemon listens on a loopback port as well."""

    def setUp(self):
        super().setUp()
        self.daemon.stop()
        self.daemon.options = (*self.daemon.options, "--listen", "127.0.0.1:0")
        self.daemon.start()
        self.port = int(self.daemon.log().rsplit("127.0.0.1:", 1)[1].split()[0])
        self.tokens = {}
        for user in ("games", "mail", "news", "uucp"):
            self.tokens[user] = self.daemon.call("POST", "tokens", {"name": "t", "user": user, "expires": "1h"})["secret"]
        self.tokens["adm"] = self.daemon.call("POST", "tokens", {"name": "t", "user": "backup", "expires": "1h"})["secret"]
        self.daemon.call("PUT", "users/backup", {"role": "admin"})
        self.daemon.call("PUT", "users/uucp", {"role": "none"})

    test_every_documented_call_answers_as_documented = test_nothing_undocumented_answers = None  # said once is enough
    test_a_batch_is_taken_as_a_whole = test_every_change_is_in_the_audit_trail = None
    test_a_page_ends_where_the_next_begins_and_a_watch_goes_on_without_a_gap = test_a_key_stands_for_one_request = None
    test_watchers_that_join_while_much_happens_see_every_event_once = None
    test_a_watch_that_cannot_go_on_is_told = test_what_was_read_must_still_be_so = None
    test_several_of_one_name_are_told_apart_before_one_is_changed = None
    test_the_trail_tells_before_and_after_of_every_kind_of_change = None
    test_the_metrics_are_lines_of_the_format_and_tell_of_muster_itself = None
    test_the_head_of_an_answer_can_be_had_alone = test_an_array_is_an_object_that_is_listed_and_explained = None
    test_jobs_are_found_by_all_that_they_show_and_gpus_by_who_holds_them = test_usage_by_job_has_a_row_for_each = None
    test_a_stream_takes_a_filter_and_refuses_what_is_for_pages = test_a_change_answers_with_the_tag_of_what_it_made = None
    test_parameters_that_make_no_sense_are_named_with_what_does = test_a_dry_run_says_so_and_tells_what_would_become = None
    test_a_job_that_can_never_run_is_told_which_key_is_the_reason = test_mistakes_of_all_stages_are_told_at_once = None

    def submit(self, user, **more):
        status, data = self.ask(user, "POST", "jobs", {**job("sleep 600", queue="vision/detection"), "gpus": 0, **more})
        self.assertEqual(status, 201, data)
        return json.loads(data)["jobs"][0]["id"]

    def token(self, user, **more):
        made = self.daemon.call("POST", "tokens", {"name": "t", "user": user, **more})
        key = f"{user} {made['id']}"
        self.tokens[key] = made["secret"]
        return key, made["id"]

    def open(self, user, path):
        """A stream, and the first bytes of it."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        link.request("GET", "/api/v1/" + path, headers={"Authorization": "Bearer " + self.tokens[user]})
        answer = link.getresponse()
        self.assertEqual(answer.status, 200)
        return answer, answer.read1()

    @staticmethod
    def drain(answer):
        """Until it is cut or ends; which of them is returned."""
        try:
            while answer.read1():
                pass
            return "ended"
        except (http.client.HTTPException, ConnectionError):
            return "cut"
        finally:
            answer.close()

    def ask(self, user, method, path, body=None, more=None):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {**({"Authorization": "Bearer " + self.tokens[user]} if user else {}), **(more or {})}
        link.request(method, "/api/v1/" + path, None if body is None else json.dumps(body), headers)
        answer = link.getresponse()
        data = b"" if answer.status == 101 else answer.read()
        link.close()
        self.hear(method, path, answer.status)
        return answer.status, data

    def test_wrong_expired_and_revoked_tokens_are_refused(self):
        self.assertEqual(self.ask(None, "GET", "jobs")[0], 401)
        self.tokens["bad"] = self.tokens["games"][:-1] + ("0" if self.tokens["games"][-1] != "0" else "1")
        self.assertEqual(self.ask("bad", "GET", "jobs")[0], 401)
        self.tokens["junk"] = "junk"
        self.assertEqual(self.ask("junk", "GET", "jobs")[0], 401)
        made = self.daemon.call("POST", "tokens", {"name": "short", "user": "games", "expires": "1ms"})
        time.sleep(0.01)
        self.tokens["short"] = made["secret"]
        self.assertEqual(self.ask("short", "GET", "jobs")[0], 401)
        made = self.daemon.call("POST", "tokens", {"name": "gone", "user": "games"})
        self.tokens["gone"] = made["secret"]
        self.assertEqual(self.ask("gone", "GET", "jobs")[0], 200)
        self.daemon.call("DELETE", "tokens/" + made["id"])
        self.assertEqual(self.ask("gone", "GET", "jobs")[0], 401)
        journal = b"".join(path.read_bytes() for path in (self.folder / "state").glob("journal.db*"))
        for secret in self.tokens.values():
            self.assertNotIn(secret.split("_")[-1].encode(), journal)

    def test_who_may_do_what(self):
        one = self.daemon.call  # as root
        mine = json.loads(self.ask("games", "POST", "jobs", {**job("sleep 600", name="mine", queue="vision/detection"), "gpus": 0})[1])["jobs"][0]["id"]
        node = one("GET", "nodes")["nodes"][0]["name"]
        file = {"queues": [{"name": "vision/new"}]}
        matrix = [
            # method, path, body, and the status for: nobody at all, uucp (shut out), news (viewer), games (user), mail (queue admin), adm (admin by token)
            ("GET", "jobs", None, (401, 403, 200, 200, 200, 200)),
            ("GET", f"jobs/{mine}", None, (401, 403, 200, 200, 200, 200)),
            ("GET", f"jobs/{mine}/explain", None, (401, 403, 200, 200, 200, 200)),
            ("GET", f"jobs/{mine}/plan", None, (401, 403, 409, 409, 409, 409)),  # it runs
            ("GET", f"jobs/{mine}/logs", None, (401, 403, 403, 200, 200, 200)),
            ("POST", f"jobs/{mine}:priority?value=55&dry_run=1", None, (401, 403, 403, 200, 200, 200)),
            ("POST", f"jobs/{mine}:cancel?dry_run=1", None, (401, 403, 403, 200, 200, 200)),
            ("PATCH", f"jobs/{mine}?dry_run=1", {"priority": 60}, (401, 403, 403, 200, 200, 200)),
            ("POST", "jobs?dry_run=1", job("true", queue="vision/detection"), (401, 403, 403, 200, 200, 200)),
            ("POST", "plan", job("true", queue="vision/detection"), (401, 403, 403, 200, 200, 200)),
            ("GET", "nodes", None, (401, 403, 200, 200, 200, 200)),
            ("GET", "gpus", None, (401, 403, 200, 200, 200, 200)),
            ("GET", "queues", None, (401, 403, 200, 200, 200, 200)),
            ("GET", "events", None, (401, 403, 200, 200, 200, 200)),
            ("GET", "decisions", None, (401, 403, 200, 200, 200, 200)),
            ("GET", "usage", None, (401, 403, 200, 200, 200, 200)),
            ("GET", "metrics", None, (401, 403, 200, 200, 200, 200)),
            ("POST", "queues?dry_run=1", file, (401, 403, 403, 403, 200, 200)),
            ("POST", "queues?dry_run=1", {"queues": [{"name": "vision"}]}, (401, 403, 403, 403, 403, 200)),
            ("DELETE", "queues/vision/empty?dry_run=1", None, (401, 403, 403, 403, 200, 200)),
            ("GET", "audit", None, (401, 403, 403, 403, 200, 200)),
            ("POST", f"nodes/{node}:cordon?dry_run=1", None, (401, 403, 403, 403, 403, 200)),
            ("GET", "users", None, (401, 403, 403, 403, 403, 200)),
            ("PUT", "users/man", {"role": "admin"}, (401, 403, 403, 403, 403, 200)),
            ("DELETE", "users/man", None, (401, 403, 403, 403, 403, 200)),
            ("GET", "snapshots", None, (401, 403, 403, 403, 403, 200)),
            ("GET", "tokens", None, (401, 403, 200, 200, 200, 200)),
            ("POST", "tokens", {"name": "x", "user": "root"}, (401, 403, 403, 403, 403, 201)),
            ("GET", "whoami", None, (401, 200, 200, 200, 200, 200)),
        ]
        for method, path, body, wanted in matrix:
            got = tuple(self.ask(user, method, path, body)[0] for user in (None, "uucp", "news", "games", "mail", "adm"))
            self.assertEqual(got, wanted, f"{method} {path}")
        told = [b'"host"' in self.ask(user, "GET", "version")[1] for user in ("news", "games", "mail", "adm")]
        self.assertEqual(told, [False, False, False, True], "where the daemon keeps its things is for admins")

    def test_every_call_is_made_by_those_who_may_and_refused_to_those_who_may_not(self):
        """One row a call of the document: what is asked, by whom it is granted, and to whom it is refused."""
        port = free_port()
        mine = self.submit("games", name="mine", command=["sh", "-c", LISTEN.format(port)], terminal=True)
        self.until(lambda: listens(port))
        held = json.loads(self.ask("games", "POST", "jobs?held=1", {**job("true", name="held", queue="vision/detection"), "gpus": 0})[1])["jobs"][0]["id"]
        still = json.loads(self.ask("games", "POST", "jobs?held=1", {**job("true", name="still", queue="vision/detection"), "gpus": 0})[1])["jobs"][0]["id"]
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        token = json.loads(self.ask("games", "POST", "tokens", {"name": "own"})[1])["id"]
        one, no, work = f"jobs/{mine}", None, job("true", queue="vision/detection")
        keep = {"queue": "vision", "gpus": 1, "from": moment(360000), "to": moment(367200)}
        told = self.submit("games", name="told", checkpoint={"grace": "0s"}, command=["/usr/bin/python3", "-c", TELLS])
        self.until(lambda: self.ask("games", "GET", f"runs/{told}")[0] == 200)
        rows = {
            "listRuns": ("runs", no, "news", "uucp"), "getRun": (f"runs/{told}", no, "news", "uucp"),
            "listJobs": ("jobs", no, "news", "uucp"), "submitJobs": ("jobs?dry_run=1", work, "games", "news"), "getJob": (one, no, "news", "uucp"),
            "editJob": (one, {"priority": 55}, "games", "news"), "prioritizeJob": (one + ":priority?value=56", no, "games", "news"),
            "scaleJob": (one + ":scale?min=1&max=1", no, "games", "news"), "checkpointJob": (one + ":checkpoint", no, "games", "news"),
            "holdJob": (f"jobs/{held}:hold", no, "games", "news"), "releaseJob": (f"jobs/{held}:release", no, "games", "news"),
            "explainJob": (one + "/explain", no, "news", "uucp"), "planWaitingJob": (f"jobs/{still}/plan", no, "news", "uucp"),
            "listJobEvents": (one + "/events", no, "news", "uucp"),
            "listWorkers": (one + "/workers", no, "news", "uucp"), "listArrays": ("arrays", no, "news", "uucp"), "listJobDecisions": (one + "/decisions", no, "news", "uucp"),
            "listCheckpoints": (one + "/checkpoints", no, "news", "uucp"), "readLogs": (one + "/logs", no, "games", "news"),
            "attachJob": (one + "/attach", no, "games", "mail"), "execJob": (one + "/exec?command=%5B%22true%22%5D", no, "games", "mail"),
            "forwardPort": (one + f"/forward?port={port}", no, "games", "mail"), "planJob": ("plan", work, "games", "news"),
            "requeueJob": (one + ":requeue", no, "games", "news"), "suspendJob": (one + ":suspend", no, "games", "news"),
            "resumeJob": (one + ":resume", no, "games", "news"), "cancelJob": (one + ":cancel", no, "games", "news"),
            "listNodes": ("nodes", no, "news", "uucp"), "getNode": (f"nodes/{node}", no, "news", "uucp"),
            "cordonNode": (f"nodes/{node}:cordon", no, "adm", "mail"), "drainNode": (f"nodes/{node}:drain", no, "adm", "mail"),
            "uncordonNode": (f"nodes/{node}:uncordon", no, "adm", "mail"), "listGpus": ("gpus", no, "news", "uucp"), "listPools": ("pools", no, "news", "uucp"),
            "getTopology": ("topology", no, "news", "uucp"), "listQueues": ("queues", no, "news", "uucp"),
            "applyQueues": ("queues", {"queues": [{"name": "vision/new"}]}, "mail", "games"), "getQueue": ("queues/vision", no, "news", "uucp"),
            "putQueue": ("queues/vision/new", {"weight": 2}, "mail", "games"), "deleteQueue": ("queues/vision/new", no, "mail", "games"),
            "listPolicies": ("policies", no, "news", "uucp"), "getPolicy": ("policies/current", no, "news", "uucp"),
            "applyPolicy": ("policies", {"policy": {"near_nic": "off"}}, "adm", "mail"), "undoPolicy": ("policies/current:undo", no, "adm", "mail"),
            "createReservation": ("reservations", {"name": "keep", **keep}, "adm", "mail"), "listReservations": ("reservations", no, "news", "uucp"),
            "getReservation": ("reservations/keep", no, "news", "uucp"), "putReservation": ("reservations/keep", {**keep, "gpus": 2}, "adm", "mail"),
            "deleteReservation": ("reservations/keep", no, "adm", "mail"),
            "listDecisions": ("decisions", no, "news", "uucp"), "getUsage": ("usage", no, "news", "uucp"), "watchEvents": ("events", no, "news", "uucp"),
            "listAudit": ("audit", no, "mail", "games"), "listUsers": ("users", no, "adm", "mail"), "putUser": ("users/man", {"role": "viewer"}, "adm", "mail"),
            "getUser": ("users/man", no, "adm", "mail"), "deleteUser": ("users/man", no, "adm", "mail"), "listTokens": ("tokens", no, "games", "uucp"),
            "createToken": ("tokens", {"name": "x"}, "games", "uucp"), "getToken": (f"tokens/{token}", no, "games", "mail"),
            "revokeToken": (f"tokens/{token}", no, "games", "mail"), "whoAmI": ("whoami", no, "uucp", no), "exportSnapshot": ("snapshots", no, "adm", "mail"),
            "exportPast": ("snapshots/past", no, "adm", "mail"),
            "createSimulation": ("simulations", {"kind": "policy-diff", "policy": {}}, "adm", "mail"), "listSimulations": ("simulations", no, "adm", "mail"),
            "getSimulation": ("simulations/1", no, "adm", "mail"), "getSimulationReport": ("simulations/1/report", no, "adm", "mail"), "deleteSimulation": ("simulations/1", no, "adm", "mail"),
            "getHealth": ("health", no, no, "open"), "getReady": ("ready", no, no, "open"), "getOpenApi": ("openapi.json", no, no, "open"),
            "getVersion": ("version", no, "uucp", no), "getMetrics": ("metrics", no, "news", "uucp"),
        }
        self.assertEqual(set(rows), set(self.operations), "one row for each call of the document")
        for name, (path, body, may, may_not) in rows.items():
            method, _, operation = self.operations[name]
            upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
            headers = upgrade if "101" in operation["responses"] else {}
            if may_not == "open":
                self.assertEqual(operation["security"], [], name)
            else:
                self.assertEqual(self.ask(None, method, path, body, headers)[0], 401, f"nobody: {name}")
            if may_not not in (None, "open"):
                status, data = self.ask(may_not, method, path, body, headers)
                self.assertIn(status, (403, 404), f"{may_not}: {name}: {data[:300]}")
            if name == "resumeJob":
                self.daemon.wait(mine, ("suspended",))
            elif name == "getSimulationReport":  # there when the simulation is done
                self.until(lambda: self.daemon.call("GET", "simulations/1")["status"]["phase"] == "done")
            status, data = self.ask(may, method, path, body, headers)
            self.assertIn(status, (101, 200, 201, 202), f"{may}: {name}: {data[:300]}")

    def test_what_may_not_be_seen_is_not_there(self):
        hidden = json.loads(self.ask("games", "POST", "jobs", {**job("sleep 600", name="hidden", queue="vision/detection"), "gpus": 1})[1])
        hidden = hidden["jobs"][0]["id"]
        self.daemon.wait(hidden, ("running",))
        self.tokens["man"] = self.daemon.call("POST", "tokens", {"name": "t", "user": "man"})["secret"]
        for name, queue in (("hidden-room", {"queue": "vision/detection"}), ("for-nobody", {}), ("hidden-gone", {"queue": "vision"})):
            self.daemon.call("POST", "reservations", {"name": name, "gpus": 1, "from": moment(360000), "to": moment(367200), **queue})
        self.daemon.call("DELETE", "reservations/hidden-gone")
        self.assertEqual(self.ask("man", "GET", "reservations/hidden-room")[0], 404)
        self.assertEqual(self.ask("man", "GET", "reservations/for-nobody")[0], 200, "it is why a job of theirs may wait")
        self.assertEqual(self.ask("man", "GET", f"jobs/{hidden}")[0], 404)
        self.assertEqual(self.ask("man", "POST", f"jobs/{hidden}:cancel")[0], 404)
        for path in ("jobs?all=1", "gpus", "events?limit=1000", "decisions", "usage", "queues", "reservations", "runs"):
            status, data = self.ask("man", "GET", path)
            self.assertEqual(status, 200)
            self.assertNotIn(b"hidden", data, path)
            self.assertNotIn(b'"games"', data, path)

    def test_a_token_gives_no_more_than_its_cap(self):
        self.tokens["cap"] = self.daemon.call("POST", "tokens", {"name": "t", "user": "root", "role": "viewer"})["secret"]
        self.assertEqual(self.ask("cap", "GET", "jobs")[0], 200)
        self.assertEqual(self.ask("cap", "POST", "jobs", job("true", queue="open"))[0], 403)
        self.assertEqual(self.ask("cap", "GET", "users")[0], 403)
        status, data = self.ask("cap", "POST", "tokens", {"name": "more"})
        self.assertEqual(status, 403, data)


    def test_what_a_token_opened_ends_with_it(self):
        mine = self.submit("games", command=["sh", "-c", "echo hello; exec sleep 600"])
        self.daemon.wait(mine, ("running",))
        key, number = self.token("games")
        watch, first = self.open(key, "events?watch=1")
        self.assertIn(b"muster", first)
        logs, first = self.open(key, f"jobs/{mine}/logs?follow=1")
        self.assertIn(b"hello", first)
        self.daemon.call("DELETE", "tokens/" + number)
        self.assertEqual(self.drain(watch), "cut")
        self.assertEqual(self.drain(logs), "cut")
        # An expiry does the same, and so does a role that is taken away.
        key, _ = self.token("news", expires="2s")
        self.assertEqual(self.drain(self.open(key, "events?watch=1")[0]), "cut")
        watch, _ = self.open("news", "events?watch=1")
        self.daemon.call("PUT", "users/news", {"role": "none"})
        self.assertEqual(self.drain(watch), "cut")

    def test_a_token_makes_none_that_is_worth_more(self):
        short, _ = self.token("games", expires="1h")
        status, data = self.ask(short, "POST", "tokens", {"name": "child", "expires": "90d"})
        self.assertEqual(status, 201, data)
        tokens = {one["id"]: one for one in self.daemon.call("GET", "tokens")["tokens"]}
        parent = self.tokens[short].split("_")[1]
        self.assertEqual(tokens[json.loads(data)["id"]]["spec"]["expires_at"], tokens[parent]["spec"]["expires_at"])
        capped, own = self.token("games", role="user")
        self.assertEqual(self.ask(capped, "DELETE", "tokens/" + parent)[0], 403)
        self.assertEqual(self.ask(capped, "DELETE", "tokens/" + own)[0], 200)
        for name in ("", "a\nb", "a\u001b[31m", "x" * 101):
            self.assertEqual(self.ask("games", "POST", "tokens", {"name": name})[0], 422, name)
        self.assertEqual(self.ask("adm", "PUT", "users/a%20b", {"role": "user"})[0], 422)

    def test_a_stranger_with_the_same_name_is_not_meant(self):
        theirs = self.submit("games", name="sweep")
        status, data = self.ask("mail", "POST", "jobs/sweep:cancel")
        self.assertEqual((status, json.loads(data)["code"]), (409, "conflict"))
        self.assertIn(theirs, json.loads(data)["title"])
        self.assertEqual(self.ask("mail", "GET", "jobs/sweep")[0], 200)
        self.assertEqual(self.ask("mail", "POST", f"jobs/{theirs}:hold?dry_run=1")[0], 409, "it runs already")
        self.assertEqual(self.ask("mail", "POST", f"jobs/{theirs}:cancel")[0], 200)
        # What cannot be seen and what never was are answered alike.
        secret = self.submit("games", name="secret-plan")
        man, _ = self.token("man")
        for shown, word in (("GET", secret), ("GET", "secret-plan"), ("GET", "secret"), ("POST", f"{secret}:cancel")):
            status, data = self.ask(man, shown, f"jobs/{word}")
            other = self.ask(man, shown, f"jobs/{word.replace(secret, '999999').replace('secret', 'nosuch')}")
            self.assertEqual(status, 404, data)
            self.assertEqual(data.replace(b"secret", b"nosuch").replace(secret.encode() + b'\\"', b'999999\\"'), other[1])

    def test_jobs_run_as_accounts_that_the_token_may_have(self):
        ghost, _ = self.token("nobody-of-that-name")
        status, data = self.ask(ghost, "POST", "jobs", job("true", queue="open"))
        self.assertEqual(status, 403)
        self.assertIn("no account", json.loads(data)["title"])
        root, _ = self.token("root")
        self.daemon.call("PUT", "users/root", {"role": "admin"})
        status, data = self.ask(root, "POST", "jobs", job("true", queue="open"))
        self.assertEqual(status, 403)
        self.assertIn("root", json.loads(data)["title"])
        mine = self.submit("games", command=["id", "-un"])
        self.daemon.wait(mine, ("succeeded",))
        self.assertEqual(self.ask("games", "GET", f"jobs/{mine}/logs")[1], b"games\n")

    def test_only_the_owner_and_admins_enter_and_only_root_enters_roots(self):
        mine = self.submit("games")
        roots = self.daemon.submit({**job("sleep 600", queue="open"), "gpus": 0})
        self.daemon.wait(mine, ("running",))
        self.daemon.wait(roots, ("running",))
        # Allowed is what fails only for not being a WebSocket.
        for user, of, wanted in (("games", mine, 400), ("mail", mine, 403), ("news", mine, 403), ("adm", mine, 400),
                                 ("adm", roots, 403), ("games", roots, 403)):
            for path in ("attach", "exec?command=%5B%22id%22%5D"):
                status, data = self.ask(user, "GET", f"jobs/{of}/{path}")
                if path == "attach" and wanted == 400:
                    self.assertIn(status, (400, 409), f"{user} {path}: {data}")  # it has no terminal
                else:
                    self.assertEqual(status, wanted, f"{user} {path}: {data}")

    def test_priorities_beyond_the_named_ones_are_the_queue_admins_to_give(self):
        mine = self.submit("games", priority="critical")
        self.assertEqual(self.ask("games", "POST", f"jobs/{mine}:priority?value=126")[0], 403)
        self.assertEqual(self.ask("games", "PATCH", f"jobs/{mine}", {"priority": 200})[0], 403)
        self.assertEqual(self.ask("games", "POST", "jobs?dry_run=1", {**job("true", queue="vision/detection"), "priority": 126})[0], 403)
        self.assertEqual(self.ask("mail", "POST", f"jobs/{mine}:priority?value=126")[0], 200)
        array = self.submit("games", array="0-2")
        self.assertEqual(self.ask("games", "POST", f"jobs/{array}:priority?value=126")[0], 403)
        self.assertEqual(self.ask("games", "PATCH", f"jobs/{array}", {"priority": 126})[0], 403)

    def test_strangers_get_little_room_and_probes_need_no_token(self):
        for path, wanted in (("health", 200), ("ready", 200), ("openapi.json", 200), ("version", 401), ("metrics", 401)):
            self.assertEqual(self.ask(None, "GET", path)[0], wanted, path)
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        link.request("POST", "/api/v1/jobs", headers={"Content-Length": str(1 << 20), "Expect": "100-continue"})
        answer = link.getresponse()
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (413, "application/problem+json"))
        self.assertEqual(json.loads(answer.read())["code"], "invalid")
        link.close()
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        link.request("GET", "/api/v1jobs", headers={"Authorization": "Bearer " + self.tokens["games"]})
        self.assertEqual(link.getresponse().status, 404)
        link.close()

    def test_what_is_forgotten_at_once_is_still_told_to_its_owner_and_harms_nobody(self):
        """More jobs end in one turn than are remembered, while one of them is asked for a checkpoint."""
        first = self.submit("games", name="first", command=["sh", "-c", "sleep 1; exit 1"])
        self.daemon.wait(first, ("running",))
        array = self.submit("games", array="0-1199", after=["first:ok"])
        watch, _ = self.open("games", "events?watch=1&kinds=job-ended")
        asked = 0
        while self.ask("games", "POST", f"jobs/{first}:checkpoint")[0] == 200:
            asked += 1
        self.assertGreater(asked, 0)
        seen = b""
        while seen.count(b"event: job-ended") < 1201:
            piece = watch.read1()
            self.assertTrue(piece, f"{seen.count(b'event: job-ended')} of 1201")
            seen += piece
        watch.close()
        self.assertEqual(self.daemon.call("GET", f"jobs/{array}")["status"]["cancelled"], 1200)

    def test_what_a_job_may_hold_is_bounded(self):
        long = {"A": "x" * 100_000, "B": "y" * 100_000}
        for more in ({"env": long}, {"env": {"A": "x" * 10_000}, "array": "0-9999"}, {"after": [f"{n}:any" for n in range(1, 102)]}):
            status, data = self.ask("games", "POST", "jobs?dry_run=1", {**job("true", queue="vision/detection"), **more})
            self.assertEqual(status, 422, data)

    def test_closed_queues_are_not_told_of(self):
        other, _ = self.token("man")
        self.daemon.call("POST", "queues", {"queues": [{"name": "hush", "members": {"user:mail": "user"}}]})
        status, data = self.ask(other, "POST", "jobs", job("true", queue="hus"))
        self.assertEqual((status, json.loads(data)["path"]), (422, "queue"))
        for path in ("metrics", "events?limit=1000", "queues", "whoami"):
            self.assertNotIn(b"hush", self.ask(other, "GET", path)[1], path)
        self.assertNotIn(b"hush", data)
        self.assertEqual(self.ask(other, "POST", "jobs", job("true", queue="hush"))[0], 422)


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
