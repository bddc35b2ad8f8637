#!/usr/bin/env python3
"""program_test.py BUILD: muster-train as people run it: what it says, how it ends, and what becomes of those it started."""
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PATIENCE_S = 90
# A time-out so long that only who has ended is lost, however busy the machine is.
LINEAR = ["--data=linear", "--model=mlp:8,16,1", "--batch=16", "--shards=4", "--timeout-ms=10000"]
ENDLESS = [*LINEAR, "--steps=100000000"]
BY_HAND = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}


def children(pid):
    """Of a process, in the order in which they were started."""
    out = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
        except (OSError, IndexError):  # it has ended meanwhile
            continue
        if int(parent) == pid and state != "Z":
            out.append(int(stat.parent.name))
    return sorted(out)


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(0.005)


class Run:
    """One muster-train; what it says is read as it comes."""

    def __init__(self, *flags, env, **more):
        self.process = subprocess.Popen([TRAIN, *flags], env={**BY_HAND, **env}, text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **more)
        self.out, self.errors = [], []
        self.seen = set()  # workers
        self.threads = [threading.Thread(target=self._read, args=read, daemon=True)
                        for read in ((self.process.stdout, self.out), (self.process.stderr, self.errors))]
        for thread in self.threads:
            thread.start()

    def _read(self, stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def wait_line(self, part, of=None):
        lines = self.out if of is None else of
        wait(lambda: any(part in line for line in lines) or self.process.poll() is not None and not self._reading(),
             f"{part!r}: {self.told()}")
        found = [line for line in lines if part in line]
        assert found, f"ended without {part!r}: {self.told()}"
        return found[0]

    def _reading(self):
        return any(thread.is_alive() for thread in self.threads)

    def workers(self, count):
        wait(lambda: len(children(self.process.pid)) == count, f"{count} workers: {self.told()}")
        self.seen.update(children(self.process.pid))
        return sorted(self.seen)

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"does not end: {self.told()}") from None
        for thread in self.threads:
            thread.join(PATIENCE_S)
        return self.process.returncode

    def told(self):
        return f"status {self.process.poll()}\n" + "\n".join(self.out[-5:] + self.errors[-20:])

    def close(self):
        if self.process.poll() is None:
            self.seen.update(children(self.process.pid))
            self.process.kill()
        for pid in filter(lives, self.seen):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for thread in self.threads:
            thread.join(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-program-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, *flags, **more):
        env = {"TMPDIR": str(self.folder), **more.pop("env", {})}
        run = Run(*map(str, flags), env=env, **more)
        self.addCleanup(run.close)
        return run

    def expect(self, status, *flags, **more):
        """Runs to its end."""
        run = self.start(*flags, **more)
        self.assertEqual(run.end(), status, run.told())
        return run


