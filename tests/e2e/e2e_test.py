#!/usr/bin/env python3
"""e2e_test.py BUILD [TEST...]: a real musterd, real processes, and what may go wrong. One class a subject.

Every wait is for a fact that the daemon or a file states; a test that hangs is ended by the time limit of its wait.
"""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from daemon import Daemon, Refused

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = None
QUEUES = {"queues": [{"name": "ana", "quota": {"gpus": 2}}, {"name": "ben", "quota": {"gpus": 2}}]}
# Says hello, a kept model and a step, and runs on.
TELLS = """import json, os, socket, time
link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["MUSTER_SOCKET"])
for said in ({"type": "hello", "version": 1}, {"type": "kept", "path": "/m", "hash": "00ff", "numbers": {"test_loss": "inf"}},
             {"type": "report", "step": 7, "numbers": {"loss": 0.5, "odd": "nan"}}):
    link.sendall(json.dumps(said).encode() + b"\\n")
time.sleep(600)
"""


def job(script, name="job", gpus=1, **more):
    return {"name": name, "queue": more.pop("queue", "default"), "gpus": gpus, "workdir": "/tmp",
            "command": ["/bin/sh", "-c", script], **more}


def moment(seconds):
    """So many seconds from now, as the API writes it."""
    at = time.time() + seconds
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03}Z"


class Case(unittest.TestCase):
    gpus = 4
    options = ()

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-e2e-"))
        self.daemon = Daemon(BUILD, self.folder, "--virtual-gpus", str(self.gpus), *self.options)
        self.daemon.start()

    def tearDown(self):
        try:
            for node in self.daemon.call("GET", "nodes?limit=10000")["nodes"]:
                self.daemon.call("POST", f"nodes/{node['id']}:cordon")  # so that nothing starts any more
            self.until(self.without_workers)
        except (OSError, Refused):
            pass
        finally:
            self.daemon.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def without_workers(self):
        """Whether no worker is left that would outlive the daemon; jobs that have some are cancelled."""
        held = [one["id"] for phase in ("starting", "running", "stopping")
                for one in self.daemon.call("GET", f"jobs?limit=10000&phase={phase}")["jobs"]]
        for one in held:
            with contextlib.suppress(Refused):  # it ends by itself, or does already
                self.daemon.call("POST", f"jobs/{one}:cancel")
        return not held

    def until(self, fact, seconds=30):
        deadline = time.monotonic() + seconds
        while not fact():
            self.assertLess(time.monotonic(), deadline, "it never came true")
            time.sleep(0.01)

    def phase(self, one):
        return self.daemon.call("GET", f"jobs/{one}")["status"]["phase"]

    def out(self, one, worker=0):
        return self.daemon.muster("logs", str(one), "--rank", str(worker)).stdout

    def path(self, name):
        return self.folder / name


