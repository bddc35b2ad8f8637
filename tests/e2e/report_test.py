#!/usr/bin/env python3
"""report_test.py BUILD: `muster sim report` and `pooling` on examples/lab: a page that is well-formed, whole in itself and the same again."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LAB = ROOT / "examples" / "lab"
POLLUX = ("--profiles", str(LAB / "pollux"), "--policies", "tiresias,optimus-oracle,pollux")
OPENB = ("--nodes", str(LAB / "openb" / "nodes.csv"), "--pods", str(LAB / "openb" / "pods.csv"), "--policies", "best-fit,fgd,muster", "--seed", "42", "--seeds", "3")
JOBS = ("--workload", str(LAB / "jobs.csv"), "--policies", "fifo,muster")
POOLING = ("--workload", str(LAB / "jobs.csv"), "--percentiles", "70,95")
MEASURES = ("utilisation", "wait", "experiments")
SETS = {"pollux": (POLLUX, ["index.html", "jct.svg", "utilisation.svg", "gantt-tiresias.svg", "gantt-optimus-oracle.svg", "gantt-pollux.svg"]),
        "openb": (OPENB, ["index.html", "allocation.svg", "allocation-seeds.svg", "fragmentation.svg"]),
        "jobs": (JOBS, ["index.html", "jct.svg", "utilisation.svg", "gantt-fifo.svg", "gantt-muster.svg"]),
        "pooling": (POOLING, ["index.html", "utilisation-over-time.svg", *(f"{one}{more}.svg" for one in MEASURES for more in ("", "-by-size"))])}
NAMESPACE = "{http://www.w3.org/2000/svg}"
BUILD = None


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-report-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def report(self, *words, to="out", status=0):
        done = subprocess.run([str(pathlib.Path(BUILD) / "bin" / "muster"), "sim", "pooling" if "--percentiles" in words else "report", *words, "--to", to], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def read(self, to="out"):
        return {path.name: path.read_text() for path in (self.folder / to).iterdir()}

    def whole(self, name, text):
        """Nothing is fetched from elsewhere; a link leads to a plot beside the page."""
        without = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        for wrong in ("http:", "https:", "//", "src=", "@import", "url(", "<script", "<link", "<image", "<use", "<iframe", "javascript:"):
            self.assertNotIn(wrong, without, name)
        for link in re.findall(r'href="([^"]*)"', text):
            self.assertTrue((self.folder / "out" / link).is_file(), f"{name} leads to {link}")

    def test_pages_and_plots_are_well_formed_whole_and_described(self):
        for words, names in SETS.values():
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            said = self.report(*words).stdout
            files = self.read()
            self.assertEqual(sorted(files), sorted(names))
            for name, text in files.items():
                if words is not POOLING:  # prints its table instead
                    self.assertIn(f"out/{name}", said)
                self.whole(name, text)
                root = ElementTree.fromstring(text)
                self.assertIn("prefers-color-scheme: dark", text)
                plots = [root] if name.endswith(".svg") else list(root.iter("svg"))
                for plot in plots:
                    space = NAMESPACE if name.endswith(".svg") else ""
                    self.assertTrue(plot.find(space + "title").text and plot.find(space + "desc").text, name)
                    self.assertEqual(plot.get("role"), "img")
                    self.inside(plot, name)
                ids = [one.get("id") for one in root.iter() if one.get("id")]
                self.assertEqual(len(ids), len(set(ids)), name)
            page = ElementTree.fromstring(files["index.html"])
            self.assertEqual(len(list(page.iter("svg"))), 2 * (len(names) - 1), "each plot for wide and narrow windows")
            for table in page.iter("table"):
                self.assertTrue(table.find("caption").text)

    def inside(self, plot, name):
        """What is drawn is within the picture."""
        left, top, width, height = (float(word) for word in plot.get("viewBox").split())
        for one in plot.iter():
            for keys, least, most in ((("x", "x1", "x2", "cx"), left, left + width), (("y", "y1", "y2", "cy"), top, top + height)):
                for key in keys:
                    self.assertTrue(least - 1 <= float(one.get(key, "0")) <= most + 1, f"{name}: {one.tag} {one.attrib}")

    def test_the_page_says_what_it_was_made_from(self):
        self.report(*OPENB)
        page = (self.folder / "out" / "index.html").read_text()
        version = subprocess.run([str(pathlib.Path(BUILD) / "bin" / "muster"), "--version"], capture_output=True, text=True).stdout.split()[1]
        for fact in (str(LAB / "openb" / "nodes.csv"), str(LAB / "openb" / "pods.csv"), "best-fit, fgd, muster", "42 to 44", version):
            self.assertIn(fact, page)

    def test_the_same_inputs_give_the_same_bytes(self):
        for words, _ in SETS.values():
            for to in ("one", "two"):
                self.report(*words, "--yes", to=to)
            self.assertEqual(self.read("one"), self.read("two"))

    def test_the_document_lists_what_was_written(self):
        words, names = SETS["pollux"]
        got = json.loads(self.report(*words, "-o", "json").stdout)
        self.assertEqual(got["name"], "out")
        self.assertEqual([file["file"] for file in got["files"]], [f"out/{name}" for name in names])
        for file in got["files"]:
            self.assertEqual(file["bytes"], (self.folder / file["file"]).stat().st_size)

    def test_a_folder_is_written_over_only_where_it_holds_a_report_and_that_is_wanted(self):
        words = SETS["openb"][0]
        self.report(*SETS["pollux"][0])
        self.assertIn("--yes", self.report(*words, status=5).stderr)
        self.assertIn("jct.svg", self.read())
        (self.folder / "out" / "notes.txt").write_text("mine")
        self.report(*words, "--yes")
        self.assertEqual(sorted(self.read()), sorted([*SETS["openb"][1], "notes.txt"]))
        (self.folder / "home").mkdir()
        (self.folder / "home" / "index.html").write_text("<html>mine</html>")
        for more in ((), ("--yes",)):
            self.assertIn("not touched", self.report(*words, *more, to="home", status=5).stderr)
        self.assertEqual(self.read("home"), {"index.html": "<html>mine</html>"})

    def test_nothing_is_written_when_a_run_cannot_be_played(self):
        for words, status in (((*OPENB[:4], "--policies", "fgd,magic"), 3), ((*OPENB[:4], "--policies", "fgd,fgd"), 2), (("--policies", "fgd"), 2)):
            self.report(*words, to="never", status=status)
        self.assertFalse((self.folder / "never").exists())


if __name__ == "__main__":
    BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
