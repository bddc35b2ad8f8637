"""Gangs of real workers (train_probe) of the suite `train`: what changes, losses and promises cost.

Times are those that the workers say themselves, by the clock that all processes of a machine share. Whatever is compared runs
in turns, one pair after the other, and what is reported is the median of the pairs.
"""
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time

from control import BUILD, ROOT, machine

sys.path.insert(0, str(ROOT / "tests" / "train"))
import network
from gang import Gang, went_back

PROBE = BUILD / "bin" / "train_probe"
STATE = 64 << 20  # parameters and Adam's two numbers for each
IDLE = STATE // 12
WORKERS = 4
RESIZES = 200
KILLS, FREEZES = 24, 12
PAIRS = 12
WIDTH, CONTEXT, VOCABULARY = 128, 64, 96
GIGABIT = 125_000_000
BUCKET = 1 << 16  # floats
DDP_ROUNDS = 10


def transformer(layers):
    """Of each layer a core computes some 50 ms a step; it has 1.5 MiB of Adam's numbers."""
    return {"model": f"transformer:layers={layers},width={WIDTH},heads=4,context={CONTEXT},vocab={VOCABULARY}",
            "data": "text:/usr/share/common-licenses/GPL-3", "batch": 32, "hash": "false"}


def floats_of(layers):
    """Embedding, attention and the two layers behind it, and the layer at the end; not what is small."""
    return WIDTH * (VOCABULARY + CONTEXT) + layers * 12 * WIDTH * WIDTH + WIDTH * VOCABULARY


MODEL = transformer(2)
DEEP = 6  # layers: what comes last in a step, and is hidden by nothing, is the first of them

FIGURES = {
    "give_back": ["train.give_back_steps"],
    "resize": ["train.resize_p50_ms", "train.resize_p99_ms"],
    "loss": ["train.detect_dead_ms", "train.detect_frozen_ms", "train.recover_ms", "train.steps_lost"],
    "exact": ["train.exact_cost_pct"],
    "mirror": ["train.mirror_cost_pct"],
    "overlap": ["train.overlap_hidden_pct"],
    "scaling": ["train.scaling_2_pct"],
}


def now_us():
    return time.monotonic_ns() // 1000


def note(text):
    print(text, file=sys.stderr, flush=True)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def full(gang, workers):
    return lambda: sum(bool(w.steps) and w.steps[-1].workers == workers for w in gang.alive()) == workers


def state_gang(**more):
    """Workers with 64 MiB of state that compute little: what is seen is the cost of the change."""
    gang = Gang(PROBE, steps=10**7, idle_floats=IDLE, pause_us=1000, hash="false", **more)
    for _ in range(WORKERS):
        gang.start()
    gang.wait(full(gang, WORKERS), 60)
    return gang


# The rival.

class Torchrun:
    """Agents of torchrun, each with two workers: any change ends all workers and starts them again."""

    STEP = re.compile(r".*step rank (\d+) of (\d+) pid (\d+) at_us (\d+)")

    def __init__(self, folder):
        self.agents, self.port, self.folder = [], random.randrange(20000, 30000), folder
        self.logs = []

    def start(self):
        self.logs.append(self.folder / f"torchrun-{self.port}-{len(self.logs)}")
        words = ["torchrun", "-r", "1", "-t", "1", "--nnodes", "1:2", "--nproc_per_node", "2", "--max_restarts", "100",
                 "--monitor_interval", "0.1", "--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{self.port}",
                 "--rdzv_id", "bench", "--rdzv_conf", "last_call_timeout=1", ROOT / "bench" / "train" / "torchrun_job.py", IDLE]
        self.agents.append(subprocess.Popen(list(map(str, words)), stdout=self.logs[-1].open("w"), stderr=subprocess.STDOUT,
                                            cwd=self.folder, start_new_session=True))

    def steps(self):
        """Rank, size of the gang, process and time of every step of all workers, by time."""
        lines = [line for log in self.logs for line in log.read_text().splitlines()]
        found = [tuple(map(int, match.groups())) for match in map(self.STEP.match, lines) if match]
        return sorted(found, key=lambda step: step[3])

    def wait(self, good, seconds=120):
        deadline = time.monotonic() + seconds
        while not (found := [step for step in self.steps() if good(step)]):
            if time.monotonic() > deadline:
                sys.exit("bench/run: torchrun did not get there:\n" + "".join(log.read_text()[-2000:] for log in self.logs))
            time.sleep(0.1)
        return found

    def end(self):
        for agent in self.agents:
            os.killpg(agent.pid, signal.SIGKILL)
            agent.wait()
        for pid in {step[2] for step in self.steps()}:  # they have sessions of their own
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def torchrun(folder, how):
    """From the last step before a change to the first after it, ms; the middle of three."""
    gaps = []
    for _ in range(3):
        rival = Torchrun(folder)
        try:
            rival.start()
            before = rival.wait(lambda step: True)[-1]
            time.sleep(1)
            told = now_us()
            if how == "join":
                rival.start()
                after = rival.wait(lambda step: step[1] > before[1])[0]
                told = [step for step in rival.steps() if step[1] == before[1]][-1][3]
            else:
                os.kill(before[2], signal.SIGKILL)
                old = {step[2] for step in rival.steps()}
                after = rival.wait(lambda step: step[2] not in old)[0]
            gaps.append((after[3] - told) / 1e3)
        finally:
            rival.end()
    note(f"  torchrun, {how}: " + ", ".join(f"{gap:.0f} ms" for gap in gaps))
    return "torchrun, ms, here", statistics.median(gaps)


