"""The figures of the front door: what many clients, many jobs in the store and many watchers cost.

Called by bench/run with the function that reports. Every figure is measured against real daemons of the release build, over
their Unix socket, with clients that are processes of their own where one process would measure itself.
"""
import json
import multiprocessing
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from control import BUILD, machine, run_parts
from daemon import Daemon

CLIENTS, PER_CLIENT = 64, 100
STORED = 100_000
FIGURES = {
    "submit": ["door.submit_per_s"],
    "batch": ["door.batch_10k_s"],
    "stored": ["door.list_p99_ms", "door.ps_p50_ms", "door.why_p50_ms", "door.rss_mb_100k"],
    "watchers": ["door.watchers_1000_s", "door.watchers_turn_ratio", "door.watchers_cycle_ratio", "door.watchers_noise_ratio"],
}
LAB = ("pools:\n  - {name: lab, driver: simulated, nodes: [{count: 64, gpus: 8, type: H100, "
       "gpu_memory: 80Gi, cpus: 96, memory: 1Ti}]}\n")


def waiting(name):
    return {"name": name, "queue": "default", "gpus": 8, "command": ["sleep", "86400"], "workdir": "/tmp", "env": {"WHO": name}}


def open_lab(folder, name):
    config = folder / f"{name}.yaml"
    config.write_text(LAB)
    daemon = Daemon(BUILD, folder / name, "--config", str(config))
    daemon.start()
    return daemon


def client(daemon, number, go, done):
    link = daemon.connect()
    go.wait()
    for job in range(PER_CLIENT):
        daemon.submit(waiting(f"c{number}-{job}"), connection=link)
    done.put(time.perf_counter())


def submit(report, folder):
    """Single durable submissions of 64 clients, each on its own connection, one after the other."""
    samples = []
    for run in range(3):
        daemon = open_lab(folder, f"submit{run}")
        try:
            go, done = multiprocessing.Event(), multiprocessing.Queue()
            workers = [multiprocessing.Process(target=client, args=(daemon, n, go, done)) for n in range(CLIENTS)]
            for worker in workers:
                worker.start()
            time.sleep(1)  # until all of them wait for the start
            begun = time.perf_counter()
            go.set()
            last = max(done.get(timeout=120) for _ in workers)
            samples.append(CLIENTS * PER_CLIENT / (last - begun))
            for worker in workers:
                worker.join()
        finally:
            daemon.stop()
    report("door.submit_per_s", statistics.median(samples), "jobs/s", samples, machine())


def batch(report, folder):
    """10,000 jobs, each with a spec of its own, in one request."""
    daemon = open_lab(folder, "batch")
    samples = []
    try:
        for run in range(3):
            body = json.dumps({"jobs": [waiting(f"b{run}-{n}") for n in range(10_000)]})
            begun = time.perf_counter()
            made = daemon.call("POST", "jobs", body)
            samples.append(time.perf_counter() - begun)
            if len(made["jobs"]) != 10_000:
                sys.exit(f"{len(made['jobs'])} of 10000 jobs were accepted")
    finally:
        daemon.stop()
    report("door.batch_10k_s", statistics.median(samples), "s", samples, machine())


def resident_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024


