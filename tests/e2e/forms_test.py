#!/usr/bin/env python3
"""forms_test.py BUILD: what people may rely on everywhere: -o, --yes, exit statuses, hints for typing mistakes, wide tables, frames."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import yaml

import e2e_test
from cli_test import CliCase, Terminal
from e2e_test import job


class Formats(CliCase):
    def test_what_only_happened_is_named_by_its_number(self):
        self.daemon.wait(self.daemon.submit(job("true", name="one", gpus=1)))
        for words, noun, key in ((("events", "--filter", "kind=node-joined"), "events", "revision"), (("decisions",), "decisions", "revision"), (("audit",), "audit", "id")):
            wanted = [str(item[key]) for item in self.get(*words)[noun]]
            self.assertTrue(wanted, words)
            self.assertEqual(self.cli(*words, "-o", "name").stdout.split(), wanted, words)
        with subprocess.Popen([str(self.daemon.bin / "muster"), "events", "-f", "-o", "name"], env=self.env, stdout=subprocess.PIPE, text=True) as follow:
            self.assertRegex(follow.stdout.readline(), r"^\d+\n$")
            follow.kill()

    def test_a_plan_is_named_by_its_nodes(self):
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        self.assertEqual(self.cli("plan", self.file("j.yaml", job("true", gpus=1, workers=2)), "-o", "name").stdout, f"{node}\n")

    def test_verbs_that_change_files_of_ours_answer_like_others(self):
        got = self.get("init", "a.yaml")
        self.assertEqual((got["name"], got["file"]), ("a.yaml", "a.yaml"))
        self.assertEqual(self.cli("init", "b.yaml", "-o", "name").stdout, "b.yaml\n")
        for name in ("a", "b", "c"):
            self.cli("login", f"unix:{self.daemon.socket}", "--name", name)
        used = self.get("config", "use", "a")
        self.assertEqual((used["id"], used["name"], used["current"]), ("a", "a", True))
        self.assertEqual(used["server"], f"unix:{self.daemon.socket}")
        self.assertFalse(yaml.safe_load(self.cli("config", "delete", "b", "-o", "yaml").stdout)["current"])
        self.assertEqual(self.cli("logout", "a", "-o", "name").stdout, "a\n")
        self.assertEqual(json.loads(self.cli("logout", "c", "-o", "jsonl").stdout)["name"], "c")
        self.assertEqual(self.cli("login", f"unix:{self.daemon.socket}", "--name", "d", "-o", "name").returncode, 0)
        self.assertEqual(self.cli("logout", "d").stdout, "", "talk goes to standard error")

    def test_where_a_format_makes_no_sense_it_is_said_why(self):
        for words in (("attach", "x"), ("exec", "x"), ("shell", "x"), ("port-forward", "x", "80"), ("completion", "bash"), ("help",)):
            said = self.cli(*words, "-o", "json", status=2).stderr
            self.assertIn("no -o", said, words)
            self.assertNotIn("--output", self.cli(*words[:1], "--help").stdout, words)
        self.assertIn("-o takes table, wide, json, jsonl or yaml here", self.cli("logs", "x", "-o", "name", status=2).stderr)

    def test_origins_are_a_row_a_line(self):
        self.cli("login", f"unix:{self.daemon.socket}", "--name", "here")
        rows = [json.loads(line) for line in self.cli("config", "view", "--origins", "-o", "jsonl").stdout.splitlines()]
        self.assertEqual(rows, self.get("config", "view", "--origins")["settings"])
        self.assertIn("environment MUSTER_DAEMON", [row["origin"] for row in rows])

    def test_settings_are_the_same_list_with_contexts_and_without(self):
        for contexts in ([], ["here"]):
            for name in contexts:
                self.cli("login", f"unix:{self.daemon.socket}", "--name", name)
            rows = [json.loads(line) for line in self.cli("config", "view", "-o", "jsonl").stdout.splitlines()]
            self.assertEqual([row["name"] for row in rows], ["file", "context", "server", "token", "ca"])
            with_origins = self.get("config", "view", "--origins")["settings"]
            self.assertEqual(rows, [{"name": one["name"], "value": one["value"]} for one in with_origins])
            self.assertEqual(rows, self.get("config", "view")["settings"])
            self.assertEqual(self.cli("config", "view", "-o", "name").stdout.split(), contexts)

    def test_tokens_go_by_name_or_the_beginning_of_their_id(self):
        made = {name: json.loads(self.cli("token", "create", name, "-o", "json").stdout)["id"] for name in ("laptop", "desk")}
        self.cli("token", "create", "desk")
        self.assertEqual(self.get("token", "show", "laptop")["id"], made["laptop"])
        self.assertIn("laptop", self.cli("token", "show", made["laptop"][:-1]).stdout)
        said = self.cli("token", "revoke", "desk", "--yes", status=5).stderr
        self.assertIn("several tokens", said)
        self.assertIn(made["desk"], said)
        self.assertIn("there is no token", self.cli("token", "show", "phone", status=3).stderr)
        self.cli("token", "revoke", "laptop", "phone", "--yes", status=3)
        self.cli("token", "show", "laptop")  # all that are named must be there
        self.assertEqual(self.get("token", "revoke", "laptop", "--yes")["tokens"], [{"id": made["laptop"], "name": "laptop"}])
        self.cli("token", "show", made["laptop"], status=3)


class Changing(CliCase):
    def test_every_verb_that_changes_something_takes_yes_and_no_other(self):
        verbs = {one["path"]: one["flags"] for one in json.loads(self.cli("__docs", "json").stdout)["verbs"]}
        takes = {path for path, flags in verbs.items() if any("--yes" in flag for flag in flags)}
        changes = {path for path, flags in verbs.items() if any("--dry-run" in flag for flag in flags)}
        self.assertEqual(takes, changes | {"init", "login", "logout", "config use", "config delete", "snapshot save", "snapshot past", "sim pooling", "sim report", "policy diff"})
        one = self.daemon.submit(job("sleep 600"))
        self.cli("cancel", one, "--yes")
        self.assertIn("--yes", self.cli("ps", "--yes", status=2).stderr)

    def test_init_writes_to_standard_output_where_that_is_asked(self):
        file = self.cli("init", "-")
        self.assertFalse(self.path("-").exists())
        self.cli("validate", "-", input=file.stdout)
        self.assertEqual(file.stderr, "")
        self.cli("init", "-", "-o", "json", status=2)
        mine = self.file("mine.yaml", "precious")
        self.cli("init", mine, status=5)
        self.cli("init", mine, "--yes")
        self.assertEqual(pathlib.Path(mine).read_text(), file.stdout)

    def test_a_name_is_the_only_living_one_of_several(self):
        old = self.daemon.submit(job("sleep 600", name="twin"))
        self.daemon.wait(old, ("running",))
        self.daemon.wait(self.daemon.submit(job("true", name="twin")))
        self.assertEqual(self.cli("exec", "twin", "--", "echo", "in").stdout, "in\n")
        self.assertEqual(self.get("suspend", "twin")["jobs"][0]["id"], old)
        third = self.daemon.call("POST", "jobs?held=1", job("true", name="twin"))["jobs"][0]["id"]
        self.daemon.wait(self.daemon.submit(job("true", name="twin")))
        said = self.cli("cancel", "twin", status=5).stderr
        self.assertRegex(said, rf"several of your jobs are called twin: {old}, {third} \(")


class Statuses(CliCase):
    def test_what_is_not_there_is_not_found_however_it_is_asked_for(self):
        one = self.daemon.submit(job("sleep 600", name="one", workers=2))
        self.daemon.wait(one, ("running",))
        for words in (("ps", "--queue", "nope"), ("ps", "--filter", "queue=nope"), ("queue", "show", "nope"), ("queue", "delete", "nope", "--yes"),
                      ("logs", "one", "--rank", "99"), ("exec", "one", "--rank", "99", "--", "true"), ("attach", "one", "--rank", "99"),
                      ("port-forward", "one", "80", "--rank", "99"), ("describe", "nope"), ("cancel", "nope"), ("node", "drain", "nope"), ("token", "revoke", "nope", "--yes"),
                      ("user", "remove", "nope", "--yes"), ("config", "use", "nope"), ("plan", "nope.yaml"), ("submit", "nope.yaml"), ("events", "nope")):
            self.cli(*words, status=3)
        self.assertIn("it has 2, numbered from 0", self.cli("exec", "one", "--rank", "2", "--", "true", status=3).stderr)
        kept = self.daemon.call("POST", "jobs?held=1", job("true", name="kept"))["jobs"][0]["id"]
        self.cli("exec", kept, "--", "true", status=5)

    def test_a_command_line_that_is_wrong_is_2(self):
        for words in (("token", "create", "t", "--expires", "5x"), ("queue", "delete", "vision/old"), ("token", "create", "t", "--role", "king"), ("ps", "--limit", "0"),
                      ("nodes", "--limit", "10000001"), ("ps", "--limit", "10000001"), ("wait", "x", "--timeout", "5x")):
            self.cli(*words, status=2)
        self.assertIn("--expires", self.cli("token", "create", "t", "--expires", "5x", status=2).stderr)
        for words in (("nodes",), ("events",), ("ps",), ("audit",), ("decisions",)):
            self.cli(*words, "--limit", "20000")

    def test_no_for_an_answer_is_1(self):
        asked = Terminal([str(self.daemon.bin / "muster"), "queue", "delete", "vision/old"], self.env, self.folder)
        self.addCleanup(asked.process.kill)
        asked.until(lambda text: "[y/N]" in text)
        os.write(asked.parent, b"n\n")
        self.assertEqual(asked.end(), 1)
        self.cli("queue", "show", "vision/old")


class Typing(CliCase):
    def test_what_was_meant_is_named(self):
        for words, said in ((("cancle", "x"), "did you mean cancel?"), (("queue", "shw"), "did you mean show?"), (("help", "descrbe"), "did you mean describe?"),
                            (("ps", "--fitler", "gpus>1"), "did you mean --filter?"), (("logs", "x", "--folow"), "did you mean --follow?")):
            self.assertIn(said, self.cli(*words, status=2).stderr)
        self.assertNotIn("did you mean", self.cli("frobnicate", status=2).stderr)

    def test_words_are_said_as_they_were_typed(self):
        self.assertIn("not known here: one two --three (", self.cli("ps", "one", "two", "--three", status=2).stderr)
        self.assertIn("not known here: --contxt here; did you mean --context?", self.cli("--contxt", "here", "ps", status=2).stderr)
        self.assertIn("--output: a value is missing", self.cli("ps", "-o", status=2).stderr)
        self.assertIn("no -o", self.cli("attach", "x", "-o", status=2).stderr)


class Seen(CliCase):
    """At a terminal of 80 columns, and in a pipe."""

    def terminal(self, *words, columns=80):
        one = Terminal([str(self.daemon.bin / "muster"), *words], {**self.env, "NO_COLOR": "1"}, self.folder, columns)
        self.addCleanup(one.process.kill)
        return one

    def test_wide_has_more_columns_and_is_never_cut(self):
        self.daemon.call("POST", "queues", {"queues": [{"name": "vision", "quota": {"gpus": 3}, "members": {f"group:group-number-{i}": "user" for i in range(9)}}]})
        self.daemon.submit(job("sleep 600", name="a-name-that-is-rather-long-for-a-table", gpus=2))
        self.cli("token", "create", "t")
        self.cli("user", "set", "eva", "--role", "viewer")
        for words in (("ps",), ("nodes",), ("gpus",), ("queue", "list"), ("audit",), ("decisions",), ("pools",), ("token", "list"), ("user", "list"), ("policy", "list")):
            heads = {}
            for form in ("table", "wide"):
                one = self.terminal(*words, "-o", form)
                self.assertEqual(one.end(), 0, one.text)
                heads[form] = one.text.splitlines()[0].split()
            self.assertGreater(len(heads["wide"]), len(heads["table"]), words)
            self.assertNotIn("…", one.text, words)
            ageless = [re.sub(" +", " ", re.sub(r"\d+ s\b", "N s", text)) for text in (one.text.replace("\r", ""), self.cli(*words, "-o", "wide").stdout)]
            self.assertEqual(*ageless, words)
        self.assertIn("group:group-number-8", self.cli("audit", "-o", "wide").stdout)

    def frames(self, *words, lines):
        with subprocess.Popen([str(self.daemon.bin / "muster"), *words, "--watch"], env=self.env, stdout=subprocess.PIPE, text=True) as one:
            seen = [one.stdout.readline() for _ in range(lines)]
            one.kill()
        return seen

    def test_frames_in_a_pipe_can_be_told_apart(self):
        pool = self.get("pools")["pools"][0]["name"]
        table = self.frames("pools", lines=5)
        self.assertEqual([line.split()[:1] for line in table], [["POOL"], [pool], [], ["POOL"], [pool]])
        self.assertEqual(self.frames("pools", "-o", "name", lines=3), [f"{pool}\n", "\n", f"{pool}\n"])
        for line in self.frames("pools", "-o", "json", lines=2):
            self.assertEqual(json.loads(line)["pools"][0]["name"], pool)

    def test_help_fits_eighty_columns(self):
        for path in ("", *(one["path"] for one in json.loads(self.cli("__docs", "json").stdout)["verbs"]), "queue", "token"):
            for line in self.cli("help", *path.split()).stdout.splitlines():
                self.assertLessEqual(len(line), 80, f"{path}: {line}")

    def test_the_key_that_leaves_is_named_in_the_help(self):
        for verb in ("run", "attach", "shell", "exec"):
            self.assertIn("Ctrl-]", self.cli("help", verb).stdout)

    def test_doctor_breaks_lines_between_words(self):
        one = self.terminal("doctor")
        one.end()
        said = {word for check in self.get("doctor")["checks"] for word in f"{check['said']} {check['advice']}".split() if "GiB" not in check["said"]}
        lines = one.text.replace("\r", "").splitlines()
        self.assertGreater(len(lines), len(self.get("doctor")["checks"]), "nothing was long enough to break")
        for line in lines:
            self.assertLessEqual(len(line), 80)
        shown = set(one.text.split())
        self.assertEqual({word for word in said - shown if len(word) < 60}, set())

    def test_why_breaks_lines_between_words(self):
        self.daemon.wait(self.daemon.submit(job("sleep 600", gpus=3)), ("running",))
        self.daemon.submit(job("true", name="waits", gpus=4, queue="free"))
        one = self.terminal("why", "waits", columns=60)
        one.end()
        lines = one.text.replace("\r", "").splitlines()
        self.assertLessEqual(max(len(line) for line in lines), 60)
        self.assertEqual(" ".join(one.text.split()), " ".join(self.cli("why", "waits").stdout.split()))

    def test_nobody_is_greeted_who_cannot_come_in(self):
        kept = self.daemon.call("POST", "jobs?held=1", job("true", name="kept"))["jobs"][0]["id"]
        self.assertNotIn("attached", self.cli("attach", kept, status=5).stderr)
        one = self.daemon.submit(job("cat", name="cat", kind="build", terminal=True))
        self.daemon.wait(one, ("running",))
        self.assertTrue(self.cli("attach", one).stderr.startswith("attached"))

    def test_why_tells_who_displaces_a_job_and_what_becomes_of_it(self):
        go = self.path("go")  # the job leaves when this is there
        low = self.daemon.submit(job(f"trap : USR1; until [ -e {go} ]; do sleep 0.1; done", name="low", gpus=4, queue="free", checkpoint={"signal": "SIGUSR1", "grace": "600s"}))
        self.daemon.wait(low, ("running",))
        claim = self.daemon.submit(job("sleep 600", name="claim", gpus=2, queue="speech"))
        self.daemon.wait(low, ("stopping",))
        said = self.cli("why", "low").stdout
        self.assertRegex(said, rf"1 worker is being stopped by rule [\w-]+ to make room for job {claim} \(claim\)")
        self.assertIn("will then wait in queue free and start again by itself", said)
        self.assertRegex(self.cli("why", "claim").stdout, rf"displaced +job {low} low: 1 worker \w+ by rule [\w-]+")
        go.touch()
        self.daemon.wait(low, ("succeeded", "paused"))


class Completing(CliCase):
    def words(self, *words):
        done = subprocess.run([str(self.daemon.bin / "muster"), "__complete", *words], env=self.env, capture_output=True, text=True, timeout=60, cwd=self.folder)
        return done.stdout.split()

    def test_sort_offers_what_it_takes(self):
        keys = self.words("ps", "--sort", "")
        self.assertEqual(keys, ["created_at", "gpus", "id", "name", "priority", "queue", "user"])
        for key in keys:
            self.cli("ps", "--sort", key)
        self.assertEqual(self.words("ps", "--filter", "kind="), ["kind=build", "kind=train"])
        self.assertEqual(self.words("ps", "--filter", "phase=su"), ["phase=succeeded", "phase=suspended"])
        self.assertEqual(self.words("nodes", "--filter", "kind="), [])
        self.assertEqual(self.words("audit", "--sort", ""), [])

    def test_a_plan_is_of_a_job_or_of_a_file(self):
        self.daemon.call("POST", "jobs?held=1", job("true", name="resnet"))
        self.file("result.yaml", "")
        script = self.file("muster.bash", self.cli("completion", "bash").stdout)
        env = {**self.env, "PATH": f"{self.daemon.bin}:{self.env['PATH']}"}
        done = subprocess.run(["bash", "-c", f'. {script}; COMP_WORDS=(muster plan res); COMP_CWORD=2; _muster; echo "${{COMPREPLY[@]}}"'], env=env, cwd=self.folder,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(sorted(done.stdout.split()), ["resnet", "result.yaml"])

    def test_flags_that_are_there_to_be_refused_are_not_offered(self):
        self.assertNotIn("--output", self.words("attach", "--"))
        self.assertIn("--output", self.words("ps", "--"))


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2, warnings="ignore")
