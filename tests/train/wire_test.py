"""Workers that share no memory and move their bulk bytes over Gloo: the same bits, whoever is killed.

Over Gloo's TCP device; its RDMA needs an adapter. Skips itself where the build has no Gloo.
Usage: wire_test.py BUILD [unittest arguments].
"""
import contextlib
import os
import pathlib
import sys
import unittest

from gang import HASTY_MS, PATIENT_MS, Gang, mismatches, reference

BUILD = sys.argv.pop(1)
PROBE = os.path.join(BUILD, "bin", "train_probe")
GLOO = os.path.exists(os.path.join(BUILD, "bin", "libmuster-train-gloo.so"))
RDMA = "/sys/class/infiniband"
# So many floats that a part of a bucket is worth a wire, and some of more than one chunk.
STATE = {"steps": 60, "idle_floats": 700_000, "bucket_floats": 500_000, "shards": 4, "pause_us": 2000}
OPTIONS = {**STATE, "share_memory": 0, "timeout_ms": PATIENT_MS}


def wires(worker):
    """How many threads of wires it has."""
    count = 0
    for task in pathlib.Path(f"/proc/{worker.process.pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            count += (task / "comm").read_text().strip() == "muster-wire"
    return count


def end(gang):
    for worker in gang.alive():
        worker.kill()
    gang.wait_ended()


class GangTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.truth = reference(PROBE, **STATE) if GLOO else None

    def gang(self, workers, **options):
        gang = Gang(PROBE, **{**OPTIONS, "wire": "gloo", "min_workers": workers, **options})
        self.addCleanup(gang.__exit__)
        for _ in range(workers):
            gang.start()
        return gang

    def check(self, gang, workers):
        self.assertEqual({worker.end for worker in workers}, {"finished"}, gang.describe())
        self.assertEqual(mismatches(gang, self.truth), [])


@unittest.skipUnless(GLOO, "built without Gloo")
class WireTest(GangTest):
    def test_bulk_over_gloo_gives_the_bits_of_one_worker(self):
        for options in ({}, {"encrypt": 1}, {"throttle": 300_000_000}):
            with self.subTest(options):
                gang = self.gang(3, **options)
                with gang.slowly():
                    gang.wait(lambda: gang.last_step() >= 3)
                    self.assertEqual([wires(worker) for worker in gang.workers], [2] * 3, gang.describe())
                gang.wait_ended()
                self.check(gang, gang.workers)

    def test_a_worker_that_is_killed_costs_the_step_at_hand(self):
        for victim in (0, 2):  # with the chief, and without
            with self.subTest(victim=victim):
                gang = self.gang(3, min_workers=2)
                with gang.slowly():
                    gang.wait(lambda: all(worker.steps and worker.steps[-1].workers == 3 for worker in gang.workers))
                    given_up = gang.workers[victim].steps[-1].generation
                    gang.workers[victim].kill()
                    gang.wait(lambda: any(worker.steps[-1].generation > given_up for worker in gang.workers))
                gang.start()
                gang.wait_ended()
                self.check(gang, [worker for index, worker in enumerate(gang.workers) if index != victim])
                self.assertIn("closed", {how for worker in gang.workers for how, _ in worker.lost}, gang.describe())

    def test_a_worker_that_is_frozen_is_given_up_and_joins_again(self):
        gang = self.gang(3, min_workers=2, timeout_ms=HASTY_MS)
        with gang.slowly():
            gang.wait(lambda: all(worker.steps and worker.steps[-1].workers == 3 for worker in gang.workers))
            frozen = gang.workers[1]
            given_up = frozen.steps[-1].generation
            frozen.freeze()
            gang.wait(lambda: any(worker.steps[-1].generation > given_up for worker in gang.workers))
            frozen.thaw()
            gang.wait(lambda: frozen.steps[-1].generation > given_up)
        gang.wait_ended()
        self.check(gang, gang.workers)

    def test_a_worker_with_another_wire_is_refused_with_a_reason(self):
        gang = self.gang(2, steps=100_000, timeout_ms=HASTY_MS)
        gang.wait(lambda: gang.last_step() >= 3)
        other = gang.start(wire="tcp")
        gang.wait(lambda: not other.lives)
        end(gang)
        self.assertNotEqual(other.process.returncode, 0)
        self.assertIn("moves bulk bytes another way than this one, which has --wire tcp", other.errors)

    @unittest.skipIf(os.path.isdir(RDMA) and os.listdir(RDMA), "this machine has RDMA")
    def test_without_rdma_ibverbs_is_refused_and_auto_is_tcp(self):
        gang = self.gang(1, wire="ibverbs")
        gang.wait_ended()
        self.assertNotEqual(gang.workers[0].process.returncode, 0)
        self.assertIn("no device for RDMA", gang.workers[0].errors)
        gang = self.gang(2, wire="auto")
        with gang.slowly():
            gang.wait(lambda: gang.last_step() >= 3)
            self.assertEqual([wires(worker) for worker in gang.workers], [0, 0], gang.describe())
        gang.wait_ended()
        self.check(gang, gang.workers)


@unittest.skipIf(GLOO, "built with Gloo")
class NoGlooTest(GangTest):
    def test_without_gloo_the_wire_is_refused_with_what_to_do(self):
        gang = self.gang(1)
        gang.wait_ended()
        self.assertNotEqual(gang.workers[0].process.returncode, 0)
        self.assertIn("--wire tcp", gang.workers[0].errors)


if __name__ == "__main__":
    unittest.main()
