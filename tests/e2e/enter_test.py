#!/usr/bin/env python3
"""enter_test.py BUILD: into a running worker, through the daemon's WebSockets: its terminal, a program beside it, a port of it."""
import base64
import fcntl
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import tty
import unittest
import urllib.parse
import urllib.request

import e2e_test
from e2e_test import Case, job


class Socket:
    """A WebSocket of binary messages, and the frames of docs/contract.md within them."""

    def __init__(self, daemon, path, headers=None):
        self.link = daemon.connect(timeout=30)
        self.link.request("GET", "/api/v1/" + path, headers={
            **(headers or {}), "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()})
        self.answer = self.link.getresponse()
        self.status = self.answer.status
        self.body = self.answer.read() if self.status != 101 else b""
        self.bytes = b""

    def send(self, payload):
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x82]) + (bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + struct.pack(">H", size))
        self.link.sock.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)))

    def exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.answer.fp.read(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def message(self):
        """The next message, or None when the other side has closed."""
        while True:
            first, second = self.exactly(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", self.exactly(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.exactly(8))[0]
            payload = self.exactly(size)
            if first & 15 == 8:
                return None
            if first & 15 in (0, 2):
                return payload

    def frame(self, kind, payload):
        self.send(kind + struct.pack(">I", len(payload)) + payload)

    def frames(self):
        while True:
            while len(self.bytes) < 5 or len(self.bytes) < 5 + struct.unpack(">I", self.bytes[1:5])[0]:
                more = self.message()
                if more is None:
                    return
                self.bytes += more
            size = struct.unpack(">I", self.bytes[1:5])[0]
            yield self.bytes[:1], self.bytes[5:5 + size]
            self.bytes = self.bytes[5 + size:]

    def until(self, text):
        seen = b""
        for kind, payload in self.frames():
            if kind == b"d":
                seen += payload
            if text in seen:
                return seen
        raise AssertionError(f"{text} never came, but {seen}")


class Enter(Case):
    def running(self, script, **more):
        one = self.daemon.submit(job(script, **more))
        self.daemon.wait(one, ("running",))
        return one

    @unittest.skipUnless(os.geteuid() == 0, "only root's daemon runs jobs of several users")
    def test_a_terminal_ends_with_the_token_that_opened_it(self):
        made = self.daemon.call("POST", "tokens", {"name": "t", "user": "games"})  # an account of every Debian
        headers = {"Authorization": "Bearer " + made["secret"]}
        link = self.daemon.connect(timeout=30)
        link.request("POST", "/api/v1/jobs", json.dumps(job("exec sleep 600", terminal=True)), headers)
        one = json.loads(link.getresponse().read())["jobs"][0]["id"]
        self.daemon.wait(one, ("running",))
        terminal = Socket(self.daemon, f"jobs/{one}/attach", headers)
        self.assertEqual(terminal.status, 101, terminal.body)
        self.daemon.call("DELETE", "tokens/" + made["id"])
        self.assertIsNone(terminal.message())

    def test_a_terminal_is_attached_typed_into_and_left(self):
        one = self.daemon.submit(dict(job("", terminal=True), command=["/bin/sh", "-i"], env={"PS1": "here> "}))
        self.daemon.wait(one, ("running",))
        first = Socket(self.daemon, f"jobs/{one}/attach?rows=40&cols=100")
        self.assertEqual(first.status, 101)
        first.frame(b"d", b"stty size; echo $((6*7))\n")
        self.assertIn(b"40 100", first.until(b"42"))
        first.link.close()  # leaving does not end it
        self.assertEqual(self.phase(one), "running")
        second = Socket(self.daemon, f"jobs/{one}/attach")
        second.until(b"42")  # what was printed before
        second.frame(b"d", b"exit 5\n")
        exits = [json.loads(payload) for kind, payload in second.frames() if kind == b"x"]
        self.assertEqual(exits[0]["exit_code"], 5)
        self.assertEqual(self.daemon.wait(one)["status"]["termination"]["exit"]["exit_code"], 5)

    def test_a_program_runs_beside_the_worker_as_the_worker_does(self):
        one = self.running("export X=1; sleep 600")
        command = urllib.parse.quote(json.dumps(["sh", "-c", "echo job $MUSTER_JOB_ID; cat; exit 3"]))
        beside = Socket(self.daemon, f"jobs/{one}/exec?command={command}")
        self.assertEqual(beside.status, 101)
        beside.frame(b"d", b"typed\n")
        beside.frame(b"z", b"")
        seen, ended = b"", None
        for kind, payload in beside.frames():
            seen += payload if kind == b"d" else b""
            ended = json.loads(payload) if kind == b"x" else ended
        self.assertEqual((seen, ended["exit_code"]), (f"job {one}\ntyped\n".encode(), 3))
        self.assertEqual(self.phase(one), "running")

    def test_a_port_is_reached_only_while_the_worker_listens_on_it(self):
        script = ("import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
                  "while True:\n  c, _ = s.accept(); c.sendall(b'echo ' + c.recv(100)); c.close()")
        one = self.daemon.submit(dict(job(""), command=[sys.executable, "-c", script]))
        other = self.running("sleep 600")
        self.until(lambda: self.out(one).strip())
        port = self.out(one).strip()
        through = Socket(self.daemon, f"jobs/{one}/forward?port={port}")
        self.assertEqual(through.status, 101)
        through.send(b"hello")
        self.assertEqual(through.message(), b"echo hello")
        self.assertIsNone(through.message())
        stranger = Socket(self.daemon, f"jobs/{other}/forward?port={port}")
        self.assertEqual(stranger.status, 404, stranger.body)

    def test_the_verbs_exec_and_port_forward(self):
        one = self.running("sleep 600", name="box")
        got = self.daemon.muster("exec", "box", "-T", "--", "sh", "-c", "cat; echo $MUSTER_JOB_ID >&2; exit 4", input="typed\n")
        self.assertEqual((got.returncode, got.stdout, got.stderr), (4, "typed\n", f"{one}\n"))
        self.assertEqual(self.daemon.muster("exec", "nothing", "--", "true").returncode, 3)
        self.assertEqual(self.daemon.muster("port-forward", "box", "many").returncode, 2)
        script = ("import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
                  "while True:\n  c, _ = s.accept(); c.sendall(b'echo ' + c.recv(100)); c.close()")
        web = self.daemon.submit(dict(job("", name="web"), command=[sys.executable, "-c", script]))
        self.until(lambda: self.out(web).strip())
        forward = subprocess.Popen([self.daemon.bin / "muster", "port-forward", "web", "0:" + self.out(web).strip()],
                                   env=dict(os.environ, MUSTER_DAEMON=str(self.daemon.socket)), stderr=subprocess.PIPE, text=True)
        try:
            port = int(forward.stderr.readline().split("127.0.0.1:")[1].split()[0])
            for _ in range(3):
                with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
                    link.sendall(b"hello")
                    self.assertEqual(link.recv(100), b"echo hello")
        finally:
            forward.kill()
            forward.wait()
            forward.stderr.close()

    def test_a_terminal_of_ours_is_joined_to_that_of_the_job(self):
        ours, theirs = pty.openpty()
        run = subprocess.Popen([self.daemon.bin / "muster", "run", "--kind", "build", "--name", "nb", "--", "sh", "-i"],
                               env=dict(os.environ, MUSTER_DAEMON=str(self.daemon.socket), PS1="$ "),
                               stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        seen = b""

        def until(text):
            nonlocal seen
            while text not in seen:
                seen += os.read(ours, 4096)

        until(b"attached")
        os.write(ours, b"echo $((6*7))$MUSTER_JOB_NAME\n")
        until(b"42nb")
        os.write(ours, b"\x1d")  # Ctrl-]
        until(b"detached")
        self.assertEqual(run.wait(timeout=30), 0)
        os.close(ours)
        self.assertEqual(self.phase("nb"), "running")

    def test_what_cannot_be_entered_is_a_clear_answer(self):
        ended = self.daemon.submit(job("true"))
        self.daemon.wait(ended)
        self.assertEqual(Socket(self.daemon, f"jobs/{ended}/attach").status, 409)
        one = self.running("sleep 600")
        self.assertEqual(Socket(self.daemon, f"jobs/{one}/attach?worker=7").status, 404)
        self.assertEqual(Socket(self.daemon, f"jobs/{one}/exec?command=ls").status, 400)
        with self.assertRaises(e2e_test.Refused) as plain:
            self.daemon.call("GET", f"jobs/{one}/attach")
        self.assertEqual(plain.exception.status, 400)


ECHO = ("import socket; s = socket.create_server((%r, 0), family=socket.%s); print(s.getsockname()[1], flush=True)\n"
        "while True:\n  c, _ = s.accept(); c.sendall(b'echo ' + c.recv(100)); c.close()")


class Ours:
    """A program of ours at a terminal of its own."""

    def __init__(self, daemon, *words, rows=24, cols=80):
        self.ours, theirs = pty.openpty()
        self.resize(rows, cols)
        self.process = subprocess.Popen([daemon.bin / "muster", *words], env=dict(os.environ, MUSTER_DAEMON=str(daemon.socket), PS1="$ "),
                                        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.seen = b""

    def resize(self, rows, cols):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def until(self, text):
        while text not in self.seen:
            if not select.select([self.ours], [], [], 60)[0]:
                raise TimeoutError(f"{text} never came, but {self.seen}")
            self.seen += os.read(self.ours, 4096)

    def end(self):
        while True:
            try:
                more = os.read(self.ours, 4096)
            except OSError:  # the terminal has no other side any more
                more = b""
            if not more:
                break
            self.seen += more
        os.close(self.ours)
        return self.process.wait(timeout=30)


class Attended(Enter):
    def test_the_end_of_our_input_leaves_the_program_running(self):
        self.daemon.submit(dict(job("", name="box", terminal=True), command=["/bin/sh", "-i"]))
        self.daemon.wait("box", ("running",))
        got = self.daemon.muster("attach", "box", stdin=subprocess.DEVNULL)
        self.assertEqual(got.returncode, 0)
        self.assertIn("the input has ended: detached", got.stderr)
        mark = self.path("typed")
        got = self.daemon.muster("attach", "box", input=f"echo typed > {mark}\n")
        self.assertEqual(got.returncode, 0)
        self.until(lambda: mark.exists() and mark.read_text() == "typed\n")
        self.assertEqual(self.phase("box"), "running")

    def test_a_program_that_ends_at_once_loses_neither_output_nor_fate(self):
        script = "echo out; echo err >&2; exit 4"
        for kind in ("build", "train"):
            got = self.daemon.muster("run", "--kind", kind, "--", "sh", "-c", script)
            self.assertEqual((got.returncode, got.stdout), (100, "out\n"))
            self.assertIn("err\n", got.stderr)
            self.assertIn("worker 0 exited with 4", got.stderr)
        for script, status, said in (("echo out; exit 4", 100, b"worker 0 exited with 4"), ("seq 1 20000 | tail -1", 0, b"20000")):
            ours = Ours(self.daemon, "run", "--kind", "build", "--", "sh", "-c", script)
            self.assertEqual(ours.end(), status, ours.seen)
            self.assertIn(said, ours.seen)
        got = self.daemon.muster("run", "--kind", "build", "--", "true")
        self.assertEqual((got.returncode, got.stdout), (0, ""))

    def test_old_questions_to_the_terminal_are_not_asked_again(self):
        asked = "\\033[6n\\033[c\\033]11;?\\007\\033P$qm\\033\\\\"
        self.daemon.submit(dict(job("", name="asks", terminal=True),
                                command=["/bin/sh", "-c", f"printf 'one {asked}two \\033[1mthree\\n'; exec cat"]))
        self.until(lambda: "three" in self.out("asks"))
        ours = Ours(self.daemon, "attach", "asks")
        ours.until(b"three")
        self.assertIn(b"one two \033[1mthree", ours.seen)
        os.write(ours.ours, b"\x1d")
        self.assertEqual(ours.end(), 0, ours.seen)

    def test_what_is_unread_when_it_is_left_does_not_reach_the_shell(self):
        self.daemon.submit(dict(job("", name="box", terminal=True), command=["/bin/cat"]))
        self.daemon.wait("box", ("running",))
        left_in_time = any(self.leave_with_an_answer_unread("box") for _ in range(20))
        self.assertTrue(left_in_time, "this machine is too busy to type within a second of Ctrl-]")

    def leave_with_an_answer_unread(self, name):
        """False where it may have been gone before the answer of the terminal came: it waits a second for the daemon's goodbye."""
        ours = Ours(self.daemon, "attach", name)
        shells = fcntl.ioctl(ours.ours, 0x5441, os.O_RDONLY | os.O_NOCTTY)  # TIOCGPTPEER: whoever reads the terminal next
        try:
            os.write(ours.ours, b"hello\n")
            ours.until(b"hello\r\nhello")
            unread = lambda: struct.unpack("i", fcntl.ioctl(shells, termios.FIONREAD, b"    "))[0]
            got = lambda: int(pathlib.Path(f"/proc/{ours.process.pid}/io").read_text().split()[1])
            self.freeze(self.daemon.process)
            before, asked = got(), time.monotonic()
            os.write(ours.ours, b"\x1d")
            self.until(lambda: got() > before)
            self.freeze(ours.process)
            in_time = time.monotonic() - asked < 0.9
            os.write(ours.ours, b"\033[1;1R\n")
            if in_time:
                self.until(lambda: unread() == 7)
            ours.process.send_signal(signal.SIGCONT)
            ours.until(b"detached")
            self.daemon.process.send_signal(signal.SIGCONT)
            self.assertEqual(ours.process.wait(timeout=30), 0)
            tty.setraw(shells, termios.TCSANOW)  # as a shell does that edits lines
            if in_time:
                self.assertEqual(unread(), 0)
            return in_time
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
            os.close(shells)
            os.close(ours.ours)

    def freeze(self, process):
        process.send_signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{process.pid}/task")
        self.until(lambda: all(task.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir()))

    def test_while_it_waits_one_line_says_why_and_it_ends_as_wait_does(self):
        holder = self.daemon.submit(dict(job("sleep 600", gpus=4, name="holder"), kind="build"))
        self.daemon.wait(holder, ("running",))
        ours = Ours(self.daemon, "run", "--kind", "build", "--gpus", "4", "--name", "late", "--", "true")
        ours.until(b"is waiting: no room")
        self.daemon.call("POST", "jobs/late:cancel")
        self.assertEqual(ours.end(), 102, ours.seen)

    def test_sizes_signals_and_keys_reach_the_program(self):
        ours = Ours(self.daemon, "run", "--kind", "build", "--name", "sized", "--", "sh", "-i", rows=33, cols=99)
        ours.until(b"attached")
        os.write(ours.ours, b"stty size\n")
        ours.until(b"33 99")
        ours.resize(20, 70)
        ours.process.send_signal(signal.SIGWINCH)
        os.write(ours.ours, b"until stty size | grep '20 70'; do :; done\n")
        ours.until(b"20 70\r")
        os.write(ours.ours, b"sleep 600; echo status\n")
        self.until(lambda: "sleep 600" in self.daemon.muster("exec", "sized", "-T", "--", "ps", "-eo", "args").stdout.split("\n"))
        os.write(ours.ours, b"\x03")
        ours.until(b"^C")
        os.write(ours.ours, b"echo alive$((6*7)); exit 0\n")
        ours.until(b"alive42")
        self.assertEqual(ours.end(), 0, ours.seen)

    def test_a_shell_beside_a_worker_is_at_our_terminal_and_ends_with_its_own_status(self):
        one = self.running("sleep 600", name="box")
        ours = Ours(self.daemon, "shell", "box")
        os.write(ours.ours, b"echo in$((6*7))$MUSTER_JOB_NAME; exit 3\n")
        ours.until(b"in42box")
        self.assertEqual(ours.end(), 3, ours.seen)
        self.assertEqual(self.phase(one), "running")
        got = self.daemon.muster("shell", "box", input="echo out $((6*7)); exit 4\n")
        self.assertEqual(got.returncode, 4, got.stderr)
        self.assertIn("out 42", got.stdout)

    def test_a_port_of_another_address_or_another_process_is_not_reached(self):
        elsewhere = self.daemon.submit(dict(job("", name="elsewhere"), command=[sys.executable, "-c", ECHO % ("127.0.0.2", "AF_INET")]))
        self.until(lambda: self.out(elsewhere).strip())
        port = int(self.out(elsewhere))
        self.assertEqual(Socket(self.daemon, f"jobs/{elsewhere}/forward?port={port}").status, 404)
        with socket.create_server(("127.0.0.1", port)):  # somebody else's, on the very port
            self.assertEqual(Socket(self.daemon, f"jobs/{elsewhere}/forward?port={port}").status, 404)
        if not pathlib.Path("/proc/net/if_inet6").exists():
            return
        six = self.daemon.submit(dict(job("", name="six"), command=[sys.executable, "-c", ECHO % ("::1", "AF_INET6")]))
        self.until(lambda: self.out(six).strip())
        through = Socket(self.daemon, f"jobs/{six}/forward?port={self.out(six).strip()}")
        self.assertEqual(through.status, 101)
        through.send(b"hello")
        self.assertEqual(through.message(), b"echo hello")

    def test_port_forward_says_at_once_what_is_wrong_and_ends_with_the_job(self):
        ended = self.daemon.submit(job("true", name="ended"))
        self.daemon.wait(ended)
        got = self.daemon.muster("port-forward", "ended", "8888")
        self.assertEqual(got.returncode, 5)
        self.assertIn("has ended", got.stderr)
        living = self.running("sleep 600", name="ended")
        self.daemon.wait(self.daemon.submit(job("true", name="ended")))
        self.assertIn(f"job {living} has no notebook", self.daemon.muster("port-forward", "ended").stderr)
        self.assertEqual(self.daemon.muster("exec", "ended", "--", "true").returncode, 0)
        self.running("sleep 600", name="box")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            got = self.daemon.muster("port-forward", "box", f"{taken.getsockname()[1]}:80")
            self.assertEqual(got.returncode, 5)
            self.assertIn("in use", got.stderr)
        got = self.daemon.muster("port-forward", "box")
        self.assertEqual(got.returncode, 2)
        self.assertIn("has no notebook", got.stderr)
        forward = subprocess.Popen([self.daemon.bin / "muster", "port-forward", "box", "0:80"],
                                   env=dict(os.environ, MUSTER_DAEMON=str(self.daemon.socket)), stderr=subprocess.PIPE, text=True)
        self.assertIn("does not listen on port 80 yet", forward.stderr.readline())
        self.assertIn("127.0.0.1:", forward.stderr.readline())
        self.daemon.call("POST", "jobs/box:cancel")
        said = forward.communicate(timeout=30)[1]
        self.assertIn("has ended: cancelled by", said)
        self.assertEqual(forward.returncode, 0)


class Unused(Enter):
    def test_an_idle_job_is_warned_and_released_and_one_in_use_is_not(self):
        lazy = self.daemon.submit(dict(job("sleep 600", name="lazy", terminal=True, limits={"idle": "8s"}), kind="build"))
        busy = self.daemon.submit(dict(job("while :; do :; done", name="busy", limits={"idle": "8s"}), kind="build"))
        typed = self.daemon.submit(dict(job("", terminal=True, limits={"idle": "8s"}), kind="build", command=["/bin/cat"]))
        for one in (lazy, busy, typed):
            self.daemon.wait(one, ("running",))
        at = Socket(self.daemon, f"jobs/{typed}/attach")
        warned = []

        def released():
            at.frame(b"d", b"k\n")
            status = self.daemon.call("GET", f"jobs/{lazy}")["status"]
            if "idle_until" in status and not warned:
                warned.append(status["reasons"][0])
                warned.append(self.daemon.muster("why", "lazy").stdout)
            time.sleep(0.1)  # a person's typing, not a wait
            return status["phase"] == "failed"

        self.until(released, 60)
        self.assertEqual(self.phase(busy), "running")
        self.assertEqual(self.phase(typed), "running")
        for text in warned:
            self.assertIn("is idle: released in", text)
        self.assertEqual(len(warned), 2)
        self.assertIn("is idle: released in", self.out(lazy))  # in its terminal
        self.assertIn("idle", self.daemon.call("GET", f"jobs/{lazy}")["status"]["termination"]["reason"])
        kinds = [event["kind"] for event in self.daemon.call("GET", f"jobs/{lazy}/events")["events"]]
        self.assertIn("job-idle", kinds)

    def test_a_queue_may_set_the_limit_for_build_work(self):
        self.daemon.call("POST", "queues", {"queues": [{"name": "short", "quota": {"gpus": 1}, "kinds": {"build": {"idle": "4s"}}}]})
        one = self.daemon.submit(dict(job("sleep 600", queue="short"), kind="build"))
        self.assertIn("idle", self.daemon.wait(one)["status"]["termination"]["reason"])


class Notebook(Enter):
    def spec(self, **more):
        return {"name": "nb", "queue": "default", "kind": "build", "template": "jupyter", "gpus": 1, "workdir": "/tmp", **more}

    @unittest.skipUnless(any(shutil.which(name) for name in ("jupyter-lab", "jupyter-notebook", "jupyter-server")), "no Jupyter here")
    def test_a_notebook_is_found_and_opened_with_its_token(self):
        self.daemon.submit(self.spec(env={"HOME": str(self.folder)}))
        self.daemon.wait("nb", ("running",))
        forward = subprocess.Popen([self.daemon.bin / "muster", "port-forward", "nb"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=dict(os.environ, MUSTER_DAEMON=str(self.daemon.socket)), text=True)
        try:
            url = forward.stdout.readline().strip()
            self.assertIn("?token=", url)
            with urllib.request.urlopen(url.replace("/?token", "/api/contents?token"), timeout=30) as page:
                self.assertIn("content", json.load(page))
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url.split("?")[0] + "api/contents", timeout=30)
            self.assertEqual(refused.exception.code, 403)
        finally:
            forward.kill()
            forward.communicate()
        token = url.split("token=")[1]
        self.assertNotIn(token, self.daemon.muster("logs", "nb", "--err").stdout)
        self.assertNotIn(token, subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout)

    def test_where_jupyter_is_not_installed_the_job_says_so(self):
        empty = self.path("bin")
        empty.mkdir()
        for name in ("id", "sh"):
            (empty / name).symlink_to(shutil.which(name))
        one = self.daemon.submit(self.spec(env={"PATH": str(empty), "HOME": str(self.folder)}))
        reason = self.daemon.wait(one)["status"]["termination"]["reason"]
        self.assertIn("Jupyter is not installed", reason)
        self.assertIn("jupyter-notebook", reason)

    def test_other_templates_and_a_command_beside_it_are_refused(self):
        for spec, said in ((self.spec(template="rstudio"), "rstudio"), (self.spec(command=["true"]), "its own command")):
            with self.assertRaises(e2e_test.Refused) as refused:
                self.daemon.submit(spec)
            self.assertEqual(refused.exception.status, 422)
            self.assertIn(said, refused.exception.body)


for inherited in [name for name in dir(Enter) if name.startswith("test_")]:  # the helpers are shared, the tests are not
    for one in (Attended, Unused, Notebook):
        setattr(one, inherited, None)


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2, warnings="ignore")
