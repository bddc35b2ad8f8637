"""A rival's overlap: DistributedDataParallel over Gloo trains a transformer of the size that the gang is measured with.

ddp_job.py RANK ADDRESS ROUNDS STEPS BUCKET_MB: one of two ranks; ADDRESS is that of rank 0. Prints a line of JSON for each round: the
middle time of a step in ms, with DDP ("both"), of the same model without it, while the other rank does the same ("compute"), and of
sums alone, of as many bytes in as many pieces as DDP sends ("communication").
"""
import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, CONTEXT, VOCABULARY, LAYERS, HEADS, BATCH = 128, 64, 96, 6, 4, 16  # as in train_gangs.py; the batch is that of one rank
SKIPPED = 5


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0, activation="gelu", batch_first=True,
                                                               norm_first=True) for _ in range(LAYERS))
        self.norm, self.next = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.later = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)

    def forward(self, text):
        x = self.characters(text) + self.places.weight
        for block in self.blocks:
            x = block(x, self.later)
        return self.next(self.norm(x))


def step_ms(steps, step):
    dist.barrier()
    ended = []
    for _ in range(steps):
        step()
        ended.append(time.monotonic_ns())
    return statistics.median(b - a for a, b in zip(ended[SKIPPED:], ended[SKIPPED + 1:])) / 1e6


def training(model):
    optimizer = torch.optim.Adam(model.parameters())
    text = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()).backward()
        optimizer.step()
    return step


def main():
    rank, address, rounds, steps, bucket_mb = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"tcp://{address}:29500", rank=rank, world_size=2)
    ddp = DistributedDataParallel(Transformer(), bucket_cap_mb=bucket_mb)
    both, compute = training(ddp), training(Transformer())
    step_ms(SKIPPED + 2, both)  # DDP cuts its buckets anew after the first step
    sizes = [int(size) for size in ddp._get_ddp_logging_data()["rebuilt_bucket_sizes"].split(",")]
    pieces = [torch.zeros(size // 4) for size in sizes]

    def communication():
        for work in [dist.all_reduce(piece, async_op=True) for piece in pieces]:
            work.wait()

    for _ in range(rounds):
        print(json.dumps({"both": step_ms(steps, both), "compute": step_ms(steps, compute),
                          "communication": step_ms(steps, communication), "bytes": sizes}), flush=True)


if __name__ == "__main__":
    main()