class Life(Case):
    def test_exit_status_output_and_environment_are_those_of_the_process(self):
        one = self.daemon.submit(job("echo $MUSTER_JOB_ID $MUSTER_RANK $CUDA_VISIBLE_DEVICES; exit 7"))
        got = self.daemon.wait(one)
        self.assertEqual(got["status"]["termination"]["exit"]["exit_code"], 7)
        self.assertEqual(got["status"]["phase"], "failed")
        self.assertEqual(self.out(one), f"{one} 0 0\n")
        self.assertTrue(got["status"]["virtual"])

    def test_a_command_that_is_not_there_is_a_clear_failure(self):
        one = self.daemon.submit(dict(job(""), command=["/no/such/program"]))
        got = self.daemon.wait(one)
        self.assertIn("/no/such/program", got["status"]["termination"]["reason"])

    def test_an_empty_name_is_no_job(self):
        self.daemon.submit(job("sleep 600", name="precious"))
        self.assertEqual(self.daemon.muster("cancel", "").returncode, 2)
        with self.assertRaises(Refused) as refusal:
            self.daemon.call("POST", "jobs/:cancel")
        self.assertEqual(refusal.exception.status, 400)

    def test_a_name_is_known_long_after_its_job_has_ended(self):
        one = self.daemon.submit(job("true", name="precious"))
        self.daemon.wait(one)
        self.daemon.wait(self.daemon.submit(job("true", name="many", gpus=0, array="0-1099")), seconds=120)
        self.until(lambda: self.daemon.call("GET", "version")["ended"] > 1100)
        self.assertEqual(self.daemon.call("GET", "jobs/precious")["id"], one)

    def test_a_priority_of_100_takes_away_what_was_preemptible_by_default(self):
        one = self.daemon.submit(job("sleep 600"))
        self.daemon.call("POST", f"jobs/{one}:priority?value=125")
        self.assertNotIn("preemptible", self.daemon.call("GET", f"jobs/{one}")["spec"])

    def test_an_impossible_job_is_refused_with_the_numbers(self):
        with self.assertRaises(Refused) as refusal:
            self.daemon.submit(job("true", gpus=64))
        self.assertEqual(refusal.exception.status, 422)
        self.assertIn("can never run here", refusal.exception.body)

    def test_a_repeated_request_with_its_key_is_one_job(self):
        first = self.daemon.submit(job("true"), key="k1")
        self.assertEqual(self.daemon.submit(job("true"), key="k1"), first)
        self.assertNotEqual(self.daemon.submit(job("true"), key="k2"), first)

    def test_cancel_ends_the_whole_process_tree(self):
        pids = self.path("pids")
        one = self.daemon.submit(job(f"(setsid sh -c 'echo $$ >> {pids}; exec sleep 600' &) ; echo $$ >> {pids}; "
                                     "trap '' TERM; while :; do sleep 600; done", checkpoint={"grace": "300ms"}))
        self.until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        self.daemon.call("POST", f"jobs/{one}:cancel")
        got = self.daemon.wait(one)
        self.assertEqual(got["status"]["phase"], "cancelled")
        for pid in pids.read_text().split():
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists(), f"{pid} lives on")

    def test_suspend_sends_the_checkpoint_signal_and_resume_counts_the_restart(self):
        said = self.path("said")
        one = self.daemon.submit(job(f"trap 'echo saved >> {said}; exit 0' USR1; echo start $MUSTER_RESTART_COUNT >> {said}; "
                                     "while :; do sleep 0.05; done", checkpoint={"signal": "SIGUSR1", "grace": "20s"}))
        self.until(lambda: said.exists() and "start 0" in said.read_text())
        self.daemon.call("POST", f"jobs/{one}:suspend")
        self.daemon.wait(one, phases=("suspended",))
        self.assertIn("saved", said.read_text())
        self.daemon.call("POST", f"jobs/{one}:resume")
        self.until(lambda: "start 1" in said.read_text())

    def test_what_a_worker_reports_is_shown_while_it_runs(self):
        one = self.daemon.submit(dict(job("", checkpoint={"grace": "0s"}), framework="muster", command=[
            sys.executable, "-c", "import json, os, socket, time\n"
            "link = socket.socket(socket.AF_UNIX); link.connect(os.environ['MUSTER_SOCKET'])\n"
            "for said in ({'type': 'hello', 'version': 1}, {'type': 'report', 'step': 12, 'numbers': {'loss': 0.5}}):\n"
            "    link.sendall(json.dumps(said).encode() + b'\\n')\n"
            "time.sleep(600)"]))
        report = lambda: self.daemon.call("GET", f"jobs/{one}")["status"]["workers"][0].get("report", {})
        self.until(lambda: report().get("step") == 12)
        self.assertEqual(report()["numbers"], {"loss": 0.5})
        self.assertIn("step 12, loss 0.5", self.daemon.muster("describe", str(one)).stdout)

    def test_a_failing_job_is_tried_again_as_often_as_it_says(self):
        said = self.path("said")
        one = self.daemon.submit(job(f"echo $MUSTER_RESTART_COUNT >> {said}; exit 1", limits={"retries": 1}))
        self.daemon.wait(one, seconds=60)
        self.assertEqual(said.read_text().split(), ["0", "1"])

    def test_a_time_limit_ends_the_job_and_says_so(self):
        one = self.daemon.submit(job("sleep 600", limits={"time": "300ms"}, checkpoint={"grace": "100ms"}))
        got = self.daemon.wait(one)
        self.assertEqual(got["status"]["phase"], "failed")
        self.assertIn("time limit", got["status"]["termination"]["reason"])

    def test_an_idle_limit_ends_a_job_that_does_nothing(self):
        one = self.daemon.submit(job("sleep 600", limits={"idle": "2s"}, checkpoint={"grace": "100ms"}))
        got = self.daemon.wait(one, seconds=60)
        self.assertIn("idle", got["status"]["termination"]["reason"])

    def test_followers_wait_and_are_cancelled_when_their_condition_cannot_come_true(self):
        go = self.path("go")
        first = self.daemon.submit(job(f"while [ ! -e {go} ]; do sleep 0.02; done; exit 1", name="first"))
        good = self.daemon.submit(job("true", name="good", after=["first:ok"]))
        any_end = self.daemon.submit(job("true", name="any", after=["first:any"]))
        self.assertIn("follows", self.daemon.call("GET", f"jobs/{good}/explain")["sentence"])
        go.touch()
        self.assertEqual(self.daemon.wait(first)["status"]["phase"], "failed")
        self.assertEqual(self.daemon.wait(good)["status"]["phase"], "cancelled")
        self.assertEqual(self.daemon.wait(any_end)["status"]["phase"], "succeeded")

    def test_an_array_runs_all_its_tasks_and_never_more_at_once_than_it_says(self):
        story = self.path("story")
        array = self.daemon.submit(job(f"echo + >> {story}; sleep 0.1; echo - >> {story}; exit 0", array="3-12%2"))
        self.daemon.wait(array)
        self.assertEqual(self.daemon.call("GET", f"jobs/{array}")["status"]["succeeded"], 10)
        now = most = 0
        for line in story.read_text().split():
            now += 1 if line == "+" else -1
            most = max(most, now)
        self.assertEqual(most, 2)

    def test_memory_beyond_the_limit_is_reported_as_such(self):
        controllers = pathlib.Path("/sys/fs/cgroup/cgroup.controllers")
        has_memory = pathlib.Path("/sys/fs/cgroup/memory").exists() or \
            controllers.exists() and "memory" in controllers.read_text().split()
        if os.geteuid() != 0 or not has_memory:
            self.skipTest("no cgroup that limits memory can be made here")
        one = self.daemon.submit(dict(job(""), memory="64Mi", command=[
            "/usr/bin/python3", "-c", "x = bytearray(512 << 20); print(len(x))"]))
        got = self.daemon.wait(one)
        self.assertTrue(got["status"]["termination"]["exit"].get("out_of_memory"), got["status"])

    def test_a_gang_of_torch_gets_one_world(self):
        one = self.daemon.submit(job("echo $RANK/$WORLD_SIZE $MASTER_ADDR:$MASTER_PORT", workers=3, framework="torch"))
        self.daemon.wait(one)
        lines = [self.out(one, w).split() for w in range(3)]
        self.assertEqual([line[0] for line in lines], ["0/3", "1/3", "2/3"])
        self.assertEqual(len({line[1] for line in lines}), 1)


