"""Whatever happens to the workers of a job, every step has the parameters of an undisturbed run.

Usage: schedules_test.py BUILD [unittest arguments]. MUSTER_SCHEDULES says how many schedules are drawn.
"""
import os
import pathlib
import sys
import tempfile
import time
import unittest

from gang import HASTY_MS, PATIENT_MS, Gang, Schedule, mismatches, misread, reference, went_back

BUILD = sys.argv.pop(1)
PROBE = os.path.join(BUILD, "bin", "train_probe")
COUNT = int(os.environ.get("MUSTER_SCHEDULES", "12"))
STEPS = 60


class SchedulesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.options = {"steps": STEPS, "idle_floats": 5000, "bucket_floats": 700, "pause_us": 500}
        cls.truth = reference(PROBE, **cls.options)

    def test_any_number_of_workers_gives_the_same_bits(self):
        """Eight shards: of the network of the probe, and of a model on data, which has a hash at its end too."""
        model = {"model": "mlp:16,24,24,1", "data": "teacher", "batch": 48, "shards": 8, "bucket_floats": 500, "steps": STEPS}
        for options, truth in ((self.options, self.truth), (model, reference(PROBE, **model))):
            for workers in (1, 2, 3, 4, 8):
                gang = Gang(PROBE, **options, min_workers=workers, timeout_ms=PATIENT_MS)
                with self.subTest(data=options.get("data"), workers=workers), gang:
                    for _ in range(workers):
                        gang.start()
                    gang.wait_ended()
                    self.assertEqual([worker.end for worker in gang.workers], ["finished"] * workers, gang.describe())
                    self.assertEqual(gang.hashes(), truth)  # of every step, and none is missing
                    self.assertEqual(mismatches(gang, truth), [])
                    self.assertEqual({step.workers for worker in gang.workers for step in worker.steps}, {workers})
                    self.assertEqual(misread(gang, 8), [])

    def test_drawn_schedules_of_joins_leaves_kills_and_freezes(self):
        strikes = 0
        for seed in range(COUNT):
            mild = seed % 2 == 1
            timeout_ms = PATIENT_MS if mild else HASTY_MS
            with self.subTest(seed=seed), Gang(PROBE, **self.options, min_workers=1, timeout_ms=timeout_ms) as gang:
                schedule = Schedule(seed, STEPS, mild=mild)
                schedule.play(gang, 2 + seed % 4)
                strikes += schedule.strikes
                told = f"{schedule.log}\n{gang.describe()}"
                self.assertTrue(any(worker.end == "finished" for worker in gang.workers), told)
                self.assertEqual(mismatches(gang, self.truth), [], told)
                self.assertEqual(misread(gang, 8), [], told)
                if mild:
                    self.assertEqual(went_back(gang), [], told)
        self.assertGreater(strikes, 0, "nothing happened to anybody")


