"""What the end-to-end tests and the control benchmarks share: a real musterd in a folder of its own, and calls of its API.

A Daemon is started with the programs of one build folder, listens on a socket in its folder and is waited for by an event
(it writes to a pipe when it serves), never by sleeping. Only processes that were started here are ended, by their ids.
"""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Refused(Exception):
    """The daemon answered, and not with what was wanted."""

    def __init__(self, status, body):
        super().__init__(f"status {status}: {body[:300]}")
        self.status, self.body = status, body


class Daemon:
    def __init__(self, build, folder, *options):
        self.bin = pathlib.Path(build) / "bin"
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket = self.folder / "d.sock"
        memory = pathlib.Path("/dev/shm")
        self.run = (memory if os.access(memory, os.W_OK) else self.folder) / f"{self.folder.name}-run"
        self.options = options
        self.process = None
        self.user = None  # another one than ours, where we are root
        self.heard = None  # is told of every answer: method, path, status

    def start(self):
        """Starts it and waits until it serves; returns the seconds that took."""
        begun = time.perf_counter()
        ready, told = os.pipe()
        with open(self.folder / "musterd.log", "ab") as log:
            self.process = subprocess.Popen(
                [str(self.bin / "musterd"), "--state", str(self.folder / "state"), "--socket", str(self.socket), "--run", str(self.run),
                 "--ready-fd", str(told), *self.options], stdout=log, stderr=log, pass_fds=[told], user=self.user)
        os.close(told)
        serves = os.read(ready, 1)  # a byte, or the end of the pipe when it is gone
        took = time.perf_counter() - begun
        os.close(ready)
        if not serves:
            raise RuntimeError(f"musterd ended with {self.process.wait()}: {self.log()[-600:]}")
        return took

    def log(self):
        return (self.folder / "musterd.log").read_text(errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends it for good, whether or not it still runs, and its workers, which would live on."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)
        for number, until in ((signal.SIGTERM, time.monotonic() + 3), (signal.SIGKILL, time.monotonic() + 6)):
            for shim in self.shims():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(shim, number)
            while self.shims() and time.monotonic() < until:
                time.sleep(0.01)
        shutil.rmtree(self.run, ignore_errors=True)

    def shims(self):
        """Of its workers: each holds the lock in a folder of this run."""
        found = []
        for lock in pathlib.Path("/proc").glob("[0-9]*/fd/4"):
            with contextlib.suppress(OSError):
                if lock.parents[1].joinpath("comm").read_text() == "muster-shim\n" and os.readlink(lock).startswith(f"{self.run}/"):
                    found.append(int(lock.parents[1].name))
        return found

    def connect(self, timeout=60):
        return UnixConnection(self.socket, timeout)

    def call(self, method, path, body=None, headers=None, connection=None):
        """The answer as a value; Refused for a status that says no; OSError or HTTPException when it is not there."""
        link = connection or self.connect()
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        try:
            link.request(method, "/api/v1/" + path, data, headers or {})
            answer = link.getresponse()
            text = answer.read().decode()
        finally:
            if connection is None:
                link.close()
        if self.heard:
            self.heard(method, path, answer.status)
        if answer.status >= 300:
            raise Refused(answer.status, text)
        return json.loads(text)

    def jobs(self, **query):
        """All of them, page by page."""
        found, cursor = [], {}
        while True:
            page = self.call("GET", "jobs?" + urllib.parse.urlencode({"limit": 1000, **query, **cursor}))
            found += page["jobs"]
            if "next" not in page:
                return found
            cursor = {"cursor": page["next"]}

    def submit(self, spec, key=None, connection=None):
        headers = {"Idempotency-Key": key} if key else {}
        return self.call("POST", "jobs", spec, headers, connection)["jobs"][0]["id"]

    def wait(self, job, phases=("succeeded", "failed", "cancelled"), seconds=60):
        """Asks until the job is in one of the phases."""
        link = self.connect()
        deadline = time.monotonic() + seconds
        while True:
            got = self.call("GET", f"jobs/{job}", connection=link)
            if got["status"]["phase"] in phases:
                link.close()
                return got
            if time.monotonic() > deadline:
                raise TimeoutError(f"job {job} is {got['status']['phase']}, not one of {phases}")
            time.sleep(0.01)

    def muster(self, *words, **options):
        env = dict(os.environ, MUSTER_DAEMON=str(self.socket))
        return subprocess.run([str(self.bin / "muster"), *words], env=env, capture_output=True, text=True, timeout=120,
                              **options)
