#!/usr/bin/env python3
"""hostile_test.py BUILD [TEST...]: clients that mean harm, against a real musterd on its Unix socket and on a port with TLS.

After each attack another client is answered, the daemon's memory and descriptors are back where they were, and it ends with
status 0, which under AddressSanitizer means without a leak. The limits themselves (time for a head, requests a minute) are
tested beside the code in src/net; what may be called by whom in api_test.py.
"""
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import unittest

import e2e_test
from daemon import Refused
from e2e_test import Case, job

MB = 1 << 20
USERS = {"ana": "games", "lea": "mail", "vic": "news", "out": "irc", "adm": "backup"}  # accounts that every Debian has
QUEUES = {"queues": [{"name": "open"}, {"name": "vision", "members": {f"user:{USERS['lea']}": "queue-admin",
                                                                       f"user:{USERS['ana']}": "user",
                                                                       f"user:{USERS['vic']}": "viewer"}},
                     {"name": "vision/detection"}]}
# Names that two readers could read differently, that leave their folder, or that are no text at all.
TRICKS = ["%2F", "..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%2f..%2fetc", "a%00b", "%0a", "%0d%0aX-Evil:%201", "%1b%5b2J", "%7f",
          "%c0%af", "%c0%ae%c0%ae", "%ff", "%ed%a0%80", "%f4%90%80%80", "%e2%80%ae", "%F0%9F%92%A9", "%", "%4", "%zz", "%25%32%66", "",
          "-1", "99999999999999999999", "0x10", "1e9", "@last%00", ";ls", "$(id)", "'", '"', "*", "x" * 5000, "%41" * 3000]


class Hostile(Case):
    def setUp(self):
        super().setUp()
        self.daemon.stop()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                        "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.path("key.pem"),
                        "-out", self.path("cert.pem")], check=True, capture_output=True)
        self.daemon.options = (*self.daemon.options, "--listen", "127.0.0.1:0", "--tls-cert", str(self.path("cert.pem")),
                               "--tls-key", str(self.path("key.pem")))
        self.begin()
        self.daemon.call("POST", "queues", QUEUES)
        self.daemon.call("PUT", "users/" + USERS["adm"], {"role": "admin"})
        self.daemon.call("PUT", "users/" + USERS["out"], {"role": "none"})
        self.tokens = {user: self.token(user) for user in USERS}
        self.trust = ssl.create_default_context(cafile=self.path("cert.pem"))
        self.tls("GET", "health", self.tokens["adm"])
        self.fds, self.memory = self.descriptors(), self.resident()

    def begin(self):
        self.daemon.start()
        self.port = int(self.daemon.log().rsplit("127.0.0.1:", 1)[1].split()[0])
        maps = pathlib.Path(f"/proc/{self.daemon.process.pid}/maps").read_text()
        self.sanitized = "libasan" in maps or "libclang_rt" in maps
        self.slack = 1500 * MB if self.sanitized else 96 * MB  # what freed memory may stay with the allocator

    def tearDown(self):
        process = self.daemon.process
        super().tearDown()
        if process.returncode != -signal.SIGKILL:
            self.assertEqual(process.returncode, 0, self.path("musterd.log"))

    def token(self, user, expires="1h"):
        return self.daemon.call("POST", "tokens", {"name": "t", "user": USERS[user], "expires": expires})["secret"]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    def resident(self):
        text = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) << 10

    def unix(self, timeout=30):
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(timeout)
        link.connect(str(self.daemon.socket))
        return link

    def plain(self, source="127.0.0.1"):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30, source_address=(source, 0))

    def shaken(self):
        return self.trust.wrap_socket(self.plain(), server_hostname="127.0.0.1")

    def tls(self, method, path, token=None, body=None, headers=None):
        """Status, headers and body; another machine's client, by its address."""
        link = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.trust, source_address=("127.0.0.2", 0))
        link.request(method, "/api/v1/" + path if path is not None else "/metrics", body,
                     {**({"Authorization": "Bearer " + token} if token else {}), **(headers or {})})
        answer = link.getresponse()
        data = answer.read()
        link.close()
        return answer.status, answer.headers, data

    def served(self):
        """Others are answered, on both ways in."""
        link = self.daemon.connect(10)
        self.assertEqual(self.daemon.call("GET", "health", connection=link)["status"], "ok")
        link.close()
        self.assertEqual(self.tls("GET", "jobs?limit=1", self.tokens["ana"])[0], 200)

    def calm(self):
        """Served, and nothing of the attack is still held."""
        self.served()
        self.until(lambda: self.descriptors() <= self.fds + 2, 60)
        self.until(lambda: self.resident() < self.memory + self.slack, 60)  # or memory is not given back