class Sharing(Case):
    def setUp(self):
        super().setUp()
        self.daemon.call("POST", "queues", QUEUES)

    def test_what_was_borrowed_comes_back_by_shrinking_and_returns(self):
        work = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
        elastic = self.daemon.submit(job(work, name="wide", queue="ana", workers="1..4"))
        self.until(lambda: self.daemon.call("GET", f"jobs/{elastic}")["status"]["workers_running"] == 4)
        short = self.daemon.submit(job("sleep 0.5", name="short", queue="ben"))
        self.daemon.wait(short)
        self.until(lambda: self.daemon.call("GET", f"jobs/{elastic}")["status"]["workers_running"] == 4)
        kinds = [e["facts"].get("why") for e in self.daemon.call("GET", f"jobs/{elastic}/events")["events"]
                 if e["kind"] == "worker-leaving"]
        self.assertEqual(kinds, ["shrunk"])

    def test_a_paused_job_knows_for_whom_and_comes_back_by_itself(self):
        work = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
        rigid = self.daemon.submit(job(work, name="big", queue="ana", workers=4))
        self.daemon.wait(rigid, phases=("running",))
        claim = self.daemon.submit(job("sleep 1", name="claim", queue="ben", workers=2))
        self.daemon.wait(rigid, phases=("paused", "stopping"))
        got = self.daemon.wait(claim)
        self.assertEqual(got["status"]["phase"], "succeeded")
        back = self.daemon.wait(rigid, phases=("running",))
        self.assertEqual(back["status"]["preemption"]["for_name"], "claim")
        self.assertEqual(back["status"]["restarts"], 1)

    def test_a_gang_that_shrinks_starts_again_with_a_new_count_and_generation(self):
        script = "echo $MUSTER_WORLD_SIZE $MUSTER_RESTART_COUNT $MUSTER_GENERATION; exec sleep 600"
        for framework in ("torch", "horovod"):
            big = self.daemon.submit(job(script, name=framework, queue="ana", workers="2..4", framework=framework))
            self.until(lambda: self.out(big) == "4 0 1\n")
            small = self.daemon.submit(job("sleep 600", queue="ben", gpus=2))
            self.until(lambda: self.out(big) == "4 0 1\n2 1 2\n")
            for one in (big, small):
                self.daemon.call("POST", f"jobs/{one}:cancel")
                self.daemon.wait(one)

    def test_a_worker_that_ends_during_a_resize_ends_the_job_as_it_should(self):
        script = ("[ $MUSTER_RANK = 0 ] || trap '' TERM; : >$MUSTER_RANK.up; "
                  "while [ $MUSTER_RANK != 0 ] || [ ! -e go ]; do sleep 0.05; done; exit 5")
        big = self.daemon.submit(dict(job(script, queue="ana", workers="2..4", checkpoint={"grace": "2s"}),
                                      workdir=str(self.folder)))
        self.until(lambda: all(self.path(f"{rank}.up").exists() for rank in range(4)))
        small = self.daemon.submit(job("sleep 600", queue="ben", gpus=2))
        phases = lambda: [w["phase"] for w in self.daemon.call("GET", f"jobs/{big}")["status"]["workers"]]
        self.until(lambda: phases().count("leaving") == 2)
        self.path("go").touch()
        self.assertEqual(self.daemon.wait(big)["status"]["termination"]["exit"]["exit_code"], 5)
        self.daemon.wait(small, ("running",))
        held = [gpu["status"]["jobs"] for gpu in self.daemon.call("GET", "gpus")["gpus"] if gpu["status"]["jobs"]]
        self.assertEqual([[one["id"] for one in jobs] for jobs in held], [[small], [small]])

    def test_a_running_job_is_scaled_down(self):
        one = self.daemon.submit(job("echo $MUSTER_WORLD_SIZE; exec sleep 600", queue="ana", workers="1..4"))
        self.until(lambda: self.out(one) == "4\n")
        self.daemon.call("POST", f"jobs/{one}:scale?min=1&max=2")
        self.until(lambda: self.out(one) == "4\n2\n")
        self.assertEqual(self.daemon.call("GET", f"jobs/{one}")["status"]["workers_max"], 2)

    def test_why_names_what_is_in_the_way(self):
        holder = self.daemon.submit(dict(job("sleep 600", queue="ana", workers=2), priority=100))
        self.daemon.wait(holder, phases=("running",))
        waiting = self.daemon.submit(job("true", queue="ben", workers=4))
        got = self.daemon.call("GET", f"jobs/{waiting}/explain")
        self.assertEqual(got["phase"], "waiting")
        self.assertTrue(got["sentence"])
        self.assertTrue(got["held_by"])

    def test_the_journal_replays_to_the_same_decisions(self):
        self.test_a_paused_job_knows_for_whom_and_comes_back_by_itself()
        file = str(self.path("recording"))
        self.assertEqual(self.daemon.muster("snapshot", "save", file).returncode, 0)
        replay = self.daemon.muster("snapshot", "replay", file, "-o", "json")
        report = json.loads(replay.stdout)
        self.assertTrue(report["same"], report)
        self.assertGreater(report["decisions"], 6)


