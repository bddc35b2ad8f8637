#!/usr/bin/env python3
"""golden_test.py BUILD [--renew]: what `muster` prints about a small simulated cluster, compared with tests/golden.

Each file there holds command lines (`$ muster ps`) with what they print, and `[status N]` where it is not 0. Times,
durations, revisions and the user are replaced by words, and runs of spaces by two, because they differ from run to
run. --renew writes the files anew: look at the difference before you commit it.
"""
import getpass
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import e2e_test
from e2e_test import ROOT, Case

GOLDEN = ROOT / "tests" / "golden"
RENEW = False
CLUSTER = """
pools:
  - name: lab
    driver: simulated
    nodes: [{count: 2, gpus: 4, type: H100, gpu_memory: 80Gi, cpus: 32, memory: 256Gi, sockets: 2, nics: 2, nvlink: all, nodes_per_rack: 1}]
topology: [rack, node, numa, nvlink]
queues:
  - {name: default}
  - {name: vision, quota: {gpus: 4}}
  - {name: vision/detection, quota: {gpus: 4}}
  - {name: speech, quota: {gpus: 4}, limit: {gpus: 6}}
"""


def sim(name, seconds="600", **more):
    return {"name": name, "command": ["sleep", seconds], "workdir": "/tmp", "cpus": 1, **more}


JOBS = [
    sim("train", queue="vision/detection", gpus=2, workers=2, labels={"team": "a"}, env={"EPOCHS": "90"}, limits={"time": "12h", "retries": 3}),
    sim("grow", queue="speech", gpus=1, workers="1..6"),
    sim("big", queue="vision/detection", gpus=4, workers=2, gpu_types=["H100"]),
    sim("wide", queue="speech", gpus=4),
    sim("next", queue="vision/detection", gpus=1, after=["train:ok"]),
    sim("sweep", queue="vision/detection", gpus=4, array="0-3%2"),
    sim("quick", "0", queue="vision/detection", gpus=0),
    sim("gone", queue="vision/detection", gpus=0),
]
FILES = {
    "help": ["", "queue", "ps --help", "node drain --help"],
    "lists": ["ps -a", "ps -a -o wide", "ps --filter phase=held", "ps --filter phase=cancelled", "ps -o name", "nodes", "nodes -o wide", "gpus", "gpus -o wide", "gpus --topology", "pools", "pools -o wide",
              "queue list", "queue list -o wide", "user list", "token list", "nodes --filter phase=down", "gpus --sort=-gpu --limit 2 -o name"],
    "job": ["describe train", "describe big", "describe quick", "describe sweep", "clone sweep --dry-run", "clone sweep --dry-run -o json"],
    "why": ["why train", "why grow", "why big", "why wide", "why next", "why sweep", "why kept", "why quick", "why gone", "why nothing"],
    "queue": ["queue show vision/detection", "queue apply q.yaml --dry-run", "queue apply q.yaml -o json", "queue delete new --yes -o json", "queue delete new"],
    "policy": ["policy show", "policy apply p.yaml", "policy apply p.yaml --dry-run", "policy apply p.yaml --yes", "policy apply p.yaml --yes", "policy show --changed",
               "policy show -o yaml", "policy list", "policy apply bad.yaml", "policy undo --dry-run -o json", "policy undo --yes", "policy undo --yes", "policy list -o name", "policy show 9",
               "validate p.yaml bad.yaml"],
    "plan": ["plan job.yaml", "plan kept", "plan next", "plan train", "plan nothing", "plan kept -o json", "submit job.yaml --dry-run", "submit job.yaml --dry-run -o json", "validate job.yaml"],
    "reservation": ["reservation --help", "reservation create demo --queue vision --gpus 5 --type H100 --from +2h --for 4h --about 'the demo'", "reservation list", "reservation list -o wide",
                    "reservation create demo --nobody --nodes lab-1 --from +2h --for 4h", "reservation create more --nobody --nodes lab-0 --from +3h --for 4h", "reservation create more --queue speech --gpus 4 --from +3h --for 4h",
                    "reservation create more --queue speech --gpus 3 --from +3h --for 4h --dry-run -o json", "reservation create more --queue speehc --gpus 3 --for 4h",
                    "reservation create more --gpus 3 --for 4h", "reservation create more --nobody --for 4h", "reservation create more --nobody --gpus 1 --from noon --for 4h", "reservation create more --nobody --gpus 1 --for ever",
                    "reservation delete demo", "reservation delete demo --yes --dry-run", "reservation delete demo --yes", "reservation delete demo --yes", "reservation list", "events --filter kind~reservation"],
    "runs": ["runs", "runs --help", "runs show train", "runs compare train", "runs compare train big", "runs export train", "runs show nothing", "runs list -o json"],
    "act": ["hold big --dry-run", "hold big -o json", "release big -o yaml", "priority big grow --to high -o jsonl", "scale grow --workers 2..3",
            "node cordon lab-1", "node uncordon lab-1 -o json", "suspend big", "resume big", "cancel big nothing", "cancel train"],
    "policy_diff": ["policy diff r.yaml --trace jobs.csv --node-count 3", "policy diff r.yaml --trace jobs.csv --queues q.yaml", "policy diff r.yaml --old r.yaml"],
    "sim": ["sim compare --workload jobs.csv --node-count 3 --policies fifo,tiresias,muster,srtf", "sim compare --profiles pollux --policies tiresias,srtf", "sim compare --workload jobs.csv --policies fifo,srtf --policy-file r.yaml",
            "sim compare --workload jobs.csv --node-count 3 --policies fifo,muster --policy-file r.yaml", "sim run --workload jobs.csv --policy muster --policy-file bad.yaml"],
    "events": ["events --filter kind=node-joined", "events --filter kind=queues-applied", "events --filter kind=policy-applied", "events gone", "events quick -o wide"],
    "wrong": ["frobnicate", "cancle big", "queue shw", "ps --colour", "ps one two --fitler a", "attach train -o json", "token create t --expires 5x", "token create t --expires 0s", "tune job.yaml", "gpus --topology --limit 3", "exec big -- true", "exec wide -- true", "exec train --rank 9 -- true", "ps -o xml", "logs train -o name", "bench engine -o name", "ps --phase dancing", "ps --kind play", "ps --queue nowhere", "ps --filter kind=play", "audit --operation paint",
              "login foo", "help frobnicate", "run --env NOT_SET_HERE -- true", "run --time soon -- true", "cancel ''", "user set x/../y --role user", "scale grow --workers many",
              "priority grow --to urgent", "nodes --sort colour", "nodes --filter ready", "describe tra/in", "wait grow --timeout soon",
              "audit --since yesterday", "audit --operation shout", "node drain lab-9", "completion tcsh", "decisions --limit 0"],
}


