"""Batches that adapt: all workers take the same ones, whatever happens to them, and each sample counts once.

Usage: batches_test.py BUILD [unittest arguments]. MUSTER_SCHEDULES says how many schedules are drawn.
"""
import os
import sys
import unittest

import audit
from gang import HASTY_MS, PATIENT_MS, Gang, Schedule

BUILD = sys.argv.pop(1)
PROBE = os.path.join(BUILD, "bin", "train_probe")
COUNT = int(os.environ.get("MUSTER_SCHEDULES", "6"))
STEPS, BATCH, SHARDS, MOST = 600, 4, 4, 7  # of 900 samples
LONG = 4 * STEPS  # where something is to happen when the batch has grown
# The nearer to its optimum, the more of the gradient is noise: after about 100 steps the batch grows.
LINEAR = {"steps": STEPS, "batch": BATCH, "shards": SHARDS, "model": "mlp:8,1", "data": "linear", "optimizer": "sgd",
          "rate": "constant:rate=0.1", "bucket_floats": 5, "exact": "false", "noise_every": 1}
ADAPTED = {**LINEAR, "adapt_batch": f"noise:most={MOST}"}
STRATEGIES = {"data": 0, "mirrored:lanes=2": 0, "server:servers=2": 2}


def batches(step):
    return step.samples // BATCH


