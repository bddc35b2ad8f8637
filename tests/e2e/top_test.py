#!/usr/bin/env python3
"""top_test.py BUILD: `muster top` at a real terminal: what it shows, its keys, and that it leaves the terminal as it was."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import e2e_test
from e2e_test import Case, job
from enter_test import Ours

SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([A-Za-z])")


class Picture:
    """What a terminal would show: knows the few sequences that a full-screen view writes."""

    def __init__(self, rows, cols):
        self.clear(rows, cols)
        self.other = False  # the screen of full-screen programs
        self.hidden = False  # the cursor
        self.colours = False

    def clear(self, rows, cols):
        self.rows, self.cols, self.at = rows, cols, (0, 0)
        self.cells = [[" "] * cols for _ in range(rows)]

    def feed(self, data):
        while data:
            found = SEQUENCE.match(data)
            if found:
                self.obey(found.group(1).decode(), found.group(2).decode())
                data = data[found.end():]
                continue
            row, col = self.at
            size = next((n for n, least in ((4, 0xF0), (3, 0xE0), (2, 0xC0)) if data[0] >= least), 1)
            if row < self.rows and col < self.cols:
                self.cells[row][col] = data[:size].decode(errors="replace")
            self.at = (row, col + 1)
            data = data[size:]

    def obey(self, numbers, what):
        if what == "H":
            row, col = (int(n) for n in numbers.split(";")) if numbers else (1, 1)
            self.at = (row - 1, col - 1)
        elif what == "J":
            self.clear(self.rows, self.cols)
        elif what == "m":
            self.colours |= any(n in ("31", "32", "33", "36") for n in numbers.split(";"))
        elif numbers == "?1049":
            self.other = what == "h"
        elif numbers == "?25":
            self.hidden = what == "l"

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)


class Top(Case):
    def top(self, *words, rows=24, cols=80, **env):
        before = dict(os.environ)
        os.environ.update(env)
        try:
            self.ours = Ours(self.daemon, "top", *words, rows=rows, cols=cols)
        finally:
            os.environ.clear()
            os.environ.update(before)
        self.picture = Picture(rows, cols)
        return self.ours

    def shows(self, *texts):
        """Reads until all of it is on the screen at once."""
        deadline = time.monotonic() + 30
        while not all(text in self.picture.text() for text in texts):
            self.assertLess(time.monotonic(), deadline, f"{texts} never came:\n{self.picture.text()}")
            self.ours.seen = b""
            self.ours.until(b"\x1b[")
            whole = self.ours.seen
            cut = whole.rfind(b"\x1b")
            while not SEQUENCE.match(whole[cut:]):  # half of a sequence: its rest is on the way
                whole += os.read(self.ours.ours, 4096)
            self.picture.feed(whole)

    def press(self, keys):
        os.write(self.ours.ours, keys)

    def quit(self, keys=b"q"):
        if keys:
            self.press(keys)
        self.ours.seen = b""
        status = self.ours.end()
        self.picture.feed(self.ours.seen)
        self.assertFalse(self.picture.other or self.picture.hidden, self.ours.seen[-80:])
        return status

    def test_jobs_come_and_go_by_events_and_keys_do_what_they_say(self):
        big = self.daemon.submit(dict(job("while :; do echo working; sleep 0.2; done", name="big", gpus=3), kind="build"))
        self.daemon.wait(big, ("running",))
        self.top()
        self.shows("3 held, 1 free, 4 GPUs (virtual)", "1 running", "big", "live")
        self.daemon.submit(dict(job("true", name="late", gpus=3), kind="build"))
        self.shows("late", "1 running  1 waiting")
        row = [line for line in self.picture.text().split("\n") if " late " in line][0]
        self.assertRegex(row, r"waiting +3 ", "the GPUs it asks for")
        self.press(b"j")
        self.press(b"w")
        self.shows("why 2 late", "late is waiting")
        self.press(b"\x1b")
        self.press(b"k")
        self.press(b"l")
        self.shows("output of 1 big", "working")
        self.press(b"e")
        self.shows("events of 1 big", "worker 0 runs", "e events")
        self.press(b"?")
        self.shows("jobs go on")
        self.press(b"\x1b")
        self.press(b"/")
        self.press(b"lat")
        self.shows("/lat_")
        self.assertNotIn("big  ", self.picture.text().split("NOTE")[1])
        self.press(b"\x1b")
        self.press(b"sss")
        self.shows("USERv")
        self.press(b"r")
        self.shows("USER^")
        self.press(b"g")
        self.press(b"c")
        self.shows("cancel job 1 (big)? y/n")
        self.press(b"n")
        self.shows("s sort")
        self.assertEqual(self.phase(big), "running")
        self.press(b"cy")
        self.shows("cancelled", "succeeded")
        self.press(b"a")
        self.shows("no jobs wait or run")
        self.assertEqual(self.quit(), 0)

    def test_a_new_size_is_drawn_anew_and_signals_leave_the_terminal_as_it_was(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            self.top()
            self.shows("q quit")
            self.ours.resize(40, 120)
            self.picture.clear(40, 120)
            self.ours.process.send_signal(signal.SIGWINCH)
            self.shows("q quit")
            self.assertIn("q quit", self.picture.text().split("\n")[39])
            self.ours.process.send_signal(number)
            self.assertEqual(self.quit(b""), 128 + number)

    def test_no_colour_where_none_is_wanted(self):
        self.top()
        self.shows("q quit")
        self.assertTrue(self.picture.colours)
        self.quit()
        self.top(NO_COLOR="1")
        self.shows("q quit")
        self.assertFalse(self.picture.colours)
        self.assertEqual(self.quit(b"\x03"), 0)

    def test_without_a_terminal_it_says_what_to_do_instead(self):
        self.daemon.submit(job("sleep 600", name="one", gpus=2))
        self.daemon.wait("one", ("running",))
        got = self.daemon.muster("top", stdin=subprocess.DEVNULL)
        self.assertEqual(got.returncode, 2)
        self.assertIn("top needs a terminal", got.stderr)
        got = self.daemon.muster("top", "--once")
        self.assertEqual(got.returncode, 0)
        self.assertIn("2 held, 2 free, 4 GPUs", got.stdout)
        self.assertNotIn("\x1b", got.stdout)
        shot = json.loads(self.daemon.muster("top", "-o", "json").stdout)
        self.assertEqual(shot["gpus"], [{"type": "virtual", "held": 2, "free": 2, "total": 4, "virtual": True}])
        self.assertEqual(shot["phases"], {"running": 1})
        self.assertEqual(shot["jobs"][0]["name"], "one")


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2, warnings="ignore")
