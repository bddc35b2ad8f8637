"""A gang of real workers (train_probe) that a test starts, kills, freezes and listens to."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

STEP = re.compile(r"step (\d+) generation (\d+) workers (\d+) rank (\d+) loss (\S+) columns (\S*)(?: samples (\d+))?(?: at_us (\d+))?")
RESIZE = re.compile(r"resize generation (\d+) step (\d+) workers (\d+) planned (\w+) pause_us (\d+)(?: at_us (\d+))?")
LOST = re.compile(r"lost how (\w+) at_us (\d+)")
PATIENCE_S = 150  # after which a test calls it a hang: a busy machine under sanitizers is slow
# Time-outs. Where nobody is to be frozen, so long that only a death is a loss, however busy the machine is. Who is frozen is seen
# by no other sign, so where somebody is, or where all are killed and the next to come waits for their lease, it is short:
# somebody else may be taken for lost there as well, and no test may mind.
PATIENT_MS, HASTY_MS = 10_000, 1200


class Step:
    def __init__(self, match):
        self.step, self.generation, self.workers, self.rank = (int(match[i]) for i in range(1, 5))
        self.loss = match[5]
        self.samples, self.at_us = int(match[7] or 0), int(match[8] or 0)
        self.hashes, self.shards = {}, {}  # by column that this worker computes
        for text in filter(None, match[6].split(",")):
            column, shards, parameters = text.split(":")
            self.hashes[int(column)] = parameters
            self.shards[int(column)] = range(*map(int, shards.split("-")))


class Resize:
    def __init__(self, match):
        self.generation, self.step, self.workers = (int(match[i]) for i in range(1, 4))
        self.planned = match[4] == "true"
        self.pause_us, self.at_us = int(match[5]), int(match[6] or 0)


class Worker:
    def __init__(self, gang, command):
        self.gang = gang
        self.steps, self.resizes = [], []
        self.lost = []  # how, and when in microseconds
        self.checkpoints = []  # that this one said are complete
        self.end = self.model = None
        self.frozen = self.leaves = self.killed = False
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "MUSTER_PROBE_CUES": str(gang.cues)})
        self.told = ""
        self.threads = [threading.Thread(target=self.listen), threading.Thread(target=self.hear)]
        for thread in self.threads:
            thread.start()

    def listen(self):
        for line in self.process.stdout:
            with self.gang.news:
                if match := STEP.match(line):
                    self.steps.append(Step(match))
                elif match := RESIZE.match(line):
                    self.resizes.append(Resize(match))
                elif match := LOST.match(line):
                    self.lost.append((match[1], int(match[2])))
                elif line.startswith("checkpointed "):
                    self.checkpoints.append(int(line.split()[1]))
                elif line.startswith("model "):
                    self.model = line.split()[1]
                else:
                    self.end = line.strip()
                self.gang.news.notify_all()
        with self.gang.news:
            self.gang.news.notify_all()

    def hear(self):
        self.told = self.process.stderr.read()

    @property
    def errors(self):
        """All that it said on standard error, once it has ended."""
        if not self.lives:
            self.threads[1].join()
        return self.told

    @property
    def lives(self):
        return self.process.poll() is None

    @property
    def stands_still(self):
        """All of it: who is stopped runs on until each thread has noticed."""
        try:
            tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
            return all((task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for task in tasks)
        except OSError:
            return False  # a thread has ended meanwhile

    def kill(self, number=signal.SIGKILL):
        self.killed |= number == signal.SIGKILL
        self.process.send_signal(number)

    def leave(self):
        self.leaves = True
        self.kill(signal.SIGTERM)

    def freeze(self):
        self.frozen = True
        self.kill(signal.SIGSTOP)

    def thaw(self):
        self.frozen = False
        self.kill(signal.SIGCONT)


class Gang:
    """`with Gang(binary, steps=40) as gang`: whatever still runs at the end is killed."""

    def __init__(self, probe, audited=False, hosts=(), **options):
        """`hosts`: names that workers take in turn; those of one name share memory. None: all do."""
        self.probe, self.audited, self.hosts, self.options = probe, audited, hosts, options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-train-"))
        self.cues = self.folder / "cues"
        self.cues.mkdir()
        self.workers = []
        self.news = threading.Condition()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            if worker.lives:
                worker.kill()
            worker.process.wait()
            for thread in worker.threads:
                thread.join()
            worker.process.stdout.close()
            worker.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, before=(), **more):
        """`before`: words before the command, to run it somewhere else."""
        command = [*before, self.probe, "--folder", str(self.folder / "store")]
        if self.audited:
            command += ["--audit", str(self.folder / f"audit-{len(self.workers)}")]
        if self.hosts:
            command += ["--host", self.hosts[len(self.workers) % len(self.hosts)]]
        for key, value in {**self.options, **more}.items():
            command += ["--" + key.replace("_", "-"), str(value)]
        worker = Worker(self, command)
        self.workers.append(worker)
        return worker

    @contextlib.contextmanager
    def cue(self, name):
        """What all workers of this gang heed for as long: see probe.cc."""
        (self.cues / name).touch()
        try:
            yield
        finally:
            (self.cues / name).unlink(missing_ok=True)

    def slowly(self):
        """Steps take so long that whatever happens to the gang meanwhile does so before the last, however busy the machine is."""
        return self.cue("slow")

    def audits(self):
        return sorted(self.folder.glob("audit-*"))

    def alive(self):
        return [worker for worker in self.workers if worker.lives]

    def last_step(self):
        return max((worker.steps[-1].step for worker in self.workers if worker.steps), default=0)

    def checkpoints(self):
        """That somebody said are complete, in their order."""
        return sorted(step for worker in self.workers for step in worker.checkpoints)

    def wait(self, condition, seconds=PATIENCE_S):
        """Until the condition holds; says what everybody did if it never does."""
        deadline = time.monotonic() + seconds
        with self.news:
            while not condition():
                if time.monotonic() > deadline:
                    raise AssertionError("waited in vain:\n" + self.describe())
                self.news.wait(0.02)

    def wait_ended(self, seconds=PATIENCE_S):
        """All but those that are frozen, and what they said is read."""
        self.wait(lambda: not any(worker.lives and not worker.frozen for worker in self.workers), seconds)
        for worker in self.workers:
            if not worker.lives:
                for thread in worker.threads:
                    thread.join()

    def describe(self):
        lines = []
        for index, worker in enumerate(self.workers):
            last = worker.steps[-1] if worker.steps else None
            lines.append(f"worker {index}: status {worker.process.poll()} end {worker.end} "
                         f"{'frozen ' if worker.frozen else ''}"
                         f"{f'step {last.step} generation {last.generation} workers {last.workers}' if last else 'no step'} "
                         f"{worker.errors.strip()}")
        return "\n".join(lines)

    def hashes(self):
        """Of each step and column, the loss of each step, and of the whole model at the end."""
        out = {"model": next((worker.model for worker in self.workers if worker.model), None)}
        for worker in self.workers:
            for step in worker.steps:
                out[step.step] = step.loss
                out.update({(step.step, column): value for column, value in step.hashes.items()})
        return out


def reference(probe, **options):
    """The hash of each step of one undisturbed worker."""
    with Gang(probe, **options) as gang:
        gang.start(min_workers=1)
        gang.wait_ended()
        assert gang.workers[0].end == "finished", gang.describe()
        return gang.hashes()


def mismatches(gang, truth):
    return [(step.step, step.generation, step.workers) for worker in gang.workers for step in worker.steps
            if step.loss != truth[step.step]
            or any(value != truth[step.step, column] for column, value in step.hashes.items())] + [
                worker.model for worker in gang.workers if worker.model not in (None, truth["model"])]


def parts(folder):
    """Of all checkpoints in a folder: step and name of the file. While they are read others come and old ones go."""
    out = []
    with contextlib.suppress(OSError):
        for step in list(pathlib.Path(folder).glob("step-*")):
            with contextlib.suppress(OSError):
                out += [(step.name, file) for file in os.listdir(step) if "-of-" in file]
    return out


def misread(gang, cells):
    """Shards of columns of steps that were read twice or never, in the generation in which the step came to stay."""
    rows = {}
    for worker in gang.workers:
        for step in worker.steps:
            rows.setdefault(step.step, {}).setdefault(step.generation, []).append(step)
    wrong = []
    for number, generations in rows.items():
        steps = generations[max(generations)]
        read = [(column, shard) for step in steps for column, shards in step.shards.items() for shard in shards]
        if len(read) != len(set(read)) or (len(steps) == steps[0].workers and len(read) != cells):
            wrong.append(number)
    return wrong


def went_back(gang):
    """Workers that lost a step which they had completed: (worker, from, to)."""
    return [(index, before.step, after.step) for index, worker in enumerate(gang.workers)
            for before, after in zip(worker.steps, worker.steps[1:]) if after.step < before.step]


class Schedule:
    """What happens to a gang, drawn from a seed: joins, leaves, stalls, kills and freezes at random steps.

    A mild one kills one worker at most and freezes nobody for good: nothing of it may cost a step that was completed.
    """

    def __init__(self, seed, steps, servers=0, mild=False):
        self.random = random.Random(seed)
        self.steps, self.servers, self.mild = steps, servers, mild
        self.log = []
        self.strikes = 0  # that hit somebody, or came while work was going on

    def play(self, gang, start):
        for _ in range(start):
            gang.start()
        for _ in range(self.servers):
            gang.start(server=1)
        events = self.random.randint(2, 5)
        marks = sorted(self.random.randint(1, self.steps - 2) for _ in range(events))
        thaw_later = []
        for mark in marks:
            gang.wait(lambda: gang.last_step() >= mark or not gang.alive())
            time.sleep(self.random.random() * 0.01)
            self.strikes += gang.last_step() < self.steps
            self.strike(gang, thaw_later)
        for worker in thaw_later:
            if worker.lives:
                worker.thaw()
        gang.wait_ended()

    def strike(self, gang, thaw_later):
        healthy = [worker for worker in gang.alive()
                   if worker.steps and not (worker.frozen or worker.leaves or worker.killed)]
        kind = self.random.choice(["join", "join", "leave", "kill", "kill", "stall", "freeze", "two"])
        if self.mild:
            kind = {"freeze": "stall", "two": "kill"}.get(kind, kind)
        spent = self.mild and kind == "kill" and any(before == "kill" for before, _ in self.log)
        if spent or len(healthy) < 2 or (kind == "two" and len(healthy) < 3):
            kind = "join"
        self.log.append((kind, gang.last_step()))
        if kind == "join":
            gang.start(server=int(self.servers > 0 and self.random.random() < 0.4))
        elif kind == "two":
            for victim in self.random.sample(healthy, 2):
                victim.kill()
        else:
            victim = self.random.choice(healthy)
            if kind == "leave":
                victim.leave()
            elif kind == "kill":
                victim.kill()
            elif kind == "stall":
                victim.freeze()
                time.sleep(self.random.random() * 0.3)
                victim.thaw()
            else:
                victim.freeze()
                thaw_later.append(victim)
