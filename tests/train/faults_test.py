"""What may go wrong with the workers of a job, one thing at a time: the right parameters or a clear error, and never a hang.

Usage: faults_test.py BUILD [unittest arguments]. What is cut, killed and filled up is real: processes, a cable between two
network namespaces, a small file system, a file that may not grow. Beside these: schedules_test.py (all killed, all told to leave,
frozen for long, joiners that die at the door), mesh_test.cc (replayed and garbled handshakes, dawdlers), checkpoint_test.cc (torn files).
"""
import contextlib
import errno
import json
import os
import pathlib
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import audit  # noqa: E402
import network  # noqa: E402
from gang import HASTY_MS, PATIENCE_S, PATIENT_MS, Gang, mismatches, misread, parts, reference, went_back  # noqa: E402
from needs import missing  # noqa: E402
from schedules import SHARDS, STRATEGIES  # noqa: E402

BUILD = sys.argv.pop(1)
PROBE = os.path.join(BUILD, "bin", "train_probe")
STEPS = 100
LARGE = {"idle_floats": 500_000, "bucket_floats": 100_000, "pause_us": 3000, "steps": 60}  # so that a change takes a while
MODEL = {"model": "mlp:8,24,24,1", "data": "linear", "batch": 48}


def views(gang):
    """The views that were claimed, by generation."""
    return {int(path.name[5:]): json.loads(path.read_text())["change"] for path in (gang.folder / "store").glob("view-*")}


