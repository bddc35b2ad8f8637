"""Workers on several hosts that see no common folder: they meet at a store, and one that is cut off does not go on.

The hosts are network namespaces on one bridge, with the store in a third one; that needs root.
Usage: hosts_test.py BUILD [unittest arguments].
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gang import PATIENT_MS, Gang, Worker, mismatches  # noqa: E402
from needs import missing  # noqa: E402

BUILD = sys.argv.pop(1)
TRAIN = os.path.join(BUILD, "bin", "muster-train")
OPTIONS = {"model": "mlp:16,24,24,1", "data": "teacher", "batch": 8, "shards": 4, "steps": 1500, "every_step": "true"}
TIMEOUT_MS = 1000  # of what is cut off; 20 of them pass before a worker gives the store up
STORE = "10.77.0.1"
HOSTS = {"a": "10.77.0.2", "b": "10.77.0.3"}


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Network:
    """Two hosts and a store that reach each other; `cut` takes one of the hosts off."""

    def __init__(self):
        self.prefix = f"muster-{os.getpid()}"
        self.made = []

    def space(self, name):
        return f"{self.prefix}-{name}"

    def __enter__(self):
        try:
            for name in ("hub", *HOSTS):
                ip("netns", "add", self.space(name))
                self.made.append(self.space(name))
                ip("-n", self.space(name), "link", "set", "lo", "up")
            hub = self.space("hub")
            ip("-n", hub, "link", "add", "name", "middle", "type", "bridge")
            ip("-n", hub, "addr", "add", f"{STORE}/24", "dev", "middle")
            ip("-n", hub, "link", "set", "middle", "up")
            for name, address in HOSTS.items():
                space = self.space(name)
                ip("-n", hub, "link", "add", "name", name, "type", "veth", "peer", "name", "out", "netns", space)
                ip("-n", hub, "link", "set", "dev", name, "master", "middle", "up")
                ip("-n", space, "addr", "add", f"{address}/24", "dev", "out")
                ip("-n", space, "link", "set", "out", "up")
        except subprocess.CalledProcessError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in self.made:
            subprocess.run(["ip", "netns", "del", space], check=False)

    def cut(self, host):
        ip("-n", self.space("hub"), "link", "set", "dev", host, "down")

    def heal(self, host):
        ip("-n", self.space("hub"), "link", "set", "dev", host, "up")


def reason_to_skip():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and iproute2"
    space = f"muster-{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", space], check=False, capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)
    return f"no network namespaces here: {made.stderr.strip()}" if made.returncode != 0 else None


class HostGang(Gang):
    """Workers on hosts, and the store."""

    def __init__(self, network, **options):
        super().__init__(TRAIN, **{**OPTIONS, "timeout_ms": TIMEOUT_MS, **options})
        self.network = network
        self.secret = self.folder / "secret"
        self.secret.write_text("the secret of this job\n")
        self.server = self.address = None
        self.serve()

    def serve(self):
        space = ["ip", "netns", "exec", self.network.space("hub")] if self.network else []
        self.server = subprocess.Popen(
            [*space, TRAIN, "store", "--folder", self.folder / "store", "--secret-file", self.secret,
             "--address", STORE if self.network else "127.0.0.1"], stdout=subprocess.PIPE, text=True)
        self.address = self.server.stdout.readline().strip()

    def end_server(self, number=signal.SIGKILL):
        self.server.send_signal(number)
        self.server.stdout.close()
        return self.server.wait()

    def __exit__(self, *arguments):
        if self.server.poll() is None:
            self.end_server()
        super().__exit__(*arguments)

    def start(self, host=None, **more):
        space = ["ip", "netns", "exec", self.network.space(host)] if host else []
        command = [*space, TRAIN]
        for key, value in {"store": self.address, "secret_file": self.secret, **self.options, **more}.items():
            command += ["--" + key.replace("_", "-"), str(value)]
        worker = Worker(self, command)
        worker.host = host
        self.workers.append(worker)
        return worker

    def start_on_both(self):
        for host in HOSTS:
            for _ in range(2):
                self.start(host, first_workers=2 * len(HOSTS))  # else one host may be done before the other is there

    def on(self, host):
        return [worker for worker in self.workers if worker.host == host]

    def generation(self):
        return int((self.folder / "store" / "newest").read_text())

    def wait_step(self, more=30):
        step = self.last_step() + more
        self.wait(lambda: self.last_step() >= step)

    def wait_step_of(self, workers, gang, more=5):
        """Until these have done so many steps in a gang of so many."""
        seen = {id(worker): len(worker.steps) for worker in workers}
        self.wait(lambda: all(sum(step.workers == gang for step in worker.steps[seen[id(worker)]:]) >= more
                              for worker in workers), 90)

    def check_finished(self, test, workers=None):
        test.assertEqual({worker.end for worker in workers or self.workers}, {"finished"}, self.describe())


def reference(folder):
    command = [TRAIN, "--folder", str(folder)]
    for key, value in OPTIONS.items():
        command += ["--" + key.replace("_", "-"), str(value)]
    gang = Gang(TRAIN)
    with gang:
        worker = Worker(gang, command)
        gang.workers.append(worker)
        gang.wait_ended()
        assert worker.end == "finished", gang.describe()
        return gang.hashes()


def connections(space, here, there):
    """Established ones from one address to another, as the first sees them."""
    table = subprocess.run(["ip", "netns", "exec", space, "cat", "/proc/net/tcp"], check=True, capture_output=True, text=True)
    words = [line.split()[1:4] for line in table.stdout.splitlines()[1:]]
    coded = ["".join(f"{int(part):02X}" for part in reversed(address.split("."))) for address in (here, there)]
    return sum(state == "01" and own.split(":")[0] == coded[0] and peer.split(":")[0] == coded[1]
               for own, peer, state in words)


def shared_memory(worker):
    """How many pieces of memory that processes share it has mapped."""
    text = pathlib.Path(f"/proc/{worker.process.pid}/maps").read_text()
    return len({line.split()[4] for line in text.splitlines() if "memfd:muster" in line})


class HostsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if reason := reason_to_skip():
            missing(reason, root=True)
        with tempfile.TemporaryDirectory() as folder:
            cls.truth = reference(folder)

    def setUp(self):
        self.network = Network().__enter__()
        self.addCleanup(self.network.__exit__)

    def gang(self, **options):
        gang = HostGang(self.network, **options)
        self.addCleanup(gang.__exit__)
        return gang

    def test_two_hosts_give_the_bits_of_one_worker(self):
        ways = [({"encrypt": "false"}, 4), ({"encrypt": "true"}, 4)]
        if os.path.exists(os.path.join(BUILD, "bin", "libmuster-train-gloo.so")):
            ways.append(({"wire": "gloo"}, 8))  # a second connection beside each
        for options, between in ways:
            gang = self.gang(min_workers=4, timeout_ms=PATIENT_MS, **options)
            gang.start_on_both()
            gang.wait_step()
            # Its own, that of the other one on the host, and what the two have between them.
            self.assertEqual([shared_memory(worker) for worker in gang.workers], [3] * 4)
            self.assertEqual(connections(self.network.space("a"), HOSTS["a"], HOSTS["b"]), between)
            gang.wait_ended()
            gang.check_finished(self)
            self.assertEqual(mismatches(gang, self.truth), [])
            self.assertEqual({step.workers for worker in gang.workers for step in worker.steps}, {4})

    def test_a_host_that_is_cut_off_ends_and_the_other_goes_on(self):
        for lost, stays in (("a", "b"), ("b", "a")):  # with the chief, and without
            gang = self.gang(mirrors=2, min_workers=2, timeout_ms=500)
            gang.start_on_both()
            gang.wait_step_of(gang.workers, 4)
            self.network.cut(lost)
            gang.wait_ended()
            self.network.heal(lost)
            gang.check_finished(self, gang.on(stays))
            self.assertEqual(mismatches(gang, self.truth), [])
            last = max(step.generation for worker in gang.on(stays) for step in worker.steps)
            for worker in gang.on(lost):
                self.assertLess(worker.steps[-1].generation, last, gang.describe())
                self.assertNotEqual(worker.process.returncode, 0, gang.describe())
                self.assertRegex(worker.errors, f"{re.escape(gang.address)}", gang.describe())

    def test_a_host_that_comes_back_in_time_works_again(self):
        gang = self.gang(mirrors=2, min_workers=4)  # so that those who are left wait, for all who come back
        gang.start_on_both()
        gang.wait_step_of(gang.workers, 4)
        before = gang.generation()
        self.network.cut("b")
        gang.wait(lambda: gang.generation() > before)
        self.network.heal("b")
        gang.wait_ended()
        gang.check_finished(self)
        self.assertEqual(mismatches(gang, self.truth), [])
        for worker in gang.workers:
            self.assertGreater(worker.steps[-1].generation, before + 1)

    def test_of_hosts_that_lose_each_other_one_goes_on(self):
        gang = self.gang(mirrors=2, min_workers=2)
        gang.start_on_both()
        gang.wait_step_of(gang.workers, 4)
        ip("-n", self.network.space("a"), "route", "add", "blackhole", f"{HOSTS['b']}/32")
        gang.wait_ended()
        gang.check_finished(self)  # those who were left behind hear of the end
        self.assertEqual(mismatches(gang, self.truth), [])
        last = {host: max(step.step for worker in gang.on(host) for step in worker.steps) for host in HOSTS}
        self.assertEqual(sorted(step == OPTIONS["steps"] for step in last.values()), [False, True], gang.describe())

    def test_a_store_that_was_killed_goes_on_when_it_is_started_again(self):
        gang = self.gang(mirrors=2, min_workers=2)
        gang.start_on_both()
        gang.wait_step_of(gang.workers, 4)
        before = gang.address
        self.assertEqual(gang.end_server(), -signal.SIGKILL)
        gang.wait_step()  # nobody needs it
        gang.workers[0].kill()  # now somebody does
        gang.workers[0].process.wait()
        gang.serve()
        self.assertEqual(gang.address, before)
        gang.wait_step_of(gang.workers[1:], 3)
        gang.start("a")
        gang.wait_ended()
        gang.check_finished(self, gang.workers[1:])
        self.assertEqual(mismatches(gang, self.truth), [])
        self.assertEqual(gang.end_server(signal.SIGTERM), 0)


class MeetingTest(unittest.TestCase):
    """What is said when workers cannot meet; on one host."""

    def setUp(self):
        self.gang = HostGang(None, timeout_ms=PATIENT_MS, steps=20)
        self.addCleanup(self.gang.__exit__)

    def complaint(self, **more):
        worker = self.gang.start(**more)
        self.gang.wait_ended()
        self.assertNotEqual(worker.process.returncode, 0)
        return worker.errors

    @staticmethod
    def end_all(processes):
        """Those that had not ended."""
        left = [process for process in processes if os.path.exists(f"/proc/{process}")]
        for process in left:
            os.kill(int(process), signal.SIGKILL)
        return left

    def test_the_secret_is_asked_for(self):
        self.assertRegex(self.complaint(secret_file=""), "needs the secret of the job.*--secret-file")
        self.assertRegex(self.complaint(secret_file=self.gang.folder / "none"), "none")
        other = self.gang.folder / "other"
        other.write_text("of another job altogether")
        self.assertRegex(self.complaint(secret_file=other), "the store at .* has another secret")
        other.write_text("short\n")
        self.assertRegex(self.complaint(secret_file=other), "has 5 characters")
        other.write_text("\n")
        self.assertRegex(self.complaint(secret_file=other), "there is no secret in")
        store = subprocess.run([TRAIN, "store", "--folder", self.gang.folder / "second"], capture_output=True, text=True)
        self.assertEqual(store.returncode, 2)
        self.assertRegex(store.stderr, "needs the secret of the job")

    def test_a_store_that_is_not_there_is_given_up(self):
        self.gang.end_server()
        self.assertRegex(self.complaint(timeout_ms=200), f"cannot connect to {re.escape(self.gang.address)}")

    def test_something_else_on_the_port_is_no_store(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            def answer():
                line, _ = server.accept()
                with line:
                    line.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" + b"x" * 500)
                    line.recv(4096)

            thread = threading.Thread(target=answer)
            thread.start()
            self.assertRegex(self.complaint(store=f"127.0.0.1:{server.getsockname()[1]}"), "is no store")
            thread.join()

    def test_an_address_that_nobody_reaches_is_refused(self):
        for address in ("0.0.0.0", "::", "[::]:80"):
            self.assertRegex(self.complaint(address=address), "others cannot connect to that")
        self.assertRegex(self.complaint(address="192.0.2.1"), "cannot listen on 192.0.2.1")

    def test_workers_that_were_started_together_leave_together(self):
        launcher = self.gang.start(workers=2, steps=1000000)
        self.gang.wait(lambda: self.gang.last_step() >= 20)
        pid = launcher.process.pid
        started = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.addCleanup(self.end_all, started)
        launcher.leave()
        self.gang.wait(lambda: not launcher.lives)
        self.assertEqual((len(started), self.end_all(started)), (2, []))
        self.gang.wait_ended()
        self.assertEqual((launcher.process.returncode, launcher.end), (128 + signal.SIGTERM, "left"), self.gang.describe())

    def test_the_environment_says_where_to_meet(self):
        variables = {"MUSTER_TRAIN_STORE": self.gang.address, "MUSTER_TRAIN_SECRET": self.gang.secret.read_text()}
        command = [TRAIN, "--steps", "3", "--model", OPTIONS["model"], "--data", OPTIONS["data"], "--batch", "8", "--quiet"]
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((self.gang.folder / "store" / "finished").read_text(), "3")


if __name__ == "__main__":
    unittest.main()
