#!/usr/bin/env python3
"""replay_test.py BUILD: `muster policy diff` and /simulations on what a real musterd with a simulated pool has really done."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
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
        low = self.daemon.submit(sim("low", "12", 10))
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
        self.assertLess(abs(recorded["wait_s"] - old["wait_s"]), max(2, recorded["wait_s"] / 4), "a replay of what runs comes near to what happened")
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

    def test_a_past_that_was_saved_is_replayed_without_the_daemon_as_with_it(self):
        self.some_jobs()
        past, patient = str(self.path("week.past")), str(self.path("patient.yaml"))
        saved = json.loads(self.daemon.muster("snapshot", "past", past, "--since", "1h", "-o", "json").stdout)
        self.assertEqual((saved["jobs"], saved["bytes"]), (3, self.path("week.past").stat().st_size))
        self.assertEqual(self.daemon.muster("snapshot", "past", past).returncode, 5, "it is there already")
        with_it = json.loads(self.diff("-o", "json").stdout)
        self.daemon.stop()
        without = json.loads(self.daemon.muster("policy", "diff", patient, "--past", past, "-o", "json").stdout)
        for one in (with_it, without):  # until now, which is later for the one that asked later
            for key in ("span_s", "curves"):
                del one[key]
            for figures in one["totals"].values():
                figures.pop("utilisation_pct", None)
        self.assertEqual(without, with_it)
        same = json.loads(self.daemon.muster("policy", "diff", patient, "--past", past, "--old", patient, "-o", "json").stdout)
        self.assertEqual(same["totals"]["old"], same["totals"]["new"])
        self.path("week.past").write_bytes(self.path("week.past").read_bytes()[:-9])
        done = self.daemon.muster("policy", "diff", patient, "--past", past)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("cut off or damaged", done.stderr)
        self.daemon.start()

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

    def test_one_in_which_nobody_ends_for_years_is_cancelled_too(self):
        rows = "".join(f"j{i},u,q,0,8,3000000000\n" for i in range(100))
        endless = self.daemon.call("POST", "simulations", {"kind": "jobs", "trace": "name,user,queue,submit_s,gpus,duration_s\n" + rows,
                                                           "policies": ["gavel-max-min"], "node_count": 1})["id"]
        self.until(lambda: self.phase_of(endless) == "running")
        self.daemon.call("DELETE", f"simulations/{endless}")
        made = self.daemon.call("POST", "simulations", {"kind": "jobs", "generate": {"jobs": 9}, "policies": ["fifo"]})["id"]
        self.until(lambda: self.phase_of(made) == "done")

    def test_who_stops_waiting_for_a_replay_ends_it(self):
        self.some_jobs()
        blocker = self.daemon.call("POST", "simulations", LONG)["id"]
        waiting = subprocess.Popen([os.path.join(e2e_test.BUILD, "bin", "muster"), "policy", "diff", str(self.path("patient.yaml"))],
                                   env=dict(os.environ, MUSTER_DAEMON=str(self.daemon.socket)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: len(self.daemon.call("GET", "simulations")["simulations"]) == 2)
        waiting.send_signal(signal.SIGINT)
        self.assertEqual(waiting.wait(), -signal.SIGINT)
        self.until(lambda: not any(one["status"]["phase"] == "waiting" for one in self.daemon.call("GET", "simulations")["simulations"]))
        self.daemon.call("DELETE", f"simulations/{blocker}")

    def phase_of(self, one):
        return self.daemon.call("GET", f"simulations/{one}")["status"]["phase"]

    def ended(self, body):
        made = self.daemon.call("POST", "simulations", body)["id"]
        self.until(lambda: self.phase_of(made) not in ("waiting", "running"))
        return self.daemon.call("GET", f"simulations/{made}")

    def refusal(self, body):
        with self.assertRaises(Refused) as refused:
            self.daemon.call("POST", "simulations", body)
        self.assertEqual(refused.exception.status, 422)
        return json.loads(refused.exception.body)

    def test_public_sets_are_played_from_the_folder_of_traces_and_from_nowhere_else(self):
        openb = {"kind": "openb", "nodes": "openb/nodes.csv", "pods": "openb/pods.csv", "policies": ["fgd", "best-fit"], "seeds": 2}
        self.assertIn("--traces", self.refusal(openb)["hint"])
        traces = self.path("traces")
        shutil.copytree(e2e_test.ROOT / "examples" / "lab", traces)
        self.daemon.stop()
        self.daemon.options += ("--traces", str(traces))
        self.daemon.start()
        got = self.ended(openb)
        self.assertEqual([(run["policy"], run["seed"]) for run in got["runs"]], [("fgd", 0), ("fgd", 1), ("best-fit", 0), ("best-fit", 1)])
        here = json.loads(self.daemon.muster("sim", "run", "--nodes", str(traces / openb["nodes"]), "--pods", str(traces / openb["pods"]), "--policy", "fgd",
                                             "-o", "json").stdout)
        self.assertEqual({**got["runs"][0], "wall_s": 0}, {**here, "wall_s": 0}, "the API and the command say the same")
        pollux = {"kind": "pollux", "profiles": "pollux", "policies": ["tiresias"]}
        self.assertEqual(self.ended(pollux)["status"]["phase"], "done")
        self.path("secret.csv").write_text("secret\n")
        (traces / "link.csv").symlink_to(self.path("secret.csv"))
        (traces / "out").symlink_to(self.folder)
        (traces / "evil.csv").write_text("name,time,application,num_replicas,batch_size\na,0,../../../out,1,8\n")
        for wish in ({**openb, "nodes": "../secret.csv"}, {**openb, "nodes": "link.csv"}, {**openb, "nodes": "out/secret.csv"},
                     {**openb, "nodes": str(self.path("secret.csv"))}, {"kind": "jobs", "workload": "../secret.csv", "policies": ["fifo"]}):
            self.assertNotIn("cells", str(self.refusal(wish)), "it was not even read")
        got = self.ended({**pollux, "workload": "evil.csv"})
        self.assertEqual(got["status"]["phase"], "failed", "what is named inside of a file is seen when it is read")
        self.assertNotIn("cells", got["status"]["why"])
        jobs = {"kind": "jobs", "workload": "jobs.csv", "policies": ["muster", "srtf"], "node_count": 1}
        got = self.ended(jobs)
        here = json.loads(self.daemon.muster("sim", "run", "--workload", str(traces / "jobs.csv"), "--policy", "srtf", "--node-count", "1", "-o", "json").stdout)
        same = {"wall_s": 0, "workload": ""}
        self.assertEqual({**got["runs"][1], **same}, {**here, **same}, "here too")
        self.assertIn("tiresias", self.refusal({**pollux, "policies": ["nobody"]})["hint"])
        self.assertIn("200", str(self.refusal({**pollux, "seeds": 201})))
        endless = {**pollux, "workload": "endless.csv"}
        (traces / "endless.csv").write_text("name,time,application,num_replicas,batch_size\na,9e9,toy,1,8\n")
        made = self.daemon.call("POST", "simulations", endless)["id"]
        self.until(lambda: self.phase_of(made) == "running")
        self.daemon.call("DELETE", f"simulations/{made}")
        self.assertEqual(self.ended(pollux)["status"]["phase"], "done", "the next one has its turn")

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