class Bodies(Hostile):
    def upload(self, link, length, sent, head=b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\n"):
        """Sends so much of a body that says to be that long; the status line, or why there is none."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            link.sendall(head + b"Content-Length: %d\r\n\r\n" % length)
            piece = b"a" * MB
            for _ in range(sent // MB):
                link.sendall(piece)
        try:
            return link.recv(4096).split(b"\r\n")[0].decode()
        except (ConnectionResetError, ssl.SSLError, TimeoutError) as error:
            return str(error)

    def test_a_long_key_over_many_mistakes_makes_no_long_answer(self):
        wrong = ", ".join(f"u{i}: 1" for i in range(99))
        body = f'- &a {{name: a, command: [x], {wrong}}}\n- ? "{"k" * 200_000}"\n  : *a\n'
        status, _, data = self.tls("POST", "jobs?dry_run=1", self.tokens["ana"], body, {"Content-Type": "application/yaml"})
        self.assertEqual(status, 422, data[:300])
        self.assertLess(len(data), 200_000)
        self.calm()

    def test_a_hundred_megabytes_are_refused_before_they_are_read(self):
        for path in ("jobs", "queues", "plan", "tokens", "users/x", "jobs/1:cancel", "nothing"):
            method = "PUT" if path == "users/x" else "POST"
            for connect in (self.unix, self.shaken):
                with connect() as link:
                    said = self.upload(link, 100 * MB, 0, f"{method} /api/v1/{path} HTTP/1.1\r\nHost: x\r\n".encode())
                    # A call without a body says that it takes none.
                    self.assertIn(" 400 " if path == "jobs/1:cancel" else " 413 ", said, path)
        with self.unix() as link:
            self.assertIn(" 413 ", self.upload(link, 2 ** 63, 0))
        self.calm()

    def test_a_hundred_megabytes_in_chunks_are_cut_off(self):
        for connect in (self.unix, self.shaken):
            with connect() as link:
                with contextlib.suppress(OSError):
                    link.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                    for _ in range(100):
                        link.sendall(b"%x\r\n" % MB + b"a" * MB + b"\r\n")
                with contextlib.suppress(OSError):
                    self.assertIn(b" 413 ", link.recv(4096))
        self.calm()

    def test_many_large_uploads_at_once_take_a_bounded_part_of_memory(self):
        links = [self.shaken() if i % 2 else self.unix() for i in range(24)]
        threads = [threading.Thread(target=self.upload_only, args=(link, 60)) for link in links]
        peak = 0
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                peak = max(peak, self.resident())
                thread.join(0.05)
        self.served()
        peak = max(peak, self.resident())
        for link in links:
            link.close()
        self.calm()
        if not self.sanitized:
            self.assertLess(peak, self.memory + 600 * MB)
        # The way is free again for those who mean it.
        made = self.tls("POST", "jobs?dry_run=1", self.tokens["adm"], json.dumps({"jobs": [job("true", queue="open")] * 20_000}))
        self.assertEqual(made[0], 200, made[2][:300])

    def upload_only(self, link, megabytes):
        with contextlib.suppress(OSError):
            link.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (64 * MB))
            for _ in range(megabytes):
                link.sendall(b"a" * MB)

    def test_bombs_are_refused_as_documents(self):
        aliases = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12))
        bombs = {"depth": "[" * 100_000, "closed depth": "[" * 50_000 + "]" * 50_000, "maps": '{"a":' * 50_000,
                 "yaml depth": "".join(" " * i + "a:\n" for i in range(3000)), "dashes": "- " * 100_000, "aliases": aliases,
                 "self": "a: &a [*a]", "merge": "a: &a {<<: *a}", "tags": "!!python/object/apply:os.system [id]",
                 "documents": "---\n" * 100_000, "number": '{"gpus": 1' + "0" * 100_000 + "}", "fraction": '{"gpus": 1e999999}',
                 "text": '{"name": "' + "x" * (4 * MB) + '"}', "keys": "{" + ",".join(f'"k{i}":1' for i in range(200_000)) + "}",
                 "list": "[" + ",".join(["{}"] * 200_000) + "]", "nul": '{"name": "a\0b"}', "bytes": b"\xff\xfe\x00", "bom": "\ufeff{}",
                 "utf-16": '{"name": "a"}'.encode("utf-16"), "surrogate": '{"name": "\\ud800"}', "empty": "", "null": "null"}
        for name, bomb in bombs.items():
            body = bomb if isinstance(bomb, bytes) else bomb.encode()
            for path in ("jobs", "plan", "queues"):
                status, headers, data = self.tls("POST", path, self.tokens["adm"], body)
                self.assertIn(status, (400, 413, 422), f"{name} to {path}: {data[:200]}")
                if status != 413:
                    self.assertEqual(headers.get_content_type(), "application/problem+json", name)
                    self.assertLess(len(data), 256 << 10, f"the answer to {name} is as large as the question")
                    json.loads(data)
            self.assertIn(self.tls("POST", "tokens", self.tokens["adm"], body)[0], (400, 413, 422), name)
        self.calm()

    def test_a_full_disk_under_an_upload_takes_nothing_and_recovers(self):
        if os.geteuid() != 0 or self.sanitized:
            self.skipTest("needs root for a small disk")
        self.daemon.stop()
        state = self.path("state")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "muster-test", state], capture_output=True).returncode != 0:
            self.skipTest("cannot mount a tmpfs here")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(subprocess.run, ["umount", "-l", state], capture_output=True)
        self.begin()
        self.daemon.call("POST", "queues", QUEUES)
        ballast = state / "ballast"
        free = os.statvfs(state)
        ballast.write_bytes(b"x" * (free.f_bavail * free.f_frsize - MB))
        batch = {"jobs": [job("true", name=f"n{i}", queue="open") for i in range(8000)]}
        with self.assertRaises(Refused) as refusal:
            self.daemon.call("POST", "jobs?held=1", batch)
        self.assertEqual(refusal.exception.status, 503)
        self.assertIn("full", refusal.exception.body)
        self.assertEqual(self.daemon.call("GET", "health")["status"], "ok")
        ballast.unlink()
        self.until(self.is_ready)
        self.assertEqual(self.daemon.call("GET", "jobs?all=1")["jobs"], [])
        self.assertEqual(len(self.daemon.call("POST", "jobs?held=1", {"jobs": batch["jobs"][:500]})["jobs"]), 500)

    def is_ready(self):
        with contextlib.suppress(Refused):
            return self.daemon.call("GET", "ready")["status"] == "ready"
        return False


class Lines(Hostile):
    def test_slow_and_silent_clients_keep_nobody_waiting(self):
        links = []
        for i in range(150):
            links.append(self.plain())  # never shakes hands
            half = self.plain()
            half.sendall(b"\x16\x03\x01\x02")  # a quarter of a greeting
            links.append(half)
            slow = self.unix()
            slow.sendall([b"GET /api/v1/jobs HT", b"GET / HTTP/1.1\r\nX-A: ", b"POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 99\r\n\r\n{"][i % 3])
            links.append(slow)
        for _ in range(40):
            shaken = self.shaken()
            shaken.sendall(b"GET /api/v1/jobs HTTP/1.1\r\nHo")
            links.append(shaken)
        self.served()
        for link in links:
            with contextlib.suppress(OSError):
                link.send(b"x")
        self.served()
        for link in links:
            link.close()
        self.calm()

    def test_half_open_and_vanished_clients_are_let_go(self):
        for i in range(100):
            link = self.unix()
            link.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n" if i % 2 else b"GET /api/v1/he")
            link.shutdown(socket.SHUT_WR)
            if i % 2:
                self.assertIn(b" 200 ", link.recv(4096))
            link.close()
        for _ in range(100):
            link = self.plain()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.sendall(b"\x16\x03")
            link.close()  # a reset
        self.calm()

    def test_pipelined_requests_are_answered_in_order_and_held_back_without_a_reader(self):
        with self.unix() as link:
            link.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\nGET /api/v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
            text = b""
            while text.count(b"HTTP/1.1 ") < 100:
                got = link.recv(65536)
                self.assertTrue(got, text[-300:])
                text += got
            self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+)", text), [b"200", b"404"] * 50)
        links = []
        for _ in range(20):
            link = self.unix()
            link.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                for _ in range(2000):
                    link.send(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
            links.append(link)
        self.served()
        for link in links:
            link.close()
        self.calm()

    def test_garbage_is_refused_everywhere(self):
        chance = random.Random(7)
        for i in range(150):
            noise = chance.randbytes(chance.choice([1, 10, 1000, 70_000]))
            connect = (self.unix, self.plain, self.shaken)[i % 3]
            with connect() as link, contextlib.suppress(OSError):
                link.settimeout(5)
                if i % 4 == 3:
                    link.sendall(b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nX-" + noise[:200] + b"\r\n\r\n")
                else:
                    link.sendall(noise)
                link.shutdown(socket.SHUT_WR)
                answer = link.recv(4096)
                if answer.startswith(b"HTTP"):
                    self.assertRegex(answer, rb"^HTTP/1\.1 (4\d\d|200) ")
        for head in (b"GET /api/v1/jobs HTTP/9.9\r\n\r\n", b"GET  /api/v1/jobs HTTP/1.1\r\n\r\n", b"GET /api/v1/jobs\r\n\r\n",
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", b"GET ftp:x HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"GET /api/v1/jobs HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET /api/v1/jobs HTTP/1.1\r\n Host: x\r\n\r\n",
                     b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
                     b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
                     b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                     b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"):
            with self.unix() as link:
                link.sendall(head)
                link.shutdown(socket.SHUT_WR)
                self.assertRegex(link.recv(4096), rb"^HTTP/1\.1 [45]\d\d ", head)
        self.calm()

    def test_clients_that_vanish_within_a_stream_leave_nothing(self):
        one = self.daemon.submit(job("while :; do echo line; sleep 0.01; done", name="talk", queue="open"))
        made = self.tls("POST", "jobs", self.tokens["ana"], json.dumps({**job("sleep 600", name="shell", queue="open"), "terminal": True}))
        shell = json.loads(made[2])["jobs"][0]["id"]
        self.daemon.wait(one, ("running",))
        self.daemon.wait(shell, ("running",))
        upgrade = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n")
        asks = [("events?watch=1", ""), (f"jobs/{one}/logs?follow=1", ""), ("events?watch=1&since=0", ""),
                (f"jobs/{shell}/attach?rows=24&cols=80", upgrade),
                (f"jobs/{shell}/exec?command=%5B%22cat%22%5D&terminal=1&rows=24&cols=80", upgrade)]
        base = self.descriptors()
        for round_ in range(3):
            links = []
            for i in range(60):
                path, more = asks[i % len(asks)]
                link = self.unix() if i % 2 else self.shaken()
                user = "ana" if more else "adm"
                token = "" if i % 2 else f"Authorization: Bearer {self.tokens[user]}\r\n"
                link.sendall(f"GET /api/v1/{path} HTTP/1.1\r\nHost: x\r\n{token}{more}\r\n".encode())
                self.assertRegex(link.recv(12), rb"HTTP/1\.1 (200|101)")
                links.append(link)
            self.assertGreaterEqual(self.watchers(), 20)
            self.served()
            for i, link in enumerate(links):
                if round_ == 1:  # with a frame cut in half
                    with contextlib.suppress(OSError):
                        link.send(b"\x82\xfe")
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                link.close()
            self.until(lambda: self.watchers() == 0, 60)
            self.until(lambda: self.descriptors() <= base + 2, 60)
        self.assertEqual(self.phase(shell), "running")
        self.calm()

    def watchers(self):
        _, _, data = self.tls("GET", None, self.tokens["adm"])
        return int(re.search(rb"^muster_watchers (\d+)", data, re.M).group(1))


class Calls(Hostile):
    """Every operation of the document, by everybody, with every trick in every place."""

    def operations(self):
        document = self.daemon.call("GET", "openapi.json")

        def follow(node):
            while "$ref" in node:
                at = document
                for word in node["$ref"].lstrip("#/").split("/"):
                    at = at[word]
                node = at
            return node

        for path, item in document["paths"].items():
            for method in ("get", "post", "put", "patch", "delete"):
                if method in item:
                    parameters = [follow(one) for one in item.get("parameters", []) + item[method].get("parameters", [])]
                    yield method.upper(), path.lstrip("/"), item[method], parameters

    def fill(self, path, parameters, one, node):
        names = {"job": one, "node": node, "queue": "vision/detection", "user": "nobody-there", "token": "nothere", "policy": "current",
                 "reservation": "nothere", "simulation": "9"}
        path = re.sub(r"\{(\w+)\}", lambda found: str(names[found.group(1)]), path)
        given = {"min": "1", "max": "1", "value": "60", "port": "1", "command": "%5B%22true%22%5D"}
        query = [f"{p['name']}={given[p['name']]}" for p in parameters if p["in"] == "query" and p.get("required")]
        query += ["dry_run=1"] if any(p["name"] == "dry_run" for p in parameters) else []
        return path + ("?" + "&".join(query) if query else "")

    def test_every_operation_asks_for_its_role(self):
        made = self.tls("POST", "jobs", self.tokens["ana"], json.dumps({**job("sleep 600", name="mine", queue="vision/detection"), "gpus": 0}))
        one = json.loads(made[2])["jobs"][0]["id"]
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        ranks = {"viewer": 1, "user": 2, "queue-admin": 3, "admin": 4}
        callers = {"out": 0, "vic": 1, "ana": 2, "lea": 3, "adm": 4}
        bodies = {"submitJobs": job("true", queue="vision/detection"), "planJob": job("true", queue="vision/detection"),
                  "editJob": {"priority": 60}, "applyQueues": {"queues": [{"name": "vision/new"}]},
                  "putQueue": {"queues": [{"name": "vision/detection"}]}, "putUser": {"role": "viewer"}, "createToken": {"name": "x"}, "applyPolicy": {"policy": {}},
                  "createReservation": {"name": "x", "gpus": 1, "to": "2999-01-01T00:00Z"}, "putReservation": {"gpus": 1, "to": "2999-01-01T00:00Z"},
                  "createSimulation": {"kind": "policy-diff", "since": "1h", "policy": {}}}
        for method, path, operation, parameters in self.operations():
            name, role = operation["operationId"], operation["x-role"]
            if name in ("listTokens", "getToken", "createToken", "revokeToken"):
                role = "viewer"  # one's own
            if name == "watchEvents":
                parameters = []
            target = self.fill(path, parameters, one, node)
            body = json.dumps(bodies[name]) if name in bodies else None
            status = self.tls(method, target, None, body)[0]
            if role != "none":
                self.assertEqual(status, 401, f"nobody: {name}")
            for user, rank in callers.items():
                status, _, data = self.tls(method, target, self.tokens[user], body)
                about = f"{user}: {name} {target}: {status} {data[:200]}"
                self.assertLess(status, 500, about)
                if role == "none":
                    self.assertEqual(status, 200, about)
                elif rank < ranks[role]:
                    self.assertIn(status, (403, 404), about)
                elif name not in ("attachJob", "execJob", "forwardPort") or user != "lea":  # entering is for owners and admins
                    self.assertNotIn(status, (401, 403), about)
        self.calm()

    def test_no_trick_in_a_name_or_parameter_is_taken(self):
        one = self.daemon.submit(job("sleep 600", name="mine", queue="open"))
        node = self.daemon.call("GET", "nodes")["nodes"][0]["name"]
        link = self.daemon.connect()
        before = self.outside()
        for method, path, operation, parameters in self.operations():
            if operation["operationId"] in ("exportSnapshot", "exportPast"):  # no text
                continue
            places = [p for p in parameters if p["in"] in ("path", "query")]
            for place in places:
                for trick in TRICKS:
                    if place["in"] == "path":
                        target = self.fill(path.replace("{" + place["name"] + "}", trick.replace("\\", "")), parameters, one, node)
                    else:
                        target = self.fill(path, [p for p in parameters if p is not place], one, node)
                        target += ("&" if "?" in target else "?") + place["name"] + "=" + trick
                    self.try_one(link, method, target)
        for trick in ("X-Evil\x01", "\xff", "a" * 300):
            link.putrequest("POST", "/api/v1/jobs?dry_run=1")
            link.putheader("Content-Length", "0")
            with contextlib.suppress(ValueError):
                link.putheader("Idempotency-Key", trick.encode("latin-1"))
            link.endheaders()
            answer = link.getresponse()
            answer.read()
            self.assertIn(answer.status, (400, 422))
            if answer.will_close:
                link = self.daemon.connect()
        link.close()
        self.assertEqual(self.phase(one), "running")
        self.assertEqual(self.outside(), before)
        self.calm()

    def try_one(self, link, method, target):
        link.putrequest(method, "/api/v1/" + target, skip_host=False)
        link.putheader("Content-Length", "0")
        link.endheaders()
        answer = link.getresponse()
        data = answer.read()
        self.assertLess(answer.status, 500, f"{method} {target[:200]}: {data[:200]}")
        data.decode()
        if answer.headers.get_content_type().endswith("json"):
            json.loads(data)
        if method != "GET" and "dry_run" not in target:
            self.assertGreaterEqual(answer.status, 400, f"{method} {target[:200]}: {data[:200]}")

    def outside(self):
        """What a name that escapes its folder would change."""
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*")
                      if "logs" not in p.parts and "jobs" not in p.parts and not p.name.startswith("journal"))

    def test_no_trick_in_a_document_is_taken(self):
        texts = ["../../escape", "/etc/passwd", "a/../../b", "..", ".", "a\nb", "a\x1b[2J", "a\x7f", "a\u202eb", "\u0000", "x" * 10_000, "",
                 " ", "$(id)", "`id`", "a;b", "-rf", "--help", "\ud83d\ude00", "name\u2028", "\ufffe"]
        for text in texts:
            for key, spec in (("name", {}), ("queue", {}), ("labels", {"labels": {text: text}}), ("after", {"after": [text]}),
                              ("framework", {"framework": text}), ("roles", {"roles": {text: {"count": 1}}})):
                document = {**job("true", queue="open"), **(spec or {key: text})}
                status, _, data = self.tls("POST", "jobs?dry_run=1", self.tokens["ana"], json.dumps(document))
                about = f"{key}={text[:40]!r}: {status} {data[:200]}"
                self.assertLess(status, 500, about)
                if key == "name" and text not in ("-rf", "--help"):
                    self.assertEqual(status, 422, about)
                json.loads(data)
            for path, document in (("queues", {"queues": [{"name": text}]}), ("queues", {"queues": [{"name": "q", "members": {text: "user"}}]}),
                                   ("tokens", {"name": "t", "user": text}), ("tokens", {"name": "t", "expires": text}),
                                   ("tokens", {"name": "t", "role": text})):
                status, _, data = self.tls("POST", path + ("?dry_run=1" if path == "queues" else ""), self.tokens["adm"], json.dumps(document))
                self.assertIn(status, (400, 404, 422, 201, 200), f"{path} {document}: {data[:200]}")
        raw = b'{"name": "a\xff", "queue": "open", "command": ["true"]}'
        self.assertEqual(self.tls("POST", "jobs?dry_run=1", self.tokens["ana"], raw)[0], 422)
        self.calm()

    def test_a_job_with_strange_words_runs_as_written_and_stays_in_its_folder(self):
        before = self.outside()
        words = ["$(touch /tmp/muster-evil)", "`id`", ";", "../x", "\u00e9", "a b", "'", '"', "\\", "-n", "%s", "\t"]
        one = self.daemon.submit({**job("", queue="open"), "command": ["/usr/bin/printf", "%s|", *words],
                                  "env": {"EVIL": "$(id)\n; rm", "LD_X": "../.."}})
        self.assertEqual(self.daemon.wait(one)["status"]["phase"], "succeeded")
        self.assertEqual(self.out(one), "".join(word + "|" for word in words))
        self.assertFalse(os.path.exists("/tmp/muster-evil"))
        self.assertEqual(self.outside(), before)


JUMP = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *out) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(id, out);
  FILE *file = id == CLOCK_REALTIME ? fopen(getenv("MUSTER_JUMP"), "r") : 0;
  long seconds = 0;
  if (file) {
    if (fscanf(file, "%ld", &seconds) == 1) out->tv_sec += seconds;
    fclose(file);
  }
  return done;
}
"""


class Clocks(Hostile):
    def setUp(self):
        super().setUp()
        if self.sanitized:
            self.tearDown()  # which nobody else calls for a test that is skipped here
            self.skipTest("another clock cannot be put under a sanitizer")
        self.path("jump.c").write_text(JUMP)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.path("jump.so"), self.path("jump.c"), "-ldl"], check=True)
        self.begin_at(0)

    def begin_at(self, seconds):
        self.daemon.process.send_signal(signal.SIGTERM)  # without stop(), which forgets the workers
        self.daemon.process.wait(60)
        self.jump(seconds)
        extra = {"LD_PRELOAD": str(self.path("jump.so")), "MUSTER_JUMP": str(self.path("jump"))}
        os.environ.update(extra)
        try:
            self.begin()
        finally:
            for name in extra:
                del os.environ[name]

    def jump(self, seconds):
        self.path("jump.new").write_text(str(seconds))
        self.path("jump.new").rename(self.path("jump"))

    def test_a_token_lives_as_long_as_it_says_whichever_way_the_clock_jumps(self):
        token = self.token("ana", "1h")
        one = self.daemon.submit(job("sleep 600", queue="open"))
        self.daemon.wait(one, ("running",))
        for seconds in (3700, 10 ** 9, -10 ** 6, -10 ** 9, 0):  # while it runs, time is what has passed
            self.jump(seconds)
            self.assertEqual(self.tls("GET", "jobs", token)[0], 200, seconds)
            self.assertEqual(self.daemon.call("GET", "ready")["status"], "ready")
            self.assertEqual(self.phase(one), "running")
        self.begin_at(3500)
        self.assertEqual(self.tls("GET", "jobs", token)[0], 200)
        self.begin_at(3700)
        self.assertEqual(self.tls("GET", "jobs", token)[0], 401)
        two = self.daemon.submit(job("true", queue="open"))
        self.assertEqual(self.daemon.wait(two)["status"]["phase"], "succeeded")
        self.begin_at(-10 ** 6)  # never before what was written: an expired token does not come back
        self.assertEqual(self.tls("GET", "jobs", token)[0], 401)
        self.assertEqual(self.phase(one), "running")
        three = self.daemon.submit(job("true", queue="open"))
        self.assertEqual(self.daemon.wait(three)["status"]["phase"], "succeeded")


if __name__ == "__main__":
    e2e_test.BUILD = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
