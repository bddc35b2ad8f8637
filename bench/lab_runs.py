"""What the figures of the lab are made of: where the public traces lie, and runs of `muster sim`.

The traces are no part of the tree: $MUSTER_TRACES names their folder, otherwise they are looked for in ../shared/traces.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

from control import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUSTER = ROOT / "build" / "release" / "bin" / "muster"
TRACES = pathlib.Path(os.environ.get("MUSTER_TRACES", ROOT.parent / "shared" / "traces"))
POLLUX, OPENB = TRACES / "pollux", TRACES / "openb"
LOADS = {"0.5": "workloads-0.5", "1.0": "workloads", "2.0": "workloads-2.0"}


def sim(*words):
    run = subprocess.run([str(MUSTER), "sim", *map(str, words), "-o", "json"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"muster sim {' '.join(map(str, words))} exited {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def play_file(policy, file, seed=0, *more):
    return sim("run", "--set", "pollux", "--profiles", POLLUX, "--workload", file, "--policy", policy, "--seed", seed, *more)


def side_by_side(calls, how):
    """The results of the calls, in their order, as many at a time as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda call: how(*call), calls))


def tell(report, name, value, unit, samples, rival=None):
    report(name, value, unit, samples, machine(), rival)
