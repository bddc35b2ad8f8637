#!/usr/bin/env python3
"""training_test.py BUILD: training under the scheduler: jobs that grow, give back and are paused, with the result of one that was not."""
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

from daemon import Daemon

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = ["--data=text:/usr/share/common-licenses/GPL-3", "--model=transformer:layers=1,width=32,heads=2,context=32,vocab=96",
         "--batch=16", "--steps=1500"]


class Training(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-training-"))
        self.daemon = Daemon(BUILD, self.folder, "--virtual-gpus", "4")
        self.daemon.start()
        queues = self.folder / "queues.yaml"
        queues.write_text("queues: [{name: ana, quota: {gpus: 2}}, {name: ben, quota: {gpus: 2}}]\n")
        applied = self.muster("queue", "apply", str(queues))
        self.assertEqual(applied.returncode, 0, applied.stderr)

    def tearDown(self):
        for job in self.daemon.call("GET", "jobs")["jobs"]:
            self.muster("cancel", job["id"])
            self.daemon.wait(job["id"])
        self.daemon.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def muster(self, *words):
        return subprocess.run([str(self.daemon.bin / "muster"), "--socket", str(self.daemon.socket), *words], capture_output=True, text=True,
                              timeout=60, check=False)

    def said(self, one):
        """The last report of each worker that runs."""
        workers = self.daemon.call("GET", f"jobs/{one}/workers")["workers"]
        return [worker.get("report") or {} for worker in workers if worker["phase"] == "running"]

    def wait_until(self, condition, what):
        deadline = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"never {what}")
            time.sleep(0.05)

    def policy(self, settings):
        """How the scheduler decides from now on."""
        file = self.folder / "policy.yaml"
        file.write_text(f"name: of-the-test\npolicy: {{{settings}}}\n")
        applied = self.muster("policy", "apply", str(file), "--yes")
        self.assertEqual(applied.returncode, 0, applied.stderr)

    def endless(self, **fields):
        """A job that trains until it is cancelled."""
        return self.daemon.submit({"name": "lm", "queue": "ana", "gpus": 1, "framework": "muster", "workdir": str(self.folder),
                                   "command": ["muster-train", *TRAIN[:-1], "--steps=100000000"], **fields})

    def history(self, one):
        """Each change of its size: from, to, what."""
        return [(size["from"], size["to"], size["what"]) for size in self.daemon.call("GET", f"jobs/{one}")["status"].get("sizes", [])]

    def events(self, one, kind):
        return [event["facts"] for event in self.daemon.call("GET", f"jobs/{one}/events?limit=100")["events"] if event["kind"] == kind]

    def sizes(self, one):
        return {report.get("numbers", {}).get("workers") for report in self.said(one)}

    def test_an_elastic_job_grows_gives_back_and_grows_again_with_the_same_result(self):
        alone = subprocess.run([str(self.daemon.bin / "muster-train"), *TRAIN], capture_output=True, text=True, timeout=300, check=True)
        truth = [line for line in alone.stdout.splitlines() if "kept apart" in line]
        self.policy("by_goodput: off")  # on few cores more workers are no faster
        one = self.daemon.submit({"name": "lm", "queue": "ana", "workers": "1..4", "gpus": 1, "framework": "muster",
                                  "command": ["muster-train", *TRAIN], "workdir": str(self.folder)})
        self.wait_until(lambda: self.sizes(one) == {4}, "at four workers")
        other = self.daemon.submit({"name": "other", "queue": "ben", "gpus": 2, "command": ["sleep", "600"]})
        self.daemon.wait(other, ("running",))
        self.wait_until(lambda: self.sizes(one) == {2}, "back to two workers")
        self.muster("cancel", other)
        self.wait_until(lambda: self.sizes(one) == {4}, "at four workers again")
        got = self.daemon.wait(one, seconds=300)
        self.assertEqual(got["status"]["phase"], "succeeded", self.muster("logs", one, "--err").stdout)
        lines = {line for rank in range(4) for line in self.muster("logs", one, "--rank", str(rank)).stdout.splitlines()
                 if "kept apart" in line}
        self.assertEqual(lines, set(truth))
        self.assertEqual(got["status"].get("restarts", 0), 0)
        self.judge_history(one, other, got["status"]["sizes"])

    def judge_history(self, one, other, sizes):
        self.assertEqual((sizes[0]["from"], sizes[0]["what"]), (0, "started"))
        for before, after in zip(sizes, sizes[1:]):
            self.assertEqual(before["to"], after["from"])
        gave = [size for size in sizes if size["what"] == "shrunk"]
        self.assertEqual([(size["from"], size["to"], size["for_job"], size["for_queue"]) for size in gave], [(4, 2, other, "ben")])
        self.assertGreaterEqual(gave[0]["pause_ms"], 0)
        later = sizes[sizes.index(gave[0]) + 1:]
        self.assertTrue(later and all(size["what"] == "grew" for size in later), sizes)
        self.assertEqual(later[-1]["to"], 4)
        self.assertGreaterEqual(later[-1]["pause_ms"], 0)
        told = [facts["workers"] for facts in self.events(one, "job-resized")]
        self.assertIn(2, told)
        text = self.muster("describe", one).stdout
        self.assertIn("Sizes", text)
        self.assertIn("gave back to queue ben, for job " + other, text)
        self.assertIn("grew", text)

    def test_a_checkpoint_is_written_when_somebody_asks(self):
        one = self.endless(workers=2, checkpoint={"dir": "saved"})
        self.wait_until(lambda: self.sizes(one) == {2}, "at two workers")
        self.assertEqual(self.events(one, "checkpoint-taken"), [])
        self.assertEqual(self.muster("checkpoint", one).returncode, 0)
        self.wait_until(lambda: self.events(one, "checkpoint-taken"), "saved")
        steps = {facts["step"] for facts in self.events(one, "checkpoint-taken")}
        self.assertEqual(len(steps), 1, "of one step")
        self.wait_until(lambda: all(report["step"] > max(steps) for report in self.said(one)), "further than that")
        self.assertTrue(any((self.folder / "saved").iterdir()))
        self.assertIn("checkpoint", self.muster("describe", one).stdout)

    def test_a_worker_that_is_killed_is_replaced_and_the_others_go_on(self):
        self.policy("by_goodput: off")
        one = self.endless(workers="1..3")
        self.wait_until(lambda: self.sizes(one) == {3}, "at three workers")
        begun = time.monotonic()
        self.wait_until(lambda: time.monotonic() - begun > 6, "steady")  # one that ends at once is not replaced
        step = max(report["step"] for report in self.said(one))
        os.kill(self.daemon.call("GET", f"jobs/{one}/workers")["workers"][2]["pid"], signal.SIGKILL)
        self.wait_until(lambda: (3, 2, "lost") in self.history(one), "without it")
        self.wait_until(lambda: self.history(one)[-1] == (2, 3, "grew") and self.sizes(one) == {3}, "at three workers again")
        self.wait_until(lambda: all(report.get("step", 0) > step for report in self.said(one)), "further than before")
        got = self.daemon.call("GET", f"jobs/{one}")["status"]
        self.assertEqual((got["phase"], got["restarts"]), ("running", 0))
        self.assertIn("a worker was lost", self.muster("describe", one).stdout)

    def test_the_scheduler_learns_how_fast_a_job_is_and_a_replay_decides_the_same(self):
        self.policy("resize_every: 1s")
        one = self.endless(workers="1..2")
        self.wait_until(lambda: self.events(one, "speed-reported"), "heard of its speed")
        for facts in self.events(one, "speed-reported"):
            speed = facts["speed"]
            self.assertEqual((speed["samples"] * speed["gpus"], speed["first_batch"], speed["most_batch"], speed["nodes"]), (16, 16, 16, 1))
            self.assertGreaterEqual(speed["step_us"], speed["compute_us"])
            self.assertGreater(speed["compute_us"], 0)
        self.wait_until(lambda: any("noise_scale" in report["numbers"] for report in self.said(one)), "measured its noise")
        file = str(self.folder / "all.snap")
        self.assertEqual(self.muster("snapshot", "save", file).returncode, 0)
        replay = json.loads(self.muster("snapshot", "replay", file, "-o", "json").stdout)
        self.assertTrue(replay["same"], replay)

    def test_a_pytorch_program_with_the_module_is_paused_and_goes_on(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode:
            self.skipTest("python3-torch is not installed")
        program = ROOT / "examples" / "programs" / "torch_pause.py"
        env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
        alone = subprocess.run(["/usr/bin/python3", str(program), "--steps", "150", "--pace", "0"], cwd=self.folder, env=env,
                               capture_output=True, text=True, timeout=120, check=True)
        one = self.daemon.submit({"name": "torch", "queue": "ana", "gpus": 1, "workdir": str(self.folder),
                                  "command": ["/usr/bin/python3", str(program), "--steps", "150", "--pace", "0.02"],
                                  "env": {"PYTHONPATH": str(ROOT / "python")}, "checkpoint": {"dir": "saved", "grace": "30s"}})
        self.wait_until(lambda: any((report.get("step") or 0) >= 5 for report in self.said(one)), "five steps further")
        self.assertEqual(self.muster("suspend", one).returncode, 0)
        self.wait_until(lambda: self.daemon.call("GET", f"jobs/{one}")["status"]["phase"] == "suspended", "suspended")
        self.assertTrue((self.folder / "saved" / "pause.pt").exists())
        self.assertEqual(self.muster("resume", one).returncode, 0)
        got = self.daemon.wait(one, seconds=120)
        text = self.muster("logs", one).stdout
        self.assertEqual(got["status"]["phase"], "succeeded", text)
        self.assertIn("goes on after step", text)
        self.assertEqual(text.splitlines()[-1], alone.stdout.splitlines()[-1])


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
