"""Workers that compute with torch: any number of them, and a kill, leave the bits as they are.

Usage: torch_gang_test.py BUILD [unittest arguments]. Skips itself where the build found no libtorch.
"""
import os
import subprocess
import sys
import unittest

from gang import Gang, mismatches, misread

BUILD = sys.argv.pop(1)
PROGRAM = os.path.join(BUILD, "bin", "muster-train-torch")
FASHION = "/usr/share/datasets/fashion-mnist"
SECONDS = 300  # torch is slow to start
# Dropout: so that random numbers of torch are part of the result.
TEXT = {"model": "transformer:layers=1,width=32,heads=2,context=16,dropout=0.1",
        "data": "text:/usr/share/common-licenses/GPL-3", "batch": 24, "steps": 25, "every_step": "true"}
PICTURES = {"model": "conv:fashion", "data": "fashion", "batch": 32, "steps": 30, "every_step": "true"}


@unittest.skipUnless(os.path.exists(PROGRAM), "built without libtorch; `scripts/deps test` installs it")
class TorchTest(unittest.TestCase):
    def run_gang(self, workers, options, then=lambda gang: None):
        with Gang(PROGRAM, **options, min_workers=workers) as gang:
            for _ in range(workers):
                gang.start()
            then(gang)
            gang.wait_ended(SECONDS)
            return gang

    def check(self, gang, truth):
        self.assertLessEqual({(step, 0) for step in range(1, gang.options["steps"] + 1)}, set(gang.hashes()), gang.describe())
        self.assertEqual(mismatches(gang, truth), [], gang.describe())
        self.assertEqual(misread(gang, 8), [], gang.describe())

    def loss_of(self, gang, steps):
        losses = {step.step: float(step.loss) for worker in gang.workers for step in worker.steps}
        return sum(losses[step] for step in steps) / len(steps)

    def test_one_two_and_three_workers_and_a_kill_give_the_same_bits(self):
        alone = self.run_gang(1, TEXT)
        self.assertEqual(alone.workers[0].end, "finished", alone.describe())
        truth = alone.hashes()
        self.assertEqual(len({truth[step, 0] for step in range(1, TEXT["steps"] + 1)}), TEXT["steps"])
        for workers in (2, 3):
            with self.subTest(workers=workers):
                gang = self.run_gang(workers, TEXT)
                self.assertEqual([worker.end for worker in gang.workers], ["finished"] * workers, gang.describe())
                self.check(gang, truth)
                self.assertEqual(gang.workers[0].steps[0].workers, workers)

        def replace_one(gang):
            gang.wait(lambda: gang.last_step() >= 5, SECONDS)
            gang.workers[1].kill()
            gang.start()
        with self.subTest("one is killed and another one comes"):
            gang = self.run_gang(3, TEXT, replace_one)
            self.check(gang, truth)
            self.assertLess(gang.workers[1].steps[-1].step, TEXT["steps"], gang.describe())
        self.assertLess(self.loss_of(alone, range(21, 26)), self.loss_of(alone, range(1, 6)))

    @unittest.skipUnless(os.path.isdir(FASHION), "no pictures; `scripts/deps test` installs them")
    def test_a_network_of_convolutions_learns_and_two_workers_give_the_same_bits(self):
        alone = self.run_gang(1, PICTURES)
        self.check(self.run_gang(2, PICTURES), alone.hashes())
        self.assertLess(self.loss_of(alone, range(26, 31)), 0.8 * self.loss_of(alone, range(1, 6)))

    def test_what_is_wrong_is_said(self):
        text = ["--model", "transformer", "--data", "text"]
        for arguments, said in ((text + ["--device", "tpu"], "cpu or cuda"),
                                (text + ["--precision", "float16"], "bfloat16"),
                                (text + ["--loss-scale", "1000"], "power of two"),
                                (["--model", "conv:digits", "--data", "modular"], "does not fit")):
            with self.subTest(arguments):
                ended = subprocess.run([PROGRAM] + arguments, capture_output=True, text=True, timeout=SECONDS)
                self.assertEqual(ended.returncode, 5, ended.stderr)
                self.assertIn(said, ended.stderr)


if __name__ == "__main__":
    unittest.main()
