"""Workers that compute with torch: any number of them, any strategy and a kill leave the bits as they are.

Usage: torch_gang_test.py BUILD [unittest arguments]. CTest has it where the build found libtorch; it skips nothing and needs no data.
"""
import gzip
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import audit
from gang import PATIENT_MS, Gang, mismatches, misread

BUILD = sys.argv.pop(1)
PROGRAM = os.path.join(BUILD, "bin", "muster-train-torch")
SECONDS = 300  # torch is slow to start
SERVER = ("sh", "-c", 'exec "$0" --server "$@"')  # before the command
SHARDS = 8
# Dropout: so that random numbers of torch are part of the result.
TEXT = {"model": "transformer:layers=1,width=32,heads=2,context=16,dropout=0.1", "batch": 24, "steps": 25, "every_step": "true",
        "timeout_ms": PATIENT_MS}
PICTURES = {"model": "conv:fashion", "batch": 32, "steps": 30, "every_step": "true", "timeout_ms": PATIENT_MS}


def write_text(path, characters):
    """Words that come again and again; nine tenths of it are trained on."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 6))) for _ in range(40)]
    path.write_text(" ".join(draw.choices(words, k=characters))[:characters])
    return f"text:{path}"


def write_pictures(folder):
    """Ten patterns, each with noise of its own: IDX files as those of Fashion-MNIST."""
    draw = random.Random(1)
    patterns = [draw.choices((0, 255), k=28 * 28) for _ in range(10)]
    for which, count in (("train", 300), ("t10k", 20)):
        pixels = bytes(draw.randrange(256) if draw.random() < 0.3 else pixel for index in range(count) for pixel in patterns[index % 10])
        for kind, sizes, values in (("images-idx3", (count, 28, 28), pixels),
                                    ("labels-idx1", (count,), bytes(index % 10 for index in range(count)))):
            header = struct.pack(f">BBBB{len(sizes)}I", 0, 0, 8, len(sizes), *sizes)
            (folder / f"{which}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + values))
    return f"fashion:{folder}"


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.text = {**TEXT, "data": write_text(cls.folder / "text", 8000)}
        cls.alone = cls.run_gang(1, cls.text)

    @classmethod
    def run_gang(cls, workers, options, then=lambda gang: None, servers=0, audited=False):
        with Gang(PROGRAM, **options, audited=audited, min_workers=workers + servers) as gang:
            for index in range(workers + servers):
                gang.start(before=() if index < workers else SERVER)
            then(gang)
            gang.wait_ended(SECONDS)
            return gang

    def check(self, gang, truth):
        self.assertLessEqual({(step, 0) for step in range(1, gang.options["steps"] + 1)}, set(gang.hashes()), gang.describe())
        self.assertEqual(mismatches(gang, truth), [], gang.describe())
        self.assertEqual(misread(gang, SHARDS), [], gang.describe())

    def loss_of(self, gang, steps):
        losses = {step.step: float(step.loss) for worker in gang.workers for step in worker.steps}
        return sum(losses[step] for step in steps) / len(steps)

    @staticmethod
    def replace_one(gang):
        gang.wait(lambda: gang.last_step() >= 5, SECONDS)
        gang.workers[1].kill()
        gang.start()

    def test_one_two_and_three_workers_and_a_kill_give_the_same_bits(self):
        self.assertEqual(self.alone.workers[0].end, "finished", self.alone.describe())
        truth = self.alone.hashes()
        self.assertEqual(len({truth[step, 0] for step in range(1, TEXT["steps"] + 1)}), TEXT["steps"])
        for workers in (2, 3):
            with self.subTest(workers=workers):
                gang = self.run_gang(workers, self.text)
                self.assertEqual([worker.end for worker in gang.workers], ["finished"] * workers, gang.describe())
                self.check(gang, truth)
                self.assertEqual(gang.workers[0].steps[0].workers, workers)
        with self.subTest("one is killed and another one comes"):
            gang = self.run_gang(3, self.text, self.replace_one)
            self.check(gang, truth)
            self.assertLess(gang.workers[1].steps[-1].step, TEXT["steps"], gang.describe())
        self.assertLess(self.loss_of(self.alone, range(21, 26)), self.loss_of(self.alone, range(1, 6)))

    def test_lanes_and_servers_give_the_same_bits(self):
        for strategy, workers, servers in (("mirrored", 1, 0), ("mirrored:lanes=3", 2, 0), ("server:servers=1", 2, 1), ("central", 1, 1)):
            with self.subTest(strategy=strategy, workers=workers):
                gang = self.run_gang(workers, {**self.text, "strategy": strategy}, servers=servers)
                self.assertEqual([worker.end for worker in gang.workers], ["finished"] * (workers + servers), gang.describe())
                self.check(gang, self.alone.hashes())
                for server in gang.workers[workers:]:
                    self.assertFalse(any(step.shards for step in server.steps), gang.describe())

    def test_each_sample_of_an_epoch_counts_once_though_a_worker_is_killed(self):
        epochs = {**self.text, "data": write_text(self.folder / "short", 700), "steps": 60}
        for strategy in ("data", "mirrored"):
            with self.subTest(strategy=strategy):
                gang = self.run_gang(3, {**epochs, "strategy": strategy}, self.note_audits, audited=True)
                self.assertEqual([gang.workers[index].end for index in (0, 2, 3)], ["finished"] * 3, gang.describe())
                self.assertEqual(self.checked, (0, 0, []))
                self.assertGreater(len(self.audit.views), 1, "nobody was missed")
                self.assertEqual(self.audit.shape, [1, SHARDS, 630 - 16])  # more than two epochs

    def note_audits(self, gang):
        """While their folder is there."""
        self.replace_one(gang)
        gang.wait_ended(SECONDS)
        paths = gang.audits()
        self.assertEqual(len(paths), 4)
        self.audit = audit.Log(paths)
        self.checked = audit.check(paths, gang.options["steps"], gang.options["batch"])

    def test_in_bfloat16_two_workers_give_the_bits_of_one(self):
        options = {**self.text, "precision": "bfloat16"}
        alone = self.run_gang(1, options)
        self.assertEqual(alone.workers[0].end, "finished", alone.describe())
        self.assertNotEqual(alone.hashes()[TEXT["steps"], 0], self.alone.hashes()[TEXT["steps"], 0])
        self.check(self.run_gang(2, options), alone.hashes())

    def test_a_worker_whose_cpu_is_of_another_type_is_refused_unless_sums_are_fast(self):
        older = ("env", "ATEN_CPU_CAPABILITY=default")
        for exact in ("true", "false"):
            with self.subTest(exact=exact), Gang(PROGRAM, **self.text, exact=exact, min_workers=2) as gang:
                gang.start()
                gang.wait(lambda: (gang.folder / "store" / "members" / "view-1").exists(), SECONDS)
                other = gang.start(before=older)
                if exact == "false":
                    gang.wait_ended(SECONDS)
                    self.assertEqual([worker.end for worker in gang.workers], ["finished"] * 2, gang.describe())
                    continue
                gang.wait(lambda: not other.lives, SECONDS)
                self.assertIn("other options", other.errors)
                self.assertRegex(other.errors, r"cpu [A-Z0-9 ]+, not [A-Z0-9 ]+")
                self.assertEqual(other.steps, [])

    def test_a_network_of_convolutions_learns_and_two_workers_give_the_same_bits(self):
        (self.folder / "pictures").mkdir()
        pictures = {**PICTURES, "data": write_pictures(self.folder / "pictures")}
        alone = self.run_gang(1, pictures)
        self.check(self.run_gang(2, pictures), alone.hashes())
        self.check(self.run_gang(1, {**pictures, "strategy": "mirrored"}), alone.hashes())
        self.assertLess(self.loss_of(alone, range(26, 31)), 0.8 * self.loss_of(alone, range(1, 6)))

    def test_what_is_wrong_is_said(self):
        text = ["--model", "transformer", "--data", self.text["data"]]
        for arguments, said in ((text + ["--device", "tpu"], "cpu or cuda"),
                                (text + ["--precision", "float16"], "bfloat16"),
                                (text + ["--loss-scale", "1000"], "power of two"),
                                (text + ["--strategy", "pipeline:stages=2"], "data, mirrored, server or central"),
                                (text + ["--strategy", "tensor:slices=2"], "data, mirrored, server or central"),
                                (text + ["--strategy", "hybrid:data=2,stages=2"], "data, mirrored, server or central"),
                                (["--model", "conv:digits", "--data", "modular"], "does not fit")):
            with self.subTest(arguments):
                ended = subprocess.run([PROGRAM] + arguments, capture_output=True, text=True, timeout=SECONDS)
                self.assertEqual(ended.returncode, 5, ended.stderr)
                self.assertIn(said, ended.stderr)


if __name__ == "__main__":
    unittest.main()
