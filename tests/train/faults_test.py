"""What may go wrong with the workers of a job, one thing at a time: the right parameters or a clear error, and never a hang.

Usage: faults_test.py BUILD [unittest arguments]. What is cut, killed and filled up is real: processes, a cable between two
network namespaces, a small file system. Beside these: schedules_test.py (all killed, all told to leave, frozen for long,
joiners that die at the door), mesh_test.cc (replayed and garbled handshakes, dawdlers), checkpoint_test.cc (torn files).
"""
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

import audit
import network
from gang import Gang, mismatches, reference, went_back

BUILD = sys.argv.pop(1)
PROBE = os.path.join(BUILD, "bin", "train_probe")
STEPS = 100
TRIES = 12  # to hit a moment
# So large that a change or a checkpoint takes a while, which is when something is to happen.
LARGE = {"idle_floats": 3_000_000, "bucket_floats": 200_000, "pause_us": 8000, "steps": 60}
MODEL = {"model": "mlp:8,24,24,1", "data": "linear", "batch": 48}


def views(gang):
    """The views that were claimed, by generation."""
    return {int(path.name[5:]): json.loads(path.read_text())["change"] for path in (gang.folder / "store").glob("view-*")}


def await_path(gang, find, seconds=25):
    """What there is to find, as soon as it is there: files tell nobody that they came."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
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
        """With so many workers, and all of them at work."""
        options = {"steps": STEPS, "pause_us": 8000, "timeout_ms": 600, **(options or {"idle_floats": 5000, "bucket_floats": 700})}
        gang = Gang(PROBE, audited="model" in options, **options)
        self.addCleanup(gang.__exit__)
        for _ in range(workers):
            gang.start()
        gang.wait(lambda: all(worker.steps and worker.steps[-1].workers == workers for worker in gang.workers))
        return gang

    def truth(self, gang):
        same = ("model", "data", "batch", "idle_floats", "bucket_floats", "steps")
        options = {key: value for key, value in gang.options.items() if key in same}
        key = json.dumps(options, sort_keys=True)
        if key not in self.truths:
            self.truths[key] = reference(PROBE, **options)
        return self.truths[key]

    def expect_right(self, gang, ends=("finished",)):
        """All that lived to the end finished, and every step of everybody was that of an undisturbed run."""
        gang.wait_ended(60)
        told = gang.describe()
        self.assertEqual({worker.end for worker in gang.workers if not worker.killed}, set(ends), told)
        self.assertEqual(mismatches(gang, self.truth(gang)), [], told)
        if gang.audited:
            self.assertEqual(audit.check(gang.audits(), STEPS, gang.options["batch"]), (0, 0, []), told)

    def await_steps(self, gang, count):
        """So many more."""
        last = gang.last_step() + count
        gang.wait(lambda: gang.last_step() >= last)

    def by_rank(self, gang):
        return sorted(gang.alive(), key=lambda worker: worker.steps[-1].rank)


class DeathsTest(FaultsTest):
    def kill_two(self, ranks, **options):
        gang = self.gang(5, **MODEL, **options)
        self.await_steps(gang, 7)
        self.kill_at_once(gang, ranks)
        return gang

    def kill_at_once(self, gang, ranks):
        for victim in [self.by_rank(gang)[rank] for rank in ranks]:
            victim.kill()
        self.expect_right(gang)

    def test_two_neighbours_at_once_cost_nothing_with_two_mirrors(self):
        self.assertEqual(went_back(self.kill_two((1, 2), mirrors=2)), [])
        self.assertEqual(went_back(self.kill_two((4, 0), mirrors=2)), [])

    def test_two_who_are_no_neighbours_at_once_cost_nothing_with_one_mirror(self):
        self.assertEqual(went_back(self.kill_two((1, 3))), [])
        self.assertEqual(went_back(self.kill_two((0, 2))), [])

    def test_two_neighbours_at_once_with_one_mirror_cost_what_came_after_the_checkpoint(self):
        folder = self.gang().folder
        gang = self.gang(5, **MODEL, checkpoints=folder, checkpoint_every=5)
        await_path(gang, lambda: any(len(list(step.glob("*-of-5"))) == 5 for step in folder.glob("step-*")))
        self.kill_at_once(gang, (1, 2))
        taken_up = [view["checkpoint"] for view in views(gang).values() if view["checkpoint"]]
        self.assertEqual(len(taken_up), 1, gang.describe())
        for _, _, after in went_back(gang):
            self.assertEqual(after, int(taken_up[0].removeprefix("step-")) + 1, gang.describe())

    def test_one_dies_while_another_comes(self):
        """Whoever it is: the newcomer, the chief, another one."""
        for who in ("newcomer", "chief", "other"):
            with self.subTest(who=who):
                self.assertTrue(any(self.broke_off_a_change(who) for _ in range(TRIES)))

    def broke_off_a_change(self, who):
        gang = self.gang(3, **LARGE)
        self.await_steps(gang, 3)
        members = self.by_rank(gang)
        number = max(views(gang)) + 1
        newcomer = gang.start()
        await_path(gang, lambda: (gang.folder / "store" / f"view-{number}").exists())
        {"newcomer": newcomer, "chief": members[0], "other": members[1]}[who].kill()
        self.expect_right(gang)
        self.assertEqual(went_back(gang), [], gang.describe())
        return not any(step.generation == number for worker in gang.workers for step in worker.steps)

    def test_the_only_one_dies_as_it_lets_others_in_who_have_not_met(self):
        for number in range(TRIES // 2):
            with self.subTest(number=number):
                gang = self.gang(1, idle_floats=200_000, bucket_floats=20_000)
                for _ in range(4):
                    gang.start()
                last = max(views(gang)) + 1 + number % 2
                await_path(gang, lambda: (gang.folder / "store" / f"view-{last}").exists() or not gang.alive())
                gang.workers[0].kill()
                self.expect_right(gang)

    def test_one_dies_while_the_others_recover_from_the_death_of_another(self):
        self.assertTrue(any(self.broke_off_a_recovery() for _ in range(TRIES)))

    def broke_off_a_recovery(self):
        gang = self.gang(4, **LARGE, mirrors=2)
        self.await_steps(gang, 3)
        members = self.by_rank(gang)
        number = max(views(gang)) + 1
        members[1].kill()
        await_path(gang, lambda: (gang.folder / "store" / f"view-{number}").exists())
        members[2].kill()
        self.expect_right(gang)
        self.assertEqual(went_back(gang), [], gang.describe())
        return not any(step.generation == number for worker in gang.workers for step in worker.steps)

    def test_one_dies_while_it_writes_its_part_of_a_checkpoint(self):
        for all_die in (False, True):
            with self.subTest(all_die=all_die):
                self.assertTrue(any(self.tore_a_checkpoint(all_die) for _ in range(TRIES)))

    def tore_a_checkpoint(self, all_die):
        folder = self.gang().folder
        gang = self.gang(3, **LARGE, checkpoints=folder, checkpoint_every=5)
        scribe = await_path(gang, lambda: next((worker for worker in gang.alive() if writes(worker, folder)), None))
        scribe.freeze()
        torn = writes(scribe, folder)
        for victim in gang.workers if all_die else [scribe]:
            victim.kill()
        if all_die:
            gang.wait_ended()
            gang.start()
        self.expect_right(gang)
        return torn


class SlowTest(FaultsTest):
    def test_one_that_stumbles_again_and_again_is_waited_for(self):
        gang = self.gang(3, timeout_ms=5000, **MODEL)
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

    def test_one_that_returns_after_it_was_given_up_does_not_disturb_the_others(self):
        for rank in (0, 2):
            with self.subTest(rank=rank):
                gang = self.gang(3, **MODEL)
                self.await_steps(gang, 3)
                frozen = self.by_rank(gang)[rank]
                frozen.freeze()
                given_up = frozen.steps[-1].generation
                gang.wait(lambda: any(worker.steps[-1].generation > given_up for worker in gang.workers))
                frozen.thaw()
                self.expect_right(gang)
                self.assertEqual(went_back(gang), [], gang.describe())


@unittest.skipUnless(network.possible(), "only root may make network namespaces")
class PartitionTest(FaultsTest):
    """Two workers on each of two hosts that see the same store and, for a while, not each other."""

    def setUp(self):
        self.hosts = network.TwoHosts().__enter__()
        self.addCleanup(self.hosts.__exit__)

    def start(self, gang, side):
        worker = gang.start(before=self.hosts.on(side), address=self.hosts.addresses[side], min_workers=1)
        worker.side = side
        return worker

    def cut_and_join(self, **options):
        gang = self.gang(**MODEL, **options)
        for side in (0, 1, 0, 1):
            self.start(gang, side)
        gang.wait(lambda: all(worker.steps and worker.steps[-1].workers == 4 for worker in gang.workers))
        before = gang.workers[0].steps[-1].generation
        self.hosts.cut()
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
            self.skipTest(f"cannot mount a small file system: {mounted.stderr.strip()}")
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
        gang = self.gang(2, idle_floats=20000, bucket_floats=700, checkpoints=folder)
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


class CheckpointsTest(FaultsTest):
    def test_all_write_the_same_steps_although_one_takes_long(self):
        """Longer than there are steps between them, and not as long for each."""
        folder = self.gang().folder / "checkpoints"
        gang = self.gang(3, **{**LARGE, "steps": STEPS, "pause_us": 2000}, checkpoints=folder, checkpoint_every=1)
        self.expect_right(gang)
        told = gang.checkpoints()
        self.assertEqual(told, sorted(set(told)), "each once, one after the other")
        self.assertEqual(told[-1], STEPS)
        self.assertLessEqual(len(list(folder.glob("step-*"))), 2, "what was begun was written by all, or is gone")

    def test_a_checkpoint_is_said_to_be_there_when_it_can_be_started_from(self):
        folder = self.gang().folder / "checkpoints"
        gang = self.gang(3, **LARGE, checkpoints=folder, checkpoint_every=5)
        gang.wait(lambda: gang.checkpoints())
        said = gang.checkpoints()[-1]
        for worker in gang.workers:
            worker.kill()
        gang.wait_ended()
        later = gang.start()
        self.expect_right(gang)
        self.assertGreaterEqual(later.steps[0].step, said + 1, gang.describe())

    def test_when_all_leave_it_is_said_that_all_is_written(self):
        gang = self.gang(3, checkpoints=self.gang().folder / "checkpoints")
        self.await_steps(gang, 3)
        for worker in gang.workers:
            worker.leave()
        gang.wait_ended()
        self.assertEqual([worker.end for worker in gang.workers], ["left"] * 3, gang.describe())
        self.assertEqual(set(gang.checkpoints()), {gang.last_step()}, gang.describe())

    def test_two_histories_do_not_make_one_checkpoint(self):
        """A job is killed while it writes, again and again, and each time begins anew with other sums."""
        folder = self.gang().folder / "checkpoints"
        options = {**LARGE, "exact": "false", "checkpoints": folder, "checkpoint_every": 7, "min_workers": 2}
        for _ in range(4):
            gang = self.gang(2, **options)
            torn = await_path(gang, lambda: list(folder.glob("step-*/*-of-2")))
            for victim in gang.workers:
                victim.kill()
            gang.wait_ended()
            if len(torn) == 1:
                break
        views = {file.name.split(".")[0] for file in folder.glob("step-*/*-of-2")}
        self.assertTrue(views, "nothing was written")
        gang = self.gang(2, **options)
        gang.wait_ended(60)
        self.assertEqual({worker.end for worker in gang.workers}, {"finished"}, gang.describe())
        last = {worker.steps[-1].hashes[0] for worker in gang.workers}
        self.assertEqual(len(last), 1, gang.describe())


class KeptTest(FaultsTest):
    """The model that a job leaves behind."""

    def setUp(self):
        self.folder = self.gang().folder
        self.model = self.folder / "model.safetensors"

    def start(self, keep, *more):
        command = [os.path.join(BUILD, "bin", "muster-train"), "--folder", str(self.folder / "job"), "--data", "linear",
                   "--model", "mlp:8,8,1", "--steps", "20", "--timeout-ms", "600", "--keep", str(keep), *more]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(worker.kill)
        return worker

    def expect_kept(self):
        tested = subprocess.run([os.path.join(BUILD, "bin", "muster-train"), "--test", str(self.model)], capture_output=True, text=True)
        self.assertEqual(tested.returncode, 0, tested.stderr)

    def test_a_job_is_not_finished_before_its_model_is_kept(self):
        (self.folder / "wall").write_text("no folder")
        checkpoints = ["--checkpoints", str(self.folder / "checkpoints")]
        _, why = self.start(self.folder / "wall" / "model", *checkpoints).communicate(timeout=60)
        self.assertIn("could not be written", why)
        again = self.start(self.model, *checkpoints)
        said, why = again.communicate(timeout=60)
        self.assertEqual(again.returncode, 0, why)
        self.assertIn("hash of the parameters", said)
        self.expect_kept()

    def test_who_cannot_keep_the_model_leaves_it_to_another(self):
        (self.folder / "wall").write_text("no folder")
        first = self.start(self.folder / "wall" / "model", "--min-workers", "2")
        await_path(self.gang(), lambda: (self.folder / "job" / "members" / "view-1").exists())  # so it has rank 0
        second = self.start(self.model)
        ends = [worker.communicate(timeout=60) for worker in (first, second)]
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
        for _ in range(6):
            for address in self.addresses(gang):
                for bytes_ in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), hello, hello + bytes(84),
                               PREFIX.pack(MAGIC, VERSION, HELLO, 0), PREFIX.pack(MAGIC, VERSION, HELLO, 1 << 31),
                               PREFIX.pack(MAGIC, VERSION, REFUSED, 16), PREFIX.pack(MAGIC, VERSION, 77, 24) + bytes(8)):
                    held.append(socket.create_connection(address))
                    try:
                        held[-1].sendall(bytes_)
                    except OSError:
                        pass  # cut off already
            self.await_steps(gang, 3)
        self.expect_right(gang)
        self.assertEqual({worker.steps[-1].generation for worker in gang.workers}, {generation}, gang.describe())
        for one in held:
            one.close()

    def test_a_worker_of_another_version_is_told_so_and_disturbs_nobody(self):
        gang = self.gang(2, **MODEL)
        self.await_steps(gang, 2)
        with socket.create_connection(self.addresses(gang)[0], timeout=20) as stranger:
            stranger.sendall(PREFIX.pack(MAGIC, 999, HELLO, 100) + bytes(84))
            answer = stranger.recv(PREFIX.size + 2, socket.MSG_WAITALL)
        magic, version, kind, _ = PREFIX.unpack(answer[:PREFIX.size])
        self.assertEqual((magic, kind, answer[PREFIX.size]), (MAGIC, REFUSED, OTHER_VERSION))
        self.assertNotEqual(version, 999)
        self.expect_right(gang)

    def test_a_worker_that_finds_a_job_of_another_version_ends_with_an_error_that_says_so(self):
        gang = self.gang(timeout_ms=300)
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
                with connection:
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
                gang = self.gang(2, **MODEL, **options, pause_us=20000)  # the stranger must see that somebody is there
                self.await_steps(gang, 2)
                stranger = gang.start(secret="another")
                stranger.killed = True  # it is not to finish
                self.expect_right(gang)
                gang.wait_ended()
                self.assertEqual(stranger.steps, [])
                self.assertNotEqual(stranger.process.returncode, 0, gang.describe())
                self.assertIn("has another secret", stranger.errors)


if __name__ == "__main__":
    unittest.main()