class Explained(Case):
    """What people are told of jobs that wait, and of jobs that cannot be."""
    work = "trap 'exit 0' TERM; while :; do sleep 0.05; done"

    def why(self, one):
        return self.daemon.call("GET", f"jobs/{one}/explain")

    def note(self, one):
        rows = self.daemon.muster("ps").stdout.splitlines()
        row = next(row for row in rows if row.split()[0] == str(one))
        return row[rows[0].index("NOTE"):].strip()

    def refusal(self, spec):
        with self.assertRaises(Refused) as refused:
            self.daemon.submit(spec)
        self.assertEqual(refused.exception.status, 422)
        return refused.exception.body

    def test_an_unlimited_quota_is_not_to_be_raised(self):
        self.daemon.call("POST", "queues", {"queues": [{"name": "free", "quota": {"gpus": "unlimited"}}]})
        self.daemon.wait(self.daemon.submit(job(self.work, queue="free", workers=4)), phases=("running",))
        one = self.daemon.submit(job("true", queue="free"))
        self.until(lambda: "fair share" in self.why(one)["sentence"])
        self.assertNotIn("quota", str(self.why(one)["would_start_it"]))

    def test_a_cordoned_node_is_named_and_how_it_comes_back(self):
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        for mark, word in (("cordon", "cordoned"), ("drain", "draining")):
            self.daemon.call("POST", f"nodes/{node}:{mark}")
            one = self.daemon.submit(job("true"))
            got = self.why(one)
            self.assertIn(f"node {node} is {word}", got["sentence"])
            self.assertEqual(got["nodes_by_filter"], {"cordoned": 1})
            self.assertIn(f"starts if  you run `muster node uncordon {node}`", self.daemon.muster("why", str(one)).stdout)
            self.daemon.muster("node", "uncordon", node)
            self.assertEqual(self.daemon.wait(one)["status"]["phase"], "succeeded")

    def test_a_job_that_a_drain_paused_is_not_said_to_have_left_for_somebody(self):
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        one = self.daemon.submit(job(self.work))
        self.daemon.wait(one, phases=("running",))
        self.daemon.call("POST", f"nodes/{node}:drain")
        self.daemon.wait(one, phases=("paused",))
        self.assertEqual(self.note(one), "its node is drained")

    def test_a_shrunk_job_is_told_what_it_has_and_why_no_more(self):
        self.daemon.call("POST", "queues", QUEUES)
        wide = self.daemon.submit(job(self.work, name="wide", queue="ana", workers="2..8"))
        self.until(lambda: self.daemon.call("GET", f"jobs/{wide}")["status"]["workers_running"] == 4)
        self.daemon.wait(self.daemon.submit(job(self.work, name="claim", queue="ben", workers=2)), phases=("running",))
        self.until(lambda: self.daemon.call("GET", f"jobs/{wide}")["status"]["workers_running"] == 2)
        got = self.why(wide)
        self.assertIn("it runs with 2 of up to 8 workers; for more, there is no room", got["sentence"])
        self.assertEqual(got["gate"], "share")
        self.assertEqual(got["preemptions"][-1]["for_name"], "claim")

    def test_more_than_a_limit_allows_is_refused_with_the_numbers(self):
        self.daemon.call("POST", "queues", {"queues": [{"name": "top", "limit": {"gpus": 2}}, {"name": "top/leaf"}]})
        self.assertIn("3 GPUs are asked for at once; queue top has a limit of 2 GPUs",
                      self.refusal(job("true", queue="top/leaf", workers=3)))

    def test_an_impossible_job_is_refused_with_the_resource_and_both_numbers(self):
        self.assertIn("64 GPUs on one node are asked for; the largest node has 4", self.refusal(job("true", gpus=64)))
        self.assertIn("a GPU of type H100 is asked for; there is only virtual",
                      self.refusal(job("true", gpu_types=["H100"])))
        self.assertIn("no node has the label zone=moon", self.refusal(job("true", nodes={"zone": "moon"})))
        self.assertIn("all nodes together have room for 4", self.refusal(job("true", workers=5)))

    def test_what_is_virtual_says_so_before_it_runs(self):
        held = json.loads(self.daemon.muster("submit", "-", "--hold", "-o", "json",
                                             input=json.dumps(job("true"))).stdout)["jobs"][0]["id"]
        self.assertTrue(self.daemon.call("GET", f"jobs/{held}")["status"]["virtual"])
        self.assertTrue(self.why(held)["virtual"])
        self.assertIn("the GPUs here are virtual", self.daemon.muster("why", str(held)).stdout)
        self.assertTrue(all(queue["status"]["virtual"] for queue in self.daemon.call("GET", "queues")["queues"]))
        self.assertIn("virtual", self.daemon.muster("queue", "list").stdout)

    def test_ps_says_in_a_few_words_why_a_job_does_not_run(self):
        first = self.daemon.submit(job(self.work, name="first", workers=4))
        self.daemon.wait(first, phases=("running",))
        after = self.daemon.submit(job("true", name="after", after=["first"]))
        array = self.daemon.submit(job("true", name="array", array="1-2%1"))
        waits = self.daemon.submit(job("true", name="waits"))
        self.assertEqual(self.note(after), f"follows job {first} (first)")
        self.assertIn(f"follows job {first} (first)", self.why(after)["sentence"])
        self.assertEqual(self.note(int(array) + 2), "its array's turn has not come")
        self.until(lambda: "no room" in self.note(waits))
        self.daemon.call("POST", f"jobs/{waits}:hold")
        self.assertEqual(self.note(waits), "held by hand")
        self.assertEqual(self.note(first), "")


