"""The audit of a run says which samples counted, and its checker finds what is wrong with one.

Usage: audit_test.py BUILD [unittest arguments].
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import audit

BIN = os.path.join(sys.argv.pop(1), "bin")
STEPS, BATCH = 30, 64  # of 900 samples, so that there are two whole epochs


class CheckerTest(unittest.TestCase):
    """Six samples, two in a batch, a shard each."""

    def check(self, *workers, steps=3):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for index, lines in enumerate(workers):
                paths.append(pathlib.Path(folder) / str(index))
                paths[-1].write_text("".join(line + "\n" for line in lines))
            return audit.check(paths, steps, 2)

    def view(self, generation, step):
        return f"view {generation} step {step} members 2 columns 1 shards 2 epoch 6"

    def take(self, generation, step, shard, sample):
        return f"take {generation} {step} column 0 shard {shard} samples {sample}"

    def steps(self, generation, shard, samples):
        """From the first step on, done and all."""
        return [line for step, sample in enumerate(samples, 1)
                for line in (self.take(generation, step, shard, sample), f"done {generation} {step}")]

    def test_two_workers_that_share_an_epoch(self):
        self.assertEqual(self.check([self.view(1, 0)] + self.steps(1, 0, [0, 2, 4]), self.steps(1, 1, [1, 3, 5])), (0, 0, []))

    def test_a_sample_that_comes_twice_in_an_epoch_is_doubled(self):
        missed, doubled, strange = self.check([self.view(1, 0)] + self.steps(1, 0, [0, 2, 4]), self.steps(1, 1, [1, 3, 0]))
        self.assertEqual((missed, doubled), (0, 1))
        self.assertIn("epoch 0", strange[0])

    def test_a_shard_that_nobody_took_is_missed(self):
        missed, doubled, strange = self.check([self.view(1, 0)] + self.steps(1, 0, [0, 2, 4]), self.steps(1, 1, [1, 3]))
        self.assertEqual((missed, doubled), (1, 0))
        self.assertIn("step 3", strange[0])

    def test_a_shard_that_two_took_is_doubled(self):
        workers = [self.view(1, 0)] + self.steps(1, 0, [0, 2, 4]), self.steps(1, 1, [1, 3, 5]), [self.take(1, 3, 1, 5)]
        self.assertEqual(self.check(*workers)[:2], (0, 1))

    def test_a_step_that_was_done_again_counts_once_in_its_last_view(self):
        first = [self.view(1, 0)] + self.steps(1, 0, [0, 2, 4])
        killed = self.steps(1, 1, [1, 3]) + [self.take(1, 3, 1, 5)]
        again = [self.view(2, 2), self.take(2, 3, 0, 4), self.take(2, 3, 1, 5), "done 2 3"]
        self.assertEqual(self.check(first + again, killed), (0, 0, []))

    def test_what_one_took_before_it_was_killed_counts_where_the_others_had_the_step(self):
        first = [self.view(1, 0)] + self.steps(1, 0, [0, 2]) + [self.view(2, 2), self.take(2, 3, 0, 4), self.take(2, 3, 1, 5), "done 2 3"]
        killed = [self.take(1, 1, 1, 1), "done 1 1", self.take(1, 2, 1, 3)]
        self.assertEqual(self.check(first, killed), (0, 0, []))

    def test_a_job_that_went_back_to_a_checkpoint_counts_what_it_did_again(self):
        first = [self.view(1, 0)] + self.steps(1, 0, [0, 2, 4]), [self.view(1, 0)] + self.steps(1, 1, [1, 3, 5])
        again = [self.view(2, 1)] + [self.take(2, step, shard, 2 * step - 2 + shard) for step in (2, 3) for shard in (0, 1)]
        self.assertEqual(self.check(*first, again + ["done 2 3"]), (0, 0, []))
        missed, _, strange = self.check(*first, again[:-1] + ["done 2 3"])
        self.assertEqual(missed, 1, strange)

    def test_a_step_of_several_batches_counts_each_of_them(self):
        first = [self.view(1, 0)] + [self.take(1, step, 0, 2 * step - 2) for step in (1, 2, 3)] + ["done 1 3"]
        second = [self.take(1, step, 1, 2 * step - 1) for step in (1, 2, 3)] + ["done 1 3"]
        self.assertEqual(self.check(first, second), (0, 0, []))
        missed, doubled, strange = self.check(first, second[1:])
        self.assertEqual((missed, doubled), (1, 0))
        self.assertIn("step 1", strange[0])

    def test_a_step_of_several_batches_that_was_broken_off_does_not_count(self):
        first = [self.view(1, 0), self.take(1, 1, 0, 0), "done 1 1", self.take(1, 2, 0, 2), self.take(1, 3, 0, 4)]
        killed = [self.take(1, 1, 1, 1), "done 1 1", self.take(1, 2, 1, 3)]
        again = [self.view(2, 1)] + [self.take(2, step, shard, 2 * step - 2 + shard) for step in (2, 3) for shard in (0, 1)]
        self.assertEqual(self.check(first + again + ["done 2 3"], killed), (0, 0, []))

    def test_steps_that_were_never_done_are_missed(self):
        missed, _, strange = self.check([self.view(1, 0)] + self.steps(1, 0, [0, 2]), self.steps(1, 1, [1, 3]))
        self.assertEqual(missed, 2)
        self.assertIn("step 3 was never done", strange)

    def test_workers_that_differ_about_a_view_are_told_of(self):
        workers = [self.view(1, 0)] + self.steps(1, 0, [0, 2, 4]), [self.view(1, 1)] + self.steps(1, 1, [1, 3, 5])
        self.assertIn("differ about view 1", self.check(*workers)[2][0])


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = pathlib.Path(folder.name) / "audit"

    def train(self, *words):
        return subprocess.run([os.path.join(BIN, "muster-train"), "--model", "mlp:8,16,1", "--data", "linear", "--steps", str(STEPS),
                               "--batch", str(BATCH), "--quiet", "--timeout-ms", "10000", "--audit", str(self.log), *words],
                              capture_output=True, text=True, timeout=120)

    def test_three_workers_write_one_log_that_is_in_order_until_it_is_changed(self):
        run = self.train("--workers", "3")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(audit.check([self.log], STEPS, BATCH), (0, 0, []))
        lines = self.log.read_text().splitlines(keepends=True)
        takes = [index for index, line in enumerate(lines) if line.startswith("take ")]
        self.assertEqual(len(takes), 8 * STEPS)
        samples = BATCH // 8
        self.log.write_text("".join(line for index, line in enumerate(lines) if index != takes[100]))
        self.assertEqual(audit.check([self.log], STEPS, BATCH)[:2], (samples, 0))
        self.log.write_text("".join(lines + [lines[takes[100]]]))
        self.assertEqual(audit.check([self.log], STEPS, BATCH)[:2], (0, samples))

    def test_who_cannot_write_its_log_does_not_train(self):
        self.log = "/dev/full"
        run = self.train()
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("/dev/full", run.stderr)
        self.assertIn("No space left", run.stderr)


if __name__ == "__main__":
    unittest.main()
