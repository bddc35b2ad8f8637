"""Part `schedules` of the suite `train`: whatever happens to the workers of a job, no step and no sample shows it.

Workers of the release build are started, told to leave, killed and frozen as a seed says (tests/train/schedules.py).
"""
import sys

from control import BUILD, ROOT, machine

sys.path.insert(0, str(ROOT / "tests" / "train"))
import schedules as drawn

COUNT = 240
SEED = 2026
FIGURES = ["train.schedules_tried", "train.hash_mismatches", "train.samples_missed_or_doubled"]


def schedules(report, folder):
    outcomes = list(drawn.draw(COUNT, SEED, BUILD))
    for outcome in outcomes:
        if outcome.wrong:
            print(outcome.wrong, file=sys.stderr)
    # One in which nothing happened before the last step is no try.
    tried = [outcome for outcome in outcomes if outcome.strikes and outcome.finished]
    mismatches = [len(outcome.mismatches) for outcome in outcomes]
    samples = [outcome.missed + outcome.doubled for outcome in outcomes]
    report("train.schedules_tried", len(tried), "count", [outcome.strikes for outcome in tried], machine())
    report("train.hash_mismatches", sum(mismatches), "count", mismatches, machine())
    report("train.samples_missed_or_doubled", sum(samples), "count", samples, machine())