class LauncherTest(ProgramTest):
    def test_all_begin_together(self):
        run = self.expect(0, *LINEAR, "--steps=5", "--workers=3", "--every-step=true")
        self.assertEqual({line.split()[5] for line in run.out if line.startswith("step ")}, {"3"}, run.told())

    def test_the_others_go_on_when_one_is_killed(self):
        run = self.start(*ENDLESS, "--workers=3")
        workers = run.workers(3)
        run.wait_line("3 workers")
        os.kill(workers[1], signal.SIGKILL)
        run.wait_line("worker 1 was killed by signal 9; the others go on", run.errors)
        run.wait_line("2 workers")
        os.kill(workers[0], signal.SIGKILL)
        run.wait_line("worker 0 was killed by signal 9; the others go on", run.errors)
        self.assertTrue(lives(workers[2]), run.told())

    def test_a_job_that_one_was_killed_in_finishes_with_the_same_model(self):
        flags = [*LINEAR, "--steps=20000", "--quiet"]
        self.expect(0, *flags, f"--keep={self.folder}/alone")
        run = self.start(*flags, f"--keep={self.folder}/gang", "--workers=2", "--audit", self.folder / "audit")
        workers = run.workers(2)
        wait(lambda: (self.folder / "audit").exists() and "done " in (self.folder / "audit").read_text(), run.told())
        os.kill(workers[1], signal.SIGKILL)
        self.assertEqual(run.end(), 0, run.told())
        self.assertIn("worker 1 was killed", run.errors[0])
        self.assertEqual(*(self.model_hash(self.folder / name) for name in ("alone", "gang")))

    def model_hash(self, file):
        size = int.from_bytes(file.read_bytes()[:8], "little")
        return json.loads(file.read_bytes()[8:8 + size])["__metadata__"]["hash"]

    def test_one_that_cannot_start_ends_the_others_and_says_why(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        run = self.start(*ENDLESS, "--workers=2", f"--address={address}")
        self.assertNotEqual(run.end(), 0, run.told())
        self.assertGreater(run.process.returncode, 0)
        self.assertEqual(len(run.errors), 1, run.told())
        self.assertRegex(run.errors[0], r"worker \d ended with status \d before work had begun; so all end: .*" + address)

    def test_what_all_stumble_over_is_said_once(self):
        run = self.expect(5, "--model=nonsense", "--data=linear", "--workers=4")
        self.assertEqual(len(run.errors), 1, run.told())
        self.assertIn("nonsense", run.errors[0])

    def test_when_all_are_killed_the_status_says_so(self):
        run = self.start(*ENDLESS, "--workers=2")
        workers = run.workers(2)
        run.wait_line("2 workers")
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(run.end(), 128 + signal.SIGKILL, run.told())
        self.assertIn("was killed by signal 9", run.errors[-1])

    def test_a_worker_that_cannot_be_forked_is_an_error(self):
        more = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))}
        if os.geteuid() == 0:  # whom no limit holds
            nobody = 65534
            if subprocess.run([TRAIN, "--help"], user=nobody, capture_output=True, check=False).returncode:
                self.skipTest("another user cannot run the program")
            more["user"] = nobody
        # Who looks for leaks at the end starts a thread for it.
        run = self.start(*ENDLESS, "--workers=2", env={"ASAN_OPTIONS": "detect_leaks=0"}, **more)
        self.assertEqual(run.end(), 6, run.told())
        self.assertIn("worker 0 could not be started: Resource temporarily unavailable", run.errors[0])

    def test_told_to_end_while_it_starts_workers_it_ends(self):
        for _ in range(6):
            run = self.start(*ENDLESS, "--workers=24")
            wait(lambda: children(run.process.pid), "a worker")
            run.send(signal.SIGTERM)
            self.assertEqual(run.end(), 128 + signal.SIGTERM, run.told())

    def test_workers_leave_when_the_launcher_dies(self):
        run = self.start(*ENDLESS, "--workers=2", "--checkpoints", self.folder, "--folder", self.folder / "meet")
        workers = run.workers(2)
        run.wait_line("2 workers")
        run.send(signal.SIGKILL)
        wait(lambda: not any(map(lives, workers)), "that they leave")
        # Who was told first may have left before the other: one part each then, or all in one.
        kept = max(self.folder.glob("step-*"), key=lambda step: int(step.name.split("-")[1]))
        parts = [part.name.split("-of-") for part in kept.glob("*-of-*")]
        self.assertEqual(len(parts), int(parts[0][1]), "the newest checkpoint is whole")

    def test_servers_are_not_counted_as_workers(self):
        run = self.start("--data=linear", "--model=mlp:8,1", "--optimizer=sgd", "--rate=constant:rate=0.01", "--steps=100000000",
                         "--strategy=server:servers=2,mode=async", "--workers=3")
        run.wait_line("  3 workers, 2 servers  ")


class EndTest(ProgramTest):
    def test_a_finished_folder_says_that_it_is(self):
        flags = [*LINEAR, "--steps=5", "--folder", self.folder / "meet"]
        for workers in ([], ["--workers=2"]):
            for keep in ([], ["--keep", self.folder / "model"]):
                with self.subTest(workers=workers, keep=keep):
                    shutil.rmtree(self.folder / "meet", ignore_errors=True)
                    self.expect(0, *flags, *workers, *keep)
                    again = self.expect(0, *flags, *workers)
                    self.assertEqual(len(again.out), 1, again.told())
                    self.assertIn("already finished at step 5", again.out[0])
                    self.assertIn(f"the model is in {self.folder}/model" if keep else "give another --folder", again.out[0])

    def test_stopped_without_checkpoints_it_says_what_is_lost(self):
        for flags in ([], ["--workers=2"]):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(flags=flags, number=number):
                    run = self.start(*ENDLESS, *flags)
                    run.wait_line("step ")
                    run.send(number)
                    self.assertEqual(run.end(), 128 + number, run.told())
                    self.assertRegex(run.errors[-1], r"stopped at step [1-9]\d* of 100000000; nothing was kept: --checkpoints FOLDER keeps it$")

    def test_stopped_with_checkpoints_it_says_where_it_goes_on_and_does(self):
        for flags in ([], ["--workers=2"]):
            with self.subTest(flags=flags):
                saved = self.folder / f"saved{len(flags)}"
                run = self.start(*ENDLESS, *flags, "--checkpoints", saved)
                run.wait_line("step ")
                run.send(signal.SIGINT)
                self.assertEqual(run.end(), 130, run.told())
                self.assertIn(f"the same command goes on from what is in {saved}", run.errors[-1])
                step = int(run.errors[-1].split("stopped at step ")[1].split()[0])
                again = self.start(*ENDLESS, *flags, "--checkpoints", saved)
                first = again.wait_line("step ")
                self.assertGreater(int(first.split()[1].split("/")[0]), step)
                again.send(signal.SIGTERM)
                self.assertEqual(again.end(), 143, again.told())

    def test_under_muster_a_pause_is_no_failure(self):
        run = self.start(*ENDLESS, "--checkpoints", self.folder / "saved",
                         env={"MUSTER_JOB_ID": "7", "MUSTER_JOB_DIR": str(self.folder), "MUSTER_RANK": "0"})
        run.wait_line("step ")
        run.send(signal.SIGTERM)
        self.assertEqual((run.end(), run.errors), (0, []))

    def test_who_leaves_others_that_go_on_has_not_failed(self):
        flags = [*ENDLESS, "--folder", self.folder / "meet", "--min-workers=1"]
        first = self.start(*flags)
        first.wait_line("step ")
        second = self.start(*flags)
        first.wait_line("2 workers")
        second.send(signal.SIGTERM)
        self.assertEqual((second.end(), second.errors), (0, []))

    def test_a_full_disk_is_said_to_be_full(self):
        run = self.start(*ENDLESS, "--audit=/dev/full")
        self.assertEqual(run.end(), 6, run.told())
        self.assertIn('cannot write "/dev/full": No space left on device (make room there', run.errors[-1])


