#!/usr/bin/env python3
"""verbs_test.py BUILD: what holds for every verb of `muster`: a test, help, formats, documented keys, hints, completion."""
import json
import os
import pathlib
import re
import shutil
import socketserver
import subprocess
import sys
import threading
import unittest

import yaml

import e2e_test
from cli_test import CliCase, Terminal
from daemon import Refused
from e2e_test import ROOT, TELLS, job

LAB = ROOT / "examples" / "lab"
SIMULATED = [("sim", "run", "--set", "pollux", "--profiles", str(LAB / "pollux"), "--workload", str(LAB / "pollux" / "workload.csv"), "--policy", "pollux"),
             ("sim", "run", "--set", "openb", "--nodes", str(LAB / "openb" / "nodes.csv"), "--pods", str(LAB / "openb" / "pods.csv"), "--policy", "fgd"),
             ("sim", "compare", "--set", "openb", "--nodes", str(LAB / "openb" / "nodes.csv"), "--pods", str(LAB / "openb" / "pods.csv"), "--policies", "fgd,random", "--seeds", "2"),
             ("sim", "run", "--set", "jobs", "--workload", str(LAB / "jobs.csv"), "--policy", "muster"), ("sim", "generate", "--jobs", "5"),
             ("sim", "pooling", "--workload", str(LAB / "jobs.csv")),
             ("sim", "report", "--profiles", str(LAB / "pollux"), "--policies", "tiresias,pollux", "--to", "report", "--yes"),
             ("policy", "diff", str(ROOT / "examples" / "policies" / "gentle.yaml"), "--trace", str(LAB / "jobs.csv"))]
FORMATS = ("table", "wide", "json", "jsonl", "yaml", "name")
# Verbs that print no document, have another purpose than data and take no -o; and the call that tests each.
TESTED = {
    "attach": ("enter_test.py", 'self.daemon.muster("attach"'),
    "exec": ("enter_test.py", 'self.daemon.muster("exec"'),
    "shell": ("enter_test.py", 'self.daemon.muster("shell"'),
    "port-forward": ("enter_test.py", 'self.daemon.muster("port-forward"'),
    "completion": ("cli_test.py", 'self.cli("completion"'),
    "help": ("verbs_test.py", 'self.cli("help"'),
}


class Documented:
    """Whether a printed document has only keys that are documented."""

    def __init__(self, verb, openapi):
        self.schemas = openapi["components"]["schemas"]
        self.keys = verb["keys"]

    def unknown(self, value, path=""):
        """Paths of keys that no line of the table knows."""
        schemas = [self.schemas[one["schema"]] for one in self.keys if one["schema"] and one["path"] in (path or ".", self.starred(path))]
        if schemas and all(self.in_schema(value, path, schema) for schema in schemas):
            return []
        if path and not isinstance(value, (dict, list)):
            return [] if self.listed(path) else [path]
        found = []
        if isinstance(value, list):
            for item in value:
                found += self.unknown(item, path + "[]")
        elif isinstance(value, dict):
            if self.listed(path + ".*"):
                return []
            for key, item in value.items():
                inner = [one for schema in schemas for one in [self.resolve(schema).get("properties", {}).get(key)] if one]
                if inner and self.in_schema(item, path, inner[0]):
                    continue
                found += self.unknown(item, f"{path}.{key}" if path else key)
        return found

    def starred(self, path):
        return re.sub(r"\.[^.\[]+$", ".*", path)

    def listed(self, path):
        return any(re.fullmatch(re.escape(one["path"]).replace(r"\*", r"[^.\[\]]+") + r"(\[\])?", path) for one in self.keys)

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def in_schema(self, value, path, schema):
        schema = self.resolve(schema)
        if isinstance(value, list):
            return all(self.in_schema(item, path, schema.get("items", {})) for item in value)
        if not isinstance(value, dict) or "properties" not in schema:
            return True
        more = schema.get("additionalProperties")
        for key, item in value.items():
            inner = schema["properties"].get(key) or (more if isinstance(more, dict) else None)
            if inner is None or not self.in_schema(item, path, inner):
                return False
        return True


