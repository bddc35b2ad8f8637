#!/usr/bin/env python3
"""Estimates pi by throwing points, without any package. Saves when told to, goes on where it was.

    count.py [--points N] [--seed N]

Each worker throws its own part. SIGUSR1: save now and go on. SIGTERM: save and end. The state lies in
MUSTER_CHECKPOINT_DIR (or the folder it runs in), one file for each rank.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import sys

PART = 20_000  # points between two looks at the signals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rank = int(os.environ.get("MUSTER_RANK", 0))
    file = pathlib.Path(os.environ.get("MUSTER_CHECKPOINT_DIR", ".")) / f"count-{rank}.json"
    file.parent.mkdir(parents=True, exist_ok=True)

    wanted = set()
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda got, _: wanted.add(got))

    source = random.Random(f"{options.seed}/{rank}")
    thrown = inside = 0
    if file.exists():
        state = json.loads(file.read_text())
        thrown, inside = state["thrown"], state["inside"]
        version, numbers, gauss = state["source"]
        source.setstate((version, tuple(numbers), gauss))
        print(f"resumed at {thrown}", flush=True)

    def save():
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"thrown": thrown, "inside": inside, "source": source.getstate()}))
        new.replace(file)  # never half a file
        print(f"saved at {thrown}", flush=True)

    while thrown < options.points:
        part = min(PART, options.points - thrown)
        inside += sum(source.random() ** 2 + source.random() ** 2 < 1 for _ in range(part))
        thrown += part
        print(f"progress {thrown}/{options.points} pi {4 * inside / thrown:.6f}", flush=True)
        if wanted:
            save()
            if signal.SIGTERM in wanted:
                return 128 + signal.SIGTERM
            wanted.clear()
    print(f"pi {4 * inside / thrown:.6f} from {thrown} points", flush=True)
    file.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