# Planned changes.

def resize(report, folder):
    rival = torchrun(folder, "join")
    pauses = []
    with state_gang() as gang:
        while len(pauses) < RESIZES:
            for workers in (WORKERS - 1, WORKERS):
                before = now_us()
                if workers < WORKERS:
                    random.choice(gang.alive()).leave()
                else:
                    gang.start()
                gang.wait(lambda: len(gang.alive()) == workers and full(gang, workers)(), 60)
                stayed = [w for w in gang.alive() if len(w.resizes) > 1 and w.resizes[-1].at_us > before]
                pauses.append(max(w.resizes[-1].pause_us for w in stayed) / 1e3)
                if not all(w.resizes[-1].planned for w in stayed):
                    sys.exit("bench/run: a planned change was none:\n" + gang.describe())
    report("train.resize_p50_ms", statistics.median(pauses), "ms", pauses, machine(), rival)
    report("train.resize_p99_ms", quantile(pauses, 0.99), "ms", pauses, machine(), rival)


def give_back(report, folder):
    """Steps that a worker begins after it was told to leave; the one at hand is not among them."""
    steps = []
    with Gang(PROBE, steps=10**7, pause_us=5000, hash="false") as gang:
        for _ in range(WORKERS):
            gang.start()
        for _ in range(40):
            gang.wait(full(gang, WORKERS))
            leaver = random.choice(gang.alive())
            time.sleep(random.uniform(0.02, 0.06))
            told = now_us()
            leaver.leave()
            gang.wait(lambda: not leaver.lives)
            for thread in leaver.threads:
                thread.join()
            steps.append(sum(before.at_us > told for before in leaver.steps[:-1]))
            gang.start()
    report("train.give_back_steps", max(steps), "steps", steps, machine())


# Losses.

def loss(report, folder):
    dead, frozen, recover, back = [], [], [], []
    rival = torchrun(folder, "kill")
    with state_gang() as gang:
        for turn in range(KILLS + FREEZES):
            freezes = turn % 3 == 2
            victim = gang.alive()[turn % WORKERS]
            others = [worker for worker in gang.alive() if worker is not victim]
            time.sleep(random.uniform(0, 0.05))
            told = now_us()
            victim.freeze() if freezes else victim.kill()
            gang.wait(lambda: all(w.resizes[-1].at_us > told for w in others), 60)
            # Who sees nothing before the others have gone on without the victim has heard it from the first.
            seen = [worker.lost[-1][1] if worker.lost and worker.lost[-1][1] > told else None for worker in others]
            first = min(filter(None, seen))
            seen = [at or first for at in seen]
            (frozen if freezes else dead).append((max(seen) - told) / 1e3)
            recover.append(max(w.resizes[-1].at_us - at for w, at in zip(others, seen)) / 1e3)
            gang.wait(full(gang, WORKERS - 1), 60)
            if freezes:
                victim.kill()
            gang.start()
            gang.wait(full(gang, WORKERS), 60)
        back = went_back(gang)
    report("train.detect_dead_ms", max(dead), "ms", dead, machine())
    report("train.detect_frozen_ms", max(frozen), "ms", frozen, machine())
    report("train.recover_ms", max(recover), "ms", recover, machine(), rival)
    report("train.steps_lost", len(back), "steps", [0] * (KILLS + FREEZES - len(back)) + [1] * len(back), machine())


# Pairs.

