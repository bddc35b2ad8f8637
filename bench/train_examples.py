"""Part `examples` of the suite `train`: how long the two examples take, submitted as people do, on four virtual GPUs."""
import shutil
import subprocess
import sys
import time

from control import BUILD, ROOT, machine
from daemon import Daemon

NAMES = ("text", "digits")
FIGURES = [f"train.example_{name}_s" for name in NAMES]


def examples(report, folder):
    tree = folder / "tree"
    shutil.copytree(ROOT / "examples", tree / "examples")
    daemon = Daemon(BUILD, folder / "examples", "--virtual-gpus", "4")
    daemon.start()
    try:
        for name in NAMES:
            begun = time.monotonic()
            for words in (("submit", f"examples/train/{name}.yaml"), ("wait", name)):
                done = subprocess.run([daemon.bin / "muster", "--socket", daemon.socket, *words], cwd=tree, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"muster {' '.join(words)} exited {done.returncode}: {done.stderr.strip()}")
            took = time.monotonic() - begun
            report(f"train.example_{name}_s", took, "s", [took], machine())
    finally:
        daemon.stop()