class Golden(Case):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.daemon.stop()
        self.path("cluster.yaml").write_text(CLUSTER)
        self.daemon = type(self.daemon)(e2e_test.BUILD, self.folder / f"{self.folder.name}-lab", "--config", str(self.path("cluster.yaml")))
        self.daemon.start()
        self.addCleanup(self.daemon.stop)
        for spec in JOBS:
            self.daemon.submit(spec)
        self.daemon.call("POST", "jobs?held=1", sim("kept", queue="speech", gpus=1))
        self.daemon.wait("quick")
        self.daemon.call("POST", "jobs/gone:cancel")
        self.daemon.wait("gone")
        running = lambda name: self.daemon.call("GET", f"jobs/{name}")["status"]["workers_running"]
        self.until(lambda: running("train") == 2 and running("grow") == 4)
        self.path("q.yaml").write_text("queues: [{name: new, quota: {gpus: 1}}]\n")
        self.path("p.yaml").write_text("name: gentle\nabout: nobody is stopped for a higher priority\npolicy:\n  preempt: off\n  decay_half_life: 3d\n")
        self.path("bad.yaml").write_text("policy:\n  premept: off\n  grow: never\n  move_limit: 2000000\n")
        self.path("jobs.csv").write_text((ROOT / "examples" / "lab" / "jobs.csv").read_text())
        shutil.copytree(ROOT / "examples" / "lab" / "pollux", self.path("pollux"))
        self.path("r.yaml").write_text("policy: {reclaim: off}\n")
        self.path("job.yaml").write_text(json.dumps(sim("mine", queue="vision/detection", gpus=4)))

    def said(self, line):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}
        env.update(XDG_CONFIG_HOME=str(self.path("config")), MUSTER_DAEMON=str(self.daemon.socket), TZ="UTC")
        done = subprocess.run(f"muster {line}", shell=True, env={**env, "PATH": f"{self.daemon.bin}:{env['PATH']}"}, cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=60)
        text = done.stdout + (f"[status {done.returncode}]\n" if done.returncode else "")
        return f"$ muster {line}".rstrip() + "\n" + self.normal(text)

    def normal(self, text):
        for pattern, word in ((r"likely in [0-9dhms]+", "likely in DURATION"), (r'"likely_ms": \d+', '"likely_ms": MS'), (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"), (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"), (r"(?m)^\d+ +TIME", "N  TIME"),
                              (r"\b\d+ (s|min)\b", "N s"), (r"\b\d+\.\d+ ms\b", "N ms"), (r'("revision": )\d+', r"\1N"), (rf"\b{re.escape(getpass.getuser())}\b", "USER"),
                              (re.escape(str(self.folder)), "FOLDER"), (r"(?<=\S)  +", "  ")):
            text = re.sub(pattern, word, text)
        return "".join(line.rstrip() + "\n" for line in text.splitlines())

    def test_what_is_printed_is_what_was_looked_at(self):
        for name, lines in FILES.items():
            with self.subTest(name):
                text = "\n".join(self.said(line) for line in lines)
                if RENEW:
                    (GOLDEN / f"{name}.txt").write_text(text)
                self.assertEqual(text, (GOLDEN / f"{name}.txt").read_text(), "renew with `tests/e2e/golden_test.py BUILD --renew`")

    def test_the_table_of_verbs_and_their_flags(self):
        rows = []
        for verb in json.loads(self.daemon.muster("__docs", "json").stdout)["verbs"]:
            self.assertIn(verb["group"], ("Work", "Watch", "Act", "Enter", "Cluster", "Train and tune", "Admin and lab"), verb["path"])
            self.assertTrue(verb["help"] and verb["examples"], f"{verb['path']} lacks a description or an example")
            flags = [flag.split(" ")[0].split(",")[-1] for flag in verb["flags"]]
            rows.append(f"{verb['path']}: " + " ".join(flag for flag in flags if flag not in ("--help", "--no-color")))
        text = "\n".join(rows) + "\n"
        if RENEW:
            (GOLDEN / "flags.txt").write_text(text)
        self.assertEqual(text, (GOLDEN / "flags.txt").read_text())

    def test_the_reference_and_the_manual_are_current(self):
        self.assertEqual(self.daemon.muster("__docs", "markdown").stdout, (ROOT / "docs" / "cli.md").read_text(), "run scripts/docs")
        manual = self.daemon.muster("__docs", "man").stdout
        for verb in json.loads(self.daemon.muster("__docs", "json").stdout)["verbs"]:
            self.assertIn(".SS " + verb["usage"].replace("-", "\\-"), manual)


if __name__ == "__main__":
    RENEW = "--renew" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--renew"]
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