class EveryVerb(CliCase):
    def setUp(self):
        super().setUp()
        self.verbs = {one["path"]: one for one in json.loads(self.cli("__docs", "json").stdout)["verbs"]}

    def prepared(self):
        """A command line for each verb that prints data, in an order in which they all work."""
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        file, bad = self.file("j.yaml", job("true", name="sent")), self.file("bad.yaml", "name: [")
        queues = self.file("q.yaml", {"queues": [{"name": "new", "quota": {"gpus": 1}}]})
        policy = self.file("p.yaml", {"name": "gentle", "about": "by day", "policy": {"near_nic": "off"}})
        for name in ("kept", "second"):
            self.daemon.call("POST", "jobs?held=1", job("true", name=name, gpus=1))
        low = self.daemon.submit(job("echo hello; sleep 600", name="low", gpus=1, workers="1..4", queue="free"))
        self.until(lambda: self.daemon.call("GET", f"jobs/{low}")["status"]["workers_running"] == 4)
        self.daemon.submit(job("true", name="wants", gpus=4, queue="free"))
        self.daemon.wait(self.daemon.submit(job("exit 3", name="bad", gpus=0)))
        self.daemon.wait(self.daemon.submit(job("trap : USR1; while :; do sleep 0.1; done", name="steady", gpus=0, checkpoint={"signal": "SIGUSR1", "grace": "0s"})), ("running",))
        self.daemon.submit({**job("", name="told", gpus=0, checkpoint={"grace": "0s"}), "command": [sys.executable, "-c", TELLS]})
        self.until(lambda: self.daemon.call("GET", "runs")["runs"])
        token = json.loads(self.cli("token", "create", "one", "-o", "json").stdout)["id"]
        cases = str(ROOT / "tests" / "scenarios")
        return [
            ("submit", file), ("submit", file, "--dry-run"), ("clone", "kept", "--name", "third", "--dry-run"), ("run", "--dry-run", "--", "true"),
            ("run", "--", "true"), ("run", "--array", "0-1", "--", "true"), ("validate", file, bad), ("plan", file), ("plan", "kept"), ("ps",), ("ps", "-a"),
            ("describe", "low"), ("describe", "bad"), ("why", "wants"), ("why", "low"), ("logs", "low"), ("events",), ("events", "low"), ("top",), ("wait", "bad"),
            ("hold", "wants"), ("release", "wants"), ("checkpoint", "steady"), ("scale", "low", "--workers", "1..2"), ("priority", "low", "--to", "high"),
            ("suspend", "low"), ("resume", "low"), ("requeue", "steady"), ("cancel", "kept", "second"), ("node", "cordon", node),
            ("node", "drain", node), ("node", "uncordon", node), ("nodes",), ("gpus",), ("gpus", "--topology"), ("pools",), ("queue", "list"),
            ("queue", "show", "vision"), ("queue", "apply", queues), ("queue", "edit", "new"), ("queue", "delete", "new", "--yes"),
            ("reservation", "create", "demo", "--queue", "vision", "--gpus", "1", "--from", "+2h", "--for", "1h", "--about", "x"), ("reservation", "create", "more", "--nobody", "--nodes", node, "--from", "+4h", "--for", "1h", "--dry-run"),
            ("reservation", "list"), ("reservation", "delete", "demo", "--yes"), ("usage", "--by", "job"), ("decisions",),
            ("runs", "list"), ("runs", "show", "told"), ("runs", "compare", "told", "told"), ("runs", "export", "told", "--csv", "told.csv"),
            ("policy", "apply", policy, "--dry-run"), ("policy", "apply", policy, "--yes"), ("policy", "show"), ("policy", "list"), ("policy", "undo", "--yes"),
            ("login", f"unix:{self.daemon.socket}", "--name", "here"), ("config", "use", "here"), ("config", "delete", "here"),
            ("login", f"unix:{self.daemon.socket}", "--name", "there"), ("logout",), ("init", "new.yaml"), ("whoami",), ("token", "create", "two"), ("token", "show", "two"), ("token", "list"), ("token", "revoke", token, "--yes"),
            ("user", "set", "eva", "--role", "viewer", "--group", "a"), ("user", "list"), ("user", "remove", "eva", "--yes"), ("audit",), ("config", "view"),
            ("config", "view", "--origins"), ("doctor",), ("snapshot", "save", "a.snap"), ("snapshot", "replay", "a.snap"), ("snapshot", "past", "a.past"), ("sim", "scenarios", cases), *SIMULATED,
            ("bench", "engine", "--shape", "gang", "--nodes", "10", "--runs", "1"), ("demo", "share"), ("version",)]

    def path_of(self, words):
        return " ".join(words[:2]) if " ".join(words[:2]) in self.verbs else words[0]

    def test_every_key_that_a_verb_prints_is_documented(self):
        openapi = self.daemon.call("GET", "openapi.json")
        seen = set()
        for words in self.prepared():
            at = words.index("--") if "--" in words else len(words)
            env = {"EDITOR": "sed -i 's/gpus: 1/gpus: 2/'"} if words[:2] == ("queue", "edit") else {}
            line = [*words[:at], "-o", "json", *words[at:]]
            done = subprocess.run([str(self.daemon.bin / "muster"), *line], env={**self.env, **env}, capture_output=True, text=True, timeout=60, cwd=self.folder,
                                  stdin=subprocess.DEVNULL)
            if not done.stdout:
                self.fail(f"{words} printed nothing: {done.stderr}")
            path = self.path_of(words)
            verb = Documented(self.verbs[path], openapi)
            documents = done.stdout.splitlines() if path == "logs" else [done.stdout]
            for text in documents:
                self.assertEqual(verb.unknown(json.loads(text)), [], f"{words}: keys that src/cli/output_keys.cc does not know")
            seen.add(path)
        self.assertEqual(set(self.verbs) - seen - set(TESTED), set(), "verbs whose keys nobody looked at")
        for path, verb in self.verbs.items():
            self.assertEqual(bool(verb["keys"]), path not in TESTED, path)

    def test_a_key_that_is_not_documented_would_be_found(self):
        openapi = self.daemon.call("GET", "openapi.json")
        for path, document, wrong in (("doctor", {"checks": [{"name": "a", "colour": 1}]}, ["checks[].colour"]), ("version", {"version": "1", "moon": 2}, ["moon"]),
                                      ("ps", {"jobs": [{"id": "1", "shade": 1}]}, ["jobs[].shade"]), ("top", {"phases": {"running": 1}}, []),
                                      ("plan", {"starts_now": True, "mood": ""}, ["mood"])):
            self.assertEqual(Documented(self.verbs[path], openapi).unknown(document), wrong, path)

    def test_every_verb_prints_every_format_it_allows_and_refuses_others_with_a_hint(self):
        for words in (("validate", self.file("j.yaml", job("true"))), ("sim", "scenarios", str(ROOT / "tests" / "scenarios" / "gang-one-island.case")),
                      *SIMULATED, ("bench", "engine", "--shape", "gang", "--nodes", "4", "--runs", "1"), ("demo", "share"), ("doctor",), ("config", "view"), ("version",),
                      ("whoami",), ("events",), ("snapshot", "save", "a.snap", "--yes"), ("snapshot", "replay", "a.snap"), ("snapshot", "past", "a.past", "--yes")):
            for form in FORMATS:
                done = subprocess.run([str(self.daemon.bin / "muster"), *words, "-o", form], env=self.env, capture_output=True, text=True, timeout=60, cwd=self.folder)
                if done.returncode == 2:
                    self.assertRegex(done.stderr, r"-o takes table, .*json.* here", words)
                    self.assertIn(form, ("name", "wide"), words)
                    continue
                self.assertEqual(done.returncode, 0, f"{words} {form} {done.stderr}")
                if form == "json":
                    json.loads(done.stdout)
                for line in done.stdout.splitlines() if form == "jsonl" else ():
                    json.loads(line)
                if form == "yaml":
                    self.assertIsInstance(yaml.safe_load(done.stdout), dict, words)
        self.assertEqual(self.cli("validate", self.file("j.yaml", job("true")), "-o", "name").stdout.strip(), str(self.path("j.yaml")))

    def test_help_says_the_same_as_the_flag(self):
        for path in ("", *self.verbs, "queue", "node", "config"):
            words = path.split()
            self.assertEqual(self.cli("help", *words).stdout, self.cli(*words, "--help").stdout, path)
        self.assertIn("muster help", self.cli("help", "frobnicate", status=2).stderr)
        self.assertIn("`muster queue`", self.cli("help", "queue", "frobnicate", status=2).stderr)

    def test_every_verb_has_a_test_and_a_typed_example(self):
        """Those that print data are driven above; of the others this says where. cli_test.Examples types every example."""
        driven = {self.path_of(words) for words in self.prepared()}
        folder = pathlib.Path(__file__).resolve().parent
        for path, (file, call) in TESTED.items():
            self.assertTrue(call in (folder / file).read_text(), f"{file} does not run `muster {path}`")
        self.assertEqual(set(self.verbs) - driven - set(TESTED), set(), "verbs that no test runs")
        self.assertEqual(set(TESTED) - set(self.verbs), set(), "verbs that are there no more")
        for path, verb in self.verbs.items():
            self.assertTrue(verb["examples"], f"`muster help {path}` has no example")
            for example in verb["examples"]:
                self.assertIn(f"muster {path}", example)


