#!/usr/bin/env python3
"""time_test.py BUILD: what the daemon knows of time: how long jobs will run, whom room is kept for, when a job will start."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from daemon import Daemon

POOL = "pools: [{name: lab, driver: simulated, nodes: [{count: 2, gpus: 4, cpus: 64, memory: 256Gi}]}]\n"


def spec(name, seconds, gpus=1, workers=1, **more):
    return {"name": name, "queue": "default", "workers": workers, "gpus": gpus, "cpus": 1, "command": ["sleep", str(seconds)], **more}


class Time(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-time-"))
        (self.folder / "cluster.yaml").write_text(POOL)
        self.daemon = Daemon(BUILD, self.folder, "--config", str(self.folder / "cluster.yaml"))
        self.daemon.start()

    def tearDown(self):
        self.daemon.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def why(self, job):
        return self.daemon.call("GET", f"jobs/{job}/explain")

    def muster(self, *words):
        return subprocess.run([str(self.daemon.bin / "muster"), "--socket", str(self.daemon.socket), *words], capture_output=True, text=True,
                              timeout=60, check=False)

    def settled(self, job, gate):
        deadline = time.monotonic() + 30
        while self.why(job).get("gate") != gate:
            self.assertLess(time.monotonic(), deadline, self.why(job))
            time.sleep(0.05)
        return self.why(job)

    def test_room_is_kept_for_a_gang_and_who_ends_before_passes(self):
        runs = self.daemon.submit(spec("runs", 600, gpus=4, limits={"time": "2h"}))
        self.daemon.wait(runs, ("running",))
        gang = self.daemon.submit(spec("gang", 1, gpus=4, workers=2, limits={"time": "1h"}))
        late = self.daemon.submit(spec("late", 600, limits={"time": "9h"}))
        told = self.settled(late, "reserved")
        self.assertEqual(told["kept"]["for"], f"job {gang} (gang)")
        self.assertIn("kept for a larger job", told["sentence"])
        estimate = self.why(gang)["estimate"]
        self.assertTrue(estimate["reserved"])
        self.assertAlmostEqual(estimate["likely_ms"], 2 * 3600_000, delta=120_000)
        brief = self.daemon.submit(spec("brief", 600, limits={"time": "1h"}))
        self.daemon.wait(brief, ("running",))
        text = self.muster("why", "late").stdout
        self.assertIn("kept for", text)
        self.assertIn("room is kept for it from then on", self.muster("why", "gang").stdout)
        self.daemon.call("POST", f"jobs/{runs}:cancel")
        self.daemon.call("POST", f"jobs/{brief}:cancel")
        self.daemon.wait(gang)
        self.daemon.wait(late, ("running",))

    def test_jobs_are_expected_to_run_as_long_as_those_like_them(self):
        for number in range(5):  # of which two can be guessed from none
            self.daemon.wait(self.daemon.submit(spec(f"fit-{number}", 1)))
        self.daemon.kill()  # the history is enough to know it again
        self.daemon.start()
        job = self.daemon.submit(spec("fit-9", 1))
        status = self.daemon.call("GET", f"jobs/{job}")["status"]
        self.assertAlmostEqual(status["expected_ms"], 1_000, delta=900)
        self.assertEqual(status["expected_guesses"], 3)
        self.assertGreaterEqual(status["expected_off_by"], 1)
        self.assertIn("in the middle of 3", self.muster("describe", "fit-9").stdout)
        self.assertNotIn("expected_ms", self.daemon.call("GET", f"jobs/{self.daemon.submit(spec('other', 1, gpus=3))}")["status"])

    def test_a_job_that_waits_is_told_when_it_will_start_or_that_it_never_will(self):
        first = self.daemon.submit(spec("all", 600, gpus=4, workers=2))
        self.daemon.wait(first, ("running",))
        job = self.daemon.submit(spec("next", 1, gpus=4))
        self.settled(job, "share")
        estimate = self.why(job)["estimate"]
        self.assertGreater(estimate["likely_ms"], 0)
        self.assertNotIn("by_ms", estimate)
        self.assertIn("estimate", self.muster("why", "next").stdout)
        (self.folder / "job.yaml").write_text(json.dumps(spec("mine", 1, gpus=4)))
        plan = self.muster("plan", str(self.folder / "job.yaml"))
        self.assertIn("it would start likely", plan.stdout)
        for number in range(12):  # that wait and start teach how long others will wait
            self.daemon.submit(spec(f"small-{number}", 0.1, gpus=4))
        self.daemon.call("POST", f"jobs/{first}:cancel")
        self.daemon.wait(job)
        again = self.daemon.submit(spec("again", 600, gpus=4, workers=2))
        self.daemon.wait(again, ("running",))
        job = self.daemon.submit(spec("taught", 1, gpus=4))
        self.settled(job, "share")
        estimate = self.why(job)["estimate"]
        self.assertGreaterEqual(estimate["waits"], 10)
        self.assertEqual(estimate["confidence_pct"], 90)
        self.assertLessEqual(estimate["likely_ms"], estimate["by_ms"])
        self.assertIn("nine times out of ten", self.muster("why", "taught").stdout)
        for node in self.daemon.call("GET", "nodes")["nodes"]:
            self.daemon.call("POST", f"nodes/{node['name']}:cordon")
        self.assertIn("never", self.why(job)["estimate"])
        self.assertIn("it will never start, as things are", self.muster("why", "taught").stdout)
        self.assertNotIn("estimate", self.why(self.daemon.submit({**spec("after", 1), "after": ["taught:ok"]})))


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
