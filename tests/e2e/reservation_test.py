#!/usr/bin/env python3
"""reservation_test.py BUILD: reservations of admins on a simulated pool: making, refusing, keeping, beginning and ending them."""
import pathlib
import sys
import unittest

import e2e_test
from daemon import Refused
from e2e_test import Case, moment

CLUSTER = """
pools:
  - {name: lab, driver: simulated, nodes: [{count: 2, gpus: 4, type: H100, gpu_memory: 80Gi, cpus: 32, memory: 256Gi}]}
queues:
  - {name: default}
  - {name: vision}
  - {name: vision/detection}
  - {name: speech}
"""
HALF_HOUR = 1800  # a job of which nothing is known is taken to last an hour


class Reservations(Case):
    def setUp(self):
        super().setUp()
        self.daemon.stop()
        self.path("cluster.yaml").write_text(CLUSTER)
        self.daemon = type(self.daemon)(e2e_test.BUILD, self.folder / f"{self.folder.name}-lab", "--config", str(self.path("cluster.yaml")))
        self.daemon.start()

    def reserve(self, name="demo", begins=HALF_HOUR, ends=2 * HALF_HOUR, **wish):
        wish = {"queue": "vision", "gpus": 8, **wish} if "nodes" not in wish else wish
        return self.daemon.call("POST", "reservations", {"name": name, "from": moment(begins), "to": moment(ends), **wish})

    def change(self, name="demo", **spec):
        self.daemon.call("PUT", f"reservations/{name}", {**self.all()[name]["spec"], **spec})

    def all(self):
        return {one["name"]: one for one in self.daemon.call("GET", "reservations")["reservations"]}

    def run_job(self, name, queue, gpus=4, **more):
        return self.daemon.submit({"name": name, "queue": queue, "gpus": gpus, "command": ["sleep", "600"], "workdir": "/tmp", **more})

    def gate(self, one):
        return self.daemon.call("GET", f"jobs/{one}/explain").get("gate")

    def refusal(self, *words):
        done = self.daemon.muster("reservation", *words)
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        return done.stderr

    def test_one_that_was_made_is_as_it_was_after_the_daemon_died(self):
        made = self.reserve(gpus=5, about="for ana")
        self.assertEqual(made["spec"]["gpus"], 5)
        self.assertEqual(made["status"]["parts"], [{"node": "lab-0", "gpus": 4}, {"node": "lab-1", "gpus": 1}])
        self.assertEqual((made["status"]["phase"], made["status"]["gpus_free"], made["status"]["used_by_queue"]), ("upcoming", 5, 0))
        repair = self.reserve("repair", nodes=["lab-1"], begins=2 * HALF_HOUR, ends=3 * HALF_HOUR)
        self.assertNotIn("queue", repair["spec"])
        before = self.all()
        self.assertEqual(before["demo"], made)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.all(), before)
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.all(), before)
        self.daemon.call("DELETE", "reservations/demo")
        self.assertEqual(list(self.all()), ["repair"])

    def test_who_is_refused_is_told_the_numbers_and_what_to_do(self):
        self.reserve("first", gpus=6)
        self.assertIn("have 8, of which 6 are reserved already", self.refusal("create", "more", "--queue", "speech", "--gpus", "3", "--from", "+35m", "--for", "1h"))
        self.assertIn("node lab-0 has 4 GPUs, of which 4 are reserved", self.refusal("create", "more", "--nobody", "--nodes", "lab-0", "--from", "+35m", "--for", "1h"))
        self.assertIn("there is no node", self.refusal("create", "more", "--nobody", "--nodes", "lab-9", "--for", "1h"))
        self.assertIn("did you mean speech?", self.refusal("create", "more", "--queue", "speehc", "--gpus", "1", "--for", "1h"))
        self.assertIn("choose another name", self.refusal("create", "first", "--nobody", "--gpus", "1", "--for", "1h"))
        self.assertIn("more than a year", self.refusal("create", "more", "--nobody", "--gpus", "1", "--from", "+400d", "--for", "1h"))
        said = self.daemon.muster("queue", "delete", "vision/detection", "--yes")
        self.assertEqual(said.returncode, 0, said.stderr)
        said = self.daemon.muster("queue", "delete", "vision", "--yes")
        self.assertEqual(said.returncode, 5)
        self.assertIn("muster reservation delete first", said.stderr)
        self.assertEqual(list(self.all()), ["first"])

    def test_one_that_is_over_goes_by_itself_also_when_nobody_looked(self):
        self.reserve("short", begins=0, ends=4)
        self.until(lambda: not self.all())
        told = self.daemon.call("GET", "events?kinds=reservation-removed")["events"][0]["facts"]
        self.assertEqual(told, {"name": "short", "queue": "vision", "by": "musterd", "why": "over"})
        made = self.reserve("short", begins=0, ends=4)
        self.daemon.kill()
        self.until(lambda: moment(0) > made["spec"]["to"])
        self.daemon.start()
        self.until(lambda: not self.all())

    def test_others_wait_for_its_end_unless_they_end_before_it_begins(self):
        self.reserve()
        lasting = self.run_job("lasting", "speech")
        self.until(lambda: self.gate(lasting) == "reserved")
        why = self.daemon.call("GET", f"jobs/{lasting}/explain")
        self.assertEqual(why["kept"]["for"], "reservation demo")
        self.assertEqual(why["kept"]["from"], self.all()["demo"]["spec"]["from"])
        brief = self.run_job("brief", "speech", limits={"time": "10m"})
        mine = self.run_job("mine", "vision/detection")
        for one in (brief, mine):
            self.daemon.wait(one, ("running",))
        self.assertEqual(self.phase(lasting), "waiting")
        status = self.all()["demo"]["status"]
        self.assertEqual((status["gpus_free"], status["used_by_queue"]), (0, 4))

    def test_while_it_stands_others_make_room_and_jobs_of_the_queue_have_it(self):
        others = [self.run_job(name, "speech") for name in ("old", "young")]
        for one in others:
            self.daemon.wait(one, ("running",))
        self.reserve(gpus=4, begins=2)
        self.until(lambda: any(self.phase(one) != "running" for one in others))
        self.assertEqual(self.all()["demo"]["status"]["phase"], "active")
        self.until(lambda: self.all()["demo"]["status"]["gpus_free"] == 4)
        away = [one for one in others if self.phase(one) != "running"]
        self.assertEqual(len(away), 1)
        self.assertEqual(self.daemon.call("GET", f"jobs/{away[0]}")["status"]["preemptions"][-1]["rule"], "reservation")
        mine = self.run_job("mine", "vision/detection")
        self.daemon.wait(mine, ("running",))
        self.assertEqual(self.all()["demo"]["status"]["used_by_queue"], 4)
        self.daemon.call("POST", f"jobs/{mine}:cancel")
        self.until(lambda: self.all()["demo"]["status"]["gpus_free"] == 4)
        self.assertEqual(self.gate(away[0]), "reserved")
        self.change(to=moment(2))
        self.daemon.wait(away[0], ("running",))
        self.assertEqual(self.all(), {})

    def test_what_is_for_nobody_empties_the_node_and_keeps_it_so(self):
        one = self.run_job("one", "speech", gpus=1)
        self.daemon.wait(one, ("running",))
        node = self.daemon.call("GET", f"jobs/{one}/workers")["workers"][0]["node"]
        self.reserve("repair", begins=0, nodes=[node])
        self.until(lambda: self.all()["repair"]["status"]["gpus_free"] == 4)
        self.until(lambda: self.phase(one) == "running")
        self.assertNotEqual(self.daemon.call("GET", f"jobs/{one}/workers")["workers"][0]["node"], node)

    def test_only_admins_change_what_all_who_see_the_queue_may_read(self):
        self.daemon.call("PUT", "queues/vision", {"members": {"user:games": "queue-admin", "user:news": "viewer"}})
        self.reserve()
        for user, method, status in (("games", "DELETE", 403), ("games", "PUT", 403), ("games", "POST", 403), ("news", "GET", 200)):
            secret = self.daemon.call("POST", "tokens", {"name": "t", "user": user})["secret"]
            body = {"queue": "vision", "gpus": 1, "to": moment(HALF_HOUR)} if method in ("PUT", "POST") else None
            path = "reservations" if method == "POST" else "reservations/demo"
            try:
                self.daemon.call(method, path, {"name": "demo", **body} if body else None, {"Authorization": "Bearer " + secret})
                got = 200
            except Refused as refused:
                got = refused.status
            self.assertEqual(got, status, (user, method))


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
