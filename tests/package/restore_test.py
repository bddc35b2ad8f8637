#!/usr/bin/env python3
"""restore_test.py BUILD: back up as docs/operations.md says while jobs are submitted, destroy the store, restore: nothing of
before the backup is lost, no number is given out twice, and what ran is taken up. With SQLite and with PostgreSQL.
"""
import glob
import os
import pathlib
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
sys.dont_write_bytecode = True
import e2e_test
from daemon import Refused
from e2e_test import Case, job


class Restore(Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)  # the last of the cleanups

    def musterd(self, *words):
        return subprocess.run([self.daemon.bin / "musterd", "--state", self.path("state"), *map(str, words)], capture_output=True,
                              text=True, timeout=120)

    def end(self):
        self.daemon.process.send_signal(signal.SIGTERM)  # without stop(), which forgets the workers
        self.daemon.process.wait(60)

    def load(self):
        """Submissions that go on until stop; the jobs that were accepted."""
        self.accepted, self.stop = [], threading.Event()

        def submit():
            link = self.daemon.connect()
            while not self.stop.is_set():
                self.accepted.append(int(self.daemon.submit(job("true", name="late", gpus=0), connection=link)))
            link.close()

        self.thread = threading.Thread(target=submit)
        self.thread.start()

    def before(self):
        self.daemon.call("POST", "queues", {"queues": [{"name": "vision", "quota": {"gpus": 2}, "members": {"user:ana": "user"}}]})
        self.daemon.call("PUT", "users/ana", {"role": "viewer"})
        self.token = self.daemon.call("POST", "tokens", {"name": "kept", "user": "ana"})["id"]
        self.ended = self.daemon.submit(job("exit 3", name="ended"))
        self.daemon.wait(self.ended)
        self.running = self.daemon.submit(job("until [ -e finish ]; do sleep 0.05; done", name="running", workdir=str(self.folder)))
        self.waiting = self.daemon.submit(job("true", name="waiting", gpus=4))
        self.daemon.wait(self.running, ("running",))
        self.load()
        self.until(lambda: len(self.accepted) > 20)

    def after_backup(self):
        """What is accepted from now on may be lost; what was accepted may not."""
        known = list(self.accepted)
        self.until(lambda: len(self.accepted) > len(known) + 50)
        self.stop.set()
        self.thread.join()
        self.last = max(self.accepted)
        return known

    def check(self, known):
        for one in known:
            self.assertIn(self.daemon.call("GET", f"jobs/{one}")["name"], "late")
        got = self.daemon.call("GET", f"jobs/{self.ended}")
        self.assertEqual(got["status"]["termination"]["exit"]["exit_code"], 3)
        self.assertEqual(self.daemon.call("GET", "queues/vision")["spec"]["members"], {"user:ana": "user"})
        self.assertIn(self.token, [one["id"] for one in self.daemon.call("GET", "tokens")["tokens"]])
        self.assertTrue(self.daemon.call("GET", f"audit?object=job%20{self.ended}")["audit"])
        shown = self.daemon.call("GET", f"jobs/{self.running}")
        self.assertEqual((shown["status"]["phase"], shown["status"]["workers"][0]["launches"]), ("running", 1))
        self.path("finish").touch()
        self.assertEqual(self.daemon.wait(self.running)["status"]["phase"], "succeeded")
        self.assertEqual(self.daemon.wait(self.waiting)["status"]["phase"], "succeeded")
        self.assertGreater(int(self.daemon.submit(job("true", name="new"))), self.last)

    def test_sqlite_backed_up_under_load_and_restored(self):
        self.before()
        before = list(self.accepted)
        copy = self.path("backup.db")
        made = self.musterd("backup", copy)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(stat.S_IMODE(copy.stat().st_mode), 0o600)
        self.assertEqual(self.musterd("backup", copy).returncode, 5, "a backup is never overwritten")
        self.after_backup()
        self.end()
        for name in glob.glob(str(self.path("state") / "journal.db*")):
            os.unlink(name)
        shutil.copy(copy, self.path("state") / "journal.db")
        with self.assertRaises(RuntimeError) as refusal:  # it notices that its end is missing
            self.daemon.start()
        self.assertIn("repair", str(refusal.exception))
        fixed = self.musterd("repair")
        self.assertEqual(fixed.returncode, 0, fixed.stderr)
        self.daemon.start()
        self.check(before)

    def started_again(self, meanwhile):
        """A job whose second launch began after the backup is restored and ends well; `meanwhile` is done to the pid of that launch."""
        again = self.daemon.submit(job("until [ -e finish ]; do sleep 0.05; done", name="again", workdir=str(self.folder)))
        self.daemon.wait(again, ("running",))
        copy = self.path("backup.db")
        self.assertEqual(self.musterd("backup", copy).returncode, 0)
        self.daemon.call("POST", f"jobs/{again}:suspend")
        self.daemon.wait(again, ("suspended",))
        self.daemon.call("POST", f"jobs/{again}:resume")
        pid = self.daemon.wait(again, ("running",))["status"]["workers"][0]["pid"]
        self.end()
        meanwhile(pid)
        for name in glob.glob(str(self.path("state") / "journal.db*")):
            os.unlink(name)
        shutil.copy(copy, self.path("state") / "journal.db")
        self.assertEqual(self.musterd("repair").returncode, 0)
        self.daemon.start()  # the machine knows a launch that the journal does not
        self.path("finish").touch()
        self.assertEqual(self.daemon.wait(again)["status"]["phase"], "succeeded")

    def test_what_was_started_again_since_the_backup_is_started_once_more(self):
        self.started_again(lambda pid: None)

    def test_so_is_what_ended_before_the_restore(self):
        def finish(pid):
            self.path("finish").touch()
            self.until(lambda: not pathlib.Path(f"/proc/{pid}").exists())

        self.started_again(finish)

    def test_so_is_what_was_killed_with_its_shim_before_the_restore(self):
        def kill(pid):
            shim = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(shim, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            self.until(lambda: not pathlib.Path(f"/proc/{pid}").exists())

        self.started_again(kill)

    def test_postgresql_backed_up_under_load_and_restored(self):
        tools = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not tools or os.geteuid() != 0:
            self.skipTest("needs PostgreSQL's server and root")
        url = self.postgres(tools[-1])
        self.daemon.stop()
        shutil.rmtree(self.path("state"))  # it remembers another journal
        self.daemon.options = (*self.daemon.options, "--store", url)
        self.daemon.start()
        self.before()
        before = list(self.accepted)
        dump = self.path("muster.dump")
        subprocess.run([tools[-1] / "pg_dump", "--format=custom", f"--file={dump}", url], check=True)
        self.after_backup()
        self.end()
        subprocess.run([tools[-1] / "psql", "-q", url, "-c", "drop schema public cascade", "-c", "create schema public"], check=True,
                       capture_output=True)
        subprocess.run([tools[-1] / "pg_restore", "--clean", "--if-exists", f"--dbname={url}", dump], check=True)
        fixed = self.musterd("--store", url, "repair")
        self.assertEqual(fixed.returncode, 0, fixed.stderr)
        self.daemon.start()
        self.check(before)

    def postgres(self, tools):
        """A server of the test's own on a Unix socket; its URL."""
        owner = pwd.getpwnam("postgres")
        folder = self.path("pg")
        folder.mkdir()
        self.folder.chmod(0o755)
        os.chown(folder, owner.pw_uid, owner.pw_gid)

        def run(*words):
            subprocess.run(words, check=True, capture_output=True, user=owner.pw_uid, group=owner.pw_gid, cwd=folder)

        run(tools / "initdb", "-D", folder / "data", "--no-sync", "--no-locale", "-E", "UTF8", "-A", "trust", "-U", "muster")
        run(tools / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o", f"-k {folder} -c listen_addresses= -c fsync=off", "start")
        self.addCleanup(run, tools / "pg_ctl", "-D", folder / "data", "-w", "-m", "immediate", "stop")
        run(tools / "createdb", "-h", folder, "-U", "muster", "muster")
        return f"postgresql://muster@/muster?host={folder}"

    def tearDown(self):
        if hasattr(self, "stop"):
            self.stop.set()
            self.thread.join()
        try:
            for one in self.daemon.call("GET", "jobs?limit=10000")["jobs"]:
                self.daemon.call("POST", f"jobs/{one['id']}:cancel")
        except (OSError, Refused):
            pass
        self.daemon.stop()


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
