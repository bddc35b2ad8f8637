#!/usr/bin/env python3
"""cli_test.py BUILD: the verbs of `muster` against a real musterd: what they print, change, refuse and end with."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import e2e_test
from e2e_test import Case, job

QUEUES = {"queues": [{"name": "vision", "quota": {"gpus": 2}}, {"name": "vision/old"},
                     {"name": "speech", "quota": {"gpus": 2}}, {"name": "free"}]}


class CliCase(Case):
    def setUp(self):
        super().setUp()
        self.daemon.call("POST", "queues", QUEUES)
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}
        self.env.update(XDG_CONFIG_HOME=str(self.path("config")), MUSTER_DAEMON=str(self.daemon.socket))

    def cli(self, *words, status=0, input="", env=None):
        done = subprocess.run([str(self.daemon.bin / "muster"), *words], env={**self.env, **(env or {})}, input=input,
                              capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout} {done.stderr}")
        return done

    def get(self, *words):
        return json.loads(self.cli(*words, "-o", "json").stdout)

    def file(self, name, value):
        path = self.path(name)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)


class Looking(CliCase):
    def test_every_verb_that_looks_prints_every_format(self):
        plan = self.file("job.yaml", job("true", gpus=2))
        for words in (("plan", plan), ("pools",), ("whoami",), ("usage", "--by", "queue"), ("decisions",), ("version",),
                      ("queue", "show", "vision"), ("token", "list"), ("user", "list"), ("audit",), ("ps",), ("nodes",), ("gpus",),
                      ("queue", "list"), ("config", "view"), ("doctor",)):
            for form in ("table", "wide", "json", "yaml", "jsonl", "name"):
                out = self.cli(*words, "-o", form).stdout
                if form == "json":
                    json.loads(out)
                if form == "jsonl":
                    for line in out.splitlines():
                        json.loads(line)

    def test_plan_names_places_and_who_would_be_displaced(self):
        low = self.daemon.submit(job("sleep 600", name="low", gpus=1, workers="1..4", queue="free"))
        self.until(lambda: self.daemon.call("GET", f"jobs/{low}")["status"]["workers_running"] == 4)
        text = self.cli("plan", self.file("j.yaml", job("true", name="mine", gpus=2, queue="speech"))).stdout
        self.assertIn("WORKER", text)
        self.assertIn("low", text.split("Who would be displaced")[1])
        self.assertEqual(self.phase(low), "running")
        self.cli("plan", self.file("bad.yaml", "name: ["), status=5)

    def test_version_tells_ours_without_a_daemon(self):
        self.assertEqual(self.get("version")["daemon"]["version"], self.get("version")["version"])
        done = self.cli("version", env={"MUSTER_DAEMON": "/nowhere.sock"})
        self.assertIn("not reached", done.stdout)

    def test_ps_filters_sorts_and_says_when_there_are_more(self):
        self.daemon.call("POST", "jobs?held=1", {"jobs": [job("true", name=f"j{i}", gpus=i % 3) for i in range(9)]})
        self.assertEqual([one["name"] for one in self.get("ps", "--filter", "gpus>=2", "--sort", "name")["jobs"]], ["j2", "j5", "j8"])
        self.assertEqual(self.cli("ps", "--phase", "held", "-o", "name").stdout.count("\n"), 9)
        self.assertIn("next", self.get("ps", "--limit", "4"))
        self.assertIn("there are more", self.cli("ps", "--limit", "4").stderr)
        self.assertNotIn("next", self.get("ps", "--limit", "100000"))
        self.cli("ps", "--sort", "colour", status=2)

    def test_doctor_says_what_is_wrong_and_what_to_do(self):
        checks = {(one["name"], one["result"]) for one in self.get("doctor")["checks"]}
        for name in ("daemon", "version", "store", "jobs"):
            self.assertIn((name, "ok"), checks)
        self.assertIn(("gpus", "warn"), checks)
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        self.cli("node", "cordon", node)
        self.assertIn("uncordon", self.cli("doctor", status=1).stdout)
        done = self.cli("doctor", status=1, env={"MUSTER_DAEMON": "/nowhere.sock"})
        self.assertIn("fail  daemon", done.stdout)
        self.assertNotIn("\033", done.stdout)


class Changing(CliCase):
    def test_a_dry_run_changes_nothing(self):
        one = self.daemon.submit(job("sleep 600"))
        self.daemon.wait(one, ("running",))
        for verb in ("cancel", "suspend", "requeue", "checkpoint"):
            self.assertIn("would change", self.cli(verb, one, "--dry-run").stdout)
        self.assertIn("would change", self.cli("priority", one, "--to", "high", "--dry-run").stdout)
        self.assertIn("would apply", self.cli("queue", "apply", self.file("q.yaml", {"queues": [{"name": "new"}]}), "--dry-run").stdout)
        self.assertEqual(self.phase(one), "running")
        self.assertNotEqual(self.get("describe", one)["priority"], 75)
        self.cli("queue", "show", "new", status=3)

    def test_checkpoint_sends_the_signal_and_the_job_goes_on(self):
        said = self.path("said")
        one = self.daemon.submit(job(f"trap 'echo saved >> {said}' USR1; echo up >> {said}; while :; do sleep 0.05; done",
                                     checkpoint={"signal": "SIGUSR1", "grace": "0s"}))
        self.until(lambda: said.exists() and "up" in said.read_text())
        self.cli("checkpoint", one)
        self.until(lambda: "saved" in said.read_text())
        self.assertEqual(self.phase(one), "running")

    def test_queue_delete_needs_yes_where_nobody_can_answer(self):
        self.assertIn("--yes", self.cli("queue", "delete", "vision/old", status=2).stderr)
        self.cli("queue", "delete", "vision/old", "--dry-run")
        self.cli("queue", "show", "vision/old")
        self.cli("queue", "delete", "vision/old", "--yes")
        self.cli("queue", "show", "vision/old", status=3)

    def test_queue_edit_puts_what_the_editor_wrote(self):
        self.cli("queue", "edit", "vision", env={"EDITOR": "sed -i 's/gpus: 2/gpus: 3/'"})
        self.assertEqual(self.get("queue", "show", "vision")["gpu_quota"], 3)
        self.assertIn("nothing was changed", self.cli("queue", "edit", "vision", env={"EDITOR": "true"}).stderr)
        self.cli("queue", "edit", "vision", status=5, env={"EDITOR": "false"})
        self.cli("queue", "edit", "vision", status=5, env={"EDITOR": "sed -i 's/gpus: 3/gpus: many/'"})

    def test_queue_edit_says_when_it_changed_meanwhile(self):
        other = self.file("other.yaml", {"queues": [{"name": "vision", "quota": {"gpus": 4}}]})
        editor = self.file("edit.sh", f"#!/bin/sh\n{self.daemon.bin}/muster queue apply {other} >/dev/null\nsed -i 's/gpus: 2/gpus: 1/' $1\n")
        os.chmod(editor, 0o755)
        done = self.cli("queue", "edit", "vision", status=5, env={"EDITOR": editor})
        self.assertIn("changed by someone else", done.stderr)
        self.assertEqual(self.get("queue", "show", "vision")["gpu_quota"], 4)

    def test_init_never_overwrites_and_its_file_runs(self):
        self.cli("init", "first.yaml")
        self.cli("validate", "first.yaml")
        self.cli("submit", "first.yaml")
        self.assertIn("already", self.cli("init", "first.yaml", status=5).stderr)

    def test_clone_submits_the_same_again(self):
        one = self.daemon.submit(job("echo hi", name="first", env={"A": "b"}))
        self.daemon.wait(one)
        self.assertNotEqual(self.get("clone", one, "--name", "second")["jobs"][0]["id"], one)
        self.assertEqual(self.daemon.wait("second")["spec"]["env"], {"A": "b"})


class People(CliCase):
    def setUp(self):
        super().setUp()
        self.daemon.stop()
        self.daemon.options = (*self.daemon.options, "--listen", "127.0.0.1:0")
        self.daemon.start()
        self.url = "http://127.0.0.1:" + self.daemon.log().rsplit("127.0.0.1:", 1)[1].split()[0]

    def test_a_token_is_shown_once_used_to_log_in_and_revoked(self):
        made = self.cli("token", "create", "laptop", "--user", "ana", "--expires", "2d", "--role", "viewer")
        secret = made.stdout.strip()
        self.assertNotIn(secret, made.stderr)
        self.assertIn("not shown again", made.stderr)
        mine = [one for one in self.get("token", "list")["tokens"] if one["name"] == "laptop"][0]
        self.assertEqual(mine["user"], "ana")
        self.assertIn("expires in", self.cli("doctor").stdout)

        remote = {"MUSTER_DAEMON": ""}
        self.cli("login", self.url, "--token-stdin", "--name", "lab", input="wrong\n", status=4, env=remote)
        self.assertFalse(self.path("config").exists())
        self.cli("login", self.url, "--token-stdin", "--name", "lab", input=secret + "\n", env=remote)
        stored = self.path("config") / "muster" / "config.yaml"
        self.assertEqual(stored.stat().st_mode & 0o777, 0o600)
        self.assertIn("ana", self.cli("whoami", env=remote).stdout)
        self.cli("submit", self.file("j.yaml", job("true")), status=4, env=remote)
        shown = self.cli("config", "view", "--origins", env=remote).stdout
        self.assertNotIn(secret, shown)
        self.assertIn(f"file {stored}", shown)

        self.cli("token", "revoke", mine["id"])
        self.cli("whoami", status=4, env=remote)

    def test_a_flag_goes_before_the_environment_and_that_before_the_file(self):
        secret = self.cli("token", "create", "t", "--user", "ana").stdout
        self.cli("login", self.url, "--token-stdin", "--name", "lab", input=secret)
        self.cli("login", f"unix:{self.daemon.socket}", "--name", "here", env={"MUSTER_DAEMON": ""})
        said = self.cli("config", "view", "--origins").stdout
        self.assertIn("environment MUSTER_DAEMON", said)
        self.assertNotIn("ana", self.cli("whoami").stdout)
        self.assertIn("ana", self.cli("whoami", "--context", "lab").stdout)
        self.assertIn("ana", self.cli("--context", "lab", "whoami").stdout)
        self.assertIn("ana", self.cli("whoami", env={"MUSTER_DAEMON": "", "MUSTER_CONTEXT": "lab"}).stdout)
        self.assertNotIn("ana", self.cli("whoami", env={"MUSTER_DAEMON": ""}).stdout)
        self.cli("config", "use", "lab")
        self.assertIn("ana", self.cli("whoami", env={"MUSTER_DAEMON": ""}).stdout)
        self.cli("config", "use", "nowhere", status=3)
        self.cli("whoami", "--context", "nowhere", status=3)
        # The file's token goes to no other server.
        self.assertIn("none", [line for line in self.cli("config", "view").stdout.splitlines() if line.startswith("token")][0])

    def test_users_and_the_audit(self):
        self.cli("user", "set", "eva", "--role", "viewer", "--group", "a", "--group", "b")
        self.assertEqual([one["groups"] for one in self.get("user", "list")["users"] if one["name"] == "eva"], [["a", "b"]])
        self.cli("user", "remove", "eva")
        self.assertNotIn("eva", self.cli("user", "list").stdout)
        self.assertIn("eva", self.cli("audit", "--operation", "putUser").stdout)
        self.assertEqual(len(self.get("audit", "--limit", "1")["audit"]), 1)


class Completion(CliCase):
    def words(self, *words):
        return self.cli("__complete", *words).stdout.split()

    def test_verbs_flags_and_live_names_are_completed(self):
        self.daemon.call("POST", "jobs?held=1", job("true", name="resnet"))
        self.assertEqual(self.words("canc"), ["cancel"])
        self.assertEqual(self.words("queue", "s"), ["show"])
        self.assertEqual(self.words("ps", "--fil"), ["--filter"])
        self.assertEqual(self.words("cancel", "res"), ["resnet"])
        self.assertEqual(self.words("cancel", "resnet", "@"), ["@last"])
        self.assertEqual(self.words("ps", "--queue", "vision/"), ["vision/old"])
        self.assertEqual(self.words("ps", "-o", "js"), ["json", "jsonl"])
        self.assertEqual(self.words("queue", "delete", "vision/"), ["vision/old"])
        self.assertNotIn("__complete", self.words(""))

    def test_the_bash_script_completes(self):
        script = self.file("muster.bash", self.cli("completion", "bash").stdout)
        self.cli("completion", "zsh")
        self.cli("completion", "fish")
        self.cli("completion", "tcsh", status=2)
        done = subprocess.run(["bash", "-c", f'. {script}; COMP_WORDS=(muster queue sh); COMP_CWORD=2; _muster; echo "${{COMPREPLY[@]}}"'],
                              env={**self.env, "PATH": f"{self.daemon.bin}:{self.env['PATH']}"}, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout.strip(), "show", done.stderr)


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