def fill(daemon):
    for part in range(STORED // 10_000):
        daemon.call("POST", "jobs", json.dumps({"jobs": [waiting(f"s{part}-{n}") for n in range(10_000)]}))


def commands(daemon, words, count):
    samples = []
    for _ in range(count):
        begun = time.perf_counter()
        got = daemon.muster(*words)
        samples.append((time.perf_counter() - begun) * 1e3)
        if got.returncode:
            sys.exit(f"muster {' '.join(words)}: {got.stderr}")
    return samples


def stored(report, folder):
    """100,000 jobs, each with a spec of its own, wait or run: pages of lists, whole commands, and memory."""
    daemon = open_lab(folder, "stored")
    try:
        fill(daemon)
        samples, link = [], daemon.connect()
        kinds = ["", "&sort=name", "&sort=-priority", "&filter=phase=waiting,gpus>=4", "&user=root&sort=queue", "&all=1",
                 "&filter=name~s3-5", "&fields=id,status.phase"]
        for kind in kinds:
            cursor = ""
            for _ in range(40):
                begun = time.perf_counter()
                page = daemon.call("GET", f"jobs?limit=100{kind}{cursor}", connection=link)
                samples.append((time.perf_counter() - begun) * 1e3)
                cursor = "&cursor=" + page["next"] if "next" in page else ""
        report("door.list_p99_ms", statistics.quantiles(samples, n=100)[98], "ms", samples, machine())
        ps = commands(daemon, ["ps"], 40)
        report("door.ps_p50_ms", statistics.median(ps), "ms", ps, machine())
        why = commands(daemon, ["why", "s9-9999"], 40)
        report("door.why_p50_ms", statistics.median(why), "ms", why, machine())
        memory = resident_mb(daemon.process.pid)
        report("door.rss_mb_100k", memory, "MB", [memory], machine())
    finally:
        daemon.kill()


def watch_all(daemon, count):
    """Connections that watch, each past its first comment."""
    links = []
    for _ in range(count):
        link = daemon.connect()
        link.request("GET", "/api/v1/events?watch=1&kinds=job-submitted")
        stream = link.getresponse()
        stream.fp.readline()
        stream.fp.readline()
        links.append((link, stream))
    return links


def turn_ms(daemon, link, count=200):
    samples = []
    for number in range(count):
        begun = time.perf_counter()
        daemon.submit(waiting(f"t{number}"), connection=link)
        samples.append((time.perf_counter() - begun) * 1e3)
    return samples


def cycles(daemon):
    """Seconds that the engine has taken to decide, and how often it did."""
    link = daemon.connect()
    link.request("GET", "/metrics")
    values = dict(line.rsplit(" ", 1) for line in link.getresponse().read().decode().splitlines() if not line.startswith("#"))
    link.close()
    return (float(values["muster_scheduler_cycle_seconds_sum"]), float(values["muster_scheduler_cycle_seconds_count"]))


def load(daemon, link):
    """Submissions one after the other: what each took its client, and a cycle the engine on average."""
    sum_before, count_before = cycles(daemon)
    turns = turn_ms(daemon, link)
    sum_after, count_after = cycles(daemon)
    return turns, (sum_after - sum_before) / (count_after - count_before)


def watchers(report, folder):
    """An event reaches 1,000 streams: from the submission's request to the last of them; and what they cost everybody else."""
    daemon = open_lab(folder, "watchers")
    try:
        link = daemon.connect()
        turn_ms(daemon, link)  # fills the lab: from here on every job waits
        before, cycle_before = load(daemon, link)
        links = watch_all(daemon, 1000)
        samples = []
        for number in range(10):
            open_streams = {stream.fp.raw._sock.fileno(): stream for _, stream in links}
            poll = select.epoll()
            for descriptor in open_streams:
                poll.register(descriptor, select.EPOLLIN)
            begun = time.perf_counter()
            daemon.submit(waiting(f"w{number}"), connection=link)
            while open_streams:
                for descriptor, _ in poll.poll(5):
                    os.read(descriptor, 1 << 16)
                    if open_streams.pop(descriptor, None):
                        poll.unregister(descriptor)
                if time.perf_counter() - begun > 30:
                    sys.exit(f"{len(open_streams)} watchers never saw the event")
            samples.append(time.perf_counter() - begun)
            poll.close()
            time.sleep(0.2)
        report("door.watchers_1000_s", max(samples), "s", samples, machine())
        beside, cycle_beside = load(daemon, link)
        for connection, _ in links:
            connection.close()
        time.sleep(1)
        after, cycle_after = load(daemon, link)
        # Against the mean of before and after: every job that waits makes the next turn a little longer.
        alone = (statistics.median(before) + statistics.median(after)) / 2
        report("door.watchers_turn_ratio", statistics.median(beside) / alone, "ratio", beside, machine())
        report("door.watchers_cycle_ratio", 2 * cycle_beside / (cycle_before + cycle_after), "ratio", [cycle_beside], machine())
        report("door.watchers_noise_ratio", statistics.median(after) / statistics.median(before), "ratio", before + after, machine())
    finally:
        daemon.kill()


PARTS = {"submit": submit, "batch": batch, "stored": stored, "watchers": watchers}


def run(words, report):
    run_parts(PARTS, FIGURES, words, report)
