#!/usr/bin/env python3
"""enter_test.py BUILD: into a running worker, through the daemon's WebSockets: its terminal, a program beside it, a port of it."""
import base64
import json
import os
import pathlib
import pty
import socket
import struct
import subprocess
import sys
import unittest
import urllib.parse

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
        self.assertEqual(Socket(self.daemon, f"jobs/{one}/attach?worker=7").status, 409)
        self.assertEqual(Socket(self.daemon, f"jobs/{one}/exec?command=ls").status, 400)
        with self.assertRaises(e2e_test.Refused) as plain:
            self.daemon.call("GET", f"jobs/{one}/attach")
        self.assertEqual(plain.exception.status, 400)


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2, warnings="ignore")
