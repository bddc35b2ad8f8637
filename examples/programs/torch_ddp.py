#!/usr/bin/env python3
"""Trains a small network with DistributedDataParallel on made data; a plain PyTorch program.

    torch_ddp.py [--steps N] [--save-every N]

Knows nothing of Muster but MUSTER_CHECKPOINT_DIR. SIGUSR1: save and go on. SIGTERM: save and end.
Runs as well under torchrun, or alone.
"""
import argparse
import os
import pathlib
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def make_data(rank):
    """A noisy line in 8 dimensions; each rank has points of its own."""
    source = torch.Generator().manual_seed(1000 + rank)
    inputs = torch.randn(64, 8, generator=source)
    outputs = inputs @ torch.arange(1.0, 9.0).unsqueeze(1) + 0.1 * torch.randn(64, 1, generator=source)
    return inputs, outputs


def save(file, step, model, optimizer):
    new = file.with_suffix(".new")
    torch.save({"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, new)
    new.replace(file)  # never half a file
    print(f"saved at step {step}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-every", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        os.environ.setdefault(name, value)
    signals = {signal.SIGUSR1: 0, signal.SIGTERM: 0}
    for number in signals:
        signal.signal(number, lambda got, _: signals.update({got: 1}))

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.002)
    file = pathlib.Path(os.environ.get("MUSTER_CHECKPOINT_DIR", ".")) / "torch_ddp.pt"
    file.parent.mkdir(parents=True, exist_ok=True)
    first = 0
    if file.exists():
        state = torch.load(file)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    dist.barrier()  # nobody may write the file before all have read it
    print(f"rank {rank} of {size} begins at step {first}", flush=True)

    inputs, outputs = make_data(rank)
    for step in range(first + 1, options.steps + 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), outputs)
        loss.backward()
        optimizer.step()
        # One process may be told before the others: what one was told, all do, in the same step.
        told = torch.tensor([signals[signal.SIGUSR1], signals[signal.SIGTERM]])
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
        if rank == 0 and (told.any() or (options.save_every and step % options.save_every == 0)):
            save(file, step, model, optimizer)
        if told[0]:
            signals[signal.SIGUSR1] = 0
        if told[1]:
            dist.barrier()
            return 128 + signal.SIGTERM
    total = sum(float(part.double().sum()) for part in model.module.parameters())
    print(f"rank {rank} ends at step {options.steps} loss {loss.item():.4f} parameters {total:.12f}", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
