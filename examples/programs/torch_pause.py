#!/usr/bin/env python3
"""An ordinary PyTorch program that can be paused: it reports, saves when it is asked to, and goes on from there.

    torch_pause.py [--steps N] [--pace SECONDS]

`muster suspend`, or a queue that takes its GPU back, stops it after the step at hand; later it starts again and
resumes. Runs as well alone. Needs muster.py, which the package installs (in the source tree: python/muster.py).
"""
import argparse
import pathlib
import time

import torch

import muster


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pace", type=float, default=0.02, help="seconds of a step, at least")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    inputs = torch.randn(256, 8)
    outputs = inputs @ torch.arange(1.0, 9.0).unsqueeze(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    worker = muster.connect()
    file = pathlib.Path(worker.checkpoint_dir or ".") / "pause.pt"
    start = 0
    if file.exists():
        saved = torch.load(file)
        start = saved["step"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        print(f"goes on after step {start}", flush=True)
    worker.ready()
    for step in range(start + 1, options.steps + 1):
        loss = torch.nn.functional.mse_loss(model(inputs), outputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        worker.report(step=step, samples=step * len(inputs), loss=loss)
        if worker.wants_checkpoint or worker.wants_to_stop:
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(".new")
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, new)
            new.replace(file)  # never half a file
            worker.checkpointed(step, file)
        if worker.wants_to_stop:
            print(f"stops after step {step}", flush=True)
            return
        time.sleep(options.pace)
    print(f"loss {loss.item():.9f} after step {options.steps}", flush=True)


if __name__ == "__main__":
    main()
