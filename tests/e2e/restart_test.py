#!/usr/bin/env python3
"""restart_test.py BUILD [TEST...]: a daemon that stops in order, and commands that go on when it comes back."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import e2e_test
import enter_test
from e2e_test import Case, job


class Restart(Case):
    def end(self):
        """As `systemctl stop` does it; jobs go on."""
        self.daemon.process.send_signal(signal.SIGTERM)
        self.daemon.process.wait(timeout=60)

    def muster(self, *words, **more):
        env = dict(os.environ, MUSTER_DAEMON=str(self.daemon.socket), **more)
        return subprocess.Popen([self.daemon.bin / "muster", *words], env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def heard(self, process, text):
        """What it says on standard error, until it says this."""
        said = ""
        while text not in said:
            line = process.stderr.readline()
            self.assertTrue(line, f"{text} never came, but {said}")
            said += line
        return said

    def metric(self, name):
        link = self.daemon.connect()
        link.request("GET", "/metrics")
        lines = link.getresponse().read().decode().splitlines()
        link.close()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name + " "))

    def waiting(self, *words, **more):
        """`muster wait`, once it was answered: one that never was does not try again."""
        asked = 'muster_requests_total{operation="getJob"}'
        before = self.metric(asked)
        process = self.muster("wait", *words, **more)
        self.until(lambda: self.metric(asked) > before + 1)
        return process

    def stopped(self, *verbs, end=None):
        """Ends the daemon under these, waits until each has noticed, and starts it again."""
        (end or self.end)()
        for verb in verbs:
            self.heard(verb, "musterd does not answer; trying again for 60 s\n")
        self.daemon.start()


class Stop(Restart):
    def ask(self, path, **headers):
        link = self.daemon.connect()
        link.request("GET", "/api/v1/" + path, headers=headers)
        return link

    def test_streams_end_with_their_last_chunk(self):
        one = self.daemon.submit(job("echo begun; sleep 600"))
        self.until(lambda: self.out(one) == "begun\n")
        links = [self.ask("events", Accept="text/event-stream"), self.ask(f"jobs/{one}/logs?follow=1"),
                 self.ask(f"jobs/{one}/logs?follow=1", Accept="text/event-stream"), self.ask("events?watch=1&since=0")]
        answers = [link.getresponse() for link in links]
        for answer in answers:
            self.assertEqual((answer.status, answer.getheader("Transfer-Encoding")), (200, "chunked"))
        got = [b""] * len(answers)

        def read(index):  # read() raises IncompleteRead when the last chunk is missing
            got[index] = answers[index].read()
        readers = [threading.Thread(target=read, args=[i]) for i in range(len(answers))]
        for reader in readers:
            reader.start()
        self.end()
        for reader in readers:
            reader.join()
        self.assertTrue(all(got), got)
        self.assertEqual(got[1], b"begun\n")
        self.assertNotIn(b"event: end", got[2])
        self.daemon.start()

    def test_what_is_asked_while_it_stops_is_told_to_come_again(self):
        half, whole = self.daemon.connect(), [self.daemon.connect() for _ in range(20)]
        half.connect()
        half.sock.sendall(b"POST /api/v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        for link in whole:
            link.request("GET", "/api/v1/jobs")
        self.end()
        answer = half.response_class(half.sock, method="POST")
        answer.begin()
        problem = json.loads(answer.read())
        self.assertEqual((answer.status, answer.getheader("Content-Type"), problem["code"], problem["title"]),
                         (503, "application/problem+json", "unavailable", "the server is stopping"))
        self.assertTrue(problem["hint"])
        self.assertEqual(answer.getheader("Retry-After"), "1")
        for link in whole:
            answer = link.getresponse()
            text = json.loads(answer.read())
            self.assertIn(answer.status, (200, 503), text)
            self.assertEqual("jobs" in text, answer.status == 200)
        self.daemon.start()


class GoOn(Restart):
    def test_a_followed_log_has_every_byte_once(self):
        mark = self.path("go")
        one = self.daemon.submit(job(f"for i in 1 2 3; do echo before $i; done; printf half; until [ -e {mark} ]; do "
                                     "sleep 0.05; done; echo way; for i in 1 2 3; do echo after $i; done"))
        self.until(lambda: self.out(one).endswith("half"))
        follow, tail = self.muster("logs", "-f", one), self.muster("logs", "-f", one, "--tail", "2")
        wanted = "".join(f"before {i}\n" for i in (1, 2, 3)) + "half"
        self.assertEqual(follow.stdout.read(len(wanted)), wanted)
        self.assertEqual(tail.stdout.read(len("before 3\nhalf")), "before 3\nhalf")
        self.stopped(follow, tail)
        self.until(lambda: self.metric("muster_http_streams") == 2)
        self.stopped(follow, tail, end=self.daemon.kill)
        mark.touch()
        rest = "way\n" + "".join(f"after {i}\n" for i in (1, 2, 3))
        for process in (follow, tail):
            self.assertEqual(process.communicate(timeout=60), (rest, ""))
            self.assertEqual(process.returncode, 0)

    def test_run_and_wait_end_with_the_fate_of_the_job(self):
        mark = self.path("go")
        run = self.muster("run", "--name", "one", "--", "/bin/sh", "-c",
                          f"echo out; echo err >&2; until [ -e {mark} ]; do sleep 0.05; done; echo out2; echo err2 >&2; exit 3")
        self.assertEqual(run.stdout.readline(), "out\n")
        self.heard(run, "err\n")
        wait = self.waiting("one")
        self.stopped(run, wait, end=self.daemon.kill)
        mark.touch()
        out, err = run.communicate(timeout=60)
        self.assertEqual((out, run.returncode), ("out2\n", 100), err)
        self.assertIn("err2\n", err)
        self.assertNotIn("err\n", err.replace("err2\n", ""))
        self.assertEqual((wait.communicate(timeout=60)[0], wait.returncode), ("", 100))

    def test_events_and_watched_lists_go_on_without_a_gap(self):
        self.daemon.submit(job("true", name="first"))
        self.daemon.wait("first")
        events, watch = self.muster("events", "-f", "-o", "json"), self.muster("ps", "--watch", "-o", "jsonl", "-a")
        revisions = [json.loads(events.stdout.readline())["revision"]]
        self.assertEqual(json.loads(watch.stdout.readline())["name"], "first")
        self.stopped(events, watch)
        self.daemon.submit(job("true", name="second"))
        self.daemon.wait("second")
        while True:
            event = json.loads(events.stdout.readline())
            revisions.append(event["revision"])
            if event["kind"] == "job-ended" and event["facts"]["job"] in (2, "2"):
                break
        self.assertEqual(revisions, sorted(set(revisions)))
        while json.loads(watch.stdout.readline())["name"] != "second":
            pass
        for process in (events, watch):
            process.terminate()
            process.communicate()

    def test_it_gives_up_with_status_6_and_begins_with_it(self):
        one = self.daemon.submit(job("sleep 600"))
        self.daemon.wait(one, ("running",))
        wait = self.waiting(one, MUSTER_RECONNECT="1")
        self.end()
        self.assertEqual(wait.wait(timeout=60), 6)
        self.assertIn("trying again for 1 s\n", wait.stderr.read())
        late = self.muster("wait", one)
        self.assertEqual(late.wait(timeout=60), 6)
        self.assertNotIn("trying again", late.stderr.read())
        self.daemon.start()

    def test_a_wait_with_a_time_of_its_own_tries_no_longer_than_that(self):
        one = self.daemon.submit(job("sleep 600"))
        self.daemon.wait(one, ("running",))
        wait = self.waiting(one, "--timeout", "3s")
        begun = time.monotonic()
        self.until(lambda: time.monotonic() > begun + 1)
        self.end()
        self.assertEqual(wait.wait(timeout=60), 6)
        self.assertRegex(wait.stderr.read(), "trying again for [12] s\n")
        self.daemon.start()

    def test_what_the_server_refuses_itself_is_counted(self):
        name = 'muster_http_answers_total{operation="none",class="4xx"}'
        before = self.metric(name)
        link = self.daemon.connect()
        link.request("GET", "/api/v1/version", headers={"X-Long": "x" * 100_000})
        self.assertEqual(link.getresponse().status, 431)
        link.close()
        self.assertEqual(self.metric(name), before + 1)


class Terminals(Restart):
    def test_a_terminal_is_attached_again_and_exec_says_what_is_true(self):
        self.daemon.submit(dict(job("", name="box", terminal=True), command=["/bin/sh", "-i"]))
        self.daemon.wait("box", ("running",))
        ours = enter_test.Ours(self.daemon, "attach", "box")
        ours.until(b"attached")
        os.write(ours.ours, b"echo one=$((40+1))\n")
        ours.until(b"one=41")
        beside = self.muster("exec", "box", "--", "/bin/sh", "-c", "echo up; sleep 600")
        self.assertEqual(beside.stdout.readline(), "up\n")
        self.end()
        ours.until(b"does not answer; trying again")
        out, err = beside.communicate(timeout=60)
        self.assertEqual(beside.returncode, 6)
        self.assertIn("musterd went away: the program was told to end", err)
        os.write(ours.ours, b"echo dropped\n")
        self.daemon.start()
        ours.until(b"attached again")
        os.write(ours.ours, b"echo two=$((40+2))\n")
        ours.until(b"two=42")
        self.assertNotIn(b"dropped", ours.seen)
        before, _, again = ours.seen.partition(b"\033[H\033[2J")
        self.assertIn(b"connection was lost", before)
        self.assertIn(b"one=41", again)  # the screen is cleared before it is shown again
        os.write(ours.ours, b"\x1d")
        self.assertEqual(ours.end(), 0)
        self.assertEqual(self.phase("box"), "running")

    def test_while_the_daemon_is_away_two_keys_leave_and_the_job_goes_on(self):
        def away(*words):
            ours = enter_test.Ours(self.daemon, *words)
            ours.until(b"attached")
            os.write(ours.ours, b"echo one=$((40+1))\n")
            ours.until(b"one=41")
            return ours
        run = away("run", "--kind", "build", "--name", "desk", "--", "/bin/sh", "-i")
        attach = away("attach", "desk")
        self.end()
        for ours, key, said, status in ((run, b"\x03", b"goes on; `muster attach 1` comes back", 130),
                                        (attach, b"\x1d", b"detached; `muster attach desk` comes back", 0)):
            ours.until(b"does not answer; trying again")
            os.write(ours.ours, b"typed" + key)
            self.assertEqual(ours.end(), status)
            self.assertIn(said, ours.seen)
            self.assertNotIn(b"typed", ours.seen)
        self.daemon.start()
        self.assertEqual(self.phase("desk"), "running")

    def test_a_run_at_a_terminal_is_joined_again_and_ends_as_the_job_does(self):
        ours = enter_test.Ours(self.daemon, "run", "--kind", "build", "--name", "desk", "--", "/bin/sh", "-i")
        ours.until(b"attached to job")
        os.write(ours.ours, b"echo one=$((40+1))\n")
        ours.until(b"one=41")
        for end in (self.end, self.daemon.kill):
            ours.seen = b""
            end()
            ours.until(b"does not answer; trying again")
            self.daemon.start()
            ours.until(b"one=41")  # what it printed is shown again
        os.write(ours.ours, b"echo two=$((40+2)); exit 3\n")
        self.assertEqual(ours.end(), 100)
        self.assertIn(b"two=42", ours.seen)


class JournalAway(Restart):
    """A daemon whose database server goes away, and comes back."""

    programs = "/usr/lib/postgresql/15/bin"

    def postgres(self, program, *words):
        line = [f"{self.programs}/{program}", "-D", f"{self.server}/data", *words]
        if os.geteuid() == 0:
            line = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *line]
        with open(f"{self.server}/commands.log", "ab") as log:
            subprocess.run(line, cwd=self.server, stdout=log, stderr=log, check=True)

    def setUp(self):
        super().setUp()
        if not os.path.exists(f"{self.programs}/postgres"):
            self.skipTest("no PostgreSQL server (Debian: postgresql-15)")
        self.daemon.stop()
        self.server = tempfile.mkdtemp(prefix="muster-pg-")
        self.addCleanup(shutil.rmtree, self.server, ignore_errors=True)
        if os.geteuid() == 0:
            shutil.chown(self.server, "postgres", "postgres")
        self.postgres("initdb", "--no-sync", "--no-locale", "-E", "UTF8", "-A", "trust", "-U", "muster")
        with open(f"{self.server}/data/postgresql.conf", "a") as conf:
            conf.write(f"listen_addresses = ''\nunix_socket_directories = '{self.server}'\n")
        self.postgres("pg_ctl", "-w", "-l", f"{self.server}/log", "start")
        self.addCleanup(lambda: self.postgres("pg_ctl", "-m", "immediate", "stop"))
        self.daemon = type(self.daemon)(e2e_test.BUILD, self.folder / f"{self.folder.name}-pg", "--store", f"postgresql://muster@/postgres?host={self.server}")
        self.daemon.start()
        self.addCleanup(self.daemon.stop)

    def test_nobody_is_told_that_nothing_is_there(self):
        one = self.daemon.submit(job("sleep 600", gpus=0))
        self.daemon.wait(one, ("running",))
        self.postgres("pg_ctl", "-m", "immediate", "-w", "stop")
        refused = self.daemon.muster("run", "--", "true")
        self.assertEqual(refused.returncode, 6, refused.stderr)
        for words in (("ps",), ("whoami",)):
            seen = self.daemon.muster(*words)
            self.assertEqual(seen.returncode, 6, seen.stdout)
            self.assertIn("the journal cannot be read at the moment", seen.stderr)
        self.assertEqual(self.daemon.call("GET", "health")["status"], "ok")
        doctor = {one["name"]: one for one in json.loads(self.daemon.muster("doctor", "-o", "json").stdout)["checks"]}
        self.assertEqual((doctor["daemon"]["result"], doctor["store"]["result"]), ("ok", "fail"), "it is not the daemon that is away")
        self.assertIn("--store", doctor["store"]["advice"])
        self.postgres("pg_ctl", "-w", "-l", f"{self.server}/log", "start")
        self.until(lambda: self.daemon.muster("ps", "-o", "name").stdout.split() == [str(one)])


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2, warnings="ignore")