class ChangesTest(unittest.TestCase):
    """One thing that happens to a gang at a time."""

    @classmethod
    def setUpClass(cls):
        cls.options = {"steps": STEPS, "idle_floats": 5000, "bucket_floats": 700, "pause_us": 2000, "timeout_ms": PATIENT_MS}
        cls.truth = reference(PROBE, **cls.options)

    def gang(self, workers, **more):
        gang = Gang(PROBE, **{**self.options, **more})
        self.addCleanup(gang.__exit__)
        for _ in range(workers):
            gang.start()
        return gang

    def expect_finished(self, gang):
        gang.wait_ended()
        self.assertTrue(any(worker.end == "finished" for worker in gang.workers), gang.describe())
        self.assertEqual(mismatches(gang, self.truth), [], gang.describe())

    def test_all_leave_and_go_on_later_from_where_they_were(self):
        gang = self.gang(0, checkpoints=self.gang(0).folder / "checkpoints")
        with gang.slowly():
            first = [gang.start(first_workers=3) for _ in range(3)]
            gang.wait(lambda: gang.last_step() >= 5)
            for worker in first:
                worker.leave()
            gang.wait_ended()
        self.assertEqual([worker.end for worker in first], ["left"] * 3, gang.describe())
        reached = gang.last_step()
        second = [gang.start() for _ in range(2)]
        self.expect_finished(gang)
        begun = min(worker.steps[0].step for worker in second if worker.steps)
        self.assertEqual(begun, reached + 1, gang.describe())

    def test_a_job_whose_workers_were_all_killed_goes_on_from_its_newest_checkpoint(self):
        gang = self.gang(0, checkpoints=self.gang(0).folder / "checkpoints", checkpoint_every=5, timeout_ms=HASTY_MS)
        with gang.slowly():
            for _ in range(3):
                gang.start(first_workers=3)
            gang.wait(gang.checkpoints)
            for worker in gang.workers:
                worker.kill()
        gang.wait_ended()
        later = gang.start()
        self.expect_finished(gang)
        self.assertEqual(later.steps[0].step % 5, 1, gang.describe())
        self.assertGreater(later.steps[0].step, 1)

    def test_a_gang_that_was_frozen_as_a_whole_loses_nobody(self):
        gang = self.gang(4, min_workers=4, timeout_ms=2500)
        with gang.slowly():
            gang.wait(lambda: gang.last_step() >= 5)
            generation = gang.workers[0].steps[-1].generation
            for worker in gang.workers:
                worker.freeze()
            time.sleep(3)  # longer than the time-out
            for worker in gang.workers:
                worker.thaw()
        self.expect_finished(gang)
        self.assertEqual(went_back(gang), [], gang.describe())
        self.assertEqual({worker.steps[-1].generation for worker in gang.workers}, {generation}, gang.describe())

    def test_one_that_was_frozen_for_long_joins_again(self):
        """With two mirrors, so that it costs nothing if the other two lose each other as well."""
        gang = self.gang(0, mirrors=2, timeout_ms=HASTY_MS)
        with gang.slowly():
            for _ in range(3):
                gang.start(first_workers=3)
            others, frozen = gang.workers[::2], gang.workers[1]
            gang.wait(lambda: all(worker.steps for worker in gang.workers))
            given_up = frozen.steps[-1].generation
            frozen.freeze()
            gang.wait(lambda: any(worker.steps[-1].generation > given_up for worker in others))
            frozen.thaw()
            gang.wait(lambda: frozen.steps[-1].generation > given_up)
        self.expect_finished(gang)
        self.assertEqual(went_back(gang), [], gang.describe())
        self.assertEqual(frozen.end, "finished", gang.describe())

    def test_joiners_that_die_at_the_door_harm_nobody(self):
        gang = self.gang(2)
        with gang.slowly():
            gang.wait(lambda: gang.last_step() >= 2)
            for delay in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):  # before it is there, as it knocks, when it is in
                joiner = gang.start()
                time.sleep(delay)
                joiner.kill()
        self.expect_finished(gang)
        self.assertEqual(went_back(gang), [], gang.describe())

    def test_one_that_is_told_to_leave_begins_one_more_step_at_most(self):
        """Whether it is the chief or not; the step at hand is not counted. All have the same clock, and say when a step ended."""
        gang = self.gang(4, steps=10**6)
        for rank in (0, 1, 3):
            last = lambda: [(worker.steps[-1].workers, worker.steps[-1].generation) for worker in gang.alive() if worker.steps]
            gang.wait(lambda: len(last()) == 4 and last()[0][0] == 4 and len(set(last())) == 1)
            leaver = next(worker for worker in gang.alive() if worker.steps[-1].rank == rank)
            leaver.leave()
            told_us = time.monotonic_ns() // 1000
            gang.wait(lambda: not leaver.lives)
            for thread in leaver.threads:
                thread.join()
            self.assertEqual(leaver.end, "left", gang.describe())
            begun = [before.step + 1 for before in leaver.steps[:-1] if before.at_us > told_us]
            self.assertLessEqual(len(begun), 1, gang.describe())
            gang.start()

    def test_one_that_waits_for_others_leaves_when_it_is_told_to(self):
        gang = self.gang(1, min_workers=2)
        gang.wait(lambda: (gang.folder / "store" / "view-1").exists())  # of itself alone
        gang.workers[0].leave()
        gang.wait_ended()
        self.assertEqual(gang.workers[0].end, "left", gang.describe())

    def expect_refused(self, options, other, *words):
        """A worker that differs in one option from the one who is there is told in which, and harms nobody."""
        with self.subTest(other=other), Gang(PROBE, **{**self.options, **options}) as gang:
            gang.start()
            gang.wait(lambda: gang.last_step() >= 2)
            stranger = gang.start(**other)
            gang.wait(lambda: not stranger.lives)
            gang.wait_ended()
            self.assertEqual(gang.workers[0].end, "finished", gang.describe())
            self.assertEqual(stranger.steps, [], gang.describe())
            self.assertIn("other options", stranger.errors)
            self.assertNotEqual(stranger.process.returncode, 0)
            for word in words:
                self.assertIn(word, stranger.errors)

    def test_a_worker_with_other_options_is_refused(self):
        self.expect_refused({}, {"mirrors": 2}, "mirrors 2, not 1")
        self.expect_refused({}, {"strategy": "mirrored:lanes=2"}, "lanes 2, not 1")
        self.expect_refused({}, {"batch": 8}, "batch 8, not 4")
        self.expect_refused({}, {"seed": 5}, "seed 5, not 0")
        self.expect_refused({}, {"timeout_ms": HASTY_MS}, f"timeout-ms {HASTY_MS}, not {PATIENT_MS}")

    def test_a_worker_with_another_model_run_is_refused(self):
        model = {"model": "mlp:8,24,1", "data": "linear", "batch": 64, "rate": "constant:rate=0.01", "optimizer": "adam"}
        self.expect_refused(model, {"batch": 128}, "batch 128, not 64")
        self.expect_refused(model, {"rate": "constant:rate=0.5"}, "rate constant:rate=0.5, not constant:rate=0.01")
        self.expect_refused(model, {"optimizer": "adam:beta1=0.8"}, "optimizer adam:beta1=0.8, not adam")

    def test_a_worker_with_other_data_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            texts = [pathlib.Path(folder, name) for name in "ab"]
            texts[0].write_text("ab" * 300)
            texts[1].write_text("ba" * 300)
            model = {"model": "transformer:layers=1,width=8,heads=1,context=8,vocab=2", "data": f"text:{texts[0]}", "batch": 8}
            self.expect_refused(model, {"data": f"text:{texts[1]}"}, "digest ")
            texts[1].write_text("ab" * 290)
            self.expect_refused(model, {"data": f"text:{texts[1]}"}, "samples 514, not 532")
            texts[1].write_bytes(texts[0].read_bytes())  # the same in another place
            with Gang(PROBE, **{**self.options, **model}, min_workers=2) as gang:
                gang.start()
                gang.start(data=f"text:{texts[1]}")
                gang.wait_ended()
                self.assertEqual({worker.end for worker in gang.workers}, {"finished"}, gang.describe())

    def test_another_level_of_the_cpu_is_refused_where_bits_are_promised(self):
        model = {"model": "mlp:8,24,1", "data": "linear", "batch": 64}
        with Gang(PROBE, **{**self.options, **model}) as gang:
            told = gang.start(kernels="no such")
            gang.wait_ended()
        if "avx2" not in told.errors:
            self.skipTest("this CPU has one level")
        self.expect_refused({**model, "kernels": "avx2"}, {"kernels": "base"}, "kernels base, not avx2", "--kernels")
        with Gang(PROBE, **{**self.options, **model}, exact="false", min_workers=2) as gang:
            for kernels in ("avx2", "base"):
                gang.start(kernels=kernels)
            gang.wait_ended()
            self.assertEqual({worker.end for worker in gang.workers}, {"finished"}, gang.describe())

    def test_a_checkpoint_of_another_run_is_refused(self):
        """Also in a job of its own, with another store."""
        model = {"model": "mlp:8,24,1", "data": "linear", "batch": 64}
        folder = self.gang(0).folder / "checkpoints"
        first = self.gang(1, **model, checkpoints=folder)
        first.wait_ended()
        for other, word in (({"batch": 32}, "batch 32, not 64"), ({"seed": 9}, "seed 9, not 0"),
                            ({"optimizer": "adam:beta1=0.8"}, "optimizer adam:beta1=0.8, not adam")):
            gang = self.gang(0, **model, checkpoints=folder)
            stranger = gang.start(**other)
            gang.wait_ended()
            self.assertNotEqual(stranger.process.returncode, 0, gang.describe())
            self.assertIn("of another run", stranger.errors)
            self.assertIn(word, stranger.errors)
        longer = self.gang(0, **model, checkpoints=folder)
        longer.start(steps=STEPS + 10)  # that is the same run
        longer.wait_ended()
        self.assertEqual([step.step for step in longer.workers[0].steps], list(range(STEPS + 1, STEPS + 11)), longer.describe())


if __name__ == "__main__":
    unittest.main()
