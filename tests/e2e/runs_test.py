#!/usr/bin/env python3
"""runs_test.py BUILD [TEST...]: curves and results of runs, after their end and a restart; their files, read by other code than ours."""
import csv
import io
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from daemon import Daemon, Refused

# Nobody is frozen here: on a busy machine nobody is to be given up.
TRAIN = ["--data=teacher", "--model=mlp:16,32,1", "--batch=64", "--steps=400", "--timeout-ms=10000"]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The contents of a row of TFRecords, each checked."""
    at = 0
    while at < len(data):
        head, (size,), (crc,) = data[at:at + 8], struct.unpack_from("<Q", data, at), struct.unpack_from("<I", data, at + 8)
        assert crc == masked(head), "the length of a record was changed"
        body = data[at + 12:at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(body), "a record was changed"
        yield body
        at += 16 + size


def fields(message):
    """Field number and value of everything in a message of protocol buffers."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        number, wire = divmod(varint(), 8)
        if wire == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(wire) or varint()
        yield number, message[at:at + size]
        at += size


def events(data):
    """What TensorBoard would see: the version, and step, seconds and numbers of each event."""
    version, found = None, []
    for body in records(data):
        event = dict(fields(body))
        if 3 in event:
            version = event[3].decode()
        if 5 in event:
            values = [dict(fields(value)) for number, value in fields(event[5]) if number == 1]
            found.append((event.get(2, 0), struct.unpack("<d", event[1])[0],
                          {value[1].decode(): struct.unpack("<f", value[2])[0] for value in values}))
    return version, found


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-runs-"))
        cls.daemon = Daemon(BUILD, cls.folder, "--virtual-gpus", "4")
        cls.daemon.start()
        cls.one = cls.train("one", [])
        cls.two = cls.train("two", ["--seed=2"])
        for job in (cls.one, cls.two):
            ended = cls.daemon.wait(job, seconds=300)
            assert ended["status"]["phase"] == "succeeded", cls.muster("logs", job, "--err").stdout

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def train(cls, name, more):
        return cls.daemon.submit({"name": name, "queue": "default", "workers": "2", "gpus": 1, "framework": "muster", "workdir": str(cls.folder),
                                  "command": ["muster-train", *TRAIN, *more], "checkpoint": {"dir": str(cls.folder / name)}})

    @classmethod
    def muster(cls, *words, status=0):
        done = subprocess.run([str(cls.daemon.bin / "muster"), "--socket", str(cls.daemon.socket), *words], capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == status, f"{words}: {done.returncode}, {done.stdout}{done.stderr}"
        return done

    def printed(self, job):
        """What rank 0 printed of the result."""
        lines = self.muster("logs", job).stdout.splitlines()
        return next(line.rsplit(" ", 1)[1] for line in lines if line.startswith("hash of the parameters"))

    def test_the_curve_outlives_the_job_and_the_daemon(self):
        before = self.daemon.call("GET", f"runs/{self.one}")
        self.assertEqual(before["status"]["step"], 400)
        self.assertEqual(before["status"]["samples"], 400 * 64)
        self.assertEqual(before["points"][-1]["step"], 400)
        self.assertEqual(before["points"][-1]["numbers"]["loss"], before["status"]["loss"])
        self.assertEqual(before["status"]["numbers"]["workers"], 2)
        self.assertEqual(before["spec"]["command"][0], "muster-train")
        for end in (self.daemon.kill, self.leave):
            end()
            self.daemon.start()
            self.assertEqual(self.daemon.call("GET", f"runs/{self.one}"), before)

    def leave(self):
        self.daemon.process.terminate()
        self.daemon.process.wait(timeout=60)

    def test_a_run_goes_on_where_it_was_when_the_daemon_comes_back(self):
        program = self.folder / "report.py"
        program.write_text("""import json, os, socket, sys, time
shim = socket.socket(socket.AF_UNIX)
shim.connect(os.environ["MUSTER_SOCKET"])
say = lambda **line: shim.sendall((json.dumps(line) + "\\n").encode())
say(type="hello", version=1)
for step in range(1, 5):
    while not os.path.exists(f"{sys.argv[1]}/go{step}"):
        time.sleep(0.01)
    say(type="report", step=step, numbers={"loss": 1 / step, "odd": "nan"})
    say(type="something-new", of="a later version")
time.sleep(600)
""")
        gates = self.folder / "gates"
        gates.mkdir()
        job = self.daemon.submit({"name": "gated", "queue": "default", "checkpoint": {"grace": "0s"}, "command": ["/usr/bin/python3", str(program), str(gates)]})
        for step in range(1, 5):
            if step == 2:
                self.leave()
            if step == 4:
                self.daemon.kill()
            (gates / f"go{step}").touch()
            if step in (2, 4):
                self.daemon.start()
            self.until(lambda: self.steps(job)[-1:] == [step])  # noqa: B023
        got = self.daemon.call("GET", f"runs/{job}")
        self.assertEqual(self.steps(job)[-2:], [3, 4])
        self.assertEqual(got["points"][-1]["numbers"], {"loss": 0.25, "odd": "nan"})
        self.assertEqual(got["status"]["best_step"], 4)
        self.assertEqual(got["status"]["phase"], "running")
        self.muster("cancel", job)
        self.daemon.wait(job)
        self.assertEqual(self.daemon.call("GET", f"runs/{job}")["status"]["phase"], "cancelled")

    def steps(self, job):
        try:
            return [point["step"] for point in self.daemon.call("GET", f"runs/{job}")["points"]]
        except Refused as refused:
            self.assertEqual(refused.status, 404)
            return []

    def until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_the_list_has_both_newest_first(self):
        got = json.loads(self.muster("runs", "-o", "json").stdout)["runs"]
        self.assertEqual([run["id"] for run in got if run["id"] in (self.one, self.two)], [self.two, self.one])
        best = json.loads(self.muster("runs", "list", "--filter", "phase=succeeded", "--sort", "status.best_loss", "-o", "json").stdout)["runs"]
        self.assertEqual([run["status"]["best_loss"] for run in best], sorted(run["status"]["best_loss"] for run in best))
        table = self.muster("runs").stdout
        self.assertIn(self.printed(self.one), table)
        self.assertIn("succeeded", table)

    def test_one_is_shown_with_its_curve(self):
        shown = self.muster("runs", "show", "one").stdout
        self.assertIn("step 400", shown)
        self.assertIn("samples_per_s", shown)
        self.assertIn("|", shown)
        self.assertIn("no nothing was reported", self.muster("runs", "show", "one", "--number", "nothing").stdout)

    def test_two_are_compared(self):
        shown = self.muster("runs", "compare", "one", "two").stdout
        self.assertIn("a: one", shown)
        self.assertIn("b: two", shown)
        self.assertIn("--seed=2", shown)
        got = json.loads(self.muster("runs", "compare", "one", "two", "-o", "json").stdout)
        self.assertEqual([run["name"] for run in got["runs"]], ["one", "two"])
        different = {one["key"]: one["values"] for one in got["differences"]}
        self.assertEqual(different["name"], ["one", "two"])
        self.assertNotIn("queue", different)
        self.assertIn("their files say the same", self.muster("runs", "compare", "one", "one").stdout)
        self.muster("runs", "compare", "one", status=2)

    def test_tensorboard_and_csv_have_every_point(self):
        run = self.daemon.call("GET", f"runs/{self.one}")
        wrote = json.loads(self.muster("runs", "export", "one", "--tensorboard", str(self.folder / "boards"), "-o", "json").stdout)
        self.assertEqual(pathlib.Path(wrote["file"]).parent, self.folder / "boards" / f"one-{self.one}")
        version, found = events(pathlib.Path(wrote["file"]).read_bytes())
        self.assertEqual(version, "brain.Event:2")
        self.assertEqual([step for step, _, _ in found], [point["step"] for point in run["points"]])
        for (_, _, numbers), point in zip(found, run["points"]):
            self.assertEqual(set(numbers), set(point["numbers"]))
            self.assertEqual(numbers["loss"], struct.unpack("<f", struct.pack("<f", point["numbers"]["loss"]))[0])
        rows = list(csv.DictReader(io.StringIO(self.muster("runs", "export", "one", "--csv", "-").stdout)))
        self.assertEqual([(int(row["step"]), float(row["loss"])) for row in rows],
                         [(point["step"], point["numbers"]["loss"]) for point in run["points"]])
        self.muster("runs", "export", "one", "--csv", str(self.folder / "none" / "file"), status=4)
        self.muster("runs", "export", "one", status=2)

    def test_the_model_is_kept_and_can_be_tested(self):
        model = self.daemon.call("GET", f"runs/{self.one}")["status"]["model"]
        self.assertEqual(model["path"], str(self.folder / "one" / f"model-{self.one}.safetensors"))
        self.assertEqual(model["hash"], self.printed(self.one))
        data = pathlib.Path(model["path"]).read_bytes()
        size = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8:8 + size])
        self.assertEqual(header["__metadata__"]["hash"], model["hash"])
        self.assertEqual(header["__metadata__"]["model"], "mlp:16,32,1")
        floats = sum(tensor["shape"][0] for name, tensor in header.items() if name != "__metadata__")
        self.assertEqual(len(data), 8 + size + 4 * floats)
        self.assertEqual(floats, 16 * 32 + 32 + 32 + 1)
        tested = self.scored(model["path"])
        self.assertEqual(tested.returncode, 0, tested.stderr)
        self.assertIn(model["hash"], tested.stdout)
        score = next(line for line in self.muster("logs", self.one).stdout.splitlines() if "kept apart" in line)
        self.assertIn(score, tested.stdout)
        self.assertEqual(list((self.folder / "one").glob("*.part")), [])

    def scored(self, path):
        return subprocess.run([str(self.daemon.bin / "muster-train"), "--test", str(path)], capture_output=True, text=True, timeout=60, check=False)

    def test_a_corrupted_model_is_refused(self):
        path = pathlib.Path(self.daemon.call("GET", f"runs/{self.two}")["status"]["model"]["path"])
        data = bytearray(path.read_bytes())
        data[-2] ^= 4
        broken = self.folder / "broken.safetensors"
        broken.write_bytes(data)
        refused = self.scored(broken)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("have the hash", refused.stderr)
        broken.write_bytes(data[:-4])
        self.assertIn("cut off", self.scored(broken).stderr)

    def test_a_job_that_reports_nothing_has_no_run(self):
        job = self.daemon.submit({"name": "plain", "queue": "default", "command": ["true"]})
        self.daemon.wait(job)
        self.assertIn("has reported nothing", self.muster("runs", "show", job, status=3).stderr)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
