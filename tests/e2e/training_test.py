#!/usr/bin/env python3
"""training_test.py BUILD: training under the scheduler: jobs that grow, give back and are paused, with the result of one that was not;
and the examples, as they are typed."""
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from daemon import Daemon  # noqa: E402
from needs import missing  # noqa: E402


def sanitized(build):
    """Whether steps of that build take some ten times as long."""
    cache = pathlib.Path(build, "CMakeCache.txt")
    return cache.is_file() and re.search(r"^MUSTER_SANITIZE:\w+=\w", cache.read_text(), re.MULTILINE) is not None


SANITIZED = sanitized(sys.argv[1])
SLOW = "takes minutes under a sanitizer; clang's build runs it"
PATIENT = "--timeout-ms=10000"  # so that only who has ended is lost, however busy the machine is
TRAIN = ["--data=text:/usr/share/common-licenses/GPL-3", "--model=transformer:layers=1,width=32,heads=2,context=32,vocab=96",
         "--batch=16", PATIENT]
# Steps of some hundred milliseconds, so that what is told in one is heard in it.
HEAVY = ["--data=text:/usr/share/common-licenses/GPL-3", "--model=transformer:layers=4,width=128,heads=4,context=64,vocab=96", "--batch=96",
         PATIENT]
DIGITS = [pathlib.Path("/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"),
          pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache/muster/digits.csv.gz")]  # where `--data=digits` looks
# Says each size that it is told of: its process, the generation, and how many workers there are.
SIZES = """import os, muster
worker, told = muster.connect(), None
worker.ready()
while not worker.wait_to_stop(0.02):
    if worker.generation != told:
        told = worker.generation
        print(os.getpid(), told, worker.world_size, flush=True)
"""


def of_model(text):
    """What is said of the trained model: how good it is, and its hash."""
    return {line for line in text.splitlines() if "kept apart" in line or line.startswith("hash of the parameters")}


def stands_still(pid):
    """Whether all threads of a process have stopped."""
    try:
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        return {(task / "stat").read_text().rsplit(")", 1)[1].split()[0] for task in tasks} == {"T"}
    except OSError:
        return False  # a thread has ended meanwhile


class Box(unittest.TestCase):
    """Four GPUs, and what the daemon has when it is new."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-training-"))
        self.daemon = Daemon(BUILD, self.folder, "--virtual-gpus", "4")
        self.daemon.start()

    def tearDown(self):
        for job in self.daemon.call("GET", "jobs")["jobs"]:
            self.muster("cancel", job["id"])
            self.daemon.wait(job["id"])
        self.daemon.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def muster(self, *words, cwd=None):
        return subprocess.run([str(self.daemon.bin / "muster"), "--socket", str(self.daemon.socket), *words], capture_output=True, text=True,
                              timeout=60, check=False, cwd=cwd)

    def wait_until(self, condition, what):
        deadline = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"never {what}")
            time.sleep(0.05)


class Training(Box):
    def setUp(self):
        super().setUp()
        queues = self.folder / "queues.yaml"
        queues.write_text("queues: [{name: ana, quota: {gpus: 2}}, {name: ben, quota: {gpus: 2}}]\n")
        applied = self.muster("queue", "apply", str(queues))
        self.assertEqual(applied.returncode, 0, applied.stderr)

    def steps_that_last(self, seconds, tried=400):
        """So many take one worker on this machine about so long."""
        begun = time.monotonic()
        subprocess.run([str(self.daemon.bin / "muster-train"), *TRAIN, f"--steps={tried}"], capture_output=True, timeout=600, check=True)
        return round(tried * seconds / (time.monotonic() - begun))

    def trained_alone(self, steps):
        """One worker that nobody disturbs: the loss of each step, and what it says of its model."""
        train, model = str(self.daemon.bin / "muster-train"), self.folder / "alone.safetensors"
        run = subprocess.run([train, *TRAIN, f"--steps={steps}", "--every-step=true", f"--keep={model}"], capture_output=True, text=True,
                             timeout=600, check=True)
        losses = {int(step): float(loss) for step, loss in re.findall(r"^step (\d+) .* loss (\S+)", run.stdout, re.MULTILINE)}
        self.assertEqual(sorted(losses), list(range(1, steps + 1)))
        told = subprocess.run([train, "--test", str(model)], capture_output=True, text=True, timeout=60, check=True)
        return losses, of_model(told.stdout)

    def said(self, one):
        """The last report of each worker that runs."""
        workers = self.daemon.call("GET", f"jobs/{one}/workers")["workers"]
        return [worker.get("report") or {} for worker in workers if worker["phase"] == "running"]

    def policy(self, settings):
        """How the scheduler decides from now on."""
        file = self.folder / "policy.yaml"
        file.write_text(f"name: of-the-test\npolicy: {{{settings}}}\n")
        applied = self.muster("policy", "apply", str(file), "--yes")
        self.assertEqual(applied.returncode, 0, applied.stderr)

    def endless(self, **fields):
        """A job that trains until it is cancelled."""
        return self.daemon.submit({"name": "lm", "queue": "ana", "gpus": 1, "framework": "muster", "workdir": str(self.folder),
                                   "command": ["muster-train", *TRAIN, "--steps=100000000"], **fields})

    def history(self, one):
        """Each change of its size: from, to, what."""
        return [(size["from"], size["to"], size["what"]) for size in self.daemon.call("GET", f"jobs/{one}")["status"].get("sizes", [])]

    def events(self, one, kind):
        return [event["facts"] for event in self.daemon.call("GET", f"jobs/{one}/events?limit=100")["events"] if event["kind"] == kind]

    def sizes(self, one):
        return {report.get("numbers", {}).get("workers") for report in self.said(one)}

    def test_an_elastic_job_starts_at_its_minimum_where_no_more_is_free_grows_gives_back_and_grows_again_with_the_same_result(self):
        steps = self.steps_that_last(40)  # all of what follows happens before the last
        losses, model = self.trained_alone(steps)
        self.policy("by_goodput: off")  # on few cores more workers are no faster
        first = self.daemon.submit({"name": "first", "queue": "ana", "gpus": 3, "command": ["sleep", "600"]})
        self.daemon.wait(first, ("running",))
        one = self.daemon.submit({"name": "lm", "queue": "ana", "workers": "1..4", "gpus": 1, "framework": "muster",
                                  "command": ["muster-train", *TRAIN, f"--steps={steps}"], "workdir": str(self.folder)})
        self.wait_until(lambda: self.sizes(one) == {1}, "at its minimum")
        self.assertEqual(self.history(one), [(0, 1, "started")])
        self.muster("cancel", first)
        self.wait_until(lambda: self.sizes(one) == {4}, "at four workers")
        other = self.daemon.submit({"name": "other", "queue": "ben", "gpus": 2, "command": ["sleep", "600"]})
        self.daemon.wait(other, ("running",))
        self.wait_until(lambda: self.sizes(one) == {2}, "back to two workers")
        self.muster("cancel", other)
        self.wait_until(lambda: self.sizes(one) == {4}, "at four workers again")
        got = self.daemon.wait(one, seconds=600)
        self.assertEqual(got["status"]["phase"], "succeeded", self.muster("logs", one, "--err").stdout)
        lines = {line for rank in range(4) for line in of_model(self.muster("logs", one, "--rank", str(rank)).stdout)}
        self.assertEqual(lines, model)
        self.assertEqual(got["status"].get("restarts", 0), 0)
        self.judge_history(one, other, got["status"]["sizes"])
        self.judge_curve(one, losses, steps)

    def judge_curve(self, one, losses, steps):
        """Each point is that of one worker alone, and was computed by as many workers as the job then had."""
        points = self.daemon.call("GET", f"runs/{one}")["points"]
        self.assertEqual(points[-1]["step"], steps)
        for point in points:
            self.assertEqual(float(f"{point['numbers']['loss']:.9g}"), losses[point["step"]], point)
        self.assertLessEqual({1, 2, 4}, {point["numbers"]["workers"] for point in points})
        told = [(facts["step"], facts["workers"]) for facts in self.events(one, "job-resized")]
        self.assertEqual(told, sorted(told), "one change after the other")
        for point in points:
            size = ([1] + [workers for step, workers in told if step < point["step"]])[-1]
            self.assertEqual(point["numbers"]["workers"], size, f"{point}, {told}")

    def judge_history(self, one, other, sizes):
        self.assertEqual([sizes[0][key] for key in ("from", "to", "what")], [0, 1, "started"], "with its minimum")
        self.assertEqual([sizes[1][key] for key in ("from", "what")], [1, "grew"])
        for before, after in zip(sizes, sizes[1:]):
            self.assertEqual(before["to"], after["from"])
        gave = [size for size in sizes if size["what"] == "shrunk"]
        self.assertEqual([(size["from"], size["to"], size["for_job"], size["for_queue"]) for size in gave], [(4, 2, other, "ben")])
        self.assertGreaterEqual(gave[0]["pause_ms"], 0)
        later = sizes[sizes.index(gave[0]) + 1:]
        self.assertTrue(later and all(size["what"] == "grew" for size in later), sizes)
        self.assertEqual(later[-1]["to"], 4)
        self.assertGreaterEqual(later[-1]["pause_ms"], 0)
        told = [facts["workers"] for facts in self.events(one, "job-resized")]
        self.assertIn(2, told)
        table = self.muster("describe", one).stdout.split("\nSizes\n", 1)[1]
        self.assertEqual(table.split("\n", 1)[0].split(), ["TIME", "FROM", "TO", "PAUSE", "WHY"])
        told = {"grew": "grew", "shrunk": f"gave back to queue ben, for job {other}"}
        for size in sizes[1:]:
            cost = f"{size['pause_ms']} ms" if "pause_ms" in size else ""
            self.assertRegex(table, rf" {size['from']} +{size['to']} +{cost} *{told[size['what']]}")

    @unittest.skipIf(SANITIZED, SLOW)
    def test_what_a_queue_takes_back_is_given_back_within_a_step(self):
        """All workers stand still until the order is out, so that it is known in which step it reaches them."""
        self.policy("by_goodput: off")
        audit = self.folder / "audit"
        one = self.daemon.submit({"name": "lm", "queue": "ana", "workers": "1..3", "gpus": 1, "framework": "muster", "workdir": str(self.folder),
                                  "command": ["muster-train", *HEAVY, "--steps=100000000", f"--audit={audit}"]})
        self.wait_until(lambda: self.sizes(one) == {3}, "at three workers")
        pids = [worker["pid"] for worker in self.daemon.call("GET", f"jobs/{one}/workers")["workers"]]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        self.wait_until(lambda: all(stands_still(pid) for pid in pids), "standing still")
        begun = max(int(step) for step in re.findall(r"^take \d+ (\d+) .*\n", audit.read_text(), re.MULTILINE))
        before = len(self.events(one, "job-resized"))
        self.daemon.submit({"name": "other", "queue": "ben", "gpus": 2, "command": ["sleep", "600"]})
        self.wait_until(lambda: self.events(one, "worker-leaving"), "asked for one back")
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        self.wait_until(lambda: len(self.events(one, "job-resized")) > before, "at two workers")
        gave = self.events(one, "job-resized")[before]
        self.assertEqual(gave["workers"], 2)
        self.assertLessEqual(gave["step"], begun + 1, "the step at hand, and at most one that was begun by then")

    def test_a_job_never_works_with_fewer_workers_than_its_minimum(self):
        one = self.endless(workers=3, checkpoint={"dir": "saved"}, command=["muster-train", *TRAIN, "--steps=100000000", "--every-step=true"])
        self.wait_until(lambda: self.sizes(one) == {3}, "at three workers")
        self.assertEqual(self.muster("suspend", one).returncode, 0)
        self.daemon.wait(one, ("suspended",))
        saved = max(facts["step"] for facts in self.events(one, "checkpoint-taken"))
        self.assertEqual(self.muster("resume", one).returncode, 0)
        self.wait_until(lambda: self.sizes(one) == {3}, "at three workers again")
        self.assertTrue(all(report["step"] > saved for report in self.said(one)), "from where it was")
        for worker in self.daemon.call("GET", f"jobs/{one}/workers")["workers"][:2]:
            os.kill(worker["pid"], signal.SIGKILL)
        self.assertEqual(self.daemon.wait(one)["status"]["phase"], "failed")
        text = "".join(self.muster("logs", one, "--rank", str(rank)).stdout for rank in range(3))
        self.assertEqual(set(re.findall(r"^step .* workers (\d+) ", text, re.MULTILINE)), {"3"})

    def test_a_program_with_the_module_is_told_of_each_size_and_is_not_restarted(self):
        self.policy("by_goodput: off")
        (self.folder / "sizes.py").write_text(SIZES)
        first = self.daemon.submit({"name": "first", "queue": "ana", "gpus": 3, "command": ["sleep", "600"]})
        self.daemon.wait(first, ("running",))
        one = self.endless(workers="1..3", command=["/usr/bin/python3", "sizes.py"], env={"PYTHONPATH": str(ROOT / "python")})
        said = lambda: [tuple(map(int, line.split())) for line in self.muster("logs", one).stdout.splitlines()]
        sizes = lambda: [size for _, _, size in said()]
        self.wait_until(lambda: sizes() == [1], "told how many there are")
        self.muster("cancel", first)
        self.wait_until(lambda: sizes()[-1] == 3, "told that others have come")
        other = self.daemon.submit({"name": "other", "queue": "ben", "gpus": 2, "command": ["sleep", "600"]})
        self.daemon.wait(other, ("running",))
        self.wait_until(lambda: sizes()[-1] == 2, "told that one has gone")
        pids, generations = {pid for pid, _, _ in said()}, [generation for _, generation, _ in said()]
        self.assertEqual(pids, {self.daemon.call("GET", f"jobs/{one}/workers")["workers"][0]["pid"]})
        self.assertEqual(generations, sorted(set(generations)), "each larger than the one before")
        self.assertEqual(self.daemon.call("GET", f"jobs/{one}")["status"].get("restarts", 0), 0)

    def test_a_checkpoint_is_written_when_somebody_asks(self):
        one = self.endless(workers=2, checkpoint={"dir": "saved"})
        self.wait_until(lambda: self.sizes(one) == {2}, "at two workers")
        self.assertEqual(self.events(one, "checkpoint-taken"), [])
        self.assertEqual(self.muster("checkpoint", one).returncode, 0)
        self.wait_until(lambda: self.events(one, "checkpoint-taken"), "saved")
        steps = {facts["step"] for facts in self.events(one, "checkpoint-taken")}
        self.assertEqual(len(steps), 1, "of one step")
        self.wait_until(lambda: all(report["step"] > max(steps) for report in self.said(one)), "further than that")
        self.assertTrue(any((self.folder / "saved").iterdir()))
        text = self.muster("describe", one).stdout
        self.assertIn("checkpoint", text)
        self.assertRegex(text, r" step \d+, .*loss ", "its progress")

    def test_a_worker_that_is_killed_is_replaced_and_the_others_go_on(self):
        self.policy("by_goodput: off")
        one = self.endless(workers="1..3")
        self.wait_until(lambda: self.sizes(one) == {3}, "at three workers")
        begun = time.monotonic()
        self.wait_until(lambda: time.monotonic() - begun > 6, "steady")  # one that ends at once is not replaced
        step = max(report["step"] for report in self.said(one))
        os.kill(self.daemon.call("GET", f"jobs/{one}/workers")["workers"][2]["pid"], signal.SIGKILL)
        self.wait_until(lambda: (3, 2, "lost") in self.history(one), "without it")
        self.wait_until(lambda: self.history(one)[-1] == (2, 3, "grew") and self.sizes(one) == {3}, "at three workers again")
        self.wait_until(lambda: all(report.get("step", 0) > step for report in self.said(one)), "further than before")
        got = self.daemon.call("GET", f"jobs/{one}")["status"]
        self.assertEqual((got["phase"], got["restarts"]), ("running", 0))
        self.assertIn("a worker was lost", self.muster("describe", one).stdout)

    def test_the_scheduler_learns_how_fast_a_job_is_and_a_replay_decides_the_same(self):
        self.policy("resize_every: 1s")
        one = self.endless(workers="1..2")
        self.wait_until(lambda: self.events(one, "speed-reported"), "heard of its speed")
        for facts in self.events(one, "speed-reported"):
            speed = facts["speed"]
            self.assertEqual((speed["samples"] * speed["gpus"], speed["first_batch"], speed["most_batch"], speed["nodes"]), (16, 16, 16, 1))
            self.assertGreaterEqual(speed["step_us"], speed["compute_us"])
            self.assertGreater(speed["compute_us"], 0)
        self.wait_until(lambda: any("noise_scale" in report["numbers"] for report in self.said(one)), "measured its noise")
        file = str(self.folder / "all.snap")
        self.assertEqual(self.muster("snapshot", "save", file).returncode, 0)
        replay = json.loads(self.muster("snapshot", "replay", file, "-o", "json").stdout)
        self.assertTrue(replay["same"], replay)

    def test_a_pytorch_program_with_the_module_is_paused_and_goes_on(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode:
            missing("python3-torch is not installed")
        program = ROOT / "examples" / "programs" / "torch_pause.py"
        env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
        alone = subprocess.run(["/usr/bin/python3", str(program), "--steps", "150", "--pace", "0"], cwd=self.folder, env=env,
                               capture_output=True, text=True, timeout=120, check=True)
        one = self.daemon.submit({"name": "torch", "queue": "ana", "gpus": 1, "workdir": str(self.folder),
                                  "command": ["/usr/bin/python3", str(program), "--steps", "150", "--pace", "0.02"],
                                  "env": {"PYTHONPATH": str(ROOT / "python")}, "checkpoint": {"dir": "saved", "grace": "30s"}})
        self.wait_until(lambda: any((report.get("step") or 0) >= 5 for report in self.said(one)), "five steps further")
        self.assertEqual(self.muster("suspend", one).returncode, 0)
        self.wait_until(lambda: self.daemon.call("GET", f"jobs/{one}")["status"]["phase"] == "suspended", "suspended")
        self.assertTrue((self.folder / "saved" / "pause.pt").exists())
        self.assertEqual(self.muster("resume", one).returncode, 0)
        got = self.daemon.wait(one, seconds=120)
        text = self.muster("logs", one).stdout
        self.assertEqual(got["status"]["phase"], "succeeded", text)
        self.assertIn("goes on after step", text)
        self.assertEqual(text.splitlines()[-1], alone.stdout.splitlines()[-1])


class Examples(Box):
    """As they are typed in the root of a checkout. They keep their files there, so it is a copy."""

    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        shutil.copytree(ROOT / "examples", self.tree / "examples")

    def typed(self, *words):
        done = self.muster(*words, cwd=self.tree)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def train(self, name):
        """One of them, to its end: what its run is then."""
        self.typed("submit", f"examples/train/{name}.yaml")
        job = json.loads(self.typed("describe", name, "-o", "json"))["id"]
        ended = self.daemon.wait(job, seconds=600)
        self.assertEqual(ended["status"]["phase"], "succeeded", self.muster("logs", name, "--err").stdout)
        run = self.daemon.call("GET", f"runs/{job}")
        curve = [point["numbers"]["loss"] for point in run["points"]]
        self.assertGreater(len(curve), 1, "a curve")
        self.assertLess(curve[-1], curve[0])
        last = run["status"]["step"]
        told = "".join(self.typed("logs", name, "--rank", str(rank)) for rank in range(ended["status"]["workers_max"]))
        self.assertIn(str(last), re.findall(rf"^step (\d+)/{last}  loss", told, re.MULTILINE), "its progress")
        shown = self.typed("runs", "show", name)
        self.assertIn(f"step {last}", shown)
        self.assertRegex(shown, r"\n +[\d.e-]+ \|\*", "the highest loss is where the curve begins")
        self.assertIn(run["status"]["model"]["hash"], self.typed("runs"))
        return run

    @unittest.skipIf(SANITIZED, SLOW)
    def test_text(self):
        run = self.train("text")
        self.assertIn(f"--steps={run['status']['step']}", run["spec"]["command"], "all of it")

    def test_digits(self):
        if not any(map(os.path.exists, DIGITS)):
            missing("no handwritten digits: examples/train/fetch-digits fetches them")
        run = self.train("digits")
        self.assertGreater(run["status"]["model"]["numbers"]["test_correct"], 0.9, run["status"])


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