class Faults(Case):
    def test_a_restarted_daemon_adopts_what_runs(self):
        go = self.path("go")
        one = self.daemon.submit(job(f"while [ ! -e {go} ]; do sleep 0.02; done; exit 5"))
        pid = self.daemon.wait(one, phases=("running",))["status"]["workers"][0]["pid"]
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.phase(one), "running")
        self.assertTrue(pathlib.Path(f"/proc/{pid}").exists())
        go.touch()
        self.assertEqual(self.daemon.wait(one)["status"]["termination"]["exit"]["exit_code"], 5)

    def test_an_end_that_nobody_saw_is_there_after_the_restart(self):
        done = self.path("done")
        one = self.daemon.submit(job(f"sleep 0.3; touch {done}; exit 9"))
        self.daemon.wait(one, phases=("running",))
        self.daemon.kill()
        self.until(done.exists)
        self.daemon.start()
        self.assertEqual(self.daemon.wait(one)["status"]["termination"]["exit"]["exit_code"], 9)

    def test_a_shim_that_dies_costs_a_restart_and_no_retry(self):
        said = self.path("said")
        one = self.daemon.submit(job(f"echo $$ $MUSTER_RESTART_COUNT >> {said}; [ $MUSTER_RESTART_COUNT = 1 ] || sleep 600"))
        self.daemon.wait(one, phases=("running",))
        worker = int(said.read_text().split()[0])
        shim = int(pathlib.Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(shim, signal.SIGKILL)
        self.assertEqual(self.daemon.wait(one)["status"]["phase"], "succeeded")
        self.assertFalse(pathlib.Path(f"/proc/{worker}").exists())

    def test_a_full_process_table_delays_jobs_and_fails_none(self):
        table = pathlib.Path(f"/sys/fs/cgroup/pids/muster-e2e-{os.getpid()}")
        try:
            table.mkdir()
        except OSError as error:
            self.skipTest(f"the number of processes cannot be bounded here: {error}")
        try:
            (table / "cgroup.procs").write_text(str(self.daemon.process.pid))
            (table / "pids.max").write_text((table / "pids.current").read_text())
            one = self.daemon.submit(job("exit 6"))
            self.until(lambda: any(e["kind"] == "worker-ended" and e["facts"]["exit"]["lost"]
                                   for e in self.daemon.call("GET", f"jobs/{one}/events")["events"]))
            (table / "pids.max").write_text("max")
            self.assertEqual(self.daemon.wait(one)["status"]["termination"]["exit"]["exit_code"], 6)
        finally:
            self.daemon.stop()
            self.until(lambda: not (table / "cgroup.procs").read_text().split())
            table.rmdir()

    def test_a_drained_node_starts_nothing(self):
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        self.daemon.call("POST", f"nodes/{node}:cordon")
        one = self.daemon.submit(job("true"))
        self.assertEqual(self.phase(one), "waiting")
        self.daemon.call("POST", f"nodes/{node}:uncordon")
        self.assertEqual(self.daemon.wait(one)["status"]["phase"], "succeeded")


class Store(unittest.TestCase):
    """The store's own troubles: each is a clear error, nothing is lost, and work goes on when the cause is gone."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-store-"))
        self.daemon = Daemon(BUILD, self.folder, "--virtual-gpus", "2")
        self.mounted = False

    def tearDown(self):
        self.daemon.stop()
        if self.mounted:
            subprocess.run(["umount", self.folder / "state"], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def small_disk(self):
        (self.folder / "state").mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "muster-test", self.folder / "state"],
                              capture_output=True, text=True)
        if made.returncode:
            self.skipTest(f"no small disk can be made here: {made.stderr.strip()}")
        self.mounted = True

    def test_a_full_disk_refuses_and_recovers(self):
        self.small_disk()
        self.daemon.start()
        first = self.daemon.submit(job("true"))
        self.daemon.wait(first)
        filler = self.folder / "state" / "filler"
        with open(filler, "wb", buffering=0) as file, self.assertRaises(OSError):
            while True:
                file.write(b"x" * 4096)
        with self.assertRaises(Refused) as refusal:
            for number in range(2000):
                self.daemon.submit(job("true", name=f"n{number}" + "x" * 90))
        self.assertEqual(refusal.exception.status, 503)
        filler.unlink()
        deadline = time.monotonic() + 30
        while True:
            try:
                late = self.daemon.submit(job("exit 3", name="late"))
                break
            except Refused as error:
                self.assertEqual(error.status, 503)
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
        self.assertEqual(self.daemon.wait(late)["status"]["termination"]["exit"]["exit_code"], 3)
        self.assertEqual(self.daemon.wait(first)["status"]["phase"], "succeeded")

    def test_a_read_only_store_is_refused_and_taken_up_when_it_is_writable(self):
        self.small_disk()
        self.daemon.start()
        first = self.daemon.submit(job("exit 4"))
        self.daemon.wait(first)
        self.daemon.stop()
        subprocess.run(["mount", "-o", "remount,ro", self.folder / "state"], check=True)
        with self.assertRaises(RuntimeError) as refusal:
            self.daemon.start()
        self.assertIn("Read-only file system", str(refusal.exception))
        subprocess.run(["mount", "-o", "remount,rw", self.folder / "state"], check=True)
        self.daemon.start()
        self.assertEqual(self.daemon.wait(first)["status"]["termination"]["exit"]["exit_code"], 4)

    def test_a_damaged_journal_is_refused_and_its_intact_part_kept(self):
        self.daemon.start()
        kept = self.daemon.submit(job("true", name="kept"))
        self.daemon.wait(kept)
        self.daemon.stop()
        self.daemon.start()
        lost = self.daemon.submit(job("true", name="lost"))
        self.daemon.wait(lost)
        self.daemon.kill()
        import sqlite3
        with sqlite3.connect(self.folder / "state" / "journal.db") as db:
            db.execute("update journal set body = x'00' where revision = (select max(revision) - 2 from journal)")
        with self.assertRaises(RuntimeError) as refusal:
            self.daemon.start()
        self.assertIn("damaged at revision", str(refusal.exception))
        repaired = subprocess.run([self.daemon.bin / "musterd", "--state", self.folder / "state", "repair"],
                                  capture_output=True, text=True)
        self.assertEqual(repaired.returncode, 0, repaired.stderr)
        self.daemon.start()
        self.assertEqual(self.daemon.wait(kept)["status"]["phase"], "succeeded")

    def repair(self):
        return subprocess.run([self.daemon.bin / "musterd", "--state", self.folder / "state", "repair"],
                              capture_output=True, text=True)

    def test_a_cut_or_damaged_tail_of_the_log_is_noticed_and_its_numbers_are_not_used_again(self):
        for harm in (lambda wal: os.truncate(wal, wal.stat().st_size * 2 // 3),
                     lambda wal: wal.write_bytes(wal.read_bytes()[:-5000] + b"?" + wal.read_bytes()[-4999:]),
                     lambda wal: wal.unlink()):
            self.daemon.start()
            for number in range(6):
                last = int(self.daemon.submit(job("true", name=f"w{number}")))
                self.daemon.wait(last)
            self.daemon.kill()
            harm(self.folder / "state" / "journal.db-wal")
            with self.assertRaises(RuntimeError) as refusal:
                self.daemon.start()
            self.assertIn("its end is missing", str(refusal.exception))
            self.assertEqual(self.repair().returncode, 0)
            self.daemon.start()
            self.assertGreater(int(self.daemon.submit(job("true"))), last)
            self.daemon.stop()

    def test_a_database_file_that_lost_its_end_is_salvaged(self):
        self.daemon.start()
        for number in range(20):
            self.daemon.wait(self.daemon.submit(job("true", name=f"w{number}" + "x" * 60)))
        self.daemon.stop()  # writes the log back into the file
        path = self.folder / "state" / "journal.db"
        os.truncate(path, path.stat().st_size - 8192)
        with self.assertRaises(RuntimeError) as refusal:
            self.daemon.start()
        self.assertIn("malformed", str(refusal.exception))
        repaired = self.repair()
        self.assertEqual(repaired.returncode, 0, repaired.stderr)
        self.daemon.start()
        self.assertTrue(path.with_name("journal.db.damaged").exists())
        self.assertGreater(int(self.daemon.submit(job("true"))), 20)

    def test_what_a_full_disk_refused_is_not_shown(self):
        self.small_disk()
        self.daemon.start()
        one = self.daemon.submit(job("sleep 600"))
        self.daemon.wait(one, ("running",))
        filler = self.folder / "state" / "filler"
        with open(filler, "wb", buffering=0) as file, self.assertRaises(OSError):
            while True:
                file.write(b"x" * 4096)
        with self.assertRaises(Refused):
            for number in range(2000):
                self.daemon.submit(job("true", name=f"n{number}" + "x" * 90, gpus=2))
        with self.assertRaises(Refused) as refusal:
            self.daemon.call("POST", f"jobs/{one}:cancel")
        self.assertEqual(refusal.exception.status, 503)
        self.assertEqual(self.daemon.call("GET", f"jobs/{one}")["status"]["phase"], "running")
        filler.unlink()

    def test_a_second_daemon_on_the_same_state_is_refused(self):
        self.daemon.start()
        second = Daemon(BUILD, self.folder)
        second.socket = self.folder / "other.sock"
        with self.assertRaises(RuntimeError) as refusal:
            second.start()
        self.assertIn("another musterd uses", str(refusal.exception))


class Frameworks(Case):
    """Unmodified programs of others, as Debian ships them."""

    def test_a_torch_program_trains_on_two_workers_as_one(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode:
            self.skipTest("python3-torch is not installed")
        program = ROOT / "examples" / "programs" / "torch_ddp.py"
        one = self.daemon.submit(dict(job(""), workers=2, framework="torch", workdir=str(self.folder),
                                      env={"OMP_NUM_THREADS": "1"}, command=["/usr/bin/python3", str(program)]))
        got = self.daemon.wait(one, seconds=300)
        self.assertEqual(got["status"]["phase"], "succeeded", self.daemon.muster("logs", one, "--err").stdout)
        last = [self.out(one, worker).splitlines()[-1] for worker in range(2)]
        self.assertEqual(last[0].split()[-1], last[1].split()[-1], last)

    def test_mpirun_fills_the_places_of_the_gang(self):
        if not shutil.which("mpirun"):
            self.skipTest("openmpi-bin is not installed")
        one = self.daemon.submit(job("exec mpirun --oversubscribe sh -c 'echo rank $OMPI_COMM_WORLD_RANK of "
                                     "$OMPI_COMM_WORLD_SIZE'", workers=2, framework="mpi"))
        got = self.daemon.wait(one, seconds=120)
        self.assertEqual(got["status"]["phase"], "succeeded", self.daemon.muster("logs", one, "--err").stdout)
        self.assertEqual(sorted(self.out(one).split("\n"))[1:], ["rank 0 of 2", "rank 1 of 2"])


class Users(Case):
    def programs(self):
        """Copies of ours where anybody may reach them: the tree itself may lie in somebody's home."""
        box = pathlib.Path(tempfile.mkdtemp(prefix="muster-e2e-"))
        self.addCleanup(shutil.rmtree, box, ignore_errors=True)
        box.chmod(0o755)
        shutil.copytree(BUILD + "/bin", box / "bin", ignore=lambda _, names: [n for n in names if not n.startswith("muster")])
        return box

    def test_a_worker_runs_as_whoever_submitted_it(self):
        if os.geteuid() != 0:
            self.skipTest("only root runs workers of others")
        self.folder.chmod(0o755)
        got = subprocess.run([self.programs() / "bin/muster", "run", "--", "id", "-un"], user="nobody", group="nogroup",
                             extra_groups=[], cwd="/", capture_output=True, text=True, timeout=60,
                             env={"PATH": "/usr/bin:/bin", "MUSTER_DAEMON": str(self.daemon.socket)})
        self.assertEqual((got.returncode, got.stdout), (0, "nobody\n"), got.stderr)

    def test_without_a_cgroup_cores_are_kept_by_affinity(self):
        if os.geteuid() != 0 or (os.cpu_count() or 1) < 2:
            self.skipTest("needs root and two cores")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        os.chown(folder, 65534, 65534)
        daemon = Daemon(self.programs(), folder)
        daemon.user = 65534
        daemon.start()
        self.addCleanup(daemon.stop)
        show = "grep Cpus_allowed_list /proc/self/status; exec sleep 600"
        jobs = [daemon.submit(job(show, gpus=0, cpus=1)) for _ in range(2)]
        told = lambda: [daemon.muster("logs", str(one)).stdout.split() for one in jobs]
        self.until(lambda: all(told()))
        self.assertEqual(len({words[1] for words in told()}), 2, "they share a core")
        self.assertIn("affinity", daemon.call("GET", f"jobs/{jobs[0]}")["status"]["workers"][0]["limits_kept_by"])
        for one in jobs:
            daemon.call("POST", f"jobs/{one}:cancel")
            daemon.wait(one)


class CommandLine(Case):
    def test_run_prints_the_output_and_ends_with_the_jobs_fate(self):
        good = self.daemon.muster("run", "--gpus", "1", "--", "echo", "hello")
        self.assertEqual((good.returncode, good.stdout), (0, "hello\n"))
        self.assertEqual(self.daemon.muster("run", "--", "sh", "-c", "exit 4").returncode, 100)

    def test_statuses_of_errors(self):
        self.assertEqual(self.daemon.muster("describe", "nobody").returncode, 3)
        self.assertEqual(self.daemon.muster("ps", "--socket", "/no/such/socket").returncode, 6)
        self.assertEqual(self.daemon.muster("frobnicate").returncode, 2)
        bad = self.path("bad.yaml")
        bad.write_text("name: x\nqueue: default\ngpu: 1\ncommand: [x]\n")
        refused = self.daemon.muster("submit", str(bad))
        self.assertEqual(refused.returncode, 5)
        self.assertIn("bad.yaml:3:1", refused.stderr)

    def test_usage_errors_name_what_is_wrong(self):
        for verb in ("describe", "why", "wait", "cancel", "logs", "events"):
            for word in ("", "1/events"):
                got = self.daemon.muster(verb, word)
                self.assertEqual(got.returncode, 2, (verb, word, got))
                self.assertIn("is no name of a job", got.stderr)
        self.assertIn("-o takes table, wide, json, jsonl, yaml or name", self.daemon.muster("ps", "-o", "xml").stderr)
        for flag, value in (("--gpus", "many"), ("--memory", "16GiB"), ("--workers", "8..2"), ("--time", "5"), ("--kind", "x")):
            got = self.daemon.muster("run", flag, value, "--", "true")
            self.assertEqual(got.returncode, 2, got)
            self.assertIn(flag + ": ", got.stderr)
            self.assertNotIn("line", got.stderr)

    def test_every_list_prints_json(self):
        self.daemon.muster("run", "--name", "one", "--", "true")
        for words in (["ps", "-a"], ["nodes"], ["gpus"], ["queue", "list"], ["events"], ["describe", "one"], ["why", "one"]):
            got = self.daemon.muster(*words, "-o", "json")
            self.assertEqual(got.returncode, 0, got.stderr)
            json.loads(got.stdout)

    def test_wait_tells_cancelled_from_failed_and_unfinished(self):
        one = self.daemon.submit(job("sleep 600", name="long"))
        self.assertEqual(self.daemon.muster("wait", "long", "--timeout", "50ms").returncode, 101)
        self.assertEqual(self.daemon.muster("cancel", "long").returncode, 0)
        self.assertEqual(self.daemon.muster("wait", one).returncode, 102)


class Output(Case):
    """What jobs write, and what is said about them."""

    def kept(self, one, *texts):
        """Makes the log of an ended job consist of these files, oldest first."""
        folder = self.folder / "state" / "logs" / one
        for index, text in enumerate(reversed(texts)):
            (folder / (f"0.out.{index}" if index else "0.out")).write_text(text)
        return folder

    def ended(self, script="echo old"):
        one = self.daemon.submit(job(script))
        self.daemon.wait(one)
        return one

    def test_a_followed_log_loses_nothing_when_files_are_full(self):
        lines = 150 * 1024
        one = self.daemon.submit(dict(job(""), command=[
            sys.executable, "-c", f"import sys\nfor i in range({lines}): sys.stdout.write('%07d ' % i + 'x' * 1015 + '\\n')"]))
        with open(self.path("got"), "w+b") as got:
            done = subprocess.run([str(self.daemon.bin / "muster"), "logs", "-f", one], stdout=got, timeout=300,
                                  env=dict(os.environ, MUSTER_DAEMON=str(self.daemon.socket)))
            self.assertEqual(done.returncode, 0)
            got.seek(0)
            numbers = [int(line[:7]) for line in got]
        self.assertEqual(numbers, list(range(lines)))
        self.assertEqual(self.out(one)[-1024:], "%07d " % (lines - 1) + "x" * 1015 + "\n")
        self.assertEqual(len(self.out(one)), lines * 1024)

    def test_all_kept_files_are_shown_and_it_is_said_when_others_were_dropped(self):
        one = self.ended()
        self.kept(one, "b\n", "c\n", "d\n")
        got = self.daemon.muster("logs", one)
        self.assertEqual((got.stdout, got.stderr), ("b\nc\nd\n", ""))
        self.kept(one, "b\n", "c\n", "d\n", "e\n")
        got = self.daemon.muster("logs", one)
        self.assertEqual(got.stdout, "b\nc\nd\ne\n")
        self.assertIn("has been dropped", got.stderr)
        self.assertEqual(self.daemon.muster("logs", one, "--tail", "3").stdout, "c\nd\ne\n")

    def test_since_leaves_out_files_that_were_not_written_to_since(self):
        one = self.ended()
        folder = self.kept(one, "old\n", "new\n")
        os.utime(folder / "0.out.1", (1, 1))
        self.assertEqual(self.daemon.muster("logs", one, "--since", "1h").stdout, "new\n")
        os.utime(folder / "0.out", (1, 1))
        self.assertEqual(self.daemon.muster("logs", one, "--since", "1h").stdout, "")
        self.assertEqual(self.daemon.muster("logs", one, "--since", "soon").returncode, 2)

    def test_what_is_no_rank_is_refused(self):
        one = self.ended()
        self.assertEqual(self.daemon.muster("logs", one, "--rank", "-1").returncode, 2)
        self.assertEqual(self.daemon.muster("logs", one, "--rank", "zero").returncode, 2)
        self.assertEqual(self.daemon.muster("logs", one, "--tail", "-1").returncode, 2)
        self.assertEqual(self.daemon.muster("logs", one, "--rank", "1").returncode, 3)
        for name, value in (("worker", "-1"), ("worker", "x"), ("worker", ""), ("worker", "99999999999"), ("tail", "-3"),
                            ("since", "1h")):
            with self.assertRaises(Refused) as refusal:
                self.daemon.call("GET", f"jobs/{one}/logs?{name}={value}")
            self.assertEqual(refusal.exception.status, 400)
            self.assertEqual(json.loads(refusal.exception.body)["path"], name)

    def test_run_shows_both_streams_and_the_reason(self):
        got = self.daemon.muster("run", "--", "sh", "-c", "echo to out; echo to err >&2; exit 4")
        self.assertEqual((got.returncode, got.stdout), (100, "to out\n"))
        self.assertIn("to err\n", got.stderr)
        self.assertRegex(got.stderr, r"job 1 failed: .*4\n")
        missing = self.daemon.muster("run", "--", "nosuchprog")
        self.assertEqual(missing.returncode, 100)
        self.assertRegex(missing.stderr, r"job 2 failed: .*nosuchprog.*[Nn]o such file")
        self.assertRegex(self.daemon.muster("wait", "2").stderr, r"^job 2 failed: .*nosuchprog")

    def test_every_verb_prints_one_json_document(self):
        got = self.daemon.muster("run", "-o", "json", "--", "sh", "-c", "echo to out; exit 4")
        self.assertEqual(json.loads(got.stdout)["status"]["termination"]["exit"]["exit_code"], 4)
        self.assertIn("to out\n", got.stderr)
        for name in ("a", "b"):
            self.path(name).write_text(json.dumps(job("printf '1\\n2'", name=name)))
        sent = json.loads(self.daemon.muster("submit", "-o", "json", str(self.path("a")), str(self.path("b"))).stdout)
        self.assertEqual([one["name"] for one in sent["jobs"]], ["a", "b"])
        waited = self.daemon.muster("wait", "a", "b", "-o", "json")
        self.assertEqual([one["status"]["phase"] for one in json.loads(waited.stdout)["jobs"]], ["succeeded"] * 2)
        lines = [json.loads(line) for line in self.daemon.muster("logs", "a", "-o", "json").stdout.splitlines()]
        self.assertEqual(lines, [{"rank": 0, "stream": "out", "line": "1"}, {"rank": 0, "stream": "out", "line": "2"}])
        long = [self.daemon.submit(job("sleep 600")) for _ in range(2)]
        acted = json.loads(self.daemon.muster("cancel", *long, "-o", "json").stdout)
        self.assertEqual([one["id"] for one in acted["jobs"]], long)
        saved = json.loads(self.daemon.muster("snapshot", "save", str(self.path("shot")), "-o", "json").stdout)
        self.assertEqual(saved["bytes"], self.path("shot").stat().st_size)
        self.assertGreater(saved["revision"], 0)
        self.assertLessEqual(saved["revision"], self.daemon.call("GET", "version")["revision"])

    def test_followed_events_come_once_each(self):
        follow = subprocess.Popen([str(self.daemon.bin / "muster"), "events", "-f", "-o", "jsonl"], stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, MUSTER_DAEMON=str(self.daemon.socket)))
        try:
            seen, ends = [], 0
            self.ended("sleep 0.5")
            for line in follow.stdout:
                event = json.loads(line)
                seen.append(event["revision"])
                if event["kind"] == "job-ended":
                    ends += 1
                    if ends == 2:
                        break
                    self.ended("sleep 0.5")
        finally:
            follow.kill()
            follow.wait()
            follow.stdout.close()
        self.assertEqual(seen, sorted(set(seen)))

    def test_a_limit_of_events_counts_those_that_are_shown(self):
        for _ in range(3):
            self.ended()
        self.assertEqual(len(self.daemon.muster("events", "--limit", "3").stdout.splitlines()), 3)
        shown = json.loads(self.daemon.muster("events", "--limit", "5", "-o", "json").stdout)["events"]
        self.assertEqual(len(shown), 5)
        self.assertNotIn("cycle-ran", [event["kind"] for event in shown])
        wide = self.daemon.muster("events", "--limit", "3", "-o", "wide").stdout
        self.assertEqual((len(wide.splitlines()), "cycle-ran" in wide), (3, False))
        self.assertIn("cycle-ran", self.daemon.muster("events", "--cycles", "-o", "wide").stdout)

    def test_a_wait_that_ends_while_the_job_is_paused_says_preempted(self):
        self.daemon.call("POST", "queues", QUEUES)
        work = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
        rigid = self.daemon.submit(job(work, name="big", queue="ana", workers=4))
        self.daemon.wait(rigid, phases=("running",))
        self.daemon.submit(job("sleep 600", name="claim", queue="ben", workers=2))
        self.daemon.wait(rigid, phases=("paused",))
        got = self.daemon.muster("wait", "big", "--timeout", "50ms", "-o", "json")
        self.assertEqual(got.returncode, 103)
        self.assertIn("claim", got.stderr)
        self.assertEqual(json.loads(got.stdout)["jobs"][0]["status"]["phase"], "paused")
        self.assertIn("103", self.daemon.muster("wait", "--help").stdout)

    def test_of_an_array_the_first_waiting_task_is_explained(self):
        array = self.daemon.submit(job("sleep 600", name="sweep", gpus=2, array="5-9"))
        self.until(lambda: self.daemon.call("GET", f"jobs/{array}")["status"]["active"] == 2)
        got = self.daemon.muster("why", "sweep", "-o", "json")
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(json.loads(got.stdout)["name"], "sweep[7]")
        refused = self.daemon.muster("logs", "sweep")
        self.assertEqual(refused.returncode, 5)
        self.assertIn("sweep[5]", refused.stderr)


