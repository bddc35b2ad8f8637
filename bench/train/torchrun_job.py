"""A rival's elastic job: torchrun starts it again whenever a worker comes or goes. Says when each step was done.

As much state as the gang that is measured has; it goes on from nothing after a restart, which is kinder to the rival than reading a
checkpoint would be.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
weights = torch.zeros(int(sys.argv[1]), requires_grad=True)
optimizer = torch.optim.Adam([weights])
while True:
    weights.grad = weights.detach() * 1e-3
    dist.all_reduce(weights.grad)
    optimizer.step()
    print(f"step rank {dist.get_rank()} of {dist.get_world_size()} pid {os.getpid()} at_us {time.monotonic_ns() // 1000}", flush=True)
