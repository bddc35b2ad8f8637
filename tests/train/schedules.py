"""Drawn schedules: what happens to gangs of real workers is drawn from a seed, and nothing of it may show in the result.

draw() plays them, over every synchronous strategy: workers join, leave, are killed, stall and freeze. Each step of each
worker is compared with that of one undisturbed worker, and the audit of all of them says which samples were taken.
"""
import concurrent.futures
import os
import pathlib
import random
import shutil
import tempfile

import audit
from gang import HASTY_MS, PATIENT_MS, Gang, Schedule, mismatches, misread, reference

STEPS = 40
SHARDS = 4

# A sliced transformer on a text that every Debian has, and a network of dense layers.
TRANSFORMER = {"model": "transformer:layers=2,width=16,heads=2,context=12,vocab=96,slices=2", "data": "text", "batch": 8}
MLP = {"model": "mlp:16,24,24,1", "data": "teacher", "batch": 8}
# The same on so few samples that a schedule sees each of them more than once.
LINEAR = {"model": "mlp:8,24,24,1", "data": "linear", "batch": 50}
SAMPLES_OF_TEXT = 200


class Strategy:
    def __init__(self, text, model, cells, columns=1, servers=0):
        self.cells, self.columns, self.servers = cells, columns, servers
        self.options = {"strategy": text, "steps": STEPS, "shards": SHARDS, "bucket_floats": 1000, "timeout_ms": PATIENT_MS, **model}


STRATEGIES = {
    "data": Strategy("data", MLP, 4),
    "mirrored": Strategy("mirrored:lanes=2", MLP, 4),
    "pipeline": Strategy("pipeline:stages=3,micro=4", MLP, 3, 3),
    "tensor": Strategy("tensor:slices=2,micro=4", TRANSFORMER, 2, 2),
    "hybrid": Strategy("hybrid:data=2,stages=2,slices=2,micro=2", TRANSFORMER, 8, 4),
    "server": Strategy("server:servers=2", MLP, 4, servers=2),
    "central": Strategy("central", MLP, 4, servers=1),
}


class Outcome:
    """What came of a schedule; `told` is for people."""

    def __init__(self, name, gang, schedule, truth):
        strategy, options = STRATEGIES[name], gang.options
        self.told = f"{name} {options}\n{schedule.log}\n{gang.describe()}"
        self.finished = any(worker.end == "finished" for worker in gang.workers)
        self.mismatches = mismatches(gang, truth)
        self.misread = misread(gang, SHARDS * strategy.columns)
        self.missed, self.doubled, self.strange = audit.check(gang.audits(), options["steps"], options["batch"])
        self.strikes = schedule.strikes

    @property
    def wrong(self):
        found = [*self.mismatches, *self.misread, *self.strange, *([] if self.finished else ["nobody finished"])]
        return f"{found[:8]}\n{self.told}" if found else None


def small(strategy, folder):
    """The options of a strategy on few samples, so that the schedule has several epochs."""
    options = dict(strategy.options)
    if options["data"] == "teacher":
        return {**options, **LINEAR}
    text = pathlib.Path(folder) / "text"
    text.write_text(("All that is solid melts into air, 0123456789. " * 10)[:SAMPLES_OF_TEXT])
    return {**options, "data": f"text:{text}"}


def play(probe, name, options, truth, number, seed):
    """One schedule. How workers speak to each other is drawn too: it must not matter either."""
    drawn = random.Random(f"{seed} {number}")
    strategy = STRATEGIES[name]
    ways = {"share_memory": int(drawn.random() < 0.7), "encrypt": int(drawn.random() < 0.3), "mirrors": drawn.randint(1, 2)}
    ways |= {"min_workers": 1, "timeout_ms": HASTY_MS, "pause_us": drawn.choice([1000, 3000])}
    hosts = ["a", "b", "c"][:drawn.randint(1, 3)]  # who is on another one is reached over a connection
    with Gang(probe, audited=True, hosts=hosts, **{**options, **ways}) as gang:
        if drawn.random() < 0.5:
            gang.options |= {"checkpoints": gang.folder / "checkpoints", "checkpoint_every": drawn.randint(2, 9)}
        schedule = Schedule(drawn.random(), STEPS, strategy.servers)
        try:
            schedule.play(gang, drawn.randint(2, strategy.cells + 1))
        except AssertionError as hung:
            raise AssertionError(f"{name}, number {number} of seed {seed}, {schedule.log}: {hung}") from None
        return Outcome(name, gang, schedule, truth)


def draw(count, seed, build, at_once=2):
    """So many schedules, with the strategies in turn; an Outcome for each as it comes. Who hangs raises."""
    probe = os.path.join(build, "bin", "train_probe")
    folder = tempfile.mkdtemp(prefix="muster-schedules-")
    names = list(STRATEGIES)
    try:
        options = {name: small(STRATEGIES[name], folder) for name in names}
        truths = {name: reference(probe, **options[name]) for name in names}
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            turns = [(names[number % len(names)], number) for number in range(count)]
            yield from pool.map(lambda turn: play(probe, turn[0], options[turn[0]], truths[turn[0]], turn[1], seed), turns)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