class FlagsTest(ProgramTest):
    def test_numbers_that_make_no_sense_are_refused(self):
        for flag in ("--batch=-1", "--batch=0", "--batch=x", "--batch=99999999999", "--steps=-5", "--steps=0", "--noise-every=-1",
                     "--checkpoint-every=-3", "--min-workers=0", "--timeout-ms=0"):
            with self.subTest(flag=flag):
                run = self.expect(2, *LINEAR, "--checkpoints", self.folder, flag)
                said = "\n".join(run.out + run.errors)
                self.assertIn(flag.split("=")[0], said)
                self.assertIn("give a whole number from", said)

    def test_checkpoints_without_a_folder_are_refused(self):
        run = self.expect(2, *LINEAR, "--steps=5", "--checkpoint-every=2")
        self.assertIn("give --checkpoints FOLDER", run.errors[0])

    def test_checkpoints_of_which_every_worker_sees_its_own_alone_are_not_said_to_be_complete(self):
        flags = [f"--folder={self.folder}/job", *LINEAR, "--steps=60", "--checkpoint-every=20", "--first-workers=2"]
        runs = [self.start(*flags, f"--checkpoints={self.folder}/{name}") for name in ("one", "other")]
        self.assertEqual([run.end() for run in runs], [0, 0], [run.told() for run in runs])
        complaints = [line for run in runs for line in run.errors if "parts of other workers are not in" in line]
        self.assertTrue(any("no checkpoint of step 60" in line for line in complaints), [run.told() for run in runs])

    def test_workers_with_and_without_checkpoints_are_not_of_one_job(self):
        flags = [f"--folder={self.folder}/job", *ENDLESS]
        first = self.start(*flags, f"--checkpoints={self.folder}/kept")
        first.wait_line("step")
        other = self.start(*flags)
        self.assertNotEqual(other.end(), 0, other.told())
        self.assertIn("checkpoints none, not kept", other.told())
        self.assertIsNone(first.process.poll(), first.told())

    def test_what_is_no_command_line_has_the_status_of_one(self):
        for flags in (["--nonsense"], ["--workers=0"], ["--shards"], ["store"]):
            with self.subTest(flags=flags):
                self.expect(2, *flags)
        self.expect(0, "--help")

    def test_without_any_flag_it_trains_something_and_says_what(self):
        run = self.expect(0, "--steps=2")
        self.assertRegex(run.out[0], "this trains with --data (text:/usr/share/common-licenses/GPL-3 --model transformer:|linear --model mlp:)")
        self.assertIn("hash of the parameters", run.out[-1])


class ReplayTest(ProgramTest):
    FLAGS = ["--data=linear", "--model=mlp:8,1", "--optimizer=sgd", "--rate=constant:rate=0.1", "--steps=30", "--shards=4"]

    def test_a_log_replays_and_what_is_none_is_an_error(self):
        log = self.folder / "updates"
        run = self.expect(0, *self.FLAGS, "--strategy=server:servers=2,mode=async", "--workers=2", "--update-log", log)
        again = self.expect(0, *self.FLAGS, "--replay", log)
        self.assertIn("replayed 30 steps", again.out)
        self.assertEqual(again.out[-1], run.out[-1], "the same hash")
        (self.folder / "empty").mkdir()
        for folder, status in ((self.folder / "empty", 5), (self.folder, 5), (self.folder / "none", 3)):
            with self.subTest(folder=folder):
                wrong = self.expect(status, *self.FLAGS, "--replay", folder)
                self.assertEqual((wrong.out, len(wrong.errors)), ([], 1), wrong.told())
        other = self.expect(5, *self.FLAGS[:-1], "--shards=2", "--replay", log)
        self.assertIn("4 shards, not 2", other.errors[0])


if __name__ == "__main__":
    TRAIN = str(pathlib.Path(sys.argv.pop(1)) / "bin" / "muster-train")
    unittest.main()
