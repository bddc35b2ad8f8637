#!/usr/bin/env python3
"""line_test.py BUILD: the worker contract between muster-train and whoever runs it, spoken here by Python as docs/contract.md has it."""
import json
import os
import pathlib
import queue
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import muster  # noqa: E402

# A time-out so long that only who has ended is lost, however busy the machine is.
TRAIN = ["--data=linear", "--model=mlp:8,64,1", "--batch=64", "--shards=8", "--quiet", "--timeout-ms=10000"]
ENDLESS = "--steps=100000000"
PATIENCE_S = 120


class Worker:
    """One muster-train, and the end of its line that a shim would have."""

    def __init__(self, folder, rank, *flags, **variables):
        self.rank = rank
        path = folder / f"{rank}.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        env = dict(os.environ, MUSTER_SOCKET=str(path), MUSTER_RANK=str(rank), MUSTER_JOB_ID="1", MUSTER_JOB_DIR=str(folder),
                   **variables)
        self.process = subprocess.Popen([str(BUILD / "bin" / "muster-train"), *TRAIN, *flags], env=env, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        listener.settimeout(PATIENCE_S)
        self.line, _ = listener.accept()
        listener.close()
        self.lines = self.line.makefile("r")
        self.hello = json.loads(self.lines.readline())
        self.tell(type="welcome", version=1, launch=f"1.{rank}.1", rank=rank, world_size=2)
        self.said, self.heard = queue.Queue(), []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.lines:
            self.heard.append(json.loads(line))
            self.said.put(self.heard[-1])

    def tell(self, **line):
        self.line.sendall((json.dumps(line) + "\n").encode())

    def hear(self, kind, fits=lambda line: True):
        """The next line of that kind that fits."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            line = self.said.get(timeout=max(0, deadline - time.monotonic()))
            if line["type"] == kind and fits(line):
                return line

    def end(self):
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        self.line.close()
        return self.process.returncode, out


class PythonTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="muster-line-")
        self.addCleanup(shutil.rmtree, folder)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{folder}/line.sock")
        listener.listen()
        met = queue.Queue()
        threading.Thread(target=lambda: met.put(self.greet(listener)), daemon=True).start()
        self.worker = muster.connect(f"{folder}/line.sock")
        self.line, self.lines = met.get(timeout=PATIENCE_S)
        self.addCleanup(self.line.close)

    def greet(self, listener):
        line, _ = listener.accept()
        listener.close()
        lines = line.makefile("r")
        lines.readline()
        line.sendall(b'{"type":"welcome","version":1,"launch":"1.2.1","rank":2,"world_size":3}\n')
        return line, lines

    def tell(self, **line):
        self.line.sendall((json.dumps(line) + "\n").encode())

    def test_knows_who_the_workers_are_and_stops_when_it_is_none_of_them(self):
        self.assertEqual((self.worker.rank, self.worker.world_size), (2, 3))
        self.tell(type="resize", generation=5, members=[{"rank": 0, "host": "a"}, {"rank": 2, "host": "a"}])
        deadline = time.monotonic() + PATIENCE_S
        while self.worker.generation != 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual((self.worker.generation, self.worker.world_size, self.worker.wants_to_stop), (5, 2, False))
        self.tell(type="resize", generation=6, members=[{"rank": 0, "host": "a"}])
        self.assertTrue(self.worker.wait_to_stop(PATIENCE_S))

    def test_leaves_when_it_is_told_to(self):
        self.assertFalse(self.worker.wants_to_stop)
        self.tell(type="leave", grace_ms=1000)
        self.assertTrue(self.worker.wait_to_stop(PATIENCE_S))

    def test_lines_that_make_no_sense_are_passed_over_and_half_a_line_is_none(self):
        for line in (b"nonsense", b"[1]", b"7", b"\xff\xfe", b"", b'{"type":"resize","members":7}', b'{"type":"resize","generation":"x"}'):
            self.line.sendall(line + b"\n")
        self.tell(type="resize", generation=5, members=[{"rank": 2, "host": "a"}])
        deadline = time.monotonic() + PATIENCE_S
        while self.worker.generation != 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual((self.worker.generation, self.worker.world_size, self.worker.wants_to_stop, self.worker.listens), (5, 1, False, True))
        self.line.sendall(b'{"type":"stop"')
        self.lines.close()
        self.line.close()
        while self.worker.listens and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual((self.worker.listens, self.worker.wants_to_stop), (False, False))
        self.worker.report(step=1)  # nobody hears it

    def test_a_request_that_comes_while_it_saves_is_not_lost(self):
        self.assertFalse(self.worker.wants_checkpoint)
        self.tell(type="checkpoint")
        deadline = time.monotonic() + PATIENCE_S
        while not self.worker.wants_checkpoint and time.monotonic() < deadline:
            time.sleep(0.01)
        self.tell(type="checkpoint")  # it is saving now, and does not look
        self.tell(type="resize", generation=9, members=[{"rank": 2, "host": "a"}])  # behind it
        while self.worker.generation != 9 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.worker.checkpointed(step=7, path="/seven")
        self.assertTrue(self.worker.wants_checkpoint, "the second one wants a checkpoint of its own")
        self.worker.checkpointed(step=8, path="/eight")
        self.assertFalse(self.worker.wants_checkpoint)
        self.assertEqual([json.loads(self.lines.readline())["step"] for _ in range(2)], [7, 8])

    def test_says_what_a_change_cost(self):
        self.worker.resized(workers=3, pause_ms=35.4, step=7)
        self.worker.resized(workers=2, pause_ms=0)
        self.assertEqual(json.loads(self.lines.readline()), {"type": "resized", "workers": 3, "pause_ms": 35, "step": 7})
        self.assertEqual(json.loads(self.lines.readline()), {"type": "resized", "workers": 2, "pause_ms": 0})


    def test_a_frozen_shim_costs_what_is_said_meanwhile_and_nothing_else(self):
        """Nobody reads, until the line is full and beyond; then somebody does, and hears whole lines, also of what is said from then on."""
        many = 20_000
        speaker = threading.Thread(target=lambda: [self.worker.report(step=step, loss=0.5) for step in range(many)], daemon=True)
        speaker.start()
        speaker.join(PATIENCE_S)
        self.assertFalse(speaker.is_alive(), "it waits for somebody who reads")
        self.assertTrue(self.worker.listens)
        heard = threading.Event()

        def save():
            while not heard.wait(0.01):
                self.worker.checkpointed(step=7, path="/seven")

        self.line.settimeout(PATIENCE_S)
        speaker = threading.Thread(target=save, daemon=True)
        speaker.start()
        lines = iter(lambda: json.loads(self.lines.readline()), {"type": "checkpointed", "step": 7, "path": "/seven"})
        steps = [line["step"] for line in lines]
        heard.set()
        speaker.join(PATIENCE_S)
        self.assertEqual(steps, list(range(len(steps))))
        self.assertTrue(0 < len(steps) < many, f"{len(steps)} were heard")

    def test_a_shim_that_never_answers_is_given_up_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{folder}/silent.sock")
            listener.listen()
            with self.assertRaisesRegex(TimeoutError, "does not answer"):
                muster.connect(f"{folder}/silent.sock", timeout_s=0.1)


class LineTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-line-"))
        self.workers = []

    def tearDown(self):
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.communicate()
            worker.line.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, count, *flags):
        for rank in range(count):
            self.workers.append(Worker(self.folder, rank, ENDLESS, f"--checkpoints={self.folder}/saved", *flags))
        for worker in self.workers:
            worker.hear("report", lambda line: line["numbers"]["workers"] == count)
        return self.workers

    def saved(self, step):
        return any(str(step) in path.name for path in (self.folder / "saved").iterdir())

    def short(self, rank, *flags):
        """One of a job that is to have two workers at least: some steps, each with a line that says how many took part."""
        self.workers.append(Worker(self.folder, rank, "--steps=20", "--every-step=true", *flags, MUSTER_MIN_WORKERS="2"))
        return self.workers[-1]

    def sizes_of(self, worker):
        """How many workers took part in each step."""
        status, out = worker.end()
        self.assertEqual(status, 0, out)
        return [int(size) for size in re.findall(r"^step .* workers (\d+) ", out, re.MULTILINE)]

    def test_waits_for_the_fewest_workers_that_the_job_may_have(self):
        one = self.short(0)
        deadline = time.monotonic() + PATIENCE_S
        while not (self.folder / "train" / "members" / "view-1").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        two = self.short(1)
        for worker in (one, two):
            self.assertEqual(self.sizes_of(worker), [2] * 20)

    def test_a_flag_says_otherwise_than_the_job(self):
        self.assertEqual(self.sizes_of(self.short(0, "--min-workers=1")), [1] * 20)

    def test_says_how_it_fares(self):
        workers = self.start(2, "--noise-every=1")
        for worker in workers:
            self.assertEqual((worker.hello["type"], worker.hello["version"]), ("hello", 1))
            report = worker.hear("report", lambda line: "noise_scale" in line["numbers"])
            numbers = report["numbers"]
            self.assertEqual(report["samples"], report["step"] * 64)
            self.assertEqual((numbers["workers"], numbers["batch"]), (2, 64))
            self.assertNotIn("most_batch", numbers)
            self.assertGreater(numbers["compute_ms"], 0)
            self.assertGreaterEqual(numbers["step_ms"], numbers["compute_ms"])
            self.assertGreater(numbers["samples_per_s"], 0)
            self.assertGreater(numbers["noise_scale"], 0)
            self.assertNotIn("checkpoint_age_s", numbers)

    def test_says_how_large_the_batch_is_that_it_adapts(self):
        flags = "--exact=false", "--rate=constant:rate=0.001", "--noise-every=1", "--adapt-batch=noise:most=8"
        for worker in self.start(2, *flags):
            report = worker.hear("report", lambda line: line["numbers"]["batch"] > 64)
            numbers = report["numbers"]
            self.assertIn(numbers["batch"], (3 * 64, 7 * 64))
            self.assertEqual((numbers["first_batch"], numbers["most_batch"]), (64, 7 * 64))
            self.assertEqual(report["samples"], report["step"] * 64)
            self.assertGreaterEqual(numbers["step_ms"], numbers["compute_ms"])

    def test_measures_no_noise_where_it_is_told_not_to(self):
        worker = self.start(1, "--noise-every=0")[0]
        self.assertNotIn("noise_scale", worker.hear("report")["numbers"])

    def test_writes_a_checkpoint_when_asked_and_goes_on(self):
        workers = self.start(2)
        for worker in workers:
            worker.tell(type="checkpoint", deadline_ms=4102444800000)
        reports = [worker.hear("report", lambda line: "checkpoint_age_s" in line["numbers"]) for worker in workers]
        said = [line["step"] for worker in workers for line in worker.heard if line["type"] == "checkpointed"]
        self.assertEqual(len(said), 1, "one says so")
        for report in reports:
            self.assertGreaterEqual(report["step"], said[0])
        self.assertTrue(self.saved(said[0]))

    def test_who_is_no_member_any_more_leaves_and_the_others_say_what_it_cost(self):
        one, two = self.start(2)
        members = [{"rank": 0, "host": "here"}]
        for worker in (one, two):
            worker.tell(type="resize", generation=7, members=members)
        self.assertEqual(two.end()[0], 0)
        resized = one.hear("resized", lambda line: line["workers"] == 1)
        self.assertGreaterEqual(resized["pause_ms"], 0)
        self.assertGreater(one.hear("report", lambda line: line["numbers"]["workers"] == 1)["step"], resized["step"])

    def test_leaves_when_told_to_and_the_last_one_saves_first(self):
        one, two = self.start(2)
        two.tell(type="leave", grace_ms=60000)
        self.assertEqual(two.end()[0], 0)
        one.hear("resized", lambda line: line["workers"] == 1)
        one.tell(type="leave", grace_ms=60000)
        saved = one.hear("checkpointed")
        self.assertEqual(one.end()[0], 0)
        self.assertTrue(self.saved(saved["step"]))


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1))
    unittest.main()