def step_ms(gang, skip=5):
    """The middle time between two steps, of the worker that has the longest."""
    return max(statistics.median(b.at_us - a.at_us for a, b in zip(w.steps[skip:], w.steps[skip + 1:])) / 1e3
               for w in gang.workers)


def gang_ms(workers, steps, **options):
    with Gang(PROBE, steps=steps, min_workers=workers, **options) as gang:
        for _ in range(workers):
            gang.start()
        gang.wait_ended(120)
        if any(worker.end != "finished" for worker in gang.workers):
            sys.exit("bench/run: a worker did not finish:\n" + gang.describe())
        return step_ms(gang)


def copies_ms(copies, steps, **options):
    """So many unconnected workers at the same time; the mean of them."""
    gangs = [Gang(PROBE, steps=steps, min_workers=1, **options) for _ in range(copies)]
    try:
        for gang in gangs:
            gang.start()
        for gang in gangs:
            gang.wait_ended(120)
        return statistics.mean(step_ms(gang) for gang in gangs)
    finally:
        for gang in gangs:
            gang.__exit__()


def in_turns(*measures):
    """PAIRS times each in turn, the order turned round each time: rows of results."""
    rows = []
    for turn in range(PAIRS):
        order = range(len(measures)) if turn % 2 == 0 else reversed(range(len(measures)))
        got = {i: measures[i]() for i in order}
        rows.append([got[i] for i in range(len(measures))])
        note("  " + "  ".join(f"{ms:.2f} ms" for ms in rows[-1]))
    return rows


def exact(report, folder):
    run = lambda exact: lambda: gang_ms(2, 60, exact=exact, **MODEL)
    costs = [100 * (exact / fast - 1) for exact, fast in in_turns(run("true"), run("false"))]
    report("train.exact_cost_pct", statistics.median(costs), "%", costs, machine())


def mirror(report, folder):
    run = lambda mirrors: lambda: gang_ms(2, 60, mirrors=mirrors, **MODEL)
    costs = [100 * (with_one / without - 1) for with_one, without in in_turns(run(1), run(0))]
    report("train.mirror_cost_pct", statistics.median(costs), "%", costs, machine())


def hidden_pct(both, compute, communication):
    return 100 * (1 - (both - compute) / communication)


def ddp(steps):
    """What DistributedDataParallel hides with buckets of the same size, over a cable that tc holds to as much; the middle of its rounds."""
    if not network.possible():
        return None
    with network.TwoHosts() as hosts:
        hosts.throttle(GIGABIT)
        words = [ROOT / "bench" / "train" / "ddp_job.py", hosts.addresses[0], DDP_ROUNDS, steps, 4 * BUCKET / (1 << 20)]
        ranks = [subprocess.Popen([*hosts.on(rank), "/usr/bin/python3", *map(str, [words[0], rank, *words[1:]])], stdout=subprocess.PIPE,
                                  text=True, env={**os.environ, "GLOO_SOCKET_IFNAME": "cable"}) for rank in range(2)]
        said = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit("bench/run: DistributedDataParallel did not get there")
    rounds = [json.loads(line) for line in said[0].splitlines()]
    for one in rounds:
        note("  DDP: " + "  ".join(f"{one[what]:.2f} ms" for what in ("both", "compute", "communication")))
    return "DDP, %, here", statistics.median(hidden_pct(one["both"], one["compute"], one["communication"]) for one in rounds)


def overlap(report, folder):
    """Compute alone: two workers that exchange nothing. Communication alone: as many bytes, no compute. One shard each."""
    rival = ddp(15)
    link = {"share_memory": "false", "throttle": GIGABIT, "bucket_floats": BUCKET, "mirrors": 0}
    model = transformer(DEEP)
    rows = in_turns(lambda: gang_ms(2, 30, **model, **link, shards=2),
                    lambda: copies_ms(2, 30, **{**model, "batch": model["batch"] // 2}, shards=1),
                    lambda: gang_ms(2, 30, idle_floats=floats_of(DEEP), batch=1, shards=2, hash="false", **link))
    hidden = [hidden_pct(*row) for row in rows]
    report("train.overlap_hidden_pct", statistics.median(hidden), "%", hidden, machine(), rival)


def scaling(report, folder):
    half = {**MODEL, "shards": 4, "batch": MODEL["batch"] // 2}
    rows = in_turns(lambda: gang_ms(2, 60, **MODEL), lambda: copies_ms(2, 60, **half))
    shares = [100 * alone / together for together, alone in rows]
    report("train.scaling_2_pct", statistics.median(shares), "%", shares, machine())
