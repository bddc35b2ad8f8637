"""What holds on a GPU: trains with one worker and with several on it, and prints a line of JSON for each run.

Usage: torch_gpu.py BUILD [--device cuda|cpu] [--digits FILE] [--steps N]. Not part of the tests: those run without a GPU.
Ends with status 1 when a number of workers, or a kill, changed the hash of the parameters.
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--digits", default="")
    parser.add_argument("--steps", type=int, default=100)
    flags = parser.parse_args()
    program = os.path.join(flags.build, "bin", "muster-train-torch")
    common = {"device": flags.device, "shards": 4, "rate": "constant:rate=0.001"}
    pictures = {**common, "model": "conv:digits", "data": "digits" + (":" + flags.digits if flags.digits else ""),
                "batch": 256, "steps": 10 * flags.steps}
    text = {**common, "model": "transformer:layers=4,width=384,heads=6,context=256,dropout=0.1", "data": "text",
            "batch": 64, "steps": flags.steps}
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
    if differs or row["steps_with_other_bits"] or row["steps"] != row["of"]:
        sys.exit("the result depends on the workers")


if __name__ == "__main__":
    main()
