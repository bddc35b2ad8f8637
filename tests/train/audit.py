"""Whether every sample of every epoch counted exactly once, from what the workers wrote with --audit (src/train/run/audit.h).

Usage: audit.py STEPS BATCH FILE...: says what is wrong, and exits 1 if anything is. A step may have been begun in several views; it
counts in the last view that began before it and was followed by one that begins behind it, or by none. Who was killed in
the middle of a line had not yet computed what it says.
"""
import re
import sys

VIEW = re.compile(r"view (\d+) step (\d+) members \d+ columns (\d+) shards (\d+) epoch (\d+)")
TAKE = re.compile(r"take (\d+) (\d+) column (\d+) shard (\d+) samples ([\d,]*)")
DONE = re.compile(r"done (\d+) (\d+)")


class Log:
    """All that the workers of a job wrote, in whatever order."""

    def __init__(self, paths):
        self.views = {}  # generation: steps that were done when it began
        self.shape = None  # columns, shards, samples of an epoch
        self.takes = {}  # (generation, step): [((column, shard), samples)]
        self.done = {}  # generation: the last step that somebody completed in it
        self.strange = []  # what contradicts itself
        for path in paths:
            with open(path) as lines:
                for line in lines:
                    if line.endswith("\n"):
                        self.read(line.strip())

    def read(self, line):
        if match := TAKE.fullmatch(line):
            generation, step, column, shard = (int(match[i]) for i in range(1, 5))
            samples = [int(sample) for sample in match[5].split(",") if sample]
            self.takes.setdefault((generation, step), []).append(((column, shard), samples))
        elif match := DONE.fullmatch(line):
            generation, step = int(match[1]), int(match[2])
            self.done[generation] = max(step, self.done.get(generation, 0))
        elif match := VIEW.fullmatch(line):
            generation, step, *shape = (int(match[i]) for i in range(1, 6))
            if self.views.setdefault(generation, step) != step or (self.shape or shape) != shape:
                self.strange.append(f"workers differ about view {generation}: {line}")
            self.shape = shape
        else:
            self.strange.append(f"no line of an audit: {line}")

    def standing(self):
        """The generation that each step counts in."""
        out, generations = {}, sorted(self.views)
        for generation, later in zip(generations, generations[1:] + [None]):
            begun = self.views[generation]
            last = self.done.get(generation, begun) if later is None else self.views[later]
            for step in [step for step in out if step > begun]:
                del out[step]  # the job went back
            for step in range(begun + 1, last + 1):
                out[step] = generation
        return out


def first_empty(taken):
    return next((shard for shard, attempts in taken.items() if not attempts), len(taken))


def check(paths, steps, batch):
    """Samples that were missed, samples that counted twice, and what else is wrong (empty: nothing)."""
    log = Log(paths)
    if log.shape is None:
        return steps * batch, 0, ["nobody wrote anything"]
    columns, shards, epoch = log.shape
    standing = log.standing()
    missed = doubled = 0
    strange = log.strange + [f"step {step} was never done" for step in range(1, steps + 1) if step not in standing]
    for column in range(columns):
        drawn = []  # in the order of the run; None: by nobody
        for step in range(1, steps + 1):
            taken = {shard: [] for shard in range(shards)}
            for (where, shard), samples in log.takes.get((standing.get(step), step), []):
                if where == column:
                    taken[shard].append(samples)
            once = [sample for attempts in taken.values() for samples in attempts[:1] for sample in samples]
            again = sum(len(samples) for attempts in taken.values() for samples in attempts[1:])
            if again or len(once) != batch:
                strange.append(f"step {step}, column {column}: {len(once)} samples of {batch}, {again} of them again")
            doubled += again + max(0, len(once) - batch)
            missed += max(0, batch - len(once))
            before = [samples for shard, attempts in taken.items() if shard < first_empty(taken) for samples in attempts[:1]]
            gap = sum(map(len, before))  # so that what comes later stays in its epoch
            drawn += (once[:gap] + [None] * (batch - len(once)) + once[gap:])[:batch]
        for first in range(0, len(drawn), epoch):
            part = [sample for sample in drawn[first:first + epoch] if sample is not None]
            wrong = len(part) - len({sample for sample in part if sample < epoch})
            doubled += wrong  # and as many others were missed, where the epoch is whole
            if wrong:
                strange.append(f"epoch {first // epoch}, column {column}: {wrong} samples again, or from nowhere")
    return missed, doubled, strange


def main():
    missed, doubled, strange = check(sys.argv[3:], int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(strange + [f"{missed} samples missed, {doubled} doubled"]))
    sys.exit(1 if missed or doubled or strange else 0)


if __name__ == "__main__":
    main()
