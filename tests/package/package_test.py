#!/usr/bin/env python3
"""package_test.py BUILD: the Debian package, built and taken through its life in a scratch Debian with a systemd of its own:
installed, started, killed, upgraded under a running job, removed, purged; nothing is left. And the same tree as a container image.
"""
import functools
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from scratch import Scratch, base_root

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = None
ELSEWHERE = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/lib/dpkg", "/var/log", "/var/cache", "/var/lib/apt")
JOB = """name: survivor
queue: default
gpus: 1
workdir: /tmp
command: [sh, -c, "echo started $$; until [ -e /tmp/finish ]; do sleep 0.1; done; echo finished $$"]
"""


@functools.cache
def package():
    made = subprocess.run([ROOT / "scripts/package", BUILD], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise AssertionError(made.stdout + made.stderr)
    return pathlib.Path(made.stdout.split()[-1]).resolve()


class Package(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root for a scratch root")
        self.package = package()
        try:
            self.box = Scratch(pathlib.Path(BUILD) / "scratch")
        except OSError as error:
            self.skipTest(str(error))
        self.addCleanup(self.box.close)

    def muster(self, *words):
        return json.loads(self.box.run("muster", *words, "-o", "json").stdout)

    def unit(self, key):
        return self.box.run("systemctl", "show", "-p", key, "--value", "musterd").stdout.strip()

    def pid(self):
        return self.unit("MainPID")

    def newer(self):
        """The same package with a higher version."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-newer-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-R", self.package, folder / "tree"], check=True)
        control = folder / "tree/DEBIAN/control"
        control.write_text(re.sub(r"^Version: .*", "Version: 99.0", control.read_text(), flags=re.M))
        subprocess.run(["dpkg-deb", "-Znone", "-b", folder / "tree", folder / "newer.deb"], check=True, capture_output=True)
        return folder / "newer.deb"

    def install(self, package):
        shutil.copy(package, self.box.path("tmp/muster.deb"))
        return self.box.run("dpkg", "-i", "/tmp/muster.deb")

    def test_it_is_installed_upgraded_under_a_job_removed_and_purged(self):
        before = self.box.files(*ELSEWHERE)
        self.box.path("etc/default/musterd").write_text('MUSTERD_OPTIONS="--virtual-gpus 4"\n')  # as an admin prepares it
        shutil.copy(self.package, self.box.path("tmp/muster.deb"))
        self.box.run("dpkg", "--force-confold", "-i", "/tmp/muster.deb")
        first = self.pid()
        self.assertEqual(self.box.run("muster", "run", "--gpus", "1", "--", "echo", "hello").stdout, "hello\n")
        self.box.path("tmp/job.yaml").write_text(JOB)
        job = self.muster("submit", "/tmp/job.yaml")["jobs"][0]["id"]
        self.box.run("muster", "wait", job, "--for", "running", "--timeout", "30s")
        self.box.run("muster", "validate", "/etc/muster/musterd.yaml")

        said = self.install(self.newer())
        self.assertNotEqual(self.pid(), first, "the new daemon did not take over: " + said.stdout + said.stderr)
        self.assertNotIn("deleted", os.readlink(f"/proc/{self.box.inside}/root/proc/{self.pid()}/exe"))
        self.assertEqual(self.box.path("etc/default/musterd").read_text(), 'MUSTERD_OPTIONS="--virtual-gpus 4"\n')
        shown = self.muster("describe", job)
        self.assertEqual((shown["status"]["phase"], shown["status"]["workers"][0]["launches"]), ("running", 1))
        self.box.path("tmp/finish").touch()
        self.box.run("muster", "wait", job, "--timeout", "30s")
        lines = self.box.run("muster", "logs", job).stdout.split("\n")
        self.assertEqual(lines[0].replace("started", "finished"), lines[1])

        said = self.box.run("dpkg", "-r", "muster")
        self.assertIn("stay in /var/lib/muster", said.stdout)
        self.assertEqual(self.pid(), "0", "the daemon was not stopped")
        self.assertTrue(self.box.path("var/lib/muster/journal.db").exists())
        self.assertFalse(self.box.path("usr/bin/muster").exists())
        said = self.box.run("dpkg", "-P", "muster")
        self.assertIn("removing /var/lib/muster", said.stdout)
        self.assertEqual(self.box.files(*ELSEWHERE) ^ before, set())
        self.assertEqual(list(self.box.path("run").glob("muster/*")), [])

    def test_every_file_of_the_package_is_where_its_readers_look(self):
        listed = subprocess.run(["dpkg-deb", "-c", self.package], capture_output=True, text=True, check=True).stdout
        for name in ("usr/bin/muster", "usr/libexec/muster/muster-shim", "usr/sbin/musterd -> ../libexec/muster/musterd",
                     "lib/systemd/system/musterd.service", "etc/muster/musterd.yaml", "etc/default/musterd",
                     "usr/share/man/man1/muster.1.gz", "usr/share/man/man8/musterd.8.gz", "usr/share/bash-completion/completions/muster",
                     "usr/share/zsh/vendor-completions/_muster", "usr/share/fish/vendor_completions.d/muster.fish",
                     "usr/share/doc/muster/operations.md", "usr/share/doc/muster/api.md", "usr/share/doc/muster/CHANGELOG.md"):
            self.assertIn(f"./{name}\n", listed)

    def test_the_unit_keeps_the_daemon_up_and_its_jobs_alive_and_shuts_what_no_job_needs(self):
        self.install(self.package)
        self.assertEqual(self.box.run("systemd-analyze", "--man=no", "verify", "/lib/systemd/system/musterd.service").stderr, "")
        self.box.path("tmp/job.yaml").write_text(JOB.replace("gpus: 1", "cpus: 1"))
        job = self.muster("submit", "/tmp/job.yaml")["jobs"][0]["id"]
        self.box.run("muster", "wait", job, "--for", "running", "--timeout", "30s")

        self.box.run("kill", "-9", self.pid())
        self.until(lambda: self.unit("NRestarts") == "1" and self.unit("ActiveState") == "active")
        for verb in ("restart", "reload", "stop", "start"):
            self.box.run("systemctl", verb, "musterd")
        shown = self.muster("describe", job)
        self.assertEqual((shown["status"]["phase"], shown["status"]["workers"][0]["launches"]), ("running", 1))
        self.box.path("tmp/finish").touch()
        self.box.run("muster", "wait", job, "--timeout", "30s")

        for shut, why in (("touch /usr/x", "Read-only"), ("date -s 12:00", "not permitted")):
            got = self.box.run("muster", "run", "--", "sh", "-c", shut, check=False)
            self.assertEqual(got.returncode, 100, f"{shut}: {got.stdout} {got.stderr}")
            self.assertIn(why, got.stdout + got.stderr)
        self.box.path("etc/muster/musterd.yaml").write_text("pools: nonsense\n")
        self.box.run("systemctl", "restart", "musterd", check=False)
        self.assertEqual((self.unit("ActiveState"), self.unit("NRestarts")), ("failed", "0"), "a wrong file is tried again and again")
        self.assertIn("pools", self.box.run("journalctl", "-u", "musterd", "-n", "5").stdout)

    def until(self, fact, seconds=60):
        deadline = time.monotonic() + seconds
        while not fact():
            self.assertLess(time.monotonic(), deadline, "it never came true")
            time.sleep(0.05)


class Manager(unittest.TestCase):
    def test_it_is_told_when_the_daemon_serves_reloads_lives_and_ends(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-notify-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(str(folder / "notify"))
            told.settimeout(60)
            env = dict(os.environ, NOTIFY_SOCKET=str(folder / "notify"), WATCHDOG_USEC="200000")
            daemon = subprocess.Popen([f"{BUILD}/bin/musterd", "--state", folder / "state", "--run", folder / "run", "--socket",
                                       folder / "d.sock", "--virtual-gpus", "1"], env=env, stderr=subprocess.DEVNULL)
            self.addCleanup(daemon.kill)
            self.assertEqual(told.recv(100), b"READY=1")
            self.assertEqual(told.recv(100), b"WATCHDOG=1")
            daemon.send_signal(signal.SIGHUP)
            self.assertEqual(self.next_of(told), b"RELOADING=1")
            self.assertEqual(self.next_of(told), b"READY=1")
            daemon.terminate()
            self.assertEqual(self.next_of(told), b"STOPPING=1")
            self.assertEqual(daemon.wait(60), 0)

    def next_of(self, told):
        while (said := told.recv(100)) == b"WATCHDOG=1":
            pass
        return said


class Image(unittest.TestCase):
    """The Containerfile, built over a base image made from the scratch root, because no registry can be asked here."""

    def setUp(self):
        if os.geteuid() != 0 or shutil.which("podman") is None:
            self.skipTest("needs root and podman")
        self.box = pathlib.Path(tempfile.mkdtemp(prefix="muster-image-"))
        self.addCleanup(shutil.rmtree, self.box, ignore_errors=True)
        try:
            base = base_root(pathlib.Path(BUILD) / "scratch")
        except OSError as error:
            self.skipTest(str(error))
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1048576)
        # crun refuses a machine with both versions of cgroups mounted; it needs none of them here.
        runtime = self.box / "crun"
        runtime.write_text("#!/bin/sh\n[ -d /sys/fs/cgroup/unified ] || exec /usr/bin/crun \"$@\"\n"
                           "exec unshare --mount --propagation private sh -c "
                           "'umount /sys/fs/cgroup/unified && exec /usr/bin/crun \"$@\"' sh \"$@\"\n")
        runtime.chmod(0o755)
        (self.box / "containers.conf").write_text(
            f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=1000:1000"]\n'
            f'[engine]\nruntime = "crun"\n[engine.runtimes]\ncrun = ["{runtime}"]\n')
        (self.box / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{self.box}/root"\nrunroot = "{self.box}/run"\n')
        tar = subprocess.Popen(["tar", "-C", base, "--exclude=./var/cache/apt/archives/*.deb", "-cf", "-", "."], stdout=subprocess.PIPE)
        made = self.podman("import", "--quiet", "-", "localhost/muster-base:12", stdin=tar.stdout)
        tar.stdout.close()
        if tar.wait() != 0 or made.returncode != 0:
            self.skipTest(f"podman cannot import an image here: {made.stderr}")

    def podman(self, *words, **options):
        env = dict(os.environ, CONTAINERS_CONF=str(self.box / "containers.conf"), CONTAINERS_STORAGE_CONF=str(self.box / "storage.conf"))
        return subprocess.run(["podman", *map(str, words)], capture_output=True, text=True, timeout=300, env=env, **options)

    def test_it_is_built_and_serves_with_tls_and_runs_a_job(self):
        context = self.box / "context"
        (context / "packages").mkdir(parents=True)
        shutil.copy(package(), context / "packages")
        built = self.podman("build", "--isolation", "chroot", "--pull=never", "--build-arg", "BASE=localhost/muster-base:12", "-f",
                            ROOT / "packaging/Containerfile", "-t", "localhost/muster:test", context)
        self.assertEqual(built.returncode, 0, built.stdout[-1000:] + built.stderr[-1000:])
        tls = self.box / "tls"
        tls.mkdir()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tls / "key.pem", "-out",
                        tls / "chain.pem"], check=True, capture_output=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        started = self.podman("run", "-d", "--name", "muster", "--cgroups", "disabled", "--network", "host", "-v", f"{tls}:/etc/muster/tls:ro",
                              "localhost/muster:test", "--listen", f"127.0.0.1:{port}", "--tls-cert", "/etc/muster/tls/chain.pem",
                              "--tls-key", "/etc/muster/tls/key.pem", "--virtual-gpus", "4")
        self.addCleanup(self.podman, "rm", "-f", "-t", "5", "muster")
        if started.returncode != 0:
            self.skipTest(f"podman cannot run a container here: {started.stderr}")
        trust = ssl.create_default_context(cafile=tls / "chain.pem")
        deadline = time.monotonic() + 60
        while True:
            try:
                link = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=trust)
                link.request("GET", "/api/v1/jobs")
                self.assertEqual(link.getresponse().status, 401)
                link.close()
                break
            except ConnectionRefusedError:
                self.assertLess(time.monotonic(), deadline, self.podman("logs", "muster").stderr)
                time.sleep(0.1)
        ran = self.podman("exec", "muster", "muster", "run", "--gpus", "1", "--", "echo", "hello")
        self.assertEqual((ran.returncode, ran.stdout), (0, "hello\n"), ran.stderr)
        self.assertEqual(self.podman("stop", "-t", "20", "muster").returncode, 0)
        self.assertIn("stopping", self.podman("logs", "muster").stderr)


if __name__ == "__main__":
    BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
