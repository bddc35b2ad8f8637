"""The figures of the lab: how near its rivals come to their publications, and what Muster's own policy reaches.

Called by bench/run with the function that reports. What settings were chosen on is in lab_choices.py.
"""
import csv
import json
import statistics
import sys

import lab_choices
from control import run_parts
from lab_runs import LOADS, OPENB, POLLUX, ROOT, TRACES, play_file, side_by_side, sim, tell

POLLUX_SEEDS, OPENB_SEEDS = range(5), range(42, 52)
COPIES, LARGE_NODES = 32, 512
# By our name: the one in the publication's table.
PLACERS = {"fgd": "06-FGD", "best-fit": "05-BestFit", "dot-product": "02-DotProd", "random": "01-Random",
           "clustering": "03-GpuClustering", "packing": "04-GpuPacking"}
FIGURES = {
    "exact": ["lab.tiresias_exact", "lab.optimus_exact"],
    "pollux": ["lab.pollux_error_pct"],
    "muster": ["lab.muster.jct_1x_s", "lab.muster.p99_1x_vs_pollux", "lab.muster.makespan_1x_vs_pollux",
               "lab.muster.jct_2x_vs_pollux", "lab.muster.jct_05x_vs_pollux", "lab.decision_64_p50_ms", "lab.pollux.run_s"],
    "large": ["lab.decision_2048_p50_ms"],
    "estimates": ["lab.estimate_coverage_pct", "lab.estimate_pinball_vs_queue_quantile"],
    "pooling": ["lab.pooling.wait_h", "lab.pooling.utilisation_pct", "lab.pooling.gpus_saved_ratio",
                "lab.pooling.elastic_jct_ratio"],
    "openb": [*(f"lab.openb.{name.replace('-', '_')}_error_pts" for name in PLACERS), "lab.openb.muster_pct",
              "lab.openb.muster_worst_gain_pts", "lab.openb.run_s"],
    **lab_choices.FIGURES,
}


def play(policy, load, workload, seed=0):
    return play_file(policy, POLLUX / LOADS[load] / f"{workload}.csv", seed)


def published(policy, load):
    """By workload: the completion time of each job."""
    return json.loads((POLLUX / "reference" / f"jobload_{policy}-{load}.json").read_text())["jct_s"]


def p99(times):
    ordered = sorted(times)
    at = 0.99 * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def submitted(load, workload):
    with open(POLLUX / LOADS[load] / f"{workload}.csv", newline="") as file:
        return {row["name"]: float(row["time"]) for row in csv.DictReader(file)}


def exact(report, folder):
    for ours, theirs in (("tiresias", "tiresias"), ("optimus-oracle", "optimus")):
        same = []
        for load in LOADS:
            reference = published(theirs, load)
            runs = side_by_side([(ours, load, workload) for workload in reference], play)
            for run, times in zip(runs, reference.values()):
                same += [int(times[job["name"]] == job["jct_s"]) for job in run["jobs"]]
        tell(report, f"lab.{theirs}_exact", statistics.mean(same), "share", same)


def pollux(report, folder):
    calls, means = [], []
    for load in LOADS:
        for workload, times in published("pollux", load).items():
            calls += [("pollux", load, workload, seed) for seed in POLLUX_SEEDS]
            means += [statistics.mean(times.values())] * len(POLLUX_SEEDS)
    ratios = [run["mean_jct_s"] / mean for run, mean in zip(side_by_side(calls, play), means)]
    tell(report, "lab.pollux_error_pct", abs(statistics.mean(ratios) - 1) * 100, "%", ratios)


def muster(report, folder):
    """Ours on the workloads of the publication; each ratio is one of means over them."""
    runs = {}
    for load in LOADS:
        reference = published("pollux", load)
        runs[load] = [play("muster", load, workload) for workload in reference]  # one by one: they are timed
        theirs = {"mean_jct_s": [], "p99_jct_s": [], "makespan_s": []}
        for workload, times in reference.items():
            began = submitted(load, workload)
            theirs["mean_jct_s"].append(statistics.mean(times.values()))
            theirs["p99_jct_s"].append(p99(times.values()))
            theirs["makespan_s"].append(max(began[job] + time for job, time in times.items()))
        mean = {key: statistics.mean(run[key] for run in runs[load]) for key in theirs}
        ratio = {key: mean[key] / statistics.mean(values) for key, values in theirs.items()}
        if load == "1.0":
            tell(report, "lab.muster.jct_1x_s", mean["mean_jct_s"], "s", [run["mean_jct_s"] for run in runs[load]],
                   ("Pollux", statistics.mean(theirs["mean_jct_s"])))
            tell(report, "lab.muster.p99_1x_vs_pollux", ratio["p99_jct_s"], "ratio", [run["p99_jct_s"] for run in runs[load]])
            tell(report, "lab.muster.makespan_1x_vs_pollux", ratio["makespan_s"], "ratio", [run["makespan_s"] for run in runs[load]])
        else:
            name = "2x" if load == "2.0" else "05x"
            tell(report, f"lab.muster.jct_{name}_vs_pollux", ratio["mean_jct_s"], "ratio", [run["mean_jct_s"] for run in runs[load]])
    decisions = [run["policy_ms_p50"] for run in runs["1.0"]]
    tell(report, "lab.decision_64_p50_ms", statistics.median(decisions), "ms", decisions, ("Sia", 96))
    walls = [run["wall_s"] for run in runs["1.0"]]
    tell(report, "lab.pollux.run_s", statistics.median(walls), "s", walls)


