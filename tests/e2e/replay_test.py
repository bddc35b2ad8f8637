#!/usr/bin/env python3
"""replay_test.py BUILD: `muster policy diff` and /simulations on what a real musterd with a simulated pool has really done."""
import json
import pathlib
import sys
import tempfile
import time
import unittest
from xml.etree import ElementTree

import e2e_test
from daemon import Daemon, Refused
from e2e_test import Case

CLUSTER = "pools:\n  - {name: lab, driver: simulated, nodes: [{count: 1, gpus: 4}]}\nqueues: [{name: default}]\n"
NO_PREEMPTION = "name: patient\npolicy: {preempt: off}\n"


# Takes a while, whatever the machine.
LONG = {"kind": "jobs", "node_count": 4, "policy": {}, "trace": "name,user,queue,submit_s,gpus,duration_s\n" + "".join(
    f"j,u,q{i % 7},{i * 20},{1 << i % 5},{300 + i * 7919 % 5000}\n" for i in range(30000))}


def sim(name, seconds, priority):
    return {"name": name, "queue": "default", "gpus": 4, "priority": priority, "workdir": "/tmp", "command": ["sleep", seconds]}


class Replay(Case):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-e2e-"))
        self.path("cluster.yaml").write_text(CLUSTER)
        self.path("patient.yaml").write_text(NO_PREEMPTION)
        self.daemon = Daemon(e2e_test.BUILD, self.folder, "--config", str(self.path("cluster.yaml")))
        self.daemon.start()

    def some_jobs(self):
        """A long one of low priority, one that pushes it aside, and one that waits for both."""
        low = self.daemon.submit(sim("low", "3", 10))
        self.daemon.wait(low, ("running",))
        time.sleep(1)
        high = self.daemon.submit(sim("high", "1", 90))
        last = self.daemon.submit(sim("last", "1", 1))
        for one in (high, low, last):
            self.assertEqual(self.daemon.wait(one)["status"]["phase"], "succeeded")
        return low, high, last

    def diff(self, *words):
        done = self.daemon.muster("policy", "diff", str(self.path("patient.yaml")), "--since", "1h", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_policy_that_runs_is_replayed_as_it_was_and_another_differs(self):
        low, high, _ = self.some_jobs()
        got = json.loads(self.diff("-o", "json").stdout)
        self.assertEqual((got["jobs"], got["gpus"], got["not_compared"]), (3, 4, 0))
        recorded, old, new = (got["totals"][one] for one in ("recorded", "old", "new"))
        self.assertEqual((recorded["pauses"], old["pauses"], new["pauses"]), (1, 1, 0))
        self.assertGreater(old["lost_gpu_hours"], 0)
        self.assertEqual(new["lost_gpu_hours"], 0)
        self.assertLess(abs(recorded["wait_s"] - old["wait_s"]), 2, "a replay of what runs comes near to what happened")
        self.assertIn(high, [one["id"] for one in got["lose"]], "it has to wait")
        self.assertIn(low, [one["id"] for one in got["gain"]], "it is left alone")
        table = self.diff("--to", str(self.path("page")))
        for word in ("RECORDED", "mean wait", "They end later:", "high"):
            self.assertIn(word, table.stdout)
        page = self.path("page") / "index.html"
        self.assertIn(str(page), table.stderr)
        self.assertIn("what really happened", page.read_text())
        ElementTree.fromstring(page.read_text())  # well-formed, and whole in itself
        self.assertNotRegex(page.read_text(), r"<script|https?://(?!www\.w3\.org)")
        self.assertEqual(self.daemon.call("GET", "simulations")["simulations"], [], "who has the result lets the daemon forget it")

    def test_without_a_difference_there_is_none(self):
        self.some_jobs()
        self.path("patient.yaml").write_text("policy: {}\n")
        got = json.loads(self.diff("-o", "json").stdout)
        self.assertEqual((got["gain"], got["lose"]), ([], []))
        self.assertEqual(got["totals"]["old"], got["totals"]["new"])

    def test_the_old_policy_is_the_one_in_force(self):
        self.some_jobs()
        applied = self.daemon.muster("policy", "apply", str(self.path("patient.yaml")), "--yes")
        self.assertEqual(applied.returncode, 0, applied.stderr)
        got = json.loads(self.diff("-o", "json").stdout)
        self.assertEqual((got["gain"], got["lose"]), ([], []))
        self.assertEqual((got["totals"]["recorded"]["pauses"], got["totals"]["old"]["pauses"]), (1, 0))

    def test_what_is_wrong_with_the_file_is_said(self):
        self.path("patient.yaml").write_text("policy: {premt: off}\n")
        done = self.daemon.muster("policy", "diff", str(self.path("patient.yaml")))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("premt", done.stderr)
        self.path("patient.yaml").write_text(NO_PREEMPTION)
        for words, flag in ((("--node-count", "3"), "--node-count"), (("--since", "soon"), "--since")):
            done = self.daemon.muster("policy", "diff", str(self.path("patient.yaml")), *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(flag, done.stderr)

    def test_a_daemon_that_dies_meanwhile_goes_on_where_it_was(self):
        self.some_jobs()
        before = {one["id"]: one["status"]["phase"] for one in self.daemon.jobs(all=1)}
        long = self.daemon.call("POST", "simulations", LONG)["id"]
        self.until(lambda: self.phase_of(long) == "running")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual({one["id"]: one["status"]["phase"] for one in self.daemon.jobs(all=1)}, before)
        self.assertEqual(self.daemon.call("GET", "simulations")["simulations"], [], "they are forgotten")
        made = self.daemon.call("POST", "simulations", {"kind": "policy-diff", "since": "1h", "policy": {"preempt": "off"}})["id"]
        self.until(lambda: self.phase_of(made) == "done")

    def test_jobs_run_while_it_runs_and_it_can_be_cancelled(self):
        long = self.daemon.call("POST", "simulations", LONG)["id"]
        waiting = [self.daemon.call("POST", "simulations", LONG)["id"] for _ in range(3)]
        self.until(lambda: self.phase_of(long) == "running")
        self.assertEqual(self.daemon.wait(self.daemon.submit(sim("small", "0", 50)))["status"]["phase"], "succeeded")
        self.assertEqual(self.phase_of(waiting[0]), "waiting", "one after the other")
        self.daemon.call("POST", "simulations", LONG)
        with self.assertRaises(Refused) as full:
            self.daemon.call("POST", "simulations", LONG)
        self.assertEqual(full.exception.status, 503)
        for one in (waiting[0], long):
            self.assertEqual(self.daemon.call("DELETE", f"simulations/{one}")["phase"], "cancelled")
        self.until(lambda: self.phase_of(waiting[1]) == "running")
        self.assertEqual((self.phase_of(long), self.phase_of(waiting[0])), ("cancelled", "cancelled"))

    def phase_of(self, one):
        return self.daemon.call("GET", f"simulations/{one}")["status"]["phase"]

    def test_only_so_many_are_kept(self):
        body = {"kind": "policy-diff", "policy": {}}
        made = [self.daemon.call("POST", "simulations", body)["id"]]
        for _ in range(20):
            self.until(lambda: self.phase_of(made[-1]) == "done")
            made.append(self.daemon.call("POST", "simulations", body)["id"])
        self.until(lambda: self.phase_of(made[-1]) == "done")
        self.assertEqual({one["id"] for one in self.daemon.call("GET", "simulations")["simulations"]}, set(made[-16:]))
        with self.assertRaises(Refused) as gone:
            self.daemon.call("GET", f"simulations/{made[0]}")
        self.assertEqual(gone.exception.status, 404)


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2, warnings="ignore")
