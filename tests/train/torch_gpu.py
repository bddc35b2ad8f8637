"""What holds on a GPU: trains with one worker and with several on it, and prints a line of JSON for each run.

Usage: torch_gpu.py BUILD [--device cuda|cpu] [--digits FILE] [--steps N]. Not part of the tests: those run without a GPU.
Ends with status 1 when a number of workers, a kill or a sum by NCCL changed the hash of the parameters.
"""
import argparse
import json
import os
import re
import subprocess
import sys

from gang import Gang, mismatches

STEP = re.compile(r"step (\d+)/\d+  loss (\S+)  \d+ workers?  (\d+) samples/s")


def train(program, options):
    command = [program]
    for key, value in options.items():
        command += ["--" + key.replace("_", "-"), str(value)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    rows = [(int(step), float(loss), int(rate)) for step, loss, rate in STEP.findall(ended.stdout)]
    rates = sorted(rate for _, _, rate in rows[1:] or rows)  # the first second has the start in it
    out = {"loss": [[step, loss] for step, loss, _ in rows[:1] + rows[-1:]],
           "step_ms": round(1000 * options["batch"] / rates[len(rates) // 2], 2), "seconds_seen": len(rates)}
    lines = ended.stdout.splitlines()
    out["test"] = next(line.split(": ", 1)[1] for line in lines if "kept apart" in line)
    out["hash"] = next(line.split()[-1] for line in lines if line.startswith("hash"))
    out["used"] = lines[-1]
    return out


def kill_one(program, options):
    """Three workers, one is killed and another one comes; every step against one worker alone."""
    told = {**options, "every_step": "true"}
    with Gang(program, **told) as alone:
        alone.start()
        alone.wait_ended(300)
        truth = alone.hashes()
    with Gang(program, **told, min_workers=3) as gang:
        for _ in range(3):
            gang.start()
        gang.wait(lambda: gang.last_step() >= options["steps"] // 4, 300)
        gang.workers[0].kill()
        gang.start()
        gang.wait_ended(300)
        wrong = mismatches(gang, truth)
        return {"steps": len({step.step for worker in gang.workers for step in worker.steps}), "of": options["steps"], "steps_with_other_bits": len(wrong)}


def no_nccl(program, options):
    """Why there are no sums by NCCL here; none: there are."""
    tried = {**options, "exact": "false", "sum": "nccl", "steps": 1, "batch": 4}
    command = [program, *(word for key, value in tried.items() for word in ("--" + key.replace("_", "-"), str(value)))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stderr.strip() if ended.returncode else None


def start_on_host(gang, log):
    """As on a host of its own: NCCL takes no GPU twice on one. It logs each sum that it makes."""
    told = {"NCCL_HOSTID": f"host-{len(gang.workers)}", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "COLL", "NCCL_DEBUG_FILE": log}
    return gang.start(before=["env", *(f"{key}={value}" for key, value in told.items())])


def sum_by_nccl(program, options, kill):
    """Two workers, whose sums have the bits of exact ones: each is of two. Or three, of which one is killed while NCCL sums."""
    told = {**options, "every_step": "true"}
    truth = {}
    if not kill:
        with Gang(program, **told) as alone:
            alone.start()
            alone.wait_ended(300)
            truth = alone.hashes()
    count = 3 if kill else 2
    with Gang(program, **told, exact="false", sum="nccl", min_workers=2, first_workers=count) as gang:
        logs = [gang.folder / f"nccl-{index}" for index in range(count)]
        for log in logs:
            start_on_host(gang, log)
        if kill:
            gang.wait(lambda: not gang.alive() or sums_in(logs[0]) > 0, 300)
            gang.workers[1].kill()
        gang.wait_ended(300)
        finished = all(worker.end == "finished" for worker in gang.workers if not worker.killed)
        seen = {}
        for worker in gang.workers:
            for step in worker.steps:
                seen.setdefault((step.generation, step.step), set()).update(step.hashes.values())
        wrong = mismatches(gang, truth) if truth else [step for step, hashes in seen.items() if len(hashes) > 1]
        return {"workers": count, "finished": finished, "steps": len({step for _, step in seen}), "of": options["steps"],
                "sums": sums_in(logs[0]), "views": len({generation for generation, _ in seen}), "steps_with_other_bits": len(wrong)}


def sums_in(log):
    return log.read_text(errors="replace").count("Reduce: opCount") if log.exists() else 0


def by_nccl(program, options):
    """Whether all is well."""
    if why := no_nccl(program, options):
        print(json.dumps({"run": "text, NCCL", "skipped": why}), flush=True)
        return True
    well = True
    for kill in (False, True):
        row = sum_by_nccl(program, options, kill)
        print(json.dumps({"run": "text, NCCL, a kill" if kill else "text, NCCL", **row}), flush=True)
        well = well and row["finished"] and row["sums"] > 0 and row["steps"] == row["of"] and not row["steps_with_other_bits"]
    return well


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--digits", default="")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--nccl-only", action="store_true")
    flags = parser.parse_args()
    program = os.path.join(flags.build, "bin", "muster-train-torch")
    common = {"device": flags.device, "shards": 4, "rate": "constant:rate=0.001"}
    pictures = {**common, "model": "conv:digits", "data": "digits" + (":" + flags.digits if flags.digits else ""),
                "batch": 256, "steps": 10 * flags.steps}
    text = {**common, "model": "transformer:layers=4,width=384,heads=6,context=256,dropout=0.1", "data": "text",
            "batch": 64, "steps": flags.steps}
    if flags.nccl_only:
        sys.exit(None if by_nccl(program, {**text, "steps": 3 * flags.steps}) else "the result depends on NCCL")
    runs = [("pictures", pictures, (1, 2, 3)), ("text", text, (1, 2, 3)),
            ("text, bfloat16", {**text, "precision": "bfloat16"}, (1, 2))]
    if flags.device == "cuda":
        runs.append(("text, float16", {**text, "precision": "float16", "loss_scale": 1024}, (1, 2)))
    differs = False
    for name, options, counts in runs:
        hashes = set()
        for workers in counts:
            row = train(program, {**options, "workers": workers})
            hashes.add(row["hash"])
            print(json.dumps({"run": name, "workers": workers, "batch": options["batch"], **row}), flush=True)
        differs = differs or len(hashes) > 1
    row = kill_one(program, {**text, "steps": min(40, flags.steps)})
    print(json.dumps({"run": "text, a kill", **row}), flush=True)
    well = by_nccl(program, {**text, "steps": 3 * flags.steps})
    if differs or not well or row["steps_with_other_bits"] or row["steps"] != row["of"]:
        sys.exit("the result depends on the workers")


if __name__ == "__main__":
    main()
