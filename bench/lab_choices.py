"""What the lab's settings were chosen on, and whether others would have been better there.

Not on the files of the publications: workloads are drawn anew from their rows, nodes and pods are made, and forecasts were
chosen on traces that the figures of lab.py do not use. On what is called fresh nothing was chosen.
"""
import csv
import random
import statistics
import subprocess

from lab_runs import LOADS, MUSTER, POLLUX, TRACES, play_file, side_by_side, sim, tell

CHOSEN_ON, FRESH = range(12), range(12, 20)  # workloads
MADE_CHOSEN_ON, MADE_FRESH = range(100, 220), range(300, 340)  # nodes and pods
RIVAL_SEEDS, POD_SEEDS = range(3), range(3)
# Each setting with half and double of its default.
SIZES = {"resize_pays": ("30s", "2m"), "resize_patience": ("0.05", "0.2"), "grow_factor": ("2", "8"),
         "turn": ("30m", "2h"), "young": ("30m", "2h")}
PLACES = {"worth_offers": ("8", "30"), "worth_step": ("0.005", "0.02")}
NODES, PODS = 400, 2000
LEAST_WAITS = 30  # fewer say little of a bound that holds nine times out of ten

FIGURES = {
    "drawn": [f"lab.drawn.{what}_{load}_vs_pollux" for load in ("1x", "2x") for what in ("jct", "p99", "makespan")],
    "realistic": [f"lab.realistic.{what}_vs_pollux" for what in ("jct", "p99", "makespan")],
    "made_pods": ["lab.made_pods.muster_gain_pts"],
    "sizes": [f"lab.sizes.{name}_{way}" for name in SIZES for way in ("half", "double")],
    "places": [f"lab.places.{name}_{way}_pts" for name in PLACES for way in ("half", "double")],
    "forecasts": [f"lab.forecasts.{files}_{what}" for files in ("chosen_on", "others") for what in ("within_pct", "pinball")],
}