class Lab(CliCase):
    POLLUX = {"policy", "seed", "workload", "mean_jct_s", "p99_jct_s", "makespan_s", "restarts", "policy_ms_p50", "wall_s", "jobs"}
    OPENB = {"policy", "seed", "gpu_allocation_pct", "fragmentation_pct", "placed", "failed", "wall_s"}

    def test_documents_have_the_keys_that_were_promised_and_no_others(self):
        pollux = ("--profiles", str(LAB / "pollux"), "--workload", str(LAB / "pollux" / "workload.csv"))
        openb = ("--nodes", str(LAB / "openb" / "nodes.csv"), "--pods", str(LAB / "openb" / "pods.csv"))
        got = self.get("sim", "run", "--set", "pollux", *pollux, "--policy", "pollux", "--seed", "3")
        self.assertEqual(set(got), self.POLLUX)
        self.assertEqual((got["policy"], got["seed"], got["workload"]), ("pollux", 3, pollux[3]))
        self.assertEqual([set(one) for one in got["jobs"]], [{"name", "jct_s"}] * 3)
        self.assertEqual(set(self.get("sim", "run", "--set", "openb", *openb, "--policy", "fgd", "--seed", "42")), self.OPENB)
        for words, keys in (((*pollux, "--policies", "tiresias,muster"), self.POLLUX), ((*openb, "--policies", "fgd,muster"), self.OPENB)):
            self.assertEqual([set(run) for run in self.get("sim", "compare", *words)["runs"]], [keys, keys])

    def test_oracles_are_marked(self):
        runs = self.get("sim", "compare", "--profiles", str(LAB / "pollux"), "--policies", "tiresias,srtf,optimus-oracle,gavel-makespan")["runs"]
        self.assertEqual([run.get("oracle") for run in runs], [None, True, True, True])
        runs = self.get("sim", "compare", "--workload", str(LAB / "jobs.csv"), "--policies", "gavel-max-min,gavel-makespan,srtf")["runs"]
        self.assertEqual([run.get("oracle") for run in runs], [None, True, True])

    def test_a_policy_file_is_for_muster(self):
        file = self.file("r.yaml", "policy: {reclaim: off}\n")
        words = ("--workload", str(LAB / "jobs.csv"), "--node-count", "3", "--policy", "muster")
        self.assertGreater(self.get("sim", "run", *words)["preemptions"], 0)
        self.assertEqual(self.get("sim", "run", *words, "--policy-file", file)["preemptions"], 0)
        self.assertIn("`muster`", self.cli("sim", "run", "--workload", str(LAB / "jobs.csv"), "--policy", "fifo", "--policy-file", file, status=2).stderr)
        self.cli("sim", "report", "--workload", str(LAB / "jobs.csv"), "--policies", "fifo,muster", "--policy-file", file, "--to", "report")
        self.assertIn("reclaim: off", self.path("report/index.html").read_text())
        made = {"kind": "jobs", "generate": {"jobs": 40, "seed": 3}, "node_count": 2, "policies": ["muster"]}
        results = []
        for body in (made, {**made, "policy": {"reclaim": "off"}}):
            one = self.daemon.call("POST", "simulations", body)["id"]
            self.until(lambda: self.daemon.call("GET", f"simulations/{one}")["status"]["phase"] == "done")
            self.assertEqual(self.daemon.call("GET", f"simulations/{one}")["spec"].get("policy"), body.get("policy"))
            results.append(self.daemon.call("GET", f"simulations/{one}")["runs"][0]["preemptions"])
        self.assertEqual((results[0] > 0, results[1]), (True, 0))
        for more, said, path in (({"policy": {"reclam": "off"}}, "reclam", "policy.reclam"),
                                 ({"policies": ["fifo"], "policy": {"reclaim": "off"}}, "not played", "policy")):
            with self.assertRaises(Refused) as refused:
                self.daemon.call("POST", "simulations", {**made, **more})
            self.assertIn(said, str(refused.exception.body))
            self.assertEqual(json.loads(refused.exception.body)["path"], path)

    def test_a_past_is_played_under_rivals(self):
        for name in ("one", "two"):
            self.daemon.wait(self.daemon.submit(job("true", name=name, gpus=2)))
        self.cli("snapshot", "past", "week.past")
        got = self.get("sim", "compare", "--workload", "week.past", "--gpus-per-node", "2", "--policies", "fifo,muster,srtf")
        gpus = len(self.daemon.call("GET", "gpus")["gpus"])
        for run in got["runs"]:
            self.assertEqual([one["name"] for one in run["jobs"]], ["one", "two"])
            self.assertEqual(run["node_count"], (gpus + 1) // 2)
        said = self.cli("policy", "diff", self.file("p.yaml", "policy: {}"), "--trace", "week.past", status=2).stderr
        self.assertIn("--past", said)


class Lines(CliCase):
    def test_logs_as_lines_in_every_form(self):
        one = self.daemon.submit(job("echo first; echo second: {}", name="talks"))
        self.daemon.wait(one)
        lines = [{"rank": 0, "stream": "out", "line": text} for text in ("first", "second: {}")]
        for form in ("json", "jsonl"):
            self.assertEqual([json.loads(line) for line in self.cli("logs", one, "-o", form).stdout.splitlines()], lines)
        self.assertEqual(yaml.safe_load(self.cli("logs", one, "-o", "yaml").stdout), lines)
        self.assertEqual(self.cli("logs", one, "-o", "wide").stdout, "0 out  first\n0 out  second: {}\n")
        self.assertIn("-o takes", self.cli("logs", one, "-o", "name", status=2).stderr)

    def test_events_are_sentences_and_selected_like_other_lists(self):
        one = self.daemon.call("POST", "jobs", job("true", name="talks"), {"Idempotency-Key": "secret-key"})["jobs"][0]["id"]
        self.daemon.wait(one)
        text = self.cli("events", "-o", "wide").stdout
        for said in ("the daemon started, version", "joined pool", "the queues were changed", "submitted by", "gets", "exited with 0"):
            self.assertIn(said, text)
        self.assertNotRegex(text, r'[{}"]|secret-key')
        ended = self.get("events", "--filter", "kind=job-ended")["events"]
        self.assertEqual([event["facts"]["job"] for event in ended], [str(one)])
        times = [event["revision"] for event in self.get("events", "--sort=-revision", "--limit", "3")["events"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertEqual(len(times), 3)
        last = self.get("events", "--limit", "1")["events"][0]["revision"]
        self.assertEqual(last, max(event["revision"] for event in self.get("events")["events"]))
        self.assertIn("there are: revision", self.cli("events", "--filter", "colour=red", status=2).stderr)
        self.assertIn("--sort", self.cli("events", "-f", "--sort", "at", status=2).stderr)
        with subprocess.Popen([str(self.daemon.bin / "muster"), "events", "--watch", "--limit", "1", "-o", "jsonl"], env=self.env, stdout=subprocess.PIPE, text=True) as again:
            self.assertEqual(json.loads(again.stdout.readline())["revision"], json.loads(again.stdout.readline())["revision"])
            again.kill()

    def test_events_that_are_followed_are_filtered_but_never_cut(self):
        with subprocess.Popen([str(self.daemon.bin / "muster"), "events", "-f", "--filter", "kind=job-submitted", "--limit", "1"], env=self.env,
                              stdout=subprocess.PIPE, text=True) as following:
            first = self.daemon.submit(job("true", name="first"))
            self.assertIn(f"job {first} ", following.stdout.readline())
            made = self.daemon.call("POST", "jobs", {"jobs": [job("true", name=f"j{i}") for i in range(5)]})["jobs"]
            lines = [following.stdout.readline() for _ in made]
            following.kill()
        for one, line in zip(made, lines):
            self.assertIn(f"job {one['id']} ", line)

    def test_audit_shows_before_and_after_and_knows_its_operations(self):
        self.daemon.call("POST", "queues", {"queues": [{"name": "vision", "quota": {"gpus": 3}}]})
        line = [one for one in self.cli("audit", "-o", "wide").stdout.splitlines() if "queue vision" in one][0]
        self.assertRegex(line, r"gpus 2\S* .*gpus 3")
        self.assertIn("BEFORE", self.cli("audit", "-o", "wide").stdout)
        self.cli("audit", "--operation", "applyQueues")
        said = self.cli("audit", "--operation", "paintQueues", status=2).stderr
        self.assertIn("cancelJob", said)
        self.assertNotIn("listJobs", said)


class Asking(CliCase):
    def test_ps_refuses_what_no_job_can_be(self):
        for words, said in ((("--phase", "dancing"), "waiting, held"), (("--kind", "play"), "build, train"), (("--filter", "phase=dancing"), "waiting, held"),
                            (("--filter", "gpus>=1,kind!=play"), "build, train"), (("--queue", "visoin"), "vision"), (("--filter", "gpus>=0,queue=nowhere"), "muster queue list")):
            self.assertIn(said, self.cli("ps", *words, status=3 if "queue" in "".join(words) else 2).stderr)
        for words in (("--phase", "held"), ("--kind", "build"), ("--queue", "vision/old"), ("--user", "root"), ("--filter", "phase=held,kind=train")):
            self.cli("ps", *words)
        self.daemon.call("POST", "jobs?held=1", job("true", name="gone"))
        self.cli("cancel", "gone")
        for words in (("--phase", "cancelled"), ("--filter", "phase=cancelled"), ("--filter", "status.phase=cancelled,kind=train")):
            self.assertIn(" gone ", self.cli("ps", *words).stdout, words)
        self.assertNotIn(" gone ", self.cli("ps", "--filter", "phase!=running").stdout)
        self.assertIn("no jobs of user no-such-user", self.cli("ps", "--user", "no-such-user").stderr)

    def test_ps_shows_what_a_waiting_job_asks_for(self):
        for name, more in (("plain", {"gpus": 3}), ("grows", {"gpus": 1, "workers": "2..4"}), ("part", {"gpus": 0.25}), ("none", {"gpus": 0})):
            self.daemon.call("POST", "jobs?held=1", job("true", name=name, **more))
        rows = {line.split()[1]: line for line in self.cli("ps").stdout.splitlines()[1:]}
        self.assertIn("3 asked", rows["plain"])
        self.assertIn("2..4 asked", rows["grows"])
        self.assertIn("0.25 asked", rows["part"])
        self.assertNotIn("asked", rows["none"])
        self.assertEqual(self.get("describe", "grows")["status"]["gpus_asked"], 4)
        running = self.daemon.submit(job("sleep 600", name="runs", gpus=1))
        self.daemon.wait(running, ("running",))
        self.assertNotIn("asked", [line for line in self.cli("ps").stdout.splitlines() if " runs " in line][0])

    def test_plan_of_a_job_that_waits(self):
        low = self.daemon.submit(job("sleep 600", name="low", gpus=1, workers="1..4", queue="free"))
        self.until(lambda: self.daemon.call("GET", f"jobs/{low}")["status"]["workers_running"] == 4)
        self.daemon.call("POST", "jobs?held=1", job("true", name="claim", gpus=2, queue="speech"))
        got = self.get("plan", "claim")
        self.assertEqual((got["starts_now"], got["when"]), (False, "when-room-is-made"))
        self.assertEqual([one["name"] for one in got["displaced"]], ["low"])
        self.assertEqual(len(got["places"][0]["gpus"]), 2)
        text = self.cli("plan", "claim").stdout
        for said in ("as soon as 1 job has made room", "because ", "WORKER", "Who would be displaced", "low"):
            self.assertIn(said, text)
        self.assertEqual(self.phase("claim"), "held")
        self.daemon.call("POST", "jobs", job("true", name="follows", after=["claim:ok"]))
        self.assertIn("it follows job", self.cli("plan", "follows").stdout)
        self.assertIn("a plan is for one that waits", self.cli("plan", "low", status=5).stderr)
        self.assertIn("neither a file", self.cli("plan", "nothing", status=3).stderr)
        self.assertEqual(self.get("plan", self.file("big.yaml", job("true", gpus=4, queue="free")))["when"], "later")

    def test_run_passes_on_what_is_named_and_nothing_else(self):
        env = {"SECRET": "x", "NAMED": "from here"}
        shown = self.cli("run", "--env", "EPOCHS=3", "-e", "NAMED", "--", "env", env=env).stdout
        self.assertIn("EPOCHS=3\n", shown)
        self.assertIn("NAMED=from here\n", shown)
        self.assertNotIn("SECRET", shown)
        self.assertIn("--env: UNSET is not set here", self.cli("run", "--env", "UNSET", "--", "true", status=2).stderr)
        self.path("inner").mkdir()
        self.assertEqual(self.cli("run", "--workdir", "inner", "--", "pwd").stdout.strip(), str(self.path("inner")))
        self.assertEqual(self.cli("run", "--", "pwd").stdout.strip(), str(self.folder))
        self.cli("run", "--detach", "--name", "full", "--label", "team=a", "--label", "x=y", "--time", "1h", "--retries", "2", "--no-preemptible",
                 "--gpus", "1", "--gpu-types", "virtual", "--topology", "prefer=node", "--", "true")
        spec = self.get("describe", "full")["spec"]
        self.assertEqual(spec["labels"], {"team": "a", "x": "y"})
        self.assertEqual((spec["limits"]["retries"], spec["preemptible"]), (2, False))
        done = self.cli("run", "--array", "0-1", "--after", "full:any", "--", "true")
        self.assertIn("2 tasks", done.stdout)
        self.assertIn("muster wait", done.stderr)
        self.assertIn("nothing to run", self.cli("run", status=2).stderr)


class Hints(CliCase):
    def test_what_is_wrong_is_said_with_what_to_do(self):
        self.assertIn("https://gpu.example.org:7400", self.cli("login", "foo", status=2).stderr)
        self.assertIn("systemctl start musterd", self.cli("ps", status=6, env={"MUSTER_DAEMON": "/nowhere.sock"}).stderr)
        self.assertIn("--listen", self.cli("ps", status=6, env={"MUSTER_DAEMON": "http://127.0.0.1:9"}).stderr)

    def serve_tls(self, days):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", str(days), "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], cwd=self.folder, check=True, capture_output=True)
        self.daemon.stop()
        self.daemon.options = (*self.daemon.options, "--listen", "127.0.0.1:0", "--tls-cert", str(self.path("cert.pem")), "--tls-key", str(self.path("key.pem")))
        self.daemon.start()
        return "https://127.0.0.1:" + self.daemon.log().rsplit("127.0.0.1:", 1)[1].split()[0]

    def test_a_certificate_that_nobody_knows_names_the_flag_and_one_that_ends_soon_is_found(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        url = self.serve_tls(5)
        remote = {"MUSTER_DAEMON": ""}
        self.assertIn("--ca FILE", self.cli("login", url, "--token-stdin", input="x\n", status=6, env=remote).stderr)
        ca = ("--ca", str(self.path("cert.pem")))
        self.assertIn("muster login", self.cli("login", url, *ca, "--token-stdin", input="muster_a_b\n", status=4, env=remote).stderr)
        self.cli("user", "set", "ana", "--role", "admin")
        secret = self.cli("token", "create", "t", "--user", "ana").stdout
        self.cli("login", url, *ca, "--token-stdin", "--name", "lab", input=secret, env=remote)
        checks = {one["name"]: one for one in json.loads(self.cli("doctor", "-o", "json", env=remote).stdout)["checks"]}
        self.assertEqual(checks["tls"]["result"], "warn")
        self.assertRegex(checks["tls"]["said"], r"ends in \d days")
        self.assertEqual(checks["clock"]["result"], "ok")
        self.assertIn(str(self.daemon.folder / "state"), checks["state"]["said"])

    def test_doctor_asks_the_daemon_where_its_folders_are(self):
        checks = {one["name"]: one for one in self.get("doctor")["checks"]}
        for name in ("state", "run", "clock", "cgroup", "nvml", "version"):
            self.assertIn(name, checks)
        self.assertRegex(checks["state"]["said"], re.escape(str(self.daemon.folder / "state")) + r": [\d.]+ GiB free")
        self.assertIn(str(self.daemon.run), checks["run"]["said"])
        if os.geteuid() == 0 and shutil.which("setpriv"):
            os.chmod(self.folder, 0o755)
            done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", str(self.daemon.bin / "muster"), "version", "-o", "json"],
                                  env=self.env, capture_output=True, text=True, timeout=60)
            self.assertNotIn("host", json.loads(done.stdout)["daemon"], "for admins only")


class Doctor(CliCase):
    """What doctor finds when a daemon tells of trouble; the daemon is played here."""

    def found(self, **version):
        host = {"state": {"path": "/s", "free_bytes": 5 << 20, "size_bytes": 1 << 40}, "run": {"path": "/r", "free_bytes": 1 << 30, "size_bytes": 1 << 31},
                "certificate": {"path": "/c.pem", "expires_at": "2020-01-01T00:00:00.000Z"}}
        answers = {"version": {"version": "9.9.9", "now": "2020-01-01T00:00:00.000Z", "revision": 1, "jobs": 0, "ended": 0, "host": host, **version},
                   "ready": {"status": "ready"}, "nodes": {"nodes": []}, "jobs": {"jobs": [], "revision": 1}, "tokens": {"tokens": []}}

        if answers["version"]["host"] is None:
            del answers["version"]["host"]

        class Played(socketserver.StreamRequestHandler):
            def handle(self):
                while line := self.rfile.readline():
                    name = line.split()[1].decode().split("/api/v1/")[1].split("?")[0]
                    while self.rfile.readline().strip():
                        pass
                    body = json.dumps(answers[name]).encode()
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        with socketserver.ThreadingUnixStreamServer(str(self.path("played.sock")), Played) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            done = self.cli("doctor", "-o", "json", status=1, env={"MUSTER_DAEMON": str(self.path("played.sock"))})
            server.shutdown()
        self.path("played.sock").unlink()
        return {one["name"]: (one["result"], one["said"]) for one in json.loads(done.stdout)["checks"]}

    def test_trouble_is_found(self):
        found = self.found()
        for name, result, said in (("version", "warn", "musterd is 9.9.9"), ("clock", "warn", "behind this one"), ("state", "fail", "/s: 0.0 GiB free"),
                                   ("run", "ok", "/r: 1.0 GiB free"), ("tls", "fail", "has expired"), ("nodes", "fail", "none is ready")):
            self.assertEqual(found[name][0], result, found[name])
            self.assertIn(said, found[name][1])

    def test_what_only_admins_are_told_is_said_to_be_so(self):
        self.assertIn("admins only", self.found(host=None)["state"][1])


class Completing(CliCase):
    def words(self, *words):
        """What is offered, and whether files are too."""
        done = subprocess.run([str(self.daemon.bin / "muster"), "__complete", *words], env=self.env, capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertIn(done.returncode, (0, 1))
        return done.stdout.split(), done.returncode == 1

    cases = ((("run", "--kind", ""), ["build", "train"]), (("priority", "resnet", "--to", "cr"), ["critical"]), (("wait", "resnet", "--for", ""), ["done", "running"]),
             (("run", "--framework", "to"), ["torch"]), (("run", "--priority", "h"), ["high"]), (("run", "--template", ""), ["jupyter"]),
             (("run", "--gpu-types", "vir"), ["virtual"]), (("run", "-q", "vision/"), ["vision/old"]), (("run", "--after", "res"), ["resnet"]),
             (("ps", "--phase", "sus"), ["suspended"]), (("ps", "--sort", "-gp"), ["-gpus"]), (("ps", "--sort=-gp",), ["--sort=-gpus"]),
             (("ps", "--sort", "=", "-gp"), ["-gpus"]), (("audit", "--operation", "cancel"), ["cancelJob"]), (("plan", "res"), ["resnet"]),
             (("queue", "list", "--sort", "na"), ["name"]), (("queue", "list", "--filter", "name=vision/"), ["name=vision/old"]),
             (("policy", "show", "def"), ["default"]), (("policy", "list", "--sort", "re"), ["revision"]), (("help", "queue", "sh"), ["show"]), (("help", "canc"), ["cancel"]), (("sim", "scenarios", "-o", "ya"), ["yaml"]), (("bench", "engine", "--shape", "ga"), ["gang"]))
    files = ("plan", "submit")

    def setUp(self):
        super().setUp()
        self.daemon.call("POST", "jobs?held=1", job("true", name="resnet"))
        self.path("result.txt").write_text("")  # what must not be offered where only names may stand

    def test_values_of_flags_are_known(self):
        for words, wanted in self.cases:
            found, files = self.words(*words)
            self.assertEqual(found, wanted, words)
            self.assertEqual(files, words[0] in self.files, words)
        user = self.get("whoami")["user"]
        self.assertIn(user, self.words("ps", "-u", "")[0])
        self.assertIn(user, self.words("audit", "--user", "")[0])
        pool = self.daemon.call("GET", "pools")["pools"][0]["name"]
        self.assertEqual(self.words("pools", "--filter", f"name={pool[:2]}")[0], [f"name={pool}"])
        self.assertTrue(self.words("submit", "")[1])
        self.assertFalse(self.words("cancel", "")[1])

    def in_shell(self, *words):
        env = {**self.env, "PATH": f"{self.daemon.bin}:{self.env['PATH']}", "HOME": str(self.folder), "TERM": "dumb"}
        done = subprocess.run(words, env=env, cwd=self.folder, capture_output=True, text=True, timeout=60)
        return done.stdout

    def test_fish_mixes_in_no_files_where_a_value_is_closed(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        script = self.file("muster.fish", self.cli("completion", "fish").stdout)
        ask = lambda line: self.in_shell("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'").split()
        self.assertEqual(ask("muster cancel res"), ["resnet"])
        self.assertEqual(ask("muster run --kind "), ["build", "train"])
        self.assertEqual(ask("muster ps --sort=-gp"), ["--sort=-gpus"])
        self.assertIn("result.txt", ask("muster submit res"))
        self.assertEqual(ask("muster cancel resu"), [])

    def test_zsh_likewise(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        self.file("_muster", self.cli("completion", "zsh").stdout)
        ask = lambda *words: self.in_shell("zsh", "-f", "-c", f"""
            compadd() {{ shift; print -rl -- "$@" }}
            _files() {{ print FILES }}
            words=(muster {' '.join(repr(word) for word in words)}); CURRENT={len(words) + 1}
            compdef() {{ : }}
            source ./_muster; _muster""").split()
        self.assertEqual(ask("cancel", "res"), ["resnet"])
        self.assertEqual(ask("cancel", "nothing-like-it"), [])
        self.assertEqual(ask("run", "--kind", ""), ["build", "train"])
        self.assertEqual(ask("submit", "res"), ["FILES"])

    def test_bash_likewise_at_a_terminal(self):
        script = self.file("muster.bash", self.cli("completion", "bash").stdout)
        env = {**self.env, "PATH": f"{self.daemon.bin}:{self.env['PATH']}", "HOME": str(self.folder), "PS1": "ready> "}
        shell = Terminal(["bash", "--noprofile", "--norc", "-i"], env, self.folder, columns=120)
        self.addCleanup(shell.process.kill)
        for typed, wanted in (("muster cancel res\t", "muster cancel resnet "), ("muster submit resu\t", "muster submit result.txt "),
                              ("muster ps --sort=-gp\t", "muster ps --sort=-gpus "), ("muster run --kind b\t", "muster run --kind build ")):
            if not shell.text:
                os.write(shell.parent, f". {script}; echo sourced $((1 + 1))\n".encode())
                shell.until(lambda text: "sourced 2" in text)
            shell.text = "-"
            os.write(shell.parent, typed.encode())
            shell.until(lambda text: wanted in text)
            os.write(shell.parent, b"\x15")


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2, warnings="ignore")
