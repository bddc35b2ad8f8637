"""The worker contract for Python programs: say how training fares, and be asked rather than interrupted.

    import muster

    worker = muster.connect()                # outside of Muster: one that nobody listens to
    for step in range(start, steps):
        ...
        worker.report(step=step, samples=seen, loss=loss)
        if worker.wants_checkpoint or worker.wants_to_stop:
            save(path)
            worker.checkpointed(step, path)
        if worker.wants_to_stop:
            break

One file without dependencies; it may be copied. docs/contract.md of Muster has the lines that are spoken. Work goes on
without anybody listening: a line that cannot be sent at once is dropped, and of one that was sent in part the rest goes
before the next, so that Muster never sees half a line.
"""
import json
import math
import os
import socket
import struct
import threading

VERSION = 1
PATIENCE_S = 20  # that a program which starts gives the shim to answer; nothing else waits for it


class Worker:
    """What Muster has said to this worker, and what this worker says. Every method may be called from any thread."""

    def __init__(self, line=None, welcome=None):
        welcome = welcome or {}
        self.rank = int(welcome.get("rank", os.environ.get("MUSTER_RANK", 0)))
        self.world_size = int(welcome.get("world_size", os.environ.get("MUSTER_WORLD_SIZE", 1)))
        self.min_workers = int(os.environ.get("MUSTER_MIN_WORKERS", 1))  # the job is not to work with fewer
        self.generation = int(welcome.get("generation", 0))  # grows with every change of the workers
        self.restart_count = int(welcome.get("restart_count", 0))
        self.checkpoint_dir = welcome.get("checkpoint_dir") or os.environ.get("MUSTER_CHECKPOINT_DIR", "")
        self.listens = line is not None  # whether anybody does
        self._line = line
        self._saying = threading.Lock()
        self._unsaid = b""  # of a line that was begun
        self._stop = threading.Event()
        self._asked = 0  # for checkpoints, so often
        self._seen = 0  # of those, when the program looked last
        self._answered = 0  # of those, with a checkpoint that was begun after they came

    @property
    def wants_to_stop(self):
        """Save, say so, and end: the GPUs are needed elsewhere, or the job was cancelled. The others may go on."""
        return self._stop.is_set()

    @property
    def wants_checkpoint(self):
        """Save, say so, and go on. A request that comes while a checkpoint is being written asks for another one."""
        self._seen = self._asked
        return self._seen > self._answered

    def wait_to_stop(self, seconds):
        """Waits at most so long; true as soon as this worker is to stop."""
        return self._stop.wait(seconds)

    def ready(self):
        """The model is loaded, work begins."""
        self._say({"type": "ready"})

    def report(self, step=None, epoch=None, samples=None, **numbers):
        """Progress; at most one report a second is looked at, so call it as often as you like.

        With workers, batch, step_ms and compute_ms among the numbers the scheduler learns how fast the job is at which size.
        """
        line = {"type": "report", "numbers": {name: _number(value) for name, value in numbers.items()}}
        line.update({name: int(value) for name, value in (("step", step), ("epoch", epoch), ("samples", samples))
                     if value is not None})
        self._say(line)

    def checkpointed(self, step, path):
        """A checkpoint is complete and safe to start from. It answers what had been asked when wants_checkpoint was looked at last."""
        self._answered = self._seen
        self._say({"type": "checkpointed", "step": int(step), "path": str(path)})

    def resized(self, workers, pause_ms, step=None):
        """The gang works on with so many workers; one of them says it, with the time in which nobody worked."""
        line = {"type": "resized", "workers": int(workers), "pause_ms": int(pause_ms)}
        self._say(line if step is None else dict(line, step=int(step)))

    def kept(self, path, hash="", **numbers):
        """The trained model is in a file that stays; `muster runs` shows where, and how good it is."""
        self._say({"type": "kept", "path": str(path), "hash": str(hash), "numbers": {name: _number(value) for name, value in numbers.items()}})

    def leaving(self, reason):
        """This worker is about to end on its own account."""
        self._say({"type": "leaving", "reason": str(reason)})

    def _say(self, line):
        if self._line is None:
            return
        text = (json.dumps(line) + "\n").encode()
        try:
            with self._saying:
                self._unsaid = self._unsaid[self._send(self._unsaid):]
                if self._unsaid:
                    return
                sent = self._send(text)
                self._unsaid = text[sent:] if sent else b""
        except OSError:  # nobody listens any more; training goes on
            self.listens = False

    def _send(self, text):
        """How much of it went; less: nobody takes more just now."""
        sent = 0
        while sent < len(text):
            try:
                sent += self._line.send(text[sent:], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                break
        return sent

    def _listen(self, lines):
        try:
            for text in lines:
                try:
                    self._hear(json.loads(text))
                except (AttributeError, TypeError, ValueError):
                    continue  # of a newer version, or no line at all: it says nothing to this one
        except OSError:
            pass  # the connection broke: as if it was closed
        self.listens = False
        with self._saying:
            self._line.close()

    def _hear(self, line):
        told = line.get("type")
        if told in ("stop", "leave"):
            self._stop.set()
        elif told == "checkpoint":
            self._asked += 1
        elif told == "resize":
            self._resize(line)

    def _resize(self, line):
        """Who is not among the workers any more is to leave."""
        ranks = [member.get("rank") for member in line.get("members", [])]
        self.generation = int(line.get("generation", self.generation))
        self.world_size = len(ranks)
        if self.rank not in ranks:
            self._stop.set()


def _number(value):
    value = float(value)  # also of a tensor with one element
    if math.isnan(value):
        return "nan"
    return ("inf" if value > 0 else "-inf") if math.isinf(value) else value


def _lines(line):
    """Whole ones, until the connection ends; what has come of another one by then was never said."""
    unread = b""
    while got := line.recv(65536):
        *whole, unread = (unread + got).split(b"\n")
        yield from whole


def _wait_for_it(line, seconds):
    """So long at most; 0: however long it takes. Not by settimeout, after which connect does not wait for a place in the queue."""
    most = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
    for direction in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        line.setsockopt(socket.SOL_SOCKET, direction, most)


def connect(path=None, timeout_s=PATIENCE_S):
    """Says hello to the shim beside this worker and waits for its welcome. Without one, a Worker that nobody listens to."""
    path = path or os.environ.get("MUSTER_SOCKET")
    if not path:
        return Worker()
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    lines = _lines(line)
    try:
        _wait_for_it(line, timeout_s)
        line.connect(path)
        line.sendall((json.dumps({"type": "hello", "version": VERSION, "pid": os.getpid()}) + "\n").encode())
        welcome = json.loads(next(lines, b"{}"))
        if welcome.get("type") != "welcome":
            raise RuntimeError(f"Muster does not welcome this program: {welcome.get('message', 'the connection was closed')}")
        _wait_for_it(line, 0)
    except BlockingIOError:
        line.close()
        raise TimeoutError(f"the shim at {path} does not answer: it was silent for {timeout_s} s (MUSTER_SOCKET is set by "
                           "Muster; without it this program runs by itself)") from None
    except BaseException:
        line.close()
        raise
    worker = Worker(line, welcome)
    threading.Thread(target=worker._listen, args=(lines,), daemon=True).start()
    return worker
