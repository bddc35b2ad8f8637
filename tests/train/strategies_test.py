"""Every synchronous strategy gives the same bits on any number of workers, whatever happens to them.

Usage: strategies_test.py BUILD [unittest arguments]. MUSTER_SCHEDULES says how many schedules are drawn for each.
"""
import os
import re
import sys
import unittest

from gang import HASTY_MS, PATIENT_MS, Gang, mismatches, misread, parts, reference, went_back
from schedules import SHARDS, STEPS, STRATEGIES, draw

BUILD = sys.argv.pop(1)
PROBE = os.path.join(BUILD, "bin", "train_probe")
COUNT = int(os.environ.get("MUSTER_SCHEDULES", "4"))


def complete(folder, columns):
    """Whether there is a checkpoint with all parts of all columns."""
    found = {}
    for step, file in parts(folder):
        view, column, count = re.fullmatch(r"(\d+-\w+)\.(.*?)\d+-of-(\d+)", file).groups()
        found.setdefault((step, view), {}).setdefault((column, int(count)), []).append(file)
    return any(len({column for (column, count), files in view.items() if len(files) == count}) == columns for view in found.values())


class StrategiesTest(unittest.TestCase):
    truths = {}

    def truth(self, name):
        if name not in self.truths:
            self.truths[name] = reference(PROBE, **STRATEGIES[name].options)
        return self.truths[name]

    def each(self):
        for name, strategy in STRATEGIES.items():
            with self.subTest(strategy=name):
                yield name, strategy

    def test_any_number_of_workers_gives_the_same_bits(self):
        for name, strategy in self.each():
            for workers in range(1, strategy.cells + 2):  # one more than there is work for
                everybody = workers + strategy.servers
                with Gang(PROBE, **strategy.options, min_workers=everybody) as gang:
                    for index in range(everybody):
                        gang.start(server=int(index >= workers))
                    gang.wait_ended()
                    self.assertEqual([worker.end for worker in gang.workers], ["finished"] * everybody, gang.describe())
                    self.assertEqual(mismatches(gang, self.truth(name)), [])
                    self.assertEqual(misread(gang, SHARDS * strategy.columns), [])
                    busy = [worker for worker in gang.workers if worker.steps[0].shards]
                    self.assertEqual(len(busy), min(workers, strategy.cells))

    def test_it_does_not_matter_who_is_on_which_host(self):
        for name, strategy in self.each():
            for hosts in ("ab", "aab", "aabbb"):
                workers = min(len(hosts), strategy.cells)
                with Gang(PROBE, hosts=hosts, **strategy.options, min_workers=workers + strategy.servers) as gang:
                    for index in range(workers + strategy.servers):
                        gang.start(server=int(index >= workers))
                    gang.wait_ended()
                    self.assertEqual({worker.end for worker in gang.workers}, {"finished"}, gang.describe())
                    self.assertEqual(mismatches(gang, self.truth(name)), [])

    def test_a_cut_model_learns_what_the_whole_one_learns(self):
        for name, strategy in self.each():
            whole = reference(PROBE, **{**strategy.options, "strategy": "data"})
            losses = [{step: loss for step, loss in run.items() if isinstance(step, int)}
                      for run in (whole, self.truth(name))]
            self.assertEqual(losses[0], losses[1])
            self.assertIsNotNone(whole["model"])
            self.assertEqual(whole["model"], self.truth(name)["model"])

    def test_what_is_sent_over_connections_is_the_same(self):
        for name, strategy in self.each():
            everybody = strategy.cells + strategy.servers
            with Gang(PROBE, **strategy.options, min_workers=everybody, share_memory=0, encrypt=1) as gang:
                for index in range(everybody):
                    gang.start(server=int(index >= strategy.cells))
                gang.wait_ended()
                self.assertEqual([worker.end for worker in gang.workers], ["finished"] * everybody, gang.describe())
                self.assertEqual(mismatches(gang, self.truth(name)), [])

    def test_a_checkpoint_is_taken_up_by_another_number_of_workers(self):
        for _, strategy in self.each():
            options = {**strategy.options, "steps": 2 * STEPS, "timeout_ms": HASTY_MS}  # time to write one in between
            truth = reference(PROBE, **options)
            with Gang(PROBE, **options, checkpoint_every=5) as gang:
                folder = {"checkpoints": gang.folder / "checkpoints"}
                everybody = strategy.cells + strategy.servers
                with gang.slowly():
                    for index in range(everybody):
                        gang.start(**folder, min_workers=everybody, server=int(index >= strategy.cells))
                    gang.wait(lambda: complete(folder["checkpoints"], strategy.columns))
                    for worker in gang.workers:
                        worker.kill()
                gang.wait_ended()
                later = [gang.start(**folder, min_workers=2) for _ in range(2)]
                gang.wait_ended()
                self.assertEqual([worker.end for worker in later], ["finished"] * 2, gang.describe())
                self.assertEqual(mismatches(gang, truth), [], gang.describe())
                self.assertGreater(later[0].steps[0].step, 1, gang.describe())

    def test_drawn_schedules_of_joins_leaves_kills_stalls_and_freezes(self):
        strikes = 0
        for number, outcome in enumerate(draw(COUNT * len(STRATEGIES), 1, BUILD)):
            strikes += outcome.strikes
            with self.subTest(number=number):
                self.assertIsNone(outcome.wrong)
        self.assertGreater(strikes, 0, "nothing happened to anybody")


