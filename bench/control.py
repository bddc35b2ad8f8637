"""The suite `control`: a real musterd of the release build, real processes, and Slurm beside it in the same run."""
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from daemon import Daemon

JOBS = 500
SLOTS = 32
ROUNDS = 3
LATENCY_JOBS = 150
STORED_JOBS = 100_000
NO_OP = {"name": "noop", "queue": "default", "gpus": 1, "command": ["/bin/true"], "workdir": "/tmp"}

FIGURES = {
    "throughput": ["control.jobs_per_s_vs_slurm", "control.jobs_per_s"],
    "latency": ["control.submit_to_start_p50_ms", "control.submit_to_start_p99_ms", "control.fsync_p50_ms"],
    "start": ["control.start_s_100k", "control.start_s_100k_waiting"],
    "kill_storm": [f"control.kill_storm.{k}" for k in
                   ("kills", "jobs", "lost", "doubled", "double_booked", "wrong_exits", "ran_across_a_kill")],
}


def wall_ms(text):
    """Of an RFC 3339 time."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e3


def machine():
    name = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return f"{name} x{os.cpu_count()}"


def await_ended(daemon, count, base, seconds=120):
    """Until so many jobs have ended since `base`, as the journal of the daemon has it."""
    link, deadline = daemon.connect(), time.monotonic() + seconds
    while time.monotonic() < deadline:
        if daemon.call("GET", "version", connection=link)["ended"] - base >= count:
            return
        time.sleep(0.005)
    raise TimeoutError(f"not all of {count} jobs ended")


def muster_round(daemon, mode):
    """Seconds from the first submit to the last recorded exit of JOBS no-op jobs."""
    base = daemon.call("GET", "version")["ended"]
    spec = dict(NO_OP, array=f"0-{JOBS - 1}") if mode == "array" else NO_OP
    file = daemon.folder / "job.json"
    file.write_text(json.dumps(spec))
    env = {"PATH": "/usr/bin:/bin", "MUSTER_DAEMON": str(daemon.socket)}
    begun = time.monotonic()
    if mode == "array":
        subprocess.run([BUILD / "bin" / "muster", "submit", file], env=env, check=True, stdout=subprocess.DEVNULL)
    else:
        loop = f'i=0; while [ $i -lt {JOBS // 2} ]; do "$@" >/dev/null || exit 1; i=$((i+1)); done'
        loops = [subprocess.Popen(["sh", "-c", loop, "sh", BUILD / "bin" / "muster", "submit", file], env=env)
                 for _ in range(2)]
        if any(one.wait() for one in loops):
            sys.exit("muster submit failed")
    await_ended(daemon, JOBS, base)
    took = time.monotonic() - begun
    jobs = daemon.jobs(all=1)
    bad = [job["id"] for job in jobs if job["status"]["phase"] != "succeeded"]
    logs = daemon.folder / "state" / "logs"
    if len(jobs) != JOBS or bad or not all((logs / job["id"]).is_dir() for job in jobs):
        sys.exit(f"muster: {len(bad)} of {len(jobs)} jobs did not succeed: {bad[:5]}")
    return took


def slurm_round(folder, mode):
    words = [ROOT / "bench" / "slurm" / "measure", folder, "--jobs", str(JOBS), "--mode", mode]
    run = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if run.returncode:
        sys.exit(f"bench/slurm/measure: {run.stderr.strip()[-400:]}")
    return json.loads(run.stdout)["seconds"]


def throughput(report, folder):
    """JOBS one-GPU no-op jobs on SLOTS slots; each system by its better mode, alternated, the median of its rounds."""
    slurm = pathlib.Path(tempfile.mkdtemp(prefix="muster-slurm-", dir="/dev/shm"))
    cluster = ROOT / "bench" / "slurm" / "cluster"
    up = subprocess.run([cluster, "up", slurm], capture_output=True, text=True, timeout=120)
    if up.returncode:
        sys.exit(f"bench/slurm/cluster up: {up.stderr.strip()[-400:]} (scripts/deps bench installs Slurm)")
    daemon = Daemon(BUILD, folder / "throughput", "--virtual-gpus", str(SLOTS))
    daemon.start()
    rates = {"muster": {}, "slurm": {}}
    try:
        for number in range(ROUNDS):
            for mode in ("array", "submits"):
                order = ["muster", "slurm"] if number % 2 == 0 else ["slurm", "muster"]
                for who in order:
                    took = muster_round(daemon, mode) if who == "muster" else slurm_round(slurm, mode)
                    rates[who].setdefault(mode, []).append(JOBS / took)
    finally:
        daemon.stop()
        subprocess.run([cluster, "down", slurm], capture_output=True, timeout=120)
        shutil.rmtree(slurm, ignore_errors=True)
    best = {who: max(by_mode.values(), key=statistics.median) for who, by_mode in rates.items()}
    for who, by_mode in rates.items():
        for mode, list_of in by_mode.items():
            print(f"  {who} {mode}: {', '.join(f'{r:.0f}' for r in list_of)} jobs/s", file=sys.stderr)
    muster, rival = statistics.median(best["muster"]), statistics.median(best["slurm"])
    name = "Slurm 22.05 tuned, the better of array and submits, jobs/s"
    report("control.jobs_per_s_vs_slurm", muster / rival, "ratio",
           [m / s for m, s in zip(best["muster"], best["slurm"])], machine(), (name, rival))
    report("control.jobs_per_s", muster, "jobs/s", best["muster"], machine(), (name, rival))


def fsync_ms(folder):
    samples = []
    with open(folder / "fsync", "wb", buffering=0) as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            samples.append((time.perf_counter() - begun) * 1e3)
    return samples


def latency(report, folder):
    """From the request being accepted to the exec in the shim, one job after the other on an idle box."""
    daemon = Daemon(BUILD, folder / "latency", "--virtual-gpus", "8")
    daemon.start()
    samples = []
    try:
        link = daemon.connect()
        for _ in range(LATENCY_JOBS):
            begun = time.time()
            job = daemon.submit(NO_OP, connection=link)
            got = daemon.wait(job)
            samples.append(max(0.0, wall_ms(got["status"]["started_at"]) - begun * 1e3))
    finally:
        daemon.stop()
    syncs = fsync_ms(folder)
    cuts = statistics.quantiles(samples, n=100)
    report("control.submit_to_start_p50_ms", statistics.median(samples), "ms", samples, machine())
    report("control.submit_to_start_p99_ms", cuts[98], "ms", samples, machine())
    report("control.fsync_p50_ms", statistics.median(syncs), "ms", syncs, machine())


def fill(daemon, ended, waiting):
    """So many jobs that have ended and so many that wait, through the front door, on a simulated pool."""
    base = daemon.call("GET", "version")["ended"]
    quick = {"name": "quick", "queue": "default", "gpus": 1, "command": ["sleep", "0"], "workdir": "/tmp"}
    for _ in range(ended // 10_000):
        daemon.submit(dict(quick, array="0-9999"))
    await_ended(daemon, ended, base, 600)
    for number in range(waiting // 100):
        # One in a hundred has a spec of its own, as jobs do; the rest are tasks of arrays.
        daemon.submit(dict(quick, name=f"wait-{number}", command=["sleep", "86400"], array="0-98"))
        daemon.submit(dict(quick, name=f"one-{number}", command=["sleep", "86400"], env={"NUMBER": str(number)}))


def start(report, folder):
    """From the start of the process until it serves, after a kill -9: half of the jobs ended, and all of them waiting."""
    config = folder / "cluster.yaml"
    config.write_text("pools:\n  - {name: lab, driver: simulated, nodes: [{count: 64, gpus: 8, type: H100, "
                      "gpu_memory: 80Gi, cpus: 96, memory: 1Ti}]}\n")
    for name, ended in (("control.start_s_100k", STORED_JOBS // 2), ("control.start_s_100k_waiting", 0)):
        daemon = Daemon(BUILD, folder / name, "--config", str(config))
        daemon.start()
        try:
            fill(daemon, ended, STORED_JOBS - ended)
            samples = []
            for _ in range(5):
                daemon.kill()
                samples.append(daemon.start())
            known = daemon.call("GET", "version")
            if known["jobs"] + known["ended"] < STORED_JOBS:
                sys.exit(f"only {known} of {STORED_JOBS} jobs are in the store")
        finally:
            daemon.kill()
        report(name, statistics.median(samples), "s", samples, machine())


def kill_storm(report, folder):
    words = [sys.executable, ROOT / "tests" / "e2e" / "kill_storm.py", BUILD, "--kills", "200", "--jobs", "2400",
             "--keep", folder / "storm"]
    run = subprocess.run(words, capture_output=True, text=True, timeout=900)
    if not run.stdout.strip():
        sys.exit(f"kill_storm.py: {run.stderr.strip()[-400:]}")
    got = json.loads(run.stdout)
    for name in FIGURES["kill_storm"]:
        value = got[name.rsplit(".", 1)[1]]
        report(name, value, "count", [value], machine())


PARTS = {"latency": latency, "start": start, "kill_storm": kill_storm, "throughput": throughput}


def run_parts(parts, figures, words, report):
    """The parts that the words name, by part or by figure; all without words."""
    known = [name for names in figures.values() for name in names]
    for word in words:
        if word not in known and word not in parts:
            print(f"bench/run: no figure {word}; one of {', '.join([*parts, *known])}", file=sys.stderr)
            sys.exit(2)
    for program in ("musterd", "muster", "muster-shim"):
        if not os.access(BUILD / "bin" / program, os.X_OK):
            sys.exit(f"{BUILD / 'bin' / program} is missing: build it with `make` first")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-"))
    try:
        for part, call in parts.items():
            if not words or part in words or set(words) & set(figures[part]):
                call(report, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(words, report):
    run_parts(PARTS, FIGURES, words, report)
