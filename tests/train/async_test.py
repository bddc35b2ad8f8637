"""Asynchronous parameter servers: whatever happens to the workers, the log of updates replays to the same bits.

Usage: async_test.py BUILD [unittest arguments]. MUSTER_SCHEDULES says how many schedules are drawn for each mode.
"""
import os
import subprocess
import sys
import time
import unittest

from gang import HASTY_MS, PATIENT_MS, Gang, Schedule

BUILD = sys.argv.pop(1)
PROBE = os.path.join(BUILD, "bin", "train_probe")
COUNT = int(os.environ.get("MUSTER_SCHEDULES", "3"))
STEPS, SHARDS, ROUND = 60, 4, 9
TRIES = 12  # to hit a moment
MODES = {"async": f"server:servers=2,mode=async,round={ROUND}",
         "bounded": f"server:servers=2,mode=bounded,staleness=2,round={ROUND}"}


class Log:
    """One part of one round: what was applied to it, in its order."""

    def __init__(self, file):
        head, *lines = file.read_text().splitlines()
        self.first, self.last, self.shards, self.part, self.parts, self.generation = map(int, head.split()[1:7])
        self.updates = [tuple(map(int, line.split())) for line in lines]  # unit, generation, worker, bases

    def units(self):
        return sorted(update[0] for update in self.updates)


def rounds(folder):
    """The rounds that count, as lists of their parts: the newest generation that is whole, one after the other."""
    found = {}
    for file in folder.glob("round-*-of-*"):
        log = Log(file)
        found.setdefault(log.first, {}).setdefault(log.generation, {})[log.part] = log
    out, step = [], 0
    while step in found:
        whole = [parts for _, parts in sorted(found[step].items()) if len(parts) == next(iter(parts.values())).parts]
        if not whole:
            break
        out.append([whole[-1][part] for part in sorted(whole[-1])])
        step = out[-1][0].last
    return out


class AsyncTest(unittest.TestCase):
    def gang(self, mode, timeout_ms=PATIENT_MS, **more):
        gang = Gang(PROBE, strategy=MODES.get(mode, mode), steps=STEPS, shards=SHARDS, idle_floats=3000, bucket_floats=700,
                    pause_us=2000, timeout_ms=timeout_ms, **more)
        self.addCleanup(gang.__exit__)
        gang.options["update_log"] = self.log = gang.folder / "updates"
        return gang

    def replay(self, gang):
        flags = [word for key, value in gang.options.items() if key not in ("update_log", "pause_us")
                 for word in ("--" + key.replace("_", "-"), str(value))]
        command = [PROBE, "--folder", str(gang.folder), "--replay", str(self.log), *flags]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.split()

    def expect_replayed(self, gang, told=""):
        gang.wait_ended()
        told += "\n" + gang.describe()
        self.assertTrue(any(worker.end == "finished" for worker in gang.workers), told)
        history = rounds(self.log)
        self.assertEqual(history[-1][0].last, STEPS, told)
        for parts in history:
            for log in parts:
                every = list(range(log.first * SHARDS, log.last * SHARDS))
                self.assertEqual(log.units(), every, told)
        ends = [step for worker in gang.workers for step in worker.steps if step.step == STEPS and step.hashes]
        last = {step.hashes[0] for step in ends if step.generation == max(end.generation for end in ends)}
        self.assertEqual(len(last), 1, told)
        self.assertEqual(self.replay(gang), ["replayed", str(STEPS), *last], told)
        return history

    def start(self, gang, workers, servers=2):
        everybody = workers + servers
        for index in range(everybody):
            gang.start(server=int(index >= workers), min_workers=everybody)

    def test_a_log_replays_to_the_parameters_of_the_run(self):
        for mode in MODES:
            for memory in (1, 0):
                with self.subTest(mode=mode, share_memory=memory):
                    gang = self.gang(mode, share_memory=memory)
                    self.start(gang, 3)
                    history = self.expect_replayed(gang)
                    self.assertEqual({log.parts for parts in history for log in parts}, {2})
                    stale = [log for parts in history for log in parts for index, update in enumerate(log.updates)
                             if update[3 + log.part] < log.first * SHARDS + index]
                    self.assertTrue(stale, "no gradient was of older parameters: nothing ran free")

    def test_a_killed_worker_costs_its_unit_and_not_the_round(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.assertTrue(any(self.went_on_with_a_round(mode) for _ in range(TRIES)))

    def went_on_with_a_round(self, mode):
        """Whether some of it was applied in the view in which it was begun, and some in the next one. Two workers are killed."""
        gang = self.gang(mode, min_workers=4)
        gang.options["pause_us"] = 5000
        for index in range(5):
            gang.start(server=int(index >= 3))
        for worker, step in zip(gang.workers, (ROUND, 3 * ROUND)):
            gang.wait(lambda worker=worker, step=step: worker.steps and worker.steps[-1].step >= step)
            time.sleep(0.02)  # into the next round
            worker.kill()
            gang.start()
        history = self.expect_replayed(gang)
        return any(len({update[1] for update in log.updates}) > 1 for parts in history for log in parts)

    def test_a_killed_server_costs_the_round(self):
        gang = self.gang("async", min_workers=3)
        gang.options["pause_us"] = 20_000  # so that it dies before the last round
        for index in range(4):
            gang.start(server=int(index >= 2), first_workers=4)
        gang.wait(lambda: all(worker.steps for worker in gang.workers))
        gang.workers[2].kill()
        history = self.expect_replayed(gang)
        self.assertEqual(history[-1][0].parts, 1)

    def test_with_rounds_of_one_step_a_killed_server_costs_that_step(self):
        gang = self.gang("server:servers=2,mode=async,round=1", min_workers=3)
        with gang.slowly():
            for index in range(4):
                gang.start(server=int(index >= 2), first_workers=4)
            gang.wait(lambda: gang.last_step() >= 3)
            gang.workers[2].kill()
        self.expect_replayed(gang)
        for worker in gang.workers[:2] + gang.workers[3:]:
            steps = [step.step for step in worker.steps]
            back = [before - after for before, after in zip(steps, steps[1:]) if after <= before]
            self.assertTrue(all(one == 0 for one in back), f"went back {back} steps\n{gang.describe()}")

    def test_all_that_are_killed_go_on_from_the_newest_checkpoint(self):
        gang = self.gang("async", timeout_ms=HASTY_MS)
        gang.options["pause_us"] = 20_000  # so that they die before the last round
        more = {"checkpoints": gang.folder / "checkpoints", "checkpoint_every": ROUND}
        with gang.slowly():
            for index in range(4):
                gang.start(server=int(index >= 2), min_workers=4, **more)
            gang.wait(gang.checkpoints)
            for worker in gang.workers:
                worker.kill()
        gang.wait_ended()
        later = [gang.start(server=index, min_workers=2, pause_us=2000, **more) for index in range(2)]
        self.expect_replayed(gang)
        self.assertGreater(later[0].steps[0].step, ROUND, gang.describe())

    def test_drawn_schedules_of_joins_leaves_kills_and_freezes(self):
        for mode in MODES:
            for seed in range(COUNT):
                with self.subTest(mode=mode, seed=seed):
                    gang = self.gang(mode, min_workers=1, timeout_ms=HASTY_MS)
                    schedule = Schedule(seed, STEPS, servers=2)
                    schedule.play(gang, 2 + seed % 3)
                    self.expect_replayed(gang, str(schedule.log))


if __name__ == "__main__":
    unittest.main()
