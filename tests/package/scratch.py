"""A scratch Debian that can be thrown away: a root of its own that is booted by its own systemd.

The root is a layer over a minimal Debian 12 that debootstrap made once (kept in the build folder), from the mirror that apt on
this machine uses. All of it lives in namespaces of one process; when that ends, processes and mounts are gone.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time


def mirror():
    """Where apt here fetches Debian from."""
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        text = path.read_text(errors="replace") if path.is_file() else ""
        found = re.search(r"^(?:URIs:|deb(?: \[.*?\])?)\s*(\S+/debian)/?\s", text, re.M)
        if found:
            return found.group(1)
    return None


def base_root(cache):
    """A minimal Debian 12, made when it is not there yet; OSError where that cannot be."""
    root = cache / "bookworm"
    if root.is_dir():
        return root
    if shutil.which("debootstrap") is None or mirror() is None:
        raise OSError("no debootstrap, or no mirror of Debian that apt uses")
    part = cache / "bookworm.part"
    shutil.rmtree(part, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["debootstrap", "--variant=minbase", "--include=procps,systemd,systemd-sysv", "bookworm", part, mirror()],
                          capture_output=True, text=True)
    if made.returncode != 0:
        raise OSError(f"debootstrap failed: {made.stdout[-300:]}")
    part.rename(root)
    return root


class Scratch:
    def __init__(self, cache):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-scratch-"))
        base = base_root(cache)
        self.root = self.folder / "root"
        # The layer's own files are in memory: overlayfs cannot lie on overlayfs, and some machines run on one.
        script = f"""
set -e
mount -t tmpfs -o size=1g scratch {self.folder}
mkdir -p {self.root} {self.folder}/upper {self.folder}/work
mount -t overlay -o lowerdir={base},upperdir={self.folder}/upper,workdir={self.folder}/work scratch {self.root}
mount -t proc proc {self.root}/proc
mount -t sysfs sys {self.root}/sys
mount -t cgroup2 cgroup {self.root}/sys/fs/cgroup
mount -t tmpfs -o size=64m dev {self.root}/dev
for name in null zero full random urandom tty; do touch {self.root}/dev/$name; mount --bind /dev/$name {self.root}/dev/$name; done
mkdir {self.root}/dev/shm {self.root}/dev/pts {self.root}/before
mount -t devpts -o newinstance,ptmxmode=0666 pts {self.root}/dev/pts
ln -s pts/ptmx {self.root}/dev/ptmx
ln -s /proc/self/fd {self.root}/dev/fd
mount -t tmpfs -o mode=1777 shm {self.root}/dev/shm
mount -t tmpfs -o mode=0755 run {self.root}/run
cd {self.root}
pivot_root . before  # and not chroot: systemd gives services mounts of their own
umount -l /before
rmdir /before
export container=scratch
echo up
exec chroot . /sbin/init
"""
        self.process = subprocess.Popen(["unshare", "--mount", "--pid", "--cgroup", "--net", "--uts", "--ipc", "--fork", "--kill-child",
                                         "--propagation", "private", "sh", "-c", script],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "up\n":
            why = self.process.stderr.read()
            self.close()
            raise OSError(f"no scratch root can be made here: {why}")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.inside = children[0]
        self.wait_for_boot()

    def wait_for_boot(self):
        deadline = time.monotonic() + 120
        while (state := self.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip()) not in ("running", "degraded"):
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.close()
                raise OSError(f"systemd does not boot here: {state}")
            time.sleep(0.1)

    def run(self, *words, check=True, **options):
        got = subprocess.run(["nsenter", "-t", self.inside, "-m", "-p", "-C", "-n", "-u", "-i", f"--root=/proc/{self.inside}/root", f"--wd=/proc/{self.inside}/root", *words],
                             capture_output=True, text=True, timeout=120,
                             env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
                             **options)
        if check and got.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, words))}: status {got.returncode}\n{got.stdout[-1500:]}\n{got.stderr[-1500:]}")
        return got

    def path(self, name):
        """A path of the scratch root as it is seen from here; never one of this machine's own."""
        root = pathlib.Path(f"/proc/{self.inside}/root")
        if os.path.samestat(os.stat(root), os.stat("/")):
            raise OSError("the scratch root is not there")
        return root / name.lstrip("/")

    def files(self, *without):
        """Every file of the scratch root but those below the folders named."""
        out = self.run("find", "/", "-xdev", *(word for name in without for word in ("-path", name, "-prune", "-o")), "-print").stdout
        return set(out.split("\n")) - {""}

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)