def draw(load, number, folder):
    """A workload as large as those of a load: jobs and, within ten minutes, times of any of them."""
    rows = []
    files = sorted((POLLUX / LOADS[load]).glob("*.csv"))
    for path in files:
        with open(path, newline="") as file:
            rows += csv.DictReader(file)
    rng = random.Random(f"{load}-{number}")
    jobs = []
    for _ in range(len(rows) // len(files)):
        like = rng.choice(rows)
        time = int(rng.choice(rows)["time"]) + rng.randint(-600, 600)
        jobs.append((max(0, time), like["application"], like["num_replicas"], like["batch_size"]))
    path = folder / f"drawn-{load}-{number}.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "time", "application", "num_replicas", "batch_size"])
        for index, (time, application, replicas, batch) in enumerate(sorted(jobs)):
            writer.writerow([f"{application}-{index}", time, application, replicas, batch])
    return path


def beside_pollux(report, name, files):
    """Ours against the mean of our Pollux over its seeds, file by file: the mean of the ratios. `name` has a place for what it is."""
    calls = [call for file in files for call in (("muster", file), *(("pollux", file, seed) for seed in RIVAL_SEEDS))]
    runs = side_by_side(calls, play_file)
    each = 1 + len(RIVAL_SEEDS)
    for what, key in (("jct", "mean_jct_s"), ("p99", "p99_jct_s"), ("makespan", "makespan_s")):
        ratios = [runs[at][key] / statistics.mean(run[key] for run in runs[at + 1:at + each]) for at in range(0, len(runs), each)]
        tell(report, name.format(what), statistics.mean(ratios), "ratio", ratios)


def drawn(report, folder):
    """Workloads drawn anew, that nothing was chosen on."""
    for load, name in (("1.0", "1x"), ("2.0", "2x")):
        beside_pollux(report, f"lab.drawn.{{}}_{name}_vs_pollux", [draw(load, number, folder) for number in FRESH])


def realistic(report, folder):
    """The publication's workloads of jobs that people had configured themselves; nothing was ever chosen on them."""
    beside_pollux(report, "lab.realistic.{}_vs_pollux", sorted((POLLUX / "workloads-realistic").glob("*.csv")))


def policy_file(folder, name, value):
    path = folder / f"{name}-{value}.yaml"
    path.write_text(f"policy: {{{name}: {value}}}\n")
    return path


def neighbours(settings, folder):
    """(setting, half or double, the words that say so to `sim run`)"""
    return [(name, way, ("--policy-file", policy_file(folder, name, value)))
            for name, values in settings.items() for way, value in zip(("half", "double"), values)]


def sizes(report, folder):
    """Mean completion time with half and double of each setting of sizes, against the default."""
    files = [draw(load, number, folder) for load in ("1.0", "2.0") for number in CHOSEN_ON]
    jct = lambda *words: [run["mean_jct_s"] for run in side_by_side([("muster", file, 0, *words) for file in files], play_file)]
    usual = jct()
    for name, way, words in neighbours(SIZES, folder):
        ratios = [mine / other for mine, other in zip(jct(*words), usual)]
        tell(report, f"lab.sizes.{name}_{way}", statistics.mean(ratios), "ratio", ratios)


def make_pods(number, folder):
    """Nodes of some kinds and pods of some shapes, all of them chosen by chance; as files of the openb set."""
    rng = random.Random(f"pods-{number}")
    kinds = [(rng.choice((1, 2, 4, 8, 8)), rng.choice((8, 12, 16, 24, 32)), rng.choice((4, 8)), f"M{at}") for at in range(4)]
    nodes, pods = folder / f"nodes-{number}.csv", folder / f"pods-{number}.csv"
    with open(nodes, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sn", "cpu_milli", "memory_mib", "gpu", "model"])
        for at in range(NODES):
            gpus, cores_each, gib_each, model = rng.choice(kinds)
            cores = min(128, gpus * cores_each)
            writer.writerow([f"n{at}", cores * 1000, cores * gib_each * 1024, gpus, model])
    shapes, weights = [], []
    most = max(gpus for gpus, *_ in kinds)
    for _ in range(rng.randint(10, 40)):
        kind = rng.choices(("none", "share", "one", "several"), (1, 4, 3, 2))[0]
        milli = {"none": 0, "share": rng.randrange(50, 1000, 10)}.get(kind, 1000)
        gpus = {"none": 0, "several": rng.choice([n for n in (2, 4, 8) if n <= max(2, most)])}.get(kind, 1)
        cores = max(0.5, rng.lognormvariate(0, 0.6) * 10 * (gpus * milli / 1000 if gpus else 1))
        cores = min(cores, 12 * max(1, gpus))
        wish = rng.choice(kinds)[3] if gpus and rng.random() < 0.2 else ""
        shapes.append([int(cores * 1000), int(cores * 4096), gpus, milli, wish])
        weights.append(rng.expovariate(1))
    with open(pods, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"])
        for at, shape in enumerate(rng.choices(shapes, weights, k=PODS)):
            writer.writerow([f"p{at}", *shape])
    return nodes, pods


def allocation(policy, nodes, pods, *more):
    """In percent, the mean of some orders of the same pods."""
    runs = [sim("run", "--set", "openb", "--nodes", nodes, "--pods", pods, "--policy", policy, "--seed", seed, *more)
            for seed in POD_SEEDS]
    return statistics.mean(run["gpu_allocation_pct"] for run in runs)


def made_pods(report, folder):
    """Placement by worth beside fgd, on pods that nothing was chosen on."""
    made = [make_pods(number, folder) for number in MADE_FRESH]
    ours, theirs = (side_by_side([(policy, *files) for files in made], allocation) for policy in ("muster", "fgd"))
    gains = [a - b for a, b in zip(ours, theirs)]
    tell(report, "lab.made_pods.muster_gain_pts", statistics.mean(gains), "points", gains)


def places(report, folder):
    """Points of allocation with half and double of each setting of placement by worth, against the default."""
    made = [make_pods(number, folder) for number in MADE_CHOSEN_ON]
    placed = lambda *words: side_by_side([("muster", *files, *words) for files in made], allocation)
    usual = placed()
    for name, way, words in neighbours(PLACES, folder):
        gains = [mine - other for mine, other in zip(placed(*words), usual)]
        tell(report, f"lab.places.{name}_{way}_pts", statistics.mean(gains), "points", gains)


def generated(like, seed, folder):
    path = folder / f"{like}-{seed}.csv"
    words = [str(MUSTER), "sim", "generate", "--jobs", "4000", "--seed", str(seed), "--like", like]
    path.write_text(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return path


def forecasts(report, folder):
    """Bounds of the start, on the traces that their settings were chosen on and on others."""
    elastic = TRACES / "elasticflow"
    chosen_on = [*sorted((TRACES / "gavel" / "msr" / "seed0").glob("*.trace.gz")), elastic / "philly_103959.csv",
                 TRACES / "muri" / "trace1.csv.gz", TRACES / "muri" / "trace3.csv.gz", *sorted((TRACES / "chronus").glob("trace*.csv.gz")),
                 *(generated(like, seed, folder) for like in ("gavel", "philly") for seed in (1, 2))]
    others = [elastic / "itp" / f"cluster{number}.csv.gz" for number in ("01", "03", "05", "06", "10")]
    for name, files in (("chosen_on", chosen_on), ("others", others)):
        told = side_by_side([("run", "--set", "jobs", "--workload", file, "--policy", "muster", "--estimates") for file in files], sim)
        scores = [run["estimates"] for run in told]
        scores = [score for score in scores if score["waited"] >= LEAST_WAITS]
        covered = [score["coverage_pct"] for score in scores]
        tell(report, f"lab.forecasts.{name}_within_pct", statistics.mean(85 <= pct <= 95 for pct in covered) * 100, "%", covered)
        ratios = [score["pinball_s"] / score["queue_pinball_s"] for score in scores]
        tell(report, f"lab.forecasts.{name}_pinball", statistics.mean(ratios), "ratio", ratios)


PARTS = {"drawn": drawn, "realistic": realistic, "made_pods": made_pods, "sizes": sizes, "places": places, "forecasts": forecasts}
