#!/usr/bin/env python3
"""smoke_test.py BUILD: scripts/up as a newcomer runs it, twice, and --stop, in a folder of its own."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = None


def trains(status):
    """Whether all of a job's workers say that they have done steps together, so many as they are."""
    numbers = [worker.get("report", {}).get("numbers", {}) for worker in status["workers"] if worker["phase"] == "running"]
    return all(told.get("workers") == status["sizes"][-1]["to"] == len(numbers) for told in numbers)


class FirstFiveMinutes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-smoke-"))
        # Files of jobs lie beside their specs, so the specs are taken from a copy.
        shutil.copytree(ROOT / "examples", self.folder / "tree" / "examples")
        shutil.copytree(ROOT / "scripts", self.folder / "tree" / "scripts")
        training = self.folder / "tree" / "examples" / "first" / "pretrain.yaml"
        training.write_text(training.read_text().replace("steps=3000", "steps=300"))  # the tests wait for its end
        self.env = dict(os.environ, MUSTER_BIN=str(pathlib.Path(BUILD) / "bin"), MUSTER_STATE=str(self.folder / "state"),
                        MUSTER_DAEMON=str(self.folder / "d.sock"), MUSTER_UP_SECONDS="3")

    def tearDown(self):
        for job in self.muster("ps").get("jobs", []):
            subprocess.run([pathlib.Path(BUILD) / "bin" / "muster", "cancel", job["id"]], env=self.env, capture_output=True)
        self.up("--stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def up(self, *words):
        return subprocess.run([self.folder / "tree" / "scripts" / "up", *words], env=self.env, capture_output=True, text=True,
                              timeout=120)

    def muster(self, *words):
        got = subprocess.run([pathlib.Path(BUILD) / "bin" / "muster", *words, "-o", "json"], env=self.env,
                             capture_output=True, text=True, timeout=60)
        return json.loads(got.stdout) if got.returncode == 0 else {}

    def test_two_runs_of_up_make_one_shared_box(self):
        first = self.up()
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        self.assertIn("muster why pretrain", first.stdout)
        self.assertIn("virtual", first.stdout)
        queues = {queue["name"]: queue for queue in self.muster("queue", "list")["queues"]}
        self.assertEqual({queues[name]["status"]["gpu_quota"] for name in ("ana", "ben", "chen")}, {2})
        names = [job["name"] for job in self.muster("ps", "--all")["jobs"]]
        self.assertEqual(names.count("pretrain"), 1)
        self.assertEqual(sum(name.startswith("sweep[") for name in names), 6)
        again = self.up()
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertIn("serves already", again.stdout)
        names = [job["name"] for job in self.muster("ps", "--all")["jobs"]]
        self.assertEqual(names.count("pretrain"), 1)

    def test_pretrain_changes_its_size_while_it_trains(self):
        """It takes what nobody uses; the notebook and the sweep of the others get theirs back, and it grows again, without a restart."""
        shutil.copy(ROOT / "examples" / "first" / "pretrain.yaml", self.folder / "tree" / "examples" / "first")
        up = self.up()
        self.assertEqual(up.returncode, 0, up.stdout + up.stderr)
        status = self.wait_status("pretrain", lambda status: any(size["what"] == "grew" for size in status.get("sizes", [])) and trains(status))
        sizes = status["sizes"]
        self.assertEqual((sizes[0]["from"], sizes[0]["what"]), (0, "started"), sizes)
        for before, after in zip(sizes, sizes[1:]):
            self.assertEqual(before["to"], after["from"], sizes)
        gave = {size.get("for_queue") for size in sizes if size["what"] == "shrunk"}
        self.assertLessEqual({"ben", "chen"}, gave, sizes)
        self.assertTrue(any("pause_ms" in size for size in sizes[1:]), f"its workers have told of no change: {sizes}")
        self.assertEqual((status["restarts"], status["phase"]), (0, "running"))

    def wait_status(self, job, condition):
        deadline = time.monotonic() + 120
        while not condition(status := self.muster("describe", job)["status"]):
            self.assertLess(time.monotonic(), deadline, status)
            time.sleep(0.1)
        return status

    def test_what_up_proposes_can_be_typed(self):
        printed = self.up().stdout
        lines = [line for line in printed.partition("Try:\n")[2].splitlines() if "scripts/up --stop" not in line]
        self.assertGreater(len(lines), 5, printed)
        typed = subprocess.run(["bash", "-ec", "\n".join(lines)], env=self.env, cwd=self.folder / "tree", capture_output=True, text=True,
                               timeout=240)
        self.assertEqual(typed.returncode, 0, typed.stdout + typed.stderr)
        for job in self.muster("ps", "--all")["jobs"]:
            done = subprocess.run([pathlib.Path(BUILD) / "bin" / "muster", "wait", job["id"]], env=self.env, capture_output=True, text=True,
                                  timeout=120)
            self.assertEqual(done.returncode, 0, f"{job['name']}: {done.stdout} {done.stderr}")


if __name__ == "__main__":
    BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
