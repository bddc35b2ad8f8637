"""The suite `train`: all-reduce of the training runtime with Gloo and OpenMPI beside it in the same run; gangs; schedules.

A rival's processes may busy-wait when they have nothing to do, so the programs take turns, several times over; what is
compared are the medians of one turn. Build them with the release build: bench/run train does that by itself.
"""
import os
import statistics
import subprocess
import sys

import train_examples
import train_gangs
import train_schedules
from control import BUILD, machine, run_parts

BYTES = 64 << 20
TURNS = 9
REPEATS = 20
RIVALS = {"gloo": "Gloo", "openmpi": "OpenMPI"}
# By figure: processes, transport, rival.
ALLREDUCE = {
    "train.allreduce_shm_2_vs_gloo": (2, "shm", "gloo"),
    "train.allreduce_shm_4_vs_gloo": (4, "shm", "gloo"),
    "train.allreduce_shm_2_vs_openmpi": (2, "shm", "openmpi"),
    "train.allreduce_shm_4_vs_openmpi": (4, "shm", "openmpi"),
    "train.allreduce_tcp_2_vs_gloo": (2, "tcp", "gloo"),
    "train.allreduce_tcp_4_vs_gloo": (4, "tcp", "gloo"),
}
FIGURES = {"allreduce": list(ALLREDUCE), **train_gangs.FIGURES, "schedules": train_schedules.FIGURES,
           "examples": train_examples.FIGURES}


def build():
    targets = ["train_probe", "train_allreduce", *(f"train_allreduce_{rival}" for rival in RIVALS)]
    made = subprocess.run(["cmake", "--build", BUILD, "--target", *targets], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"cannot build {', '.join(targets)} (scripts/deps bench installs the rivals):\n{made.stdout}{made.stderr}")


def command(who, ranks, transport):
    if who == "muster":
        return [BUILD / "bin" / "train_allreduce", ranks, BYTES, REPEATS, transport]
    if who == "gloo":
        return [BUILD / "bin" / "train_allreduce_gloo", ranks, BYTES, REPEATS]
    return ["mpirun", "--oversubscribe", "-n", ranks, BUILD / "bin" / "train_allreduce_openmpi", BYTES, REPEATS]


def turn(who, ranks, transport):
    """The median in ms of one run of the program."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = list(map(str, command(who, ranks, transport)))
    run = subprocess.run(words, capture_output=True, text=True, env=environment)
    if run.returncode:
        sys.exit(f"{' '.join(words)} exited {run.returncode}: {run.stderr.strip()}")
    return statistics.median(map(float, run.stdout.split()))


def allreduce(report, folder):
    rivals, measured = {}, {}  # by processes and transport
    for ranks, transport, rival in ALLREDUCE.values():
        rivals.setdefault((ranks, transport), []).append(rival)
    for (ranks, transport), others in rivals.items():
        measured[ranks, transport] = [{who: turn(who, ranks, transport) for who in ["muster", *others]} for _ in range(TURNS)]
    for name, (ranks, transport, rival) in ALLREDUCE.items():
        turns = measured[ranks, transport]
        ratios = [times[rival] / times["muster"] for times in turns]
        rival_ms = statistics.median(times[rival] for times in turns)
        report(name, statistics.median(ratios), "ratio", ratios, machine(), (f"{RIVALS[rival]}, ms, here", rival_ms))


PARTS = {"allreduce": allreduce, **{part: getattr(train_gangs, part) for part in train_gangs.FIGURES},
         "schedules": train_schedules.schedules, "examples": train_examples.examples}

ASKED_FOR = ("examples",)  # needs the digits, which examples/train/fetch-digits fetches


def run(words, report):
    build()
    run_parts(PARTS, FIGURES, words or [part for part in PARTS if part not in ASKED_FOR], report)
