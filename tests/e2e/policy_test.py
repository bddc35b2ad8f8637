#!/usr/bin/env python3
"""policy_test.py BUILD: a policy file changes what the running daemon decides, outlives it, and can be taken back."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import e2e_test
from cli_test import CliCase
from e2e_test import Refused

GENTLE = "name: gentle\npolicy:\n  preempt: off\n"


class Policies(CliCase):
    def setUp(self):
        super().setUp()
        self.gentle = self.file("gentle.yaml", GENTLE)

    def work(self, name, priority):
        return self.daemon.submit({"name": name, "queue": "default", "gpus": 4, "priority": priority, "workdir": "/tmp", "command": ["sleep", "600"]})

    def force(self):
        """Id and stated settings of the policy in force."""
        got = self.daemon.call("GET", "policies/current")
        return got["id"], got["spec"]["policy"]

    def cycles(self):
        return len(self.daemon.call("GET", "events?kinds=cycle-ran&limit=10000")["events"])

    def test_it_decides_outlives_the_daemon_and_is_taken_back(self):
        low = self.work("low", 25)
        self.daemon.wait(low, ("running",))
        self.cli("policy", "apply", self.gentle, "--yes")
        before = self.cycles()
        high = self.work("high", 75)
        self.until(lambda: self.cycles() > before)  # the scheduler has seen it
        self.assertEqual((self.phase(low), self.phase(high)), ("running", "waiting"))
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.force(), ("1", {"preempt": "off"}))
        before = self.cycles()
        self.daemon.call("POST", f"jobs/{high}:priority?value=80")
        self.until(lambda: self.cycles() > before)
        self.assertEqual((self.phase(low), self.phase(high)), ("running", "waiting"))
        self.assertIn("undid policy 1", self.cli("policy", "undo", "--yes").stdout)
        self.daemon.wait(high, ("running",))
        self.daemon.wait(low, ("paused", "waiting"))
        self.assertEqual(self.force(), ("2", {}))
        self.cli("snapshot", "save", "all.snap")
        report = self.get("snapshot", "replay", "all.snap")
        self.assertTrue(report["same"], report)

    def test_a_replay_decides_the_same_across_a_change(self):
        low = self.work("low", 25)
        self.daemon.wait(low, ("running",))
        self.daemon.call("POST", "policies", GENTLE)
        high = self.work("high", 75)
        self.daemon.call("POST", "policies", {"policy": {"grow": "off"}})
        self.daemon.wait(high, ("running",))
        self.cli("snapshot", "save", "all.snap")
        report = self.get("snapshot", "replay", "all.snap")
        self.assertTrue(report["same"], report)
        self.assertGreaterEqual(report["decisions"], 3)

    def test_a_file_that_is_wrong_says_where(self):
        file = self.file("bad.yaml", "policy:\n  grow: off\n  premept: off\n  move_limit: -2\n")
        said = self.cli("policy", "apply", file, "--yes", status=5).stderr
        self.assertIn(f"{file}:3:3: error: no setting is called `premept`; did you mean `preempt`?", said)
        self.assertIn(f"{file}:4:15: error: `move_limit`: `-2` is not allowed (allowed: a whole number from 0 to 1000000, or any)", said)
        with self.assertRaises(Refused) as refused:
            self.daemon.call("POST", "policies", "policy: {grow: off, move_limit: -2}")
        self.assertEqual(refused.exception.status, 422)
        problem = json.loads(refused.exception.body)
        self.assertEqual(problem["path"], "policy.move_limit")
        self.assertIn("line 1, column 33: ", problem["title"])
        self.assertEqual(self.force(), ("default", {}))

    def test_the_trail_has_before_and_after(self):
        self.cli("policy", "apply", self.gentle, "--yes")
        self.cli("policy", "apply", self.gentle)  # is in force already: nobody is asked
        self.cli("policy", "apply", "-", "--yes", input="policy: {grow: off, preempt: true}")
        self.cli("policy", "undo", "--yes")
        gentle = {"name": "gentle", "policy": {"preempt": "off"}}
        rows = self.daemon.call("GET", "audit?limit=3")["audit"]
        self.assertEqual([(row["operation"], row["object"], row["before"], row["after"]) for row in rows],
                         [("undoPolicy", "policy 3", {"policy": {"preempt": "on", "grow": "off"}}, gentle),
                          ("applyPolicy", "policy 2", gentle, {"policy": {"preempt": "on", "grow": "off"}}),
                          ("applyPolicy", "policy 1", {"policy": {}}, gentle)])
        events = self.cli("events", "--filter", "kind=policy-applied").stdout
        self.assertIn("policy gentle applied by", events)
        self.assertIn("policy 2 undone by", events)
        self.assertRegex(self.cli("audit", "-o", "wide").stdout, r"policy 3")

    def test_undoing_goes_back_step_by_step_and_no_further(self):
        for limit in (1, 2, 3):
            self.daemon.call("POST", "policies", {"policy": {"move_limit": limit}})
        for wanted in ({"move_limit": "2"}, {"move_limit": "1"}, {}):
            self.cli("policy", "undo", "--yes")
            self.assertEqual(self.force()[1], wanted)
        self.assertIn("no change of policy to undo", self.cli("policy", "undo", "--yes", status=5).stderr)
        for limit in range(1, 21):
            self.daemon.call("POST", "policies", {"policy": {"move_limit": limit}})
        listed = self.get("policy", "list")["policies"]
        self.assertEqual([one["id"] for one in listed], [*(str(id) for id in range(26, 10, -1)), "default"])
        self.assertEqual([one["status"]["in_force"] for one in listed], [True] + [False] * 16)
        for wanted in range(19, 11, -1):
            self.daemon.call("POST", "policies/current:undo")
            self.assertEqual(self.force()[1], {"move_limit": str(wanted)})
        self.assertIn("no longer remembered", self.cli("policy", "undo", "--yes", status=5).stderr)

    def test_what_is_shown_as_a_file_is_taken_again(self):
        self.cli("policy", "apply", self.file("p.yaml", "name: x\nabout: 'a: b'\npolicy: {decay_half_life: 36h, move_limit: any, gang_packing: fullest_node, decay_strength: 0.5}\n"), "--yes")
        shown = self.cli("policy", "show", "-o", "yaml").stdout
        self.assertIn("decay_half_life: 1d12h", shown)
        self.assertIn("no setting changes", self.cli("policy", "apply", "-", "--yes", input=shown).stdout)
        self.assertEqual(self.force()[0], "1")
        changed = {one["name"]: one["value"] for one in self.get("policy", "show", "--changed")["settings"]}
        self.assertEqual(changed, {"decay_half_life": "1d12h", "move_limit": "any", "gang_packing": "fullest_node", "decay_strength": "0.5"})
        everything = {one["name"]: one["default"] for one in self.get("policy", "show", "default")["settings"]}
        self.cli("policy", "apply", "-", "--yes", input=json.dumps({"policy": everything}))
        self.assertEqual(self.get("policy", "show", "--changed")["settings"], [])

    def test_every_setting_is_in_the_specification_with_its_default(self):
        text = (e2e_test.ROOT / "docs" / "scheduling.md").read_text()
        rows = [line.split("|") for line in text[text.index("## Settings"):].splitlines() if line.startswith("| `")]
        written = {cells[1].strip(" `"): cells[2].strip() for cells in rows}
        self.assertEqual(written, {one["name"]: one["default"] for one in self.get("policy", "show", "default")["settings"]})

    def test_nobody_is_asked_twice_and_a_change_meanwhile_is_not_overrun(self):
        said = self.cli("policy", "apply", self.gentle, status=2).stderr
        self.assertIn("--yes", said)
        self.assertRegex(said, r"preempt +on -> off")
        self.assertEqual(self.force(), ("default", {}))
        tag = {"If-Match": '"default"'}
        self.daemon.call("POST", "policies", {"policy": {"grow": "off"}}, tag)
        with self.assertRaises(Refused) as refused:
            self.daemon.call("POST", "policies", GENTLE, tag)
        self.assertEqual(refused.exception.status, 412)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_a_user_reads_it_and_may_not_change_it(self):
        os.chmod(self.folder, 0o755)
        os.chmod(self.gentle, 0o644)
        words = ["setpriv", "--reuid", "65534", "--clear-groups", str(self.daemon.bin / "muster"), "policy"]
        env = {**self.env, "XDG_CONFIG_HOME": "/nonexistent"}
        for line, status in ((["show"], 0), (["list"], 0), (["apply", self.gentle, "--yes"], 4), (["apply", self.gentle, "--dry-run"], 4), (["undo", "--yes"], 4)):
            done = subprocess.run([*words, *line], env=env, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, status, f"{line}: {done.stderr}")
        self.assertEqual(self.force(), ("default", {}))


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