class RoundedTest(unittest.TestCase):
    options = {"steps": 60, "idle_floats": 5000, "bucket_floats": 700, "exact": "false", "shards": 4, "timeout_ms": PATIENT_MS}

    def run_with(self, **more):
        with Gang(PROBE, **self.options, **more, min_workers=3) as gang:
            for _ in range(3):
                gang.start()
            gang.wait_ended()
            self.assertEqual([worker.end for worker in gang.workers], ["finished"] * 3, gang.describe())
            return gang

    def test_rounded_gradients_give_all_workers_the_same_and_learn_as_well(self):
        plain, rounded = self.run_with(), self.run_with(half="true")
        for steps in zip(*(worker.steps for worker in rounded.workers)):
            self.assertEqual(len({step.hashes[0] for step in steps}), 1)
        hashes = [gang.workers[0].steps[-1].hashes[0] for gang in (plain, rounded)]
        self.assertNotEqual(*hashes)
        losses = [float(gang.workers[0].steps[-1].loss) for gang in (plain, rounded)]
        self.assertAlmostEqual(losses[1] / losses[0], 1, delta=0.01)

    def run_on_hosts(self, replaced, **more):
        """Two workers on each of two hosts with a slow link between them; `replaced`: one is killed, and another one comes."""
        slow = {"idle_floats": 20000, "bucket_floats": 10000, "throttle": 20_000_000, "pause_us": 10000}
        with Gang(PROBE, hosts="aabb", **{**self.options, **slow, **more}, min_workers=4) as gang:
            for _ in range(4):
                gang.start()
            if replaced:
                with gang.slowly():
                    gang.wait(lambda: gang.last_step() >= 5)
                    gang.workers[0].kill()
                gang.start()
            gang.wait_ended()
            self.assertEqual([worker.end for worker in gang.workers[replaced:]], ["finished"] * 4, gang.describe())
            return gang

    def test_between_hosts_they_give_all_workers_the_same_and_learn_as_well_though_one_is_replaced(self):
        """Straight where no memory is shared; where it is, hosts carry sums of theirs, which are rounded too (run/way.h)."""
        for share_memory in (0, 1):
            with self.subTest(share_memory=share_memory):
                plain = self.run_on_hosts(False, share_memory=share_memory)
                rounded = self.run_on_hosts(True, share_memory=share_memory, half="true")
                seen = {}
                for step in (step for worker in rounded.workers for step in worker.steps):
                    self.assertEqual(seen.setdefault((step.generation, step.step), step.hashes[0]), step.hashes[0], rounded.describe())
                self.assertGreater(len({generation for generation, _ in seen}), 1, rounded.describe())
                self.assertEqual(went_back(rounded), [], rounded.describe())
                losses = [float(gang.workers[-1].steps[-1].loss) for gang in (plain, rounded)]
                self.assertAlmostEqual(losses[1] / losses[0], 1, delta=0.01)

    def test_rounded_gradients_are_refused_where_sums_are_exact(self):
        with Gang(PROBE, **{**self.options, "exact": "true"}, half="true") as gang:
            worker = gang.start()
            gang.wait_ended()
        self.assertIn("not exact", worker.errors)


if __name__ == "__main__":
    unittest.main()