def large(report, folder):
    """The first workload so many times over, on so many times the GPUs."""
    path = folder / "large.csv"
    with open(POLLUX / LOADS["1.0"] / "workload-1.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        for row in rows:
            for copy in range(COPIES):
                writer.writerow({**row, "name": f"{row['name']}-{copy}"})
    run = sim("run", "--set", "pollux", "--profiles", POLLUX, "--workload", path, "--policy", "muster",
              "--node-count", LARGE_NODES)
    tell(report, "lab.decision_2048_p50_ms", run["policy_ms_p50"], "ms", [run["policy_ms_p50"]], ("Sia", 1000))


def estimates(report, folder):
    """Bounds of the start that were given at the submission, over the jobs that had to wait."""
    files = [POLLUX / "philly.csv.gz", TRACES / "elasticflow" / "itp" / "cluster02.csv.gz"]
    scores = [sim("run", "--set", "jobs", "--workload", file, "--policy", "muster", "--estimates")["estimates"] for file in files]
    covered = [score["coverage_pct"] for score in scores]
    tell(report, "lab.estimate_coverage_pct", max(covered, key=lambda pct: abs(pct - 90)), "%", covered)
    ratios = [score["pinball_s"] / score["queue_pinball_s"] for score in scores]
    tell(report, "lab.estimate_pinball_vs_queue_quantile", max(ratios), "ratio", ratios)


def pooling(report, folder):
    """The Philly trace with guaranteed quotas, beside fixed ones; the page with the plots goes to bench/results/raw/pooling."""
    got = sim("pooling", "--workload", POLLUX / "philly.csv.gz", "--percentiles", "95,80,90,99,100", "--to",
              ROOT / "bench" / "results" / "raw" / "pooling", "--yes")
    ways = [{way["name"]: way for way in size["ways"]} for size in got["sizes"]]
    first = ways[0]
    waits = [way["guaranteed"]["mean_wait_s"] / 3600 for way in ways]
    tell(report, "lab.pooling.wait_h", waits[0], "h", waits, ("fixed quotas, here", first["fixed"]["mean_wait_s"] / 3600))
    used = [way["guaranteed"]["utilisation_pct"] for way in ways]
    tell(report, "lab.pooling.utilisation_pct", used[0], "%", used,
         ("fixed quotas with the same wait, here", first["fixed-same-wait"]["utilisation_pct"]))
    saved = [way["fixed-same-wait"]["gpus"] / way["guaranteed"]["gpus"] for way in ways]
    tell(report, "lab.pooling.gpus_saved_ratio", saved[0], "ratio", saved, ("a vendor: experiments for each GPU", 2))
    faster = [way["elastic"]["mean_jct_s"] / way["guaranteed"]["mean_jct_s"] for way in ways]
    tell(report, "lab.pooling.elastic_jct_ratio", faster[0], "ratio", faster)


def openb(report, folder):
    nodes = OPENB / "openb_node_list_gpu_node.csv"
    with open(OPENB / "reference" / "summary.csv", newline="") as file:
        theirs = {(row["workload"], row["policy"]): float(row["gpu_allocation_pct_mean"])
                  for row in csv.DictReader(file) if row["arrived_gpu_pct"] == "130"}
    errors = {name: [] for name in PLACERS}
    gains, default, walls = [], [], []
    for pods in sorted(OPENB.glob("openb_pod_list_*.csv*")):
        trace = pods.name.removeprefix("openb_pod_list_").split(".")[0]
        runs = sim("compare", "--set", "openb", "--nodes", nodes, "--pods", pods, "--policies", ",".join([*PLACERS, "muster"]),
                   "--seed", OPENB_SEEDS.start, "--seeds", len(OPENB_SEEDS))["runs"]
        by_policy = {name: [run for run in runs if run["policy"] == name] for name in [*PLACERS, "muster"]}
        mean = {name: statistics.mean(run["gpu_allocation_pct"] for run in got) for name, got in by_policy.items()}
        for name, published_name in PLACERS.items():
            errors[name].append(abs(mean[name] - theirs[trace, published_name]))
        gains.append(mean["muster"] - mean["fgd"])
        if trace == "default":
            default = [run["gpu_allocation_pct"] for run in by_policy["muster"]]
            walls = [run["wall_s"] for run in by_policy["fgd"]]
    for name, values in errors.items():
        tell(report, f"lab.openb.{name.replace('-', '_')}_error_pts", max(values), "points", values)
    tell(report, "lab.openb.muster_pct", statistics.mean(default), "%", default, ("FGD", theirs["default", PLACERS["fgd"]]))
    tell(report, "lab.openb.muster_worst_gain_pts", min(gains), "points", gains)
    tell(report, "lab.openb.run_s", statistics.median(walls), "s", walls)


PARTS = {"exact": exact, "pollux": pollux, "muster": muster, "large": large, "estimates": estimates, "openb": openb,
         "pooling": pooling, **lab_choices.PARTS}
ASKED_FOR = ("pooling", *lab_choices.PARTS)  # take many minutes each: only where they are named


def run(words, report):
    if not POLLUX.is_dir() or not OPENB.is_dir():
        sys.exit(f"the public traces are not in {TRACES}; $MUSTER_TRACES names their folder")
    run_parts(PARTS, FIGURES, words or [part for part in PARTS if part not in ASKED_FOR], report)