class Strangers(unittest.TestCase):
    """Something else answers where the daemon is expected: an error, never an abort."""

    def answer(self, status, body, *words):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            do_POST = do_GET

            def log_message(self, *_):
                pass

            def address_string(self):
                return "unix"

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        with tempfile.TemporaryDirectory(prefix="muster-other-") as folder, Server(folder + "/s", Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            got = subprocess.run([BUILD + "/bin/muster", *words, "--socket", folder + "/s"], capture_output=True, text=True, timeout=60)
            server.shutdown()
        return got

    def test_answers_that_are_not_understood_are_errors(self):
        for body in (b"[]", b"7", b"null", b'{"jobs": 7}', b'{"jobs": [{}], "events": [{}]}', b'{"status": 7, "id": 7}', b"hello"):
            for words in (["ps"], ["describe", "x"], ["wait", "x"], ["events"], ["cancel", "x"], ["logs", "x"]):
                got = self.answer(200, body, *words)
                self.assertIn(got.returncode, (0, 1), (body, words, got))
                if got.returncode:
                    self.assertIn("the daemon's answer", got.stderr)
            self.assertEqual(self.answer(200, body, "describe", "x").returncode, 1, body)

    def test_an_error_of_another_form_is_still_an_error(self):
        got = self.answer(500, b'{"title": 7, "code": []}', "describe", "x")
        self.assertEqual(got.returncode, 1)
        self.assertIn("status 500", got.stderr)


if __name__ == "__main__":
    BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
