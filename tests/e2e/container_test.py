#!/usr/bin/env python3
"""container_test.py BUILD: jobs with an `image`, through a real musterd and a real podman.

The image is a static busybox, imported into a storage of the test's own; podman is pointed to it by the settings files that
an admin would write (CONTAINERS_CONF and CONTAINERS_STORAGE_CONF in the daemon's environment). Where podman cannot run a
container at all, the tests say so and are skipped.
"""
import os
import pathlib
import resource
import subprocess
import sys
import unittest

import e2e_test
from e2e_test import Case, job

IMAGE = "localhost/muster-busybox:1"


class Containers(Case):
    def setUp(self):
        missing = [name for name in ("/usr/bin/podman", "/usr/bin/crun", "/bin/busybox") if not os.path.exists(name)]
        if missing or os.geteuid() != 0:
            self.skipTest(f"needs root and {missing}")
        super().setUp()
        self.addCleanup(self.daemon.stop)  # also where the rest of this is skipped
        self.write_settings()
        os.environ.update(self.settings)
        self.addCleanup(lambda: [os.environ.pop(name) for name in self.settings])
        self.import_image()
        probe = self.podman("run", "--rm", "--cgroups", "disabled", "--network", "host", IMAGE, "/bin/busybox", "true")
        if probe.returncode != 0:
            self.skipTest(f"podman cannot run a container here: {probe.stderr}")
        self.daemon.stop()
        self.daemon.start()

    def write_settings(self):
        box = self.path("podman")
        (box / "image/bin").mkdir(parents=True)
        (box / "image/tmp").mkdir()
        # crun refuses a machine with both versions of cgroups mounted; it needs none of them here.
        runtime = box / "crun"
        runtime.write_text("#!/bin/sh\n[ -d /sys/fs/cgroup/unified ] || exec /usr/bin/crun \"$@\"\n"
                           "exec unshare --mount --propagation private sh -c "
                           "'umount /sys/fs/cgroup/unified && exec /usr/bin/crun \"$@\"' sh \"$@\"\n")
        runtime.chmod(0o755)
        # Not more than this process may have: root lacks the right to raise it inside some machines.
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1048576)
        (box / "containers.conf").write_text(
            f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=1000:1000"]\n'
            f'[engine]\nruntime = "crun"\n[engine.runtimes]\ncrun = ["{runtime}"]\n')
        (box / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{box}/root"\nrunroot = "{box}/run"\n')
        self.settings = {"CONTAINERS_CONF": str(box / "containers.conf"), "CONTAINERS_STORAGE_CONF": str(box / "storage.conf")}

    def import_image(self):
        box = self.path("podman")
        subprocess.run(["cp", "/bin/busybox", box / "image/bin/busybox"], check=True)
        (box / "image/bin/sh").symlink_to("busybox")
        subprocess.run(["tar", "-C", box / "image", "-cf", box / "image.tar", "."], check=True)
        done = self.podman("import", "--quiet", str(box / "image.tar"), IMAGE)
        if done.returncode != 0:
            self.skipTest(f"podman cannot import an image here: {done.stderr}")

    def podman(self, *words):
        return subprocess.run(["podman", *words], capture_output=True, text=True, timeout=120)

    def contained(self, script, **more):
        return self.daemon.submit({**job(script, **more), "image": IMAGE, "workdir": str(self.path("work"))})

    def nothing_is_left(self):
        left = self.podman("ps", "--all", "--quiet")
        self.assertEqual((left.returncode, left.stdout), (0, ""), left.stderr)

    def test_the_worker_runs_inside_with_its_folder_environment_socket_and_status(self):
        self.path("work").mkdir()
        one = self.contained("/bin/busybox ls /; /bin/busybox test -S $MUSTER_SOCKET && echo socket; "
                             "echo rank=$MUSTER_RANK gpus=$CUDA_VISIBLE_DEVICES; echo done >said; exit 3")
        self.until(lambda: self.phase(one) == "failed", 60)
        status = self.daemon.call("GET", f"jobs/{one}")["status"]
        self.assertEqual(status["termination"]["exit"]["exit_code"], 3, status)
        out = self.out(one)
        self.assertNotIn("usr", out.split(), "that is the machine's root, not the image's")
        self.assertIn("socket", out.split())
        self.assertIn("rank=0 gpus=0", out)
        self.assertEqual(self.path("work/said").read_text(), "done\n")
        self.nothing_is_left()

    def test_a_pause_reaches_the_program_and_it_comes_back(self):
        self.path("work").mkdir()
        one = self.contained("echo start $MUSTER_RESTART_COUNT >>said; [ $MUSTER_RESTART_COUNT = 0 ] || exit 0; "
                             "trap 'echo saved >>said; exit 0' USR1; while :; do /bin/busybox sleep 0.1; done",
                             checkpoint={"signal": "SIGUSR1", "grace": "20s"})
        said = self.path("work/said")
        self.until(lambda: said.exists() and "start 0" in said.read_text(), 60)
        self.daemon.call("POST", f"jobs/{one}:suspend")
        self.until(lambda: self.phase(one) == "suspended", 60)
        self.daemon.call("POST", f"jobs/{one}:resume")
        self.until(lambda: self.phase(one) == "succeeded", 60)
        self.assertEqual(said.read_text().split("\n")[-2], "start 1")
        self.nothing_is_left()

    def test_a_cancelled_job_leaves_no_process_and_no_container(self):
        self.path("work").mkdir()
        one = self.contained("trap '' TERM; echo up >said; while :; do /bin/busybox sleep 1; done",
                             checkpoint={"grace": "1s"})
        self.until(lambda: self.path("work/said").exists(), 60)
        self.daemon.call("POST", f"jobs/{one}:cancel")
        self.until(lambda: self.phase(one) == "cancelled", 60)
        self.nothing_is_left()

    def test_an_image_that_is_not_there_is_a_clear_failure(self):
        self.path("work").mkdir()
        one = self.daemon.submit({**job("true"), "image": "localhost/nobody-made-this:1", "workdir": str(self.path("work"))})
        self.until(lambda: self.phase(one) == "failed", 60)
        self.assertIn("nobody-made-this", self.daemon.muster("logs", str(one), "--err").stdout)


if __name__ == "__main__":
    e2e_test.BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