def await_path(gang, find, seconds=PATIENCE_S):
    """What there is to find, as soon as it is there: files tell nobody that they came."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # what was there has gone meanwhile
            if found := find():
                return found
        time.sleep(0.0005)
    raise AssertionError("waited in vain:\n" + gang.describe())


def writes(worker, folder):
    """Whether a worker has a file open that it has yet to give its name, under this folder."""
    try:
        fds = f"/proc/{worker.process.pid}/fd"
        return any(os.readlink(f"{fds}/{fd}").startswith(f"{folder}/step-") for fd in os.listdir(fds))
    except OSError:
        return False  # it, or the file, is gone


class FaultsTest(unittest.TestCase):
    truths = {}

    def gang(self, workers=0, **options):
        """With so many workers, and all of them at work: they begin together."""
        options = {"steps": STEPS, "pause_us": 8000, "timeout_ms": PATIENT_MS, **(options or {"idle_floats": 5000, "bucket_floats": 700})}
        gang = Gang(PROBE, audited="model" in options, **options)
        self.addCleanup(gang.__exit__)
        for _ in range(workers):
            gang.start(first_workers=workers)
        gang.wait(lambda: all(worker.steps and worker.steps[-1].workers == workers for worker in gang.workers))
        return gang

    def truth(self, gang):
        same = ("model", "data", "batch", "idle_floats", "bucket_floats", "steps", "strategy", "shards")
        options = {key: value for key, value in gang.options.items() if key in same}
        key = json.dumps(options, sort_keys=True)
        if key not in self.truths:
            self.truths[key] = reference(PROBE, **options)
        return self.truths[key]

    def expect_right(self, gang, ends=("finished",)):
        """All that lived to the end finished, and every step of everybody was that of an undisturbed run."""
        gang.wait_ended()
        told = gang.describe()
        self.assertEqual({worker.end for worker in gang.workers if not worker.killed}, set(ends), told)
        self.assertEqual(mismatches(gang, self.truth(gang)), [], told)
        if gang.audited:
            self.assertEqual(audit.check(gang.audits(), gang.options["steps"], gang.options["batch"]), (0, 0, []), told)

    def await_steps(self, gang, count):
        """So many more, of all that live."""
        last = gang.last_step() + count
        gang.wait(lambda: all(worker.steps and worker.steps[-1].step >= last for worker in gang.alive()))

    def by_rank(self, gang):
        return sorted(gang.alive(), key=lambda worker: worker.steps[-1].rank)

    def await_claim(self, gang, number):
        """Until a view is claimed. Under the cue "views" who claimed it goes no further: it does not come about."""
        await_path(gang, lambda: (gang.folder / "store" / f"view-{number}").exists())

    def expect_broken_off(self, gang, number):
        """A view was claimed, and nobody worked in it."""
        self.assertIn(number, views(gang))
        self.assertEqual([step.step for worker in gang.workers for step in worker.steps if step.generation == number], [],
                         gang.describe())

    def kill_at_once(self, gang, victims):
        """So that nobody goes on without the first before the second is dead too."""
        for victim in victims:
            victim.freeze()
        gang.wait(lambda: all(victim.stands_still for victim in victims))
        for victim in victims:
            victim.kill()


class DeathsTest(FaultsTest):
    def kill_two(self, ranks, **options):
        gang = self.gang(5, **MODEL, **options)
        with gang.slowly():
            self.await_steps(gang, 2)
            members = self.by_rank(gang)
            self.kill_at_once(gang, [members[rank] for rank in ranks])
        self.expect_right(gang)
        return gang

    def test_two_neighbours_at_once_cost_nothing_with_two_mirrors(self):
        self.assertEqual(went_back(self.kill_two((1, 2), mirrors=2)), [])
        self.assertEqual(went_back(self.kill_two((4, 0), mirrors=2)), [])

    def test_two_who_are_no_neighbours_at_once_cost_nothing_with_one_mirror(self):
        self.assertEqual(went_back(self.kill_two((1, 3))), [])
        self.assertEqual(went_back(self.kill_two((0, 2))), [])

    def test_two_neighbours_at_once_with_one_mirror_cost_what_came_after_the_checkpoint(self):
        folder = self.gang().folder
        gang = self.gang(5, **MODEL, checkpoints=folder, checkpoint_every=5, timeout_ms=2500)  # three of them: before it goes back
        with gang.slowly():
            gang.wait(gang.checkpoints)
            self.kill_at_once(gang, self.by_rank(gang)[1:3])
        self.expect_right(gang)
        taken_up = [view["checkpoint"] for view in views(gang).values() if view["checkpoint"]]
        self.assertEqual(len(taken_up), 1, gang.describe())
        for _, _, after in went_back(gang):
            self.assertEqual(after, int(taken_up[0].removeprefix("step-")) + 1, gang.describe())

    def test_one_dies_while_another_comes(self):
        """Whoever it is: the newcomer, the chief, another one. Before anything is handed over, and somewhere in the middle."""
        for who in ("newcomer", "chief", "other"):
            for held in (True, False):
                with self.subTest(who=who, held=held):
                    self.break_off_a_change(who, held)

    def break_off_a_change(self, who, held):
        gang = self.gang(3, **LARGE)
        with gang.slowly(), gang.cue("views" if held else "nothing"):
            self.await_steps(gang, 2)
            members = self.by_rank(gang)
            number = max(views(gang)) + 1
            newcomer = gang.start()
            self.await_claim(gang, number)
            {"newcomer": newcomer, "chief": members[0], "other": members[1]}[who].kill()
        self.expect_right(gang)
        self.assertEqual(went_back(gang), [], gang.describe())
        if held:
            self.expect_broken_off(gang, number)

    def test_one_dies_while_another_hands_over_what_it_has_and_leaves(self):
        """Whoever it is: the one that leaves, one of those that take over its part, the chief, who does too."""
        for who in ("leaver", "receiver", "chief"):
            for held in (True, False):
                with self.subTest(who=who, held=held):
                    self.break_off_a_shrink(who, held)

    def break_off_a_shrink(self, who, held):
        gang = self.gang(4, **LARGE)
        with gang.slowly(), gang.cue("views" if held else "nothing"):
            self.await_steps(gang, 2)
            chief, receiver, leaver = self.by_rank(gang)[:3]
            number = max(views(gang)) + 1
            leaver.leave()
            self.await_claim(gang, number)
            {"leaver": leaver, "receiver": receiver, "chief": chief}[who].kill()
        gang.wait_ended()
        self.assertEqual(len(views(gang)[number]["leaving"]), 1, "the change that was to be hit")
        self.expect_right(gang, {"finished"} if who == "leaver" else {"finished", "left"})
        self.assertEqual(went_back(gang), [], gang.describe())
        if held:
            self.expect_broken_off(gang, number)

    def test_the_only_one_dies_as_it_lets_others_in_who_have_not_met(self):
        """In the change that lets all of them in: at its beginning, or somewhere in it. Or some of them, when the others are in."""
        for held, in_turn in ((True, False), (False, False), (False, True)):
            with self.subTest(held=held, in_turn=in_turn):
                gang = self.gang(1, idle_floats=200_000, bucket_floats=20_000, pause_us=2000, timeout_ms=HASTY_MS)
                with gang.slowly(), gang.cue("views" if held else "nothing"):
                    for turn in (2, 2) if in_turn else (4,):
                        number = max(views(gang)) + 1
                        for _ in range(turn):
                            gang.start()
                        self.await_claim(gang, number)
                    gang.workers[0].kill()
                self.expect_right(gang)

    def test_one_dies_while_the_others_recover_from_the_death_of_another(self):
        for held in (True, False):
            with self.subTest(held=held):
                self.break_off_a_recovery(held)

    def break_off_a_recovery(self, held):
        gang = self.gang(**LARGE, mirrors=2)
        with contextlib.ExitStack() as claimed:
            with gang.cue("steps"):
                for _ in range(4):
                    gang.start(first_workers=4)
                gang.wait(lambda: all(worker.steps for worker in gang.workers))
                members = self.by_rank(gang)
                number = max(views(gang)) + 1
                claimed.enter_context(gang.cue("views" if held else "nothing"))
                members[1].kill()
            self.await_claim(gang, number)
            members[2].kill()
        self.expect_right(gang)
        self.assertEqual(went_back(gang), [], gang.describe())
        if held:
            self.expect_broken_off(gang, number)

    def test_one_dies_while_it_writes_its_part_of_a_checkpoint(self):
        for all_die in (False, True):
            with self.subTest(all_die=all_die):
                self.tear_a_checkpoint(all_die, LARGE)

    def test_one_dies_while_it_writes_its_parts_of_a_model_that_is_cut(self):
        hybrid = {**STRATEGIES["hybrid"].options, "pause_us": 5000}
        for all_die in (False, True):
            with self.subTest(all_die=all_die):
                self.tear_a_checkpoint(all_die, hybrid)

    def tear_a_checkpoint(self, all_die, options):
        folder = self.gang().folder
        gang = self.gang(**{**options, "timeout_ms": HASTY_MS}, checkpoints=folder, checkpoint_every=5)
        with gang.cue("parts"):
            for _ in range(3):
                gang.start(first_workers=3)
            scribe = await_path(gang, lambda: next((worker for worker in gang.alive() if writes(worker, folder)), None))
            for victim in gang.workers if all_die else [scribe]:
                victim.kill()
        if all_die:
            gang.wait_ended()
            gang.start(pause_us=0)
        self.expect_right(gang)


class StrategiesTest(FaultsTest):
    """Deaths with lanes, with a model that is cut, with parameters on servers: two at once, then one in the change that another asked for."""

    def test_two_die_at_once_and_one_in_the_change_after(self):
        for name in ("mirrored", "pipeline", "tensor", "hybrid", "server", "central"):
            with self.subTest(strategy=name):
                self.kill_three(name)

    def kill_three(self, name):
        """The last one before the change is made."""
        strategy = STRATEGIES[name]
        workers = max(strategy.cells, 4)  # of which some may have nothing to compute
        gang = self.gang(**{**strategy.options, "steps": 150, "pause_us": 5000}, mirrors=2)
        with gang.slowly():
            everybody = workers + strategy.servers
            for index in range(everybody):
                gang.start(server=int(index >= workers), first_workers=everybody)
            gang.wait(lambda: all(worker.steps for worker in gang.workers))
            members = self.by_rank(gang)
            other = gang.workers[workers] if strategy.servers else members[-1]  # a server; else the neighbour of the first
            first = next(member for member in members if member is not other)
            self.kill_at_once(gang, (first, other))
            gang.wait(lambda: all(worker.steps[-1].workers == everybody - 2 for worker in gang.alive()))
            number = max(views(gang)) + 1
            chief, last = self.by_rank(gang)[0], self.by_rank(gang)[-1]
            with gang.cue("views"):
                gang.start()
                self.await_claim(gang, number)
                (last if name == "hybrid" else chief).kill()
        self.expect_right(gang)
        self.assertEqual(misread(gang, SHARDS * strategy.columns), [], gang.describe())
        self.assertEqual(went_back(gang), [], gang.describe())
        self.expect_broken_off(gang, number)


class SlowTest(FaultsTest):
    def test_one_that_stumbles_again_and_again_is_waited_for(self):
        gang = self.gang(3, **MODEL)
        self.await_steps(gang, 2)
        slow = self.by_rank(gang)[1]
        generation = slow.steps[-1].generation
        for _ in range(6):
            slow.freeze()
            time.sleep(0.1)
            slow.thaw()
            self.await_steps(gang, 3)
        self.expect_right(gang)
        self.assertEqual({worker.steps[-1].generation for worker in gang.workers}, {generation}, gang.describe())

    def test_one_that_is_slow_in_every_step_costs_nothing_but_time(self):
        """Ten times slower than the others; and so slow that its part of a step takes longer than the time-out. The chief, or another one."""
        cases = [(slow, options) for slow in (0, 2) for options in (
            {"steps": 40, "pause_us": 20_000, "timeout_ms": PATIENT_MS},
            {"steps": 2, "pause_us": 4_000_000, "timeout_ms": 3500, "shards": 3})]
        for _, options in cases:
            self.truth(self.gang(idle_floats=5000, bucket_floats=700, **options))  # alone, before the machine is busy
        gangs = [self.start_with_a_slow_one(slow, **options) for slow, options in cases]
        for (slow, options), gang in zip(cases, gangs):
            with self.subTest(slow=slow, steps=options["steps"]):
                self.expect_right(gang)
                self.assertEqual([len(worker.steps) for worker in gang.workers], [options["steps"]] * 3, gang.describe())
                self.assertEqual({step.workers for worker in gang.workers for step in worker.steps}, {3}, gang.describe())

    def start_with_a_slow_one(self, slow, pause_us, **options):
        gang = self.gang(idle_floats=5000, bucket_floats=700, min_workers=3, **options)
        for index in range(3):
            gang.start(pause_us=pause_us if index == slow else 2000)
            self.await_claim(gang, 1)  # so the first has rank 0
        return gang

    def test_one_that_returns_after_it_was_given_up_does_not_disturb_the_others(self):
        """With two mirrors, so that it costs nothing if the other two lose each other as well."""
        for rank in (0, 2):
            with self.subTest(rank=rank):
                gang = self.gang(3, **MODEL, mirrors=2, timeout_ms=HASTY_MS)
                with gang.slowly():
                    self.await_steps(gang, 2)
                    frozen = self.by_rank(gang)[rank]
                    frozen.freeze()
                    given_up = frozen.steps[-1].generation
                    gang.wait(lambda: any(worker.steps[-1].generation > given_up for worker in gang.workers))
                    frozen.thaw()
                    gang.wait(lambda: frozen.steps[-1].generation > given_up)
                self.expect_right(gang)
                self.assertEqual(went_back(gang), [], gang.describe())


class PartitionTest(FaultsTest):
    """Two workers on each of two hosts that see the same store and, for a while, not each other."""

    def setUp(self):
        if not network.possible():
            missing("only root may make network namespaces", root=True)
        self.hosts = network.TwoHosts().__enter__()
        self.addCleanup(self.hosts.__exit__)

    def start(self, gang, side):
        worker = gang.start(before=self.hosts.on(side), address=self.hosts.addresses[side], first_workers=4)
        worker.side = side
        return worker

    def cut_and_join(self, **options):
        gang = self.gang(**MODEL, timeout_ms=2500, **options)  # a half that lost somebody else as well would not hold all
        with gang.slowly():
            for side in (0, 1, 0, 1):
                self.start(gang, side)
            gang.wait(lambda: all(worker.steps and worker.steps[-1].workers == 4 for worker in gang.workers))
            self.hosts.cut()
            before = max(views(gang))
            gang.wait(lambda: any(len([step for step in worker.steps if step.generation > before]) > 5 for worker in gang.workers))
            went_on = {worker.side for worker in gang.workers for step in worker.steps if step.generation > before}
            self.assertEqual(len(went_on), 1, gang.describe())
            self.hosts.join()
        self.expect_right(gang)
        return gang

    def test_one_half_goes_on_and_the_other_joins_it_when_the_cable_is_mended(self):
        self.assertEqual(went_back(self.cut_and_join(mirrors=2)), [])

    def test_halves_of_which_none_has_all_go_back_and_still_only_one_goes_on(self):
        self.cut_and_join(mirrors=1, checkpoints=self.gang().folder, checkpoint_every=5)


class DiskTest(FaultsTest):
    """A small file system: of 64 KiB, which is less than what is to be written."""

    def small(self, folder, kib=64):
        folder.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "muster-test", str(folder)]
        mounted = subprocess.run(words, capture_output=True, text=True)
        if mounted.returncode:
            missing(f"cannot mount a small file system: {mounted.stderr.strip()}", root=True)
        self.addCleanup(subprocess.run, ["umount", "-l", str(folder)], check=True)
        return folder

    def test_a_full_disk_costs_the_checkpoint_and_nothing_else(self):
        folder = self.small(self.gang().folder / "small")
        gang = self.gang(3, idle_floats=20000, bucket_floats=700, checkpoints=folder, checkpoint_every=5)
        self.expect_right(gang)
        errors = "".join(worker.errors for worker in gang.workers)
        self.assertIn("no checkpoint of step", errors)
        self.assertIn("No space left on device", errors)
        self.assertEqual(list(folder.glob("step-*")), [], "what is of no use takes room")

    def test_a_disk_with_room_for_two_checkpoints_holds_the_newest(self):
        """Of 240 KB each; a third one has no room before an older one goes."""
        folder = self.small(self.gang().folder / "small", 600)
        gang = self.gang(3, idle_floats=20000, bucket_floats=700, checkpoints=folder, checkpoint_every=5)
        self.expect_right(gang)
        self.assertEqual("".join(worker.errors for worker in gang.workers), "")
        self.assertEqual(max(step.name for step in folder.glob("step-*")), f"step-{STEPS:012}")
        self.assertEqual(gang.checkpoints()[-1], STEPS)

    def test_who_cannot_write_what_it_holds_when_all_leave_says_so(self):
        folder = self.small(self.gang().folder / "small")
        gang = self.gang(2, idle_floats=20000, bucket_floats=700, checkpoints=folder, steps=10**6)
        self.await_steps(gang, 2)
        for worker in gang.workers:
            worker.leave()
        gang.wait_ended()
        failed = [worker for worker in gang.workers if worker.process.returncode]
        self.assertTrue(failed, gang.describe())
        for worker in failed:
            self.assertIn("No space left on device", worker.errors)

    def test_a_store_that_can_hold_no_more_is_an_error_and_no_hang(self):
        gang = self.gang(timeout_ms=100)
        folder = self.small(gang.folder / "store")
        with open(folder / "rest", "wb", buffering=0) as rest, self.assertRaises(OSError):
            while rest.write(bytes(4096)):
                pass
        worker = gang.start()
        gang.wait_ended()
        self.assertNotEqual(worker.process.returncode, 0)
        self.assertIn("No space left on device", worker.errors)


class LimitTest(FaultsTest):
    """The same where nobody may mount anything: no file of a worker may become larger than 64 KiB from some moment on."""

    def limited(self, workers, **options):
        """Workers that are at work. The limit comes later: what they share is memory, and would be cut as well."""
        gang = self.gang(idle_floats=20000, bucket_floats=700, **options)
        for _ in range(workers):
            gang.start(before=["env", "--ignore-signal=XFSZ"], min_workers=workers)
        gang.wait(lambda: all(worker.steps for worker in gang.workers))
        self.limit(gang, 64 << 10)
        return gang

    def limit(self, gang, most):
        for worker in gang.alive():
            resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def test_checkpoints_that_cannot_be_written_are_lost_and_come_again_when_there_is_room(self):
        folder = self.gang().folder / "checkpoints"
        gang = self.limited(3, steps=300, checkpoints=folder, checkpoint_every=5)
        self.await_steps(gang, 15)
        self.limit(gang, resource.RLIM_INFINITY)
        self.expect_right(gang)
        errors = "".join(worker.errors for worker in gang.workers)
        self.assertIn("no checkpoint of step", errors)
        self.assertIn(os.strerror(errno.EFBIG), errors)
        self.assertEqual(gang.checkpoints()[-1], 300)
        lost = {int(step) for step in re.findall(r"no checkpoint of step (\d+)", errors)}
        self.assertEqual(lost & set(gang.checkpoints()), set(), "what was said to be there is")

    def test_who_cannot_write_what_it_holds_when_all_leave_says_so(self):
        gang = self.limited(2, checkpoints=self.gang().folder / "checkpoints", steps=10**6)
        self.await_steps(gang, 2)
        for worker in gang.workers:
            worker.leave()
        gang.wait_ended()
        failed = [worker for worker in gang.workers if worker.process.returncode]
        self.assertTrue(failed, gang.describe())
        for worker in failed:
            self.assertIn(os.strerror(errno.EFBIG), worker.errors)


class CheckpointsTest(FaultsTest):
    def test_all_write_the_same_steps_although_one_takes_long(self):
        """Longer than there are steps between them, and not as long for each."""
        folder = self.gang().folder / "checkpoints"
        gang = self.gang(3, **{**LARGE, "pause_us": 500}, checkpoints=folder, checkpoint_every=1)
        self.expect_right(gang)
        told = gang.checkpoints()
        self.assertEqual(told, sorted(set(told)), "each once, one after the other")
        self.assertEqual(told[-1], LARGE["steps"])
        self.assertLessEqual(len(list(folder.glob("step-*"))), 2, "what was begun was written by all, or is gone")

    def test_a_checkpoint_is_said_to_be_there_when_it_can_be_started_from(self):
        folder = self.gang().folder / "checkpoints"
        gang = self.gang(**LARGE, checkpoints=folder, checkpoint_every=5, timeout_ms=HASTY_MS)
        with gang.slowly():
            for _ in range(3):
                gang.start(first_workers=3)
            gang.wait(gang.checkpoints)
            for worker in gang.workers:
                worker.kill()
        gang.wait_ended()
        said = gang.checkpoints()[-1]
        later = gang.start(pause_us=0)
        self.expect_right(gang)
        self.assertGreaterEqual(later.steps[0].step, said + 1, gang.describe())

    def test_when_all_leave_it_is_said_that_all_is_written(self):
        gang = self.gang(3, checkpoints=self.gang().folder / "checkpoints", idle_floats=5000, bucket_floats=700, steps=10**6)
        self.await_steps(gang, 3)
        for worker in gang.workers:
            worker.leave()
        gang.wait_ended()
        self.assertEqual([worker.end for worker in gang.workers], ["left"] * 3, gang.describe())
        self.assertEqual(set(gang.checkpoints()), {gang.last_step()}, gang.describe())

    def test_two_histories_do_not_make_one_checkpoint(self):
        """A job is killed when one of two has written its part, and begins anew with other sums."""
        folder = self.gang().folder / "checkpoints"
        options = {**LARGE, "exact": "false", "checkpoints": folder, "checkpoint_every": 7, "min_workers": 2}
        gang = self.gang(**options)
        with gang.cue("parts"):
            for _ in range(2):
                gang.start()
            await_path(gang, lambda: all(writes(worker, folder) for worker in gang.workers))
            gang.workers[0].kill()
            gang.wait(lambda: not gang.workers[0].lives)
        await_path(gang, lambda: parts(folder))
        gang.workers[1].kill()
        gang.wait_ended()
        self.assertEqual(len(parts(folder)), 1, "the other one was never written")
        gang = self.gang(2, **options)
        gang.wait_ended()
        self.assertEqual({worker.end for worker in gang.workers}, {"finished"}, gang.describe())
        last = {worker.steps[-1].hashes[0] for worker in gang.workers}
        self.assertEqual(len(last), 1, gang.describe())


class KeptTest(FaultsTest):
    """The model that a job leaves behind."""

    def setUp(self):
        self.folder = self.gang().folder
        self.model = self.folder / "model.safetensors"

    def start(self, keep, *more, timeout_ms=HASTY_MS):
        command = [os.path.join(BUILD, "bin", "muster-train"), "--folder", str(self.folder / "job"), "--data", "linear",
                   "--model", "mlp:8,8,1", "--steps", "20", "--timeout-ms", str(timeout_ms), "--keep", str(keep), *more]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(worker.kill)
        return worker

    def expect_kept(self):
        tested = subprocess.run([os.path.join(BUILD, "bin", "muster-train"), "--test", str(self.model)], capture_output=True, text=True)
        self.assertEqual(tested.returncode, 0, tested.stderr)

    def test_a_job_is_not_finished_before_its_model_is_kept(self):
        (self.folder / "wall").write_text("no folder")
        checkpoints = ["--checkpoints", str(self.folder / "checkpoints")]
        _, why = self.start(self.folder / "wall" / "model", *checkpoints).communicate(timeout=PATIENCE_S)
        self.assertIn("could not be written", why)
        again = self.start(self.model, *checkpoints)
        said, why = again.communicate(timeout=PATIENCE_S)
        self.assertEqual(again.returncode, 0, why)
        self.assertIn("hash of the parameters", said)
        self.expect_kept()

    def test_who_cannot_keep_the_model_leaves_it_to_another(self):
        (self.folder / "wall").write_text("no folder")
        first = self.start(self.folder / "wall" / "model", "--min-workers", "2", timeout_ms=PATIENT_MS)
        await_path(self.gang(), lambda: (self.folder / "job" / "members" / "view-1").exists())  # so it has rank 0
        second = self.start(self.model, timeout_ms=PATIENT_MS)
        ends = [worker.communicate(timeout=PATIENCE_S) for worker in (first, second)]
        self.assertNotEqual(first.returncode, 0, ends)
        self.assertIn("could not be written", ends[0][1])
        self.assertEqual(second.returncode, 0, ends)
        self.expect_kept()


# The first bytes of every message of a handshake, in all versions: magic, version, kind, size.
PREFIX = struct.Struct("<8sHHI")
MAGIC = b"mustertm"
HELLO, REFUSED, OTHER_VERSION = 1, 5, 1
# Of the code that is tested: what is of another version is refused before it is looked at.
HANDSHAKE = pathlib.Path(__file__).parents[2] / "src" / "train" / "mesh" / "handshake.h"
VERSION = int(re.search(r"kMeshVersion = (\d+);", HANDSHAKE.read_text())[1])


class StrangersTest(FaultsTest):
    def addresses(self, gang):
        view = views(gang)[max(views(gang))]
        return [(host, int(port)) for host, port in (member["address"].split(":") for member in view["members"])]

    def test_garbage_on_the_ports_of_a_job_disturbs_nobody(self):
        gang = self.gang(3, **MODEL, share_memory=0)
        self.await_steps(gang, 2)
        held = []
        hello = PREFIX.pack(MAGIC, VERSION, HELLO, 100)
        generation = gang.workers[0].steps[-1].generation
        garbage = (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), hello, hello + bytes(84), PREFIX.pack(MAGIC, VERSION, HELLO, 0),
                   PREFIX.pack(MAGIC, VERSION, HELLO, 1 << 31), PREFIX.pack(MAGIC, VERSION, REFUSED, 16),
                   PREFIX.pack(MAGIC, VERSION, 77, 24) + bytes(8))
        with gang.slowly():
            for _ in range(6):
                for address in self.addresses(gang):
                    for bytes_ in garbage:
                        held.append(socket.create_connection(address))
                        with contextlib.suppress(OSError):  # cut off already
                            held[-1].sendall(bytes_)
                self.await_steps(gang, 2)
        self.expect_right(gang)
        self.assertEqual({worker.steps[-1].generation for worker in gang.workers}, {generation}, gang.describe())
        for one in held:
            one.close()

    def test_a_worker_of_another_version_is_told_so_and_disturbs_nobody(self):
        gang = self.gang(2, **MODEL)
        with gang.slowly(), socket.create_connection(self.addresses(gang)[0], timeout=PATIENCE_S) as stranger:
            stranger.sendall(PREFIX.pack(MAGIC, 999, HELLO, 100) + bytes(84))
            answer = stranger.recv(PREFIX.size + 2, socket.MSG_WAITALL)
        magic, version, kind, _ = PREFIX.unpack(answer[:PREFIX.size])
        self.assertEqual((magic, kind, answer[PREFIX.size]), (MAGIC, REFUSED, OTHER_VERSION))
        self.assertNotEqual(version, 999)
        self.expect_right(gang)

    def test_a_worker_that_finds_a_job_of_another_version_ends_with_an_error_that_says_so(self):
        gang = self.gang()
        store = gang.folder / "store"
        store.mkdir()
        listener = socket.create_server(("127.0.0.1", 0))
        ended = threading.Event()

        def answer():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):  # it may have gone
                    connection.recv(1024)
                    connection.sendall(PREFIX.pack(MAGIC, 999, REFUSED, 24) + struct.pack("<HHHH", OTHER_VERSION, 0, 0, 0))

        def renew():
            count = 0
            while not ended.wait(0.05):
                count += 1
                (store / ".draft").write_text(f"77 {count}")
                (store / ".draft").rename(store / "lease")

        member = {"id": 77, "host": "elsewhere", "address": f"127.0.0.1:{listener.getsockname()[1]}", "segment": "", "segment_bytes": 0}
        view = {"generation": 1, "step": 3, "members": [member], "leaving": [], "servers": [], "checkpoint": ""}
        (store / "view-1").write_text(json.dumps({"change": view, "holdings": []}))
        threads = [threading.Thread(target=answer), threading.Thread(target=renew)]
        for thread in threads:
            thread.start()
        try:
            worker = gang.start()
            gang.wait_ended()
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            for thread in threads:
                thread.join()
        self.assertNotEqual(worker.process.returncode, 0)
        self.assertIn("speaks version 999 of the mesh", worker.errors)

    def test_a_worker_with_another_secret_ends_with_an_error_that_says_so(self):
        for options in ({}, {"share_memory": 0}, {"encrypt": 1}):
            with self.subTest(options=options):
                gang = self.gang(2, **MODEL, **options, timeout_ms=HASTY_MS)
                with gang.slowly():
                    stranger = gang.start(secret="another")
                    stranger.killed = True  # it is not to finish
                    gang.wait(lambda: not stranger.lives)  # when it has seen that somebody is there
                self.expect_right(gang)
                self.assertEqual(stranger.steps, [])
                self.assertNotEqual(stranger.process.returncode, 0, gang.describe())
                self.assertIn("has another secret", stranger.errors)


if __name__ == "__main__":
    unittest.main()