class BatchesTest(unittest.TestCase):
    def gang(self, strategy="data", **more):
        gang = Gang(PROBE, audited=True, **{**ADAPTED, "strategy": strategy, "timeout_ms": PATIENT_MS, "pause_us": 300, **more})
        self.addCleanup(gang.__exit__)
        return gang

    def start(self, gang, workers, servers=0, **more):
        return [gang.start(server=int(index >= workers), min_workers=workers + servers, **more)
                for index in range(workers + servers)]

    def await_grown(self, gang, least=3):
        gang.wait(lambda: any(worker.steps and batches(worker.steps[-1]) >= least for worker in gang.workers))

    def expect_sound(self, gang, told="", steps=STEPS):
        """Some finished; nobody differs about a step of a view; steps follow each other; each sample counts once."""
        gang.wait_ended()
        told += "\n" + gang.describe()
        self.assertTrue(any(worker.end == "finished" for worker in gang.workers), told)
        seen = {}
        for worker in gang.workers:
            for step in worker.steps:
                known = seen.setdefault((step.generation, step.step), (step.loss, step.samples, step.hashes))
                if step.hashes and known[2]:
                    self.assertEqual(known, (step.loss, step.samples, step.hashes), told)
                self.assertEqual(known[:2], (step.loss, step.samples), told)
                self.assertIn(batches(step), range(1, MOST + 1, 2), told)
            for before, after in zip(worker.steps, worker.steps[1:]):
                if before.generation == after.generation:
                    self.assertEqual(before.step + batches(after), after.step, told)
        self.assertEqual(audit.check(gang.audits(), steps, BATCH), (0, 0, []), told)
        return seen

    def expect_grown_after(self, gang, seen, generation):
        """In a later view too."""
        self.assertTrue(any(samples > BATCH for (later, _), (_, samples, _) in seen.items() if later > generation),
                        gang.describe())

    def test_undisturbed_workers_take_fewer_steps_and_each_sample_once(self):
        for strategy, servers in STRATEGIES.items():
            with self.subTest(strategy=strategy):
                gang = self.gang(strategy)
                self.start(gang, 3, servers)
                seen = self.expect_sound(gang)
                self.assertEqual([worker.end for worker in gang.workers], ["finished"] * (3 + servers), gang.describe())
                self.assertEqual(max(samples for _, samples, _ in seen.values()), MOST * BATCH)
                self.assertLess(len(seen), STEPS)

    def test_rounded_gradients_adapt_too(self):
        gang = self.gang(half="true")
        self.start(gang, 3)
        seen = self.expect_sound(gang)
        self.assertEqual(max(samples for _, samples, _ in seen.values()), MOST * BATCH)

    def test_without_it_and_where_sums_are_exact_the_batch_stays(self):
        for exact in ("false", "true"):
            with Gang(PROBE, **{**LINEAR, "exact": exact}, timeout_ms=PATIENT_MS) as gang:
                self.start(gang, 2)
                gang.wait_ended()
                self.assertEqual({step.samples for worker in gang.workers for step in worker.steps}, {BATCH})

    def test_it_is_refused_where_sums_are_exact(self):
        with Gang(PROBE, **{**ADAPTED, "exact": "true"}) as gang:
            worker = gang.start()
            gang.wait_ended()
        self.assertIn("--exact false", worker.errors)
        self.assertNotEqual(worker.process.returncode, 0)

    def test_a_worker_with_another_rule_is_refused(self):
        gang = self.gang()
        self.start(gang, 1)
        gang.wait(lambda: gang.last_step() >= 2)
        other = gang.start(adapt_batch=f"linear:most={MOST}")
        gang.wait(lambda: not other.lives)
        self.assertIn("other options", other.errors)

    def test_a_kill_costs_the_step_and_the_batch_is_soon_as_large_as_before(self):
        for rank in (0, 2):  # the chief is the first
            with self.subTest(rank=rank):
                gang = self.gang(pause_us=2000, steps=LONG)
                self.start(gang, 3)
                self.await_grown(gang)
                with gang.slowly():
                    victim = next(worker for worker in gang.workers if worker.steps[-1].rank == rank)
                    generation = victim.steps[-1].generation
                    victim.kill()
                gang.start(min_workers=3)
                seen = self.expect_sound(gang, steps=LONG)
                self.expect_grown_after(gang, seen, generation)

    def test_who_comes_and_goes_takes_the_batch_of_the_others(self):
        gang = self.gang(pause_us=2000, steps=LONG)
        first = [gang.start(first_workers=2) for _ in range(2)]
        self.await_grown(gang)
        with gang.slowly():
            generation = first[0].steps[-1].generation
            joiner = gang.start()
            gang.wait(lambda: joiner.steps)
            first[0].leave()
            gang.wait(lambda: not first[0].lives)
        seen = self.expect_sound(gang, steps=LONG)
        self.assertEqual(first[0].end, "left", gang.describe())
        self.assertEqual(batches(joiner.steps[0]), 1, "the first step of a view")
        self.expect_grown_after(gang, seen, generation)

    def test_who_has_only_just_come_and_is_left_alone_goes_on_with_the_batch_of_the_others(self):
        gang = self.gang(pause_us=2000, steps=LONG)
        first = [gang.start(first_workers=2) for _ in range(2)]
        self.await_grown(gang, MOST)
        with gang.slowly():
            joiner = gang.start()
            gang.wait(lambda: joiner.steps)
            for worker in first:
                worker.leave()
            gang.wait(lambda: not any(worker.lives for worker in first))
        self.expect_sound(gang, steps=LONG)
        self.assertEqual([worker.end for worker in gang.workers], ["left", "left", "finished"], gang.describe())
        alone = [batches(step) for step in joiner.steps if step.workers == 1]
        self.assertEqual(alone[0], 1, "the first step of a view")
        self.assertGreater(alone[1], 1, gang.describe())

    def test_all_that_are_killed_go_on_from_the_newest_checkpoint(self):
        gang = self.gang(pause_us=2000, checkpoint_every=5, steps=LONG, timeout_ms=HASTY_MS)
        more = {"checkpoints": gang.folder / "checkpoints"}
        self.start(gang, 3, **more)
        self.await_grown(gang)
        with gang.slowly():
            gang.wait(gang.checkpoints)
            for worker in gang.workers:
                worker.kill()
        gang.wait_ended()
        later = self.start(gang, 2, **more)
        self.expect_sound(gang, steps=LONG)
        self.assertGreater(later[0].steps[0].step, 1, gang.describe())
        self.assertEqual(batches(later[0].steps[0]), 1)

    def test_drawn_schedules_of_joins_leaves_kills_and_freezes(self):
        grown = []  # schedules in which a later view had a larger batch
        for seed in range(COUNT):
            strategy, servers = list(STRATEGIES.items())[seed % len(STRATEGIES)]
            with self.subTest(seed=seed, strategy=strategy):
                gang = self.gang(strategy, min_workers=1, pause_us=1000, timeout_ms=HASTY_MS)
                schedule = Schedule(seed, STEPS, servers)
                schedule.play(gang, 2 + seed % 3)
                seen = self.expect_sound(gang, str(schedule.log))
                if any(samples > BATCH for (view, _), (_, samples, _) in seen.items() if view > 2):
                    grown.append(seed)
        self.assertTrue(grown, "nothing happened to adapted batches")


if __name__ == "__main__":
    unittest.main()
