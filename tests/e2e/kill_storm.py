#!/usr/bin/env python3
"""kill_storm.py BUILD [--kills N] [--jobs N] [--seed S] [--gpus N]: kill -9 of a loaded musterd at random moments.

Jobs are real processes that write down when they begin and end and which GPU they were given, and exit with a code of
their own. A submitter goes on submitting through the storm and counts only what was accepted. Afterwards: no accepted job
is lost, none was started twice, no GPU was held by two workers at a time, every recorded exit is the one that happened,
and jobs that ran across a kill ran on. Prints one JSON object; exit status 1 when something is wrong.
"""
import argparse
import http.client
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from daemon import Daemon, Refused

# Begin and end are written down with the time, each by one append.
WORK = 'echo "begin $JOB $CUDA_VISIBLE_DEVICES $(date +%s%N)" >> "$STORY"; sleep $TIME; ' \
       'echo "end $JOB $CUDA_VISIBLE_DEVICES $(date +%s%N)" >> "$STORY"; exit $CODE'


def spec(index, rng, story):
    return {"name": f"storm-{index}", "queue": "default", "gpus": 1, "command": ["/bin/sh", "-c", WORK], "workdir": "/tmp",
            "env": {"JOB": str(index), "STORY": str(story), "CODE": str(rng.choice([0, 0, 0, 3, 7])),
                    "TIME": f"{rng.choice([0, 0.02, 0.1, 0.4, 1.5]):g}"}}


class Submitter(threading.Thread):
    """Submits all jobs, each until it is accepted; a request that got no answer is sent again with its key."""

    def __init__(self, daemon, specs, pace):
        super().__init__(daemon=True)
        self.musterd, self.specs, self.pace = daemon, specs, pace
        self.accepted, self.error = {}, None

    def run(self):
        try:
            for index, job in enumerate(self.specs):
                self.submit(index, job)
                time.sleep(self.pace)
        except Exception as error:  # shown by the main thread
            self.error = error

    def submit(self, index, job):
        deadline = time.monotonic() + 120
        while True:
            try:
                self.accepted[index] = self.musterd.submit(job, key=f"storm-{index}")
                return
            except (OSError, http.client.HTTPException):
                pass
            except Refused as refusal:
                if refusal.status not in (503, 500):
                    raise
            if time.monotonic() > deadline:
                raise TimeoutError(f"job {index} was never accepted")
            time.sleep(0.01)


def read_story(path):
    begins, ends = {}, {}
    for line in path.read_text().splitlines():
        what, job, gpu, at = line.split()
        (begins if what == "begin" else ends).setdefault(int(job), []).append((gpu, int(at)))
    return begins, ends


def double_booked(begins, ends):
    """Pairs of jobs whose times on one GPU overlap."""
    spans = {}
    for job, list_of in begins.items():
        for (gpu, begin), (_, end) in zip(list_of, ends.get(job, [])):
            spans.setdefault(gpu, []).append((begin, end, job))
    clashes = []
    for gpu, of_gpu in spans.items():
        of_gpu.sort()
        clashes += [(gpu, a[2], b[2]) for a, b in zip(of_gpu, of_gpu[1:]) if b[0] < a[1]]
    return clashes


def settle(daemon, accepted, seconds):
    """All jobs by id, once they have ended; history included."""
    deadline = time.monotonic() + seconds
    while True:
        if not daemon.call("GET", "jobs?limit=1")["jobs"] or time.monotonic() > deadline:
            return {job["id"]: job for job in daemon.jobs(all=1)}
        time.sleep(0.1)


def storm(daemon, submitter, kills, rng):
    """Kills and restarts; returns the moments of the kills."""
    moments = []
    for _ in range(kills):
        time.sleep(rng.uniform(0.0, 0.35))
        moments.append(time.time_ns())
        daemon.kill()
        daemon.start()
        if submitter.error:
            raise submitter.error
    return moments


def judge(jobs, submitter, specs, story, moments):
    begins, ends = read_story(story)
    lost = [i for i, job in submitter.accepted.items()
            if jobs.get(job, {}).get("status", {}).get("phase") not in ("succeeded", "failed")]
    doubled = [i for i, list_of in begins.items() if len(list_of) > 1]
    never = [i for i in submitter.accepted if i not in begins]
    wrong = []
    for i, job in submitter.accepted.items():
        exit_facts = jobs.get(job, {}).get("status", {}).get("termination", {}).get("exit", {})
        if exit_facts.get("exit_code") != int(specs[i]["env"]["CODE"]):
            wrong.append((i, job, exit_facts))
    across = sum(1 for i, list_of in begins.items() if i in ends
                 and any(list_of[0][1] < moment < ends[i][0][1] for moment in moments))
    clashes = double_booked(begins, ends)
    return {"kills": len(moments), "jobs": len(submitter.accepted), "lost": len(set(lost) | set(never)),
            "doubled": len(doubled), "double_booked": len(clashes), "wrong_exits": len(wrong), "ran_across_a_kill": across,
            "examples": {"lost": lost[:3], "never": never[:3], "doubled": doubled[:3], "clashes": clashes[:3],
                         "wrong": wrong[:3]}}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build")
    ap.add_argument("--kills", type=int, default=20)
    ap.add_argument("--jobs", type=int, default=200)
    ap.add_argument("--gpus", type=int, default=32)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--keep", help="a folder to leave everything in")
    a = ap.parse_args()
    rng = random.Random(a.seed)
    folder = pathlib.Path(a.keep or tempfile.mkdtemp(prefix="muster-storm-"))
    story = folder / "story"
    folder.mkdir(parents=True, exist_ok=True)
    story.touch()
    specs = [spec(i, rng, story) for i in range(a.jobs)]
    daemon = Daemon(a.build, folder, "--virtual-gpus", str(a.gpus))
    daemon.start()
    # The jobs are spread over the storm.
    submitter = Submitter(daemon, specs, pace=a.kills * 0.2 / a.jobs)
    submitter.start()
    try:
        moments = storm(daemon, submitter, a.kills, rng)
        submitter.join()
        if submitter.error:
            raise submitter.error
        jobs = settle(daemon, submitter.accepted, 120)
    finally:
        daemon.stop()
    result = judge(jobs, submitter, specs, story, moments)
    good = result["jobs"] == a.jobs and not any(result[k] for k in ("lost", "doubled", "double_booked", "wrong_exits"))
    print(json.dumps(result))
    if good and not a.keep:
        shutil.rmtree(folder, ignore_errors=True)
    elif not good:
        print(f"kill_storm: left in {folder}", file=sys.stderr)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
