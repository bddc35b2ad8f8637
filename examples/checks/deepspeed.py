#!/usr/bin/env python3
"""Ends well when the variables are those that deepspeed.init_distributed reads."""
import os

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
assert 0 <= rank < size == int(os.environ["MUSTER_WORLD_SIZE"])
assert 0 <= int(os.environ["LOCAL_RANK"]) < int(os.environ["LOCAL_WORLD_SIZE"]) <= size
assert os.environ["MASTER_ADDR"] and 0 < int(os.environ["MASTER_PORT"]) < 65536
print(f"rank {rank} of {size}")
