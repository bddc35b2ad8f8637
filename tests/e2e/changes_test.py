#!/usr/bin/env python3
"""changes_test.py BUILD: what the API promises about changes: keys that make a request one request, tags, dry runs, mistakes
that name their keys, and what is asked of a job that is being stopped."""
import json
import pathlib
import sys
import unittest

import api_test
import e2e_test
from e2e_test import job, moment

QUIET = {"gpus": 0, "workdir": "/tmp"}
# Deaf to being told to go until its grace is over.
DEAF = {"name": "deaf", "queue": "open", "command": ["/bin/sh", "-c", "trap '' TERM USR1; while :; do sleep 1; done"], "checkpoint": {"grace": "4s"}, **QUIET}


class Changes(api_test.Documented):
    def setUp(self):
        super().setUp()
        self.wish = {"queue": "open", "gpus": 1, "from": moment(360000), "to": moment(367200)}
        self.node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]

    def post(self, path, body=None, key=None, **headers):
        answer, data = self.raw("POST", path, body, {**({"Idempotency-Key": key} if key else {}), **headers})
        return answer.status, json.loads(data)

    def send(self, method, path, body=None, **headers):
        answer, data = self.raw(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return answer, json.loads(data)

    def audits(self, operation):
        return self.daemon.call("GET", f"audit?operation={operation}&limit=1000")["audit"]


for proved in [name for name in dir(api_test.Documented) if name.startswith("test_")]:
    setattr(Changes, proved, None)  # there


class Keys(Changes):
    def repeated(self, path, body=None):
        """Made twice with one key: the same answer, one row in the trail; with another body or call 409."""
        operation = {"nodes": "cordonNode"}.get(path.split("/")[0])
        status, first = self.post(path, body, key=path)
        self.assertLess(status, 300, first)
        rows = len(self.audits(operation)) if operation else 0
        self.assertEqual(self.post(path, body, key=path), (status, first))
        if operation:
            self.assertEqual(len(self.audits(operation)), rows)
        return first

    def test_every_kind_of_post_is_made_once(self):
        one = self.daemon.submit({**job("sleep 600", name="one"), **QUIET})
        self.daemon.wait(one, ("running",))
        self.repeated(f"jobs/{one}:priority?value=60")
        self.daemon.call("POST", f"jobs/{one}:priority?value=70")
        self.repeated(f"jobs/{one}:priority?value=60")  # is not done again: it stays at 70
        self.assertEqual(self.daemon.call("GET", f"jobs/{one}")["priority"], 70)
        self.assertEqual(len(self.audits("prioritizeJob")), 2)
        for verb in ("checkpoint", "suspend"):
            self.repeated(f"jobs/{one}:{verb}")
        self.until(lambda: self.phase(one) == "suspended")
        self.repeated(f"jobs/{one}:resume")
        self.daemon.wait(one, ("running",))
        for verb in ("scale?min=1&max=1", "requeue"):
            self.repeated(f"jobs/{one}:{verb}")
        held = self.daemon.call("POST", "jobs?held=1", {**job("sleep 600", name="held"), **QUIET})["jobs"][0]["id"]
        for verb in ("hold", "release"):
            self.repeated(f"jobs/{held}:{verb}")
        self.repeated(f"jobs/{one}:cancel")
        self.daemon.wait(one)
        self.repeated(f"jobs/{one}:cancel")  # has ended, and is answered all the same
        for verb in ("cordon", "drain", "uncordon"):
            self.repeated(f"nodes/{self.node}:{verb}")
        self.repeated("queues", {"queues": [{"name": "fresh"}]})
        self.repeated("policies", {"policy": {"grow": "off"}})
        self.repeated("policies/current:undo")
        self.assertEqual(len(self.audits("undoPolicy")), 1)
        self.repeated("reservations", {"name": "demo", **self.wish})
        self.assertEqual(len(self.daemon.call("GET", "reservations")["reservations"]), 1)

    def test_another_request_with_the_key_is_refused(self):
        one = self.daemon.submit({**job("sleep 600", name="one"), **QUIET})
        self.assertEqual(self.post(f"jobs/{one}:priority?value=60", key="k")[0], 200)
        for path, body in ((f"jobs/{one}:priority?value=61", None), (f"jobs/{one}:cancel", None), ("queues", {"queues": [{"name": "x"}]}),
                           ("jobs", job("true")), ("tokens", {"name": "t"})):
            status, said = self.post(path, body, key="k")
            self.assertEqual((status, said["path"]), (409, "Idempotency-Key"), path)
        # A dry run does not look at it, and a refused request leaves it free.
        self.assertEqual(self.post(f"jobs/{one}:priority?value=61&dry_run=1", key="k")[0], 200)
        self.assertEqual(self.post("jobs/nothing:cancel", key="k2")[0], 404)
        self.assertEqual(self.post(f"jobs/{one}:cancel", key="k2")[0], 200)

    def test_a_token_is_made_once_and_its_secret_told_once(self):
        status, first = self.post("tokens", {"name": "t"}, key="k")
        self.assertEqual(status, 201)
        status, again = self.post("tokens", {"name": "t"}, key="k")
        self.assertEqual(status, 409)
        self.assertIn(first["id"], again["title"])
        self.assertIn("revoke", again["hint"])
        self.assertEqual([one["name"] for one in self.daemon.call("GET", "tokens")["tokens"]].count("t"), 1)
        journal = b"".join(path.read_bytes() for path in (self.folder / "state").glob("journal.db*"))
        self.assertNotIn(first["secret"].split("_")[-1].encode(), journal)

    def test_keys_outlive_the_daemon_whether_it_stops_or_dies(self):
        one = self.daemon.submit({**job("sleep 600", name="one"), **QUIET})
        batch = {"jobs": [{**job("true", name="a", array="0-2"), **QUIET}, {**job("true", name="b"), **QUIET}]}
        answers = [self.post("jobs?held=1", batch, key="j"), self.post(f"jobs/{one}:priority?value=60", key="p"),
                   self.post(f"nodes/{self.node}:cordon", key="n")]
        for end in (self.daemon.kill, self.daemon.stop):
            end()
            self.daemon.start()
            self.assertEqual([self.post("jobs?held=1", batch, key="j"), self.post(f"jobs/{one}:priority?value=60", key="p"),
                              self.post(f"nodes/{self.node}:cordon", key="n")], answers)
        self.assertEqual(self.post("jobs", batch, key="j")[0], 409, "held was part of it")
        self.assertEqual(len(self.audits("cordonNode")), 1)

    def test_a_weaker_token_is_not_given_the_answer_of_a_stronger_one(self):
        one = self.daemon.submit({**job("sleep 600", name="one"), **QUIET})
        weak = {"Authorization": "Bearer " + self.post("tokens", {"name": "weak", "role": "user"})[1]["secret"]}
        for path, body in ((f"jobs/{one}:priority?value=500", None), ("queues", {"queues": [{"name": "fresh"}]}),
                           ("tokens", {"name": "for-ever", "expires": "never"})):
            status, first = self.post(path, body, key=path)
            self.assertLess(status, 300, first)
            status, said = self.post(path, body, key=path, **weak)
            self.assertEqual((status, said["code"]), (403, "denied"), said)
        self.assertEqual(self.post(f"jobs/{one}:priority?value=60", key="mine")[0], 200)
        self.assertEqual(self.post(f"jobs/{one}:priority?value=60", key="mine", **weak)[0], 200)

    def test_nobody_is_told_of_anothers_key(self):
        self.daemon.call("POST", f"nodes/{self.node}:cordon", headers={"Idempotency-Key": "my-own-key"})
        self.assertNotIn("my-own-key", json.dumps(self.daemon.call("GET", "events?limit=1000")))


class Tags(Changes):
    def get(self, path):
        return self.raw("GET", path)[0].headers["ETag"]

    def held_to(self, method, path, read, body=None):
        """Refused with an old tag, taken with the present one."""
        answer, said = self.send(method, path, body, If_Match='"0"')
        self.assertEqual((answer.status, answer.reason, said["path"]), (412, "Precondition Failed", "If-Match"), path)
        answer, said = self.send(method, path, body, If_Match=f'"x", {self.get(read)}')
        self.assertEqual(answer.status, 200, said)
        return answer.headers["ETag"]

    def test_every_edit_of_one_thing_can_be_held_to_what_was_read(self):
        for verb in ("cordon", "drain", "uncordon"):
            tag = self.held_to("POST", f"nodes/{self.node}:{verb}", f"nodes/{self.node}")
            self.assertEqual(tag, self.get(f"nodes/{self.node}"))
        tag = self.held_to("PUT", "users/eva", "users/eva", {"role": "user"})
        self.assertEqual(tag, self.get("users/eva"))
        self.held_to("DELETE", "users/eva", "users/eva")
        token = self.daemon.call("POST", "tokens", {"name": "t"})["id"]
        self.held_to("DELETE", f"tokens/{token}", f"tokens/{token}")
        self.daemon.call("POST", "reservations", {"name": "demo", **self.wish})
        tag = self.held_to("PUT", "reservations/demo", "reservations/demo", {**self.wish, "gpus": 2})
        self.assertEqual(tag, self.get("reservations/demo"))
        self.held_to("DELETE", "reservations/demo", "reservations/demo")
        tag = self.held_to("PUT", "queues/open", "queues/open", {"weight": 3})
        self.assertEqual(tag, self.get("queues/open"))
        self.held_to("DELETE", "queues/open", "queues/open")
        self.assertEqual(self.held_to("POST", "policies", "policies/current", {"policy": {"grow": "off"}}), self.get("policies/current"))
        self.assertEqual(self.held_to("POST", "policies/1:undo", "policies/1"), self.get("policies/current"))
        one = self.daemon.submit({**job("sleep 600"), **QUIET})
        self.daemon.wait(one, ("running",))
        self.held_to("PATCH", f"jobs/{one}", f"jobs/{one}", {"priority": 60})
        self.held_to("POST", f"jobs/{one}:cancel", f"jobs/{one}")
        array = self.daemon.call("POST", "jobs?held=1", {**job("true", array="0-3"), **QUIET})["jobs"][0]["id"]
        self.held_to("POST", f"jobs/{array}:cancel", f"jobs/{array}")

    def test_what_is_gone_matches_nothing(self):
        for method, path, body in (("PUT", "users/nobody-here", {"role": "user"}), ("PUT", "queues/ghost", {"weight": 1}), ("PUT", "reservations/ghost", self.wish)):
            self.assertEqual(self.send(method, path, body, If_Match="*")[0].status, 412)
        self.assertEqual(self.send("PUT", "users/eva", {"role": "user"}, If_Match="*")[0].status, 200)


class DryRuns(Changes):
    def test_a_dry_run_changes_nothing_and_says_what_would_be(self):
        token = self.daemon.call("POST", "tokens", {"name": "kept"})["id"]
        one = self.daemon.call("POST", "jobs?held=1", {**job("true"), **QUIET})["jobs"][0]["id"]
        self.daemon.call("POST", "policies", {"policy": {"grow": "off"}})
        self.daemon.call("POST", "reservations", {"name": "demo", **self.wish, "queue": "vision"})
        before = self.daemon.call("GET", "version")["revision"]
        for method, path, body in (("POST", "reservations", {"name": "new", **self.wish}), ("PUT", "reservations/demo", self.wish), ("DELETE", "reservations/demo", None),
                                   ("POST", "tokens", {"name": "t"}), ("PUT", "users/max", {"role": "user"}), ("PUT", "users/eva", {"role": "none"}),
                                   ("DELETE", "users/eva", None), ("DELETE", f"tokens/{token}", None), ("POST", f"nodes/{self.node}:drain", None),
                                   ("POST", f"nodes/{self.node}:cordon", None), ("PUT", "queues/open", {"weight": 2}), ("PUT", "queues/new", {"weight": 2}),
                                   ("DELETE", "queues/open", None), ("POST", "queues", {"queues": [{"name": "newer"}]}),
                                   ("POST", "policies", {"policy": {"grow": "on"}}), ("POST", "policies/current:undo", None),
                                   ("PATCH", f"jobs/{one}", {"priority": 60}), ("POST", f"jobs/{one}:cancel", None)):
            name = next(name for name, (verb, where, _) in self.operations.items() if verb == method and self.fits(where, path))
            said = self.check(name, path + "?dry_run=1", body, status=200)
            if path != "queues":
                self.assertTrue(said["dry_run"], path)
            self.assertNotIn("secret", said)
        self.assertEqual(self.daemon.call("GET", "version")["revision"], before)

    @staticmethod
    def fits(where, path):
        where, path = where.strip("/").split("/"), path.split("/")
        return len(where) == len(path) and all(a == b or (a.startswith("{") and (":" not in a or a.split(":")[1] == b.split(":")[-1]) and (":" in a) == (":" in b))
                                               for a, b in zip(where, path))

    def test_a_dry_run_is_refused_for_what_the_change_would_be(self):
        for method, path, body, status in (("DELETE", "reservations/none", None, 404), ("POST", "reservations", {"name": "r", **self.wish, "gpus": 5}, 422),
                                           ("DELETE", "users/nobody-here", None, 404), ("DELETE", "tokens/none", None, 404), ("POST", "nodes/none:drain", None, 404),
                                           ("DELETE", "queues/vision", None, 409), ("POST", "tokens", {"name": ""}, 422), ("PUT", "queues/a/b", {}, 422)):
            answer, said = self.send(method, path + "?dry_run=1", body)
            self.assertEqual(answer.status, status, said)


class Mistakes(Changes):
    def wrong(self, method, path, body, *paths, status=422):
        answer, said = self.send(method, path, body)
        self.assertEqual(answer.status, status, said)
        self.assertEqual([one.get("path") for one in said.get("errors", [said])], list(paths), said)
        self.assertEqual(said["path"], paths[0])
        for one in (said, *said.get("errors", [])):
            self.assertTrue(one.get("hint", "something"), one)
        return said

    def test_all_mistakes_of_a_body_are_told_with_their_keys(self):
        bad = {"name": "a", "queue": "open", "command": ["x"], "gpu": 1, "resources": {"memory": "12q"}, "limits": {"time": "soon"}}
        self.wrong("POST", "jobs", bad, "gpu", "resources.memory", "limits.time")
        self.wrong("POST", "plan", bad, "gpu", "resources.memory", "limits.time")
        self.wrong("POST", "jobs", {"jobs": [job("true"), bad]}, "jobs[1].gpu", "jobs[1].resources.memory", "jobs[1].limits.time")
        self.wrong("POST", "jobs", [bad], "[0].gpu", "[0].resources.memory", "[0].limits.time")
        self.wrong("PUT", "users/max", {"role": "king", "group": "a"}, "role", "group")
        self.wrong("PUT", "users/max", {}, "role")
        self.wrong("POST", "tokens", {"user": "a b", "expires": "soon", "role": "admin"}, "name", "user", "expires", "role")
        self.wrong("POST", "reservations", {"from": "soon", "to": "2026-11-20T09:00", "gpus": 0, "gpu_type": "", "node": "a"}, "name", "from", "to", "gpus", "gpu_type", "node")
        self.wrong("PUT", "reservations/a", {"name": "b", "to": "2026-11-20T09:00Z", "about": "x" * 201}, "name", "about")
        self.wrong("PATCH", "jobs/1", {"priority": "some", "workers": "0..2", "gpus": 1}, "priority", "workers", "gpus")
        self.wrong("POST", "queues", {"queues": [{"name": "a", "quota": {"gpus": "x"}}, {"weight": 1}]}, "queues[0].quota.gpus", "queues[1].name")
        self.wrong("POST", "queues", {"weight": 1}, "queues", "weight")

    def test_what_only_the_daemon_knows_is_told_the_same_way(self):
        said = self.wrong("POST", "jobs", job("true", queue="opne"), "queue")
        self.assertIn("did you mean open?", said["hint"])
        self.wrong("POST", "plan", job("true", queue="nowhere"), "queue")
        for wrong, key in (({"queue": "opne"}, "queue"), ({"to": moment(60)}, "to"), ({"from": moment(367 * 86400), "to": moment(368 * 86400)}, "from"),
                           ({"gpus": 5}, "gpus"), ({"gpu_type": "H100"}, "gpus"), ({"nodes": ["none"]}, "nodes"), ({"name": "a b"}, "name")):
            self.wrong("POST", "reservations", {"name": "r", **self.wish, **wrong}, key)
        self.wrong("POST", "jobs", {"jobs": [job("true", name="a", queue="open"), {"name": "b", "queue": "nowhere", "kind": "build", "template": "rstudio"},
                                             job("true", name="c", queue="open", after=["nothing:ok"])]},
                   "jobs[1].template", "jobs[1].queue", "jobs[2].after")

    def test_a_queue_is_put_by_its_own_keys(self):
        said = self.wrong("PUT", "queues/open", {"wieght": 2, "command": ["x"]}, "wieght", "command")
        self.assertIn("did you mean `weight`?", said["title"])
        self.assertIn("quota", said["hint"])
        self.wrong("PUT", "queues/open", {"name": "other"}, "name")
        self.wrong("PUT", "queues/open", {"queues": [{"name": "other"}]}, "queues[0].name")
        self.assertEqual(self.send("PUT", "queues/open", {"weight": 4})[1]["spec"]["weight"], 4)

    def test_what_is_put_is_answered_as_it_is_then(self):
        one = self.daemon.submit(job("sleep 600", queue="open"))
        self.daemon.wait(one, ("running",))
        _, said = self.send("PUT", "queues/open", {"quota": {"gpus": 3}, "limit": {"gpus": 4}})
        shown = self.daemon.call("GET", "queues/open")
        self.assertEqual([said["status"][key] for key in ("gpu_quota", "gpu_limit", "gpus_held")], [3, 4, 1])
        self.assertEqual(said, shown)
        _, said = self.send("PUT", "queues/fresh", {"quota": {"gpus": 1}})
        self.assertEqual(said, self.daemon.call("GET", "queues/fresh"))


class Trail(Changes):
    def test_a_batch_is_one_row_a_queue_with_its_ends_and_its_count(self):
        made = self.daemon.call("POST", "jobs?held=1", {"jobs": [job("true", name=f"n{i}", queue="open" if i < 3 else "vision/detection") for i in range(5)]})
        ids = [one["id"] for one in made["jobs"]]
        rows = {row["queue"]: row for row in self.audits("submitJobs")}
        self.assertEqual(rows["open"]["object"], f"job {ids[0]} to {ids[2]}")
        after = {key: value for key, value in rows["vision/detection"]["after"].items() if key != "first"}
        self.assertEqual(after, {"queue": "vision/detection", "jobs": 2, "first_job": ids[3], "last_job": ids[4]})

    def test_every_change_has_its_before_and_its_after(self):
        call = self.daemon.call
        one = self.daemon.submit({**job("sleep 600", name="el"), **QUIET, "workers": "1..3"})
        self.daemon.wait(one, ("running",))
        call("PATCH", f"jobs/{one}", {"priority": 60, "workers": "1..2"})
        call("POST", f"jobs/{one}:suspend")
        self.until(lambda: self.phase(one) == "suspended")
        for verb in ("resume", "scale?min=1&max=1", "priority?value=70", "hold", "release", "cancel"):
            if verb == "hold":
                call("POST", f"jobs/{one}:suspend")
                self.until(lambda: self.phase(one) == "suspended")
            call("POST", f"jobs/{one}:{verb}")
        for verb in ("cordon", "drain", "uncordon"):
            call("POST", f"nodes/{self.node}:{verb}")
        call("PUT", "users/eva", {"role": "user"})
        token = call("POST", "tokens", {"name": "t"})["id"]
        call("DELETE", f"tokens/{token}")
        call("DELETE", "users/eva")
        call("POST", "reservations", {"name": "demo", **self.wish})
        call("PUT", "reservations/demo", {**self.wish, "gpus": 2})
        call("DELETE", "reservations/demo")
        call("PUT", "queues/open", {"weight": 2})
        call("POST", "queues", {"queues": [{"name": "open", "weight": 3}]})
        call("DELETE", "queues/open")
        call("POST", "policies", {"policy": {"grow": "off"}})
        call("POST", "policies/current:undo")
        made, removed = {"submitJobs", "createToken", "createReservation"}, {"deleteUser", "revokeToken", "deleteQueue", "deleteReservation"}
        rows = [row for row in call("GET", "audit?limit=1000")["audit"] if row["object"] not in ("user eva", "queue vision", "queue vision/detection",
                                                                                             "queue vision/empty") or row["operation"] != "applyQueues"]
        seen = set()
        for row in rows:
            if row["operation"] in ("applyQueues", "putUser") and "before" not in row:
                continue  # made in the beginning
            self.assertEqual("before" in row, row["operation"] not in made, row)
            self.assertEqual("after" in row, row["operation"] not in removed, row)
            self.assertNotEqual(row.get("before"), row.get("after"), row)
            seen.add(row["operation"])
        wanted = {name for name, (method, _, _) in self.operations.items() if method != "GET"} - {"planJob", "createSimulation", "deleteSimulation", "requeueJob", "checkpointJob"}
        self.assertEqual(wanted - seen, set())


class Bounds(Changes):
    def test_there_are_only_so_many_queues(self):
        many = {"queues": [{"name": "many"}] + [{"name": f"many/{i}"} for i in range(10_000)]}
        status, said = self.post("queues", many)
        self.assertEqual((status, said["code"]), (422, "invalid"), said)
        self.assertIn("at most 10000", said["title"])

    def test_a_page_of_the_trail_has_a_bound_in_bytes(self):
        for i in range(45):
            self.daemon.submit({**job("true", name=f"long-{i}"), **QUIET, "command": ["/bin/true", "x" * 100_000]})
        pages, cursor = [], ""
        while not pages or cursor:
            answer, data = self.raw("GET", "audit?operation=submitJobs&limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            self.assertEqual(answer.status, 200)
            self.assertLess(len(data), 5_000_000)
            page = json.loads(data)
            pages.append([row["id"] for row in page["audit"]])
            cursor = page.get("next")
        ids = sum(pages, [])
        self.assertEqual(len(ids), 45)
        self.assertEqual(ids, sorted(set(ids), reverse=True))
        self.assertGreater(len(pages), 1)

    def test_a_sum_that_is_made_in_pieces_counts_every_job_once(self):
        self.daemon.call("POST", "jobs?held=1", {**job("true", queue="open", array="0-4499"), **QUIET})
        for by in ("user", "queue"):
            self.assertEqual([row["jobs"] for row in self.daemon.call("GET", f"usage?by={by}")["usage"]], [4_500])
        self.daemon.call("POST", "jobs/1:cancel")


class Stopping(Changes):
    def deaf(self, **more):
        one = self.daemon.submit({**DEAF, **more})
        self.daemon.wait(one, ("running",))
        return one

    def asked(self, one, verb):
        answer, said = self.send("POST", f"jobs/{one}:{verb}")
        return answer.status, said

    def test_a_cancel_wins_over_a_suspend(self):
        one = self.deaf()
        self.assertEqual(self.asked(one, "suspend")[0], 200)
        self.assertEqual(self.phase(one), "stopping")
        self.assertEqual(self.asked(one, "suspend")[0], 200, "it is remembered already")
        self.assertEqual(self.asked(one, "cancel")[0], 200)
        for verb in ("suspend", "requeue", "resume", "hold"):
            status, said = self.asked(one, verb)
            self.assertEqual((status, said["title"]), (409, f"job {one} is being cancelled"), verb)
        self.assertEqual(self.asked(one, "cancel")[0], 200)
        self.assertEqual(self.daemon.wait(one)["status"]["phase"], "cancelled")

    def test_what_starts_again_can_be_suspended_instead_and_resumed(self):
        one = self.deaf()
        self.assertEqual(self.asked(one, "requeue")[0], 200)
        self.assertEqual(self.asked(one, "requeue")[0], 200)
        self.assertEqual(self.asked(one, "suspend")[0], 200)
        status, said = self.asked(one, "requeue")
        self.assertEqual((status, said["title"]), (409, f"job {one} is being suspended"))
        self.assertIn("muster resume", said["hint"])
        self.daemon.wait(one, ("suspended",))
        self.assertEqual(self.asked(one, "resume")[0], 200)
        self.daemon.wait(one, ("running",))
        self.assertEqual(self.asked(one, "suspend")[0], 200)
        self.assertEqual(self.asked(one, "resume")[0], 200, "before it has stopped")
        self.assertEqual(self.asked(one, "requeue")[0], 200, "it does")
        self.until(lambda: self.daemon.call("GET", f"jobs/{one}")["status"].get("restarts", 0) == 2)

    def test_what_starts_again_can_be_held_before_it_does(self):
        one = self.deaf()
        self.assertEqual(self.asked(one, "hold")[0], 409)
        self.assertEqual(self.asked(one, "requeue")[0], 200)
        self.assertEqual(self.asked(one, "hold")[0], 200)
        self.daemon.wait(one, ("held",))
        self.assertEqual(self.asked(one, "release")[0], 200)
        self.daemon.wait(one, ("running",))


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
