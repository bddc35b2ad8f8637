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

One file without dependencies; it may be copied. docs/contract.md of Muster has the lines that are spoken.
"""
import json
import math
import os
import socket
import threading

VERSION = 1


class Worker:
    """What Muster has said to this worker, and what this worker says. Every method may be called from any thread."""

    def __init__(self, line=None, welcome=None):
        welcome = welcome or {}
        self.rank = int(welcome.get("rank", os.environ.get("MUSTER_RANK", 0)))
        self.world_size = int(welcome.get("world_size", os.environ.get("MUSTER_WORLD_SIZE", 1)))
        self.generation = int(welcome.get("generation", 0))  # grows with every change of the workers
        self.restart_count = int(welcome.get("restart_count", 0))
        self.checkpoint_dir = welcome.get("checkpoint_dir") or os.environ.get("MUSTER_CHECKPOINT_DIR", "")
        self.listens = line is not None  # whether anybody does
        self._line = line
        self._saying = threading.Lock()
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
        try:
            with self._saying:
                self._line.sendall((json.dumps(line) + "\n").encode())
        except OSError:  # nobody listens any more; training goes on
            self.listens = False

    def _listen(self, lines):
        for text in lines:
            line = json.loads(text)
            told = line.get("type")
            if told in ("stop", "leave"):
                self._stop.set()
            elif told == "checkpoint":
                self._asked += 1
            elif told == "resize":
                self._resize(line)
        self.listens = False

    def _resize(self, line):
        """Who is not among the workers any more is to leave."""
        ranks = [member.get("rank") for member in line.get("members", [])]
        self.world_size = len(ranks)
        self.generation = int(line.get("generation", self.generation))
        if self.rank not in ranks:
            self._stop.set()


def _number(value):
    value = float(value)  # also of a tensor with one element
    if math.isnan(value):
        return "nan"
    return ("inf" if value > 0 else "-inf") if math.isinf(value) else value


def connect(path=None):
    """Says hello to the shim beside this worker and waits for its welcome. Without one, a Worker that nobody listens to."""
    path = path or os.environ.get("MUSTER_SOCKET")
    if not path:
        return Worker()
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(path)
    line.sendall((json.dumps({"type": "hello", "version": VERSION, "pid": os.getpid()}) + "\n").encode())
    lines = line.makefile("r", encoding="utf-8")
    welcome = json.loads(lines.readline() or "{}")
    if welcome.get("type") != "welcome":
        raise RuntimeError(f"Muster does not welcome this program: {welcome.get('message', 'the connection was closed')}")
    worker = Worker(line, welcome)
    threading.Thread(target=worker._listen, args=(lines,), daemon=True).start()
    return worker
