"""Policies from a real control plane (go-control-plane).

Usage: xds_test.py WEIR FETCH PLANE

FETCH builds the control plane at PLANE; tests/support/xds/main.go describes what it reads and prints.
"""

import http.client
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

DEADLINE = 120
SKIPPED = 77


def per_user(limit, name="edge"):
    """A configuration: this many requests a day for each user of the domain `edge`."""
    return {"name": name, "domain": "edge", "descriptors": [
        {"key": "user", "rate_limit": {"unit": "DAY", "requests_per_unit": limit}}]}


class Plane:
    """The control plane. Its output is read as it arrives."""

    def __init__(self, address="127.0.0.1:0", *tls):
        self.child = subprocess.Popen([PLANE, address, "node-7", *tls], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.address = self.wait("listening ").split()[1]

    def _read(self):
        for line in self.child.stdout:
            self.lines.put(line.rstrip("\n"))

    def set(self, *configs):
        self.child.stdin.write(json.dumps(configs) + "\n")
        self.child.stdin.flush()

    def wait(self, start):
        """The next line with this prefix."""
        end = time.monotonic() + DEADLINE
        seen = []
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=1)
            except queue.Empty:
                continue
            if line.startswith(start):
                return line
            seen.append(line)
        raise AssertionError(f"the control plane never said '{start}', but {seen}")

    def stop(self):
        self.child.kill()
        self.child.wait(DEADLINE)
        self.reader.join(DEADLINE)
        self.child.stdin.close()
        self.child.stdout.close()


class Weir:
    def __init__(self, server, data, *words, **settings):
        self.log = open(os.path.join(data, "log"), "a+", encoding="utf-8")
        self.child = subprocess.Popen(
            [WEIR, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data", data,
             "--xds-server", server, *words], stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**os.environ, "WEIR_XDS_NODE_ID": "node-7", **settings})
        found = re.match(r"listening http \S+:(\d+)", self.child.stdout.readline())
        assert found, self.said()
        self.port = int(found[1])

    def said(self):
        with open(self.log.name, encoding="utf-8") as text:
            return text.read()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        answer = (response.status, response.read().decode())
        connection.close()
        return answer

    def allowed(self, request):
        return json.loads(self.ask("POST", "/v1/check", request)[1])["allowed"]

    def check(self, user):
        return self.allowed({"domain": "edge", "descriptors": [{"user": user}]})

    def admitted(self, user, tries=6):
        return [self.check(user) for _ in range(tries)].count(True)

    def await_audit(self, text):
        """Changes take effect first, and are in the audit log soon after."""
        deadline = time.monotonic() + 120
        while text not in self.ask("GET", "/admin/audit")[1]:
            assert time.monotonic() < deadline, f"{text} is not in the audit log"
            time.sleep(0.02)

    def await_ready(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if self.ask("GET", "/readyz")[0] == 200:
                return
            time.sleep(0.02)
        raise AssertionError("never ready")

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.ask("GET", "/metrics")[1], re.M)
        return None if found is None else float(found[1])

    def stop(self, kill=False):
        if self.child.poll() is None:
            (self.child.kill if kill else self.child.terminate)()
        self.child.wait(DEADLINE)
        self.child.stdout.close()
        self.log.close()


class Xds(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def plane(self, *words):
        plane = Plane(*words)
        self.addCleanup(plane.stop)
        return plane

    def weir(self, server, *words, **settings):
        weir = Weir(server, self.folder.name, *words, **settings)
        self.addCleanup(weir.stop)
        return weir

    def test_what_the_control_plane_says_is_in_force_until_it_says_otherwise(self):
        plane = self.plane()
        plane.set(per_user(2))
        weir = self.weir(f"grpc://{plane.address}")
        self.assertIn("node-7 type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig",
                      plane.wait("request"))
        plane.wait("ack 1")
        weir.await_ready()
        self.assertEqual(weir.admitted("anna"), 2)
        self.assertIn("xds:edge:", weir.ask("GET", "/admin/policies")[1])

        plane.set(per_user(5), {"name": "other", "domain": "other", "descriptors": [{"key": "ip", "rate_limit": {
            "unit": "WEEK", "requests_per_unit": 1}}]})
        plane.wait("ack 2")
        # The window's length is the same, so its usage still counts.
        self.assertEqual(weir.admitted("anna"), 3)
        other = {"domain": "other", "descriptors": [{"ip": "10.0.0.1"}]}
        self.assertEqual([weir.allowed(other) for _ in range(2)], [True, False])
        weir.await_audit('"xds edge"')

        plane.set()
        plane.wait("ack 3")
        self.assertEqual(weir.admitted("anna"), 6)
        self.assertEqual(weir.metric('weir_xds_updates_total{result="accepted"}'), 3)
        self.assertEqual(weir.metric("weir_xds_connected"), 1)

    def test_a_wrong_state_is_refused_with_the_reason_and_changes_nothing(self):
        plane = self.plane()
        plane.set(per_user(2))
        weir = self.weir(f"grpc://{plane.address}")
        plane.wait("ack 1")
        wrong = per_user(9)
        wrong["descriptors"].append(wrong["descriptors"][0])
        plane.set(wrong)
        self.assertRegex(plane.wait("nack 2"), r"xds:edge:4:\d+: descriptor: 'user' is already defined here")
        # After a nack, this control plane resends immediately; that must not loop.
        time.sleep(2)
        self.assertLess(plane.lines.qsize(), 10)
        no_unit = {"name": "bad", "domain": "bad", "descriptors": [{"key": "a", "rate_limit": {
            "requests_per_unit": 3}}]}
        plane.set(per_user(9), no_unit)
        self.assertRegex(plane.wait("nack 3"), r"xds:bad:.*unit: expected second, .*got 'unknown'")
        self.assertEqual(weir.admitted("anna"), 2)
        plane.set(per_user(3))
        plane.wait("ack 4")
        self.assertEqual(weir.admitted("anna"), 1)
        self.assertEqual(weir.metric('weir_xds_updates_total{result="refused"}'), 2)

    def test_every_field_of_the_format_means_what_it_means_in_a_file(self):
        plane = self.plane()
        plane.set({"name": "edge", "domain": "edge", "descriptors": [
            {"key": "user", "rate_limit": {"unit": "DAY", "requests_per_unit": 2, "name": "users"}},
            {"key": "user", "value": "banned", "rate_limit": {"unit": "DAY", "requests_per_unit": 0}},
            {"key": "user", "value": "root", "rate_limit": {"unlimited": True}},
            {"key": "user", "value": "exempt"},
            {"key": "user", "value": "bot-*", "rate_limit": {"unit": "DAY", "requests_per_unit": 1}},
            {"key": "user", "value": "watched", "shadow_mode": True, "detailed_metric": True,
             "rate_limit": {"unit": "DAY", "requests_per_unit": 1}},
            {"key": "user", "value": "named", "metadata": {"name": "third", "cost": [1, None]},
             "rate_limit": {"unit": "DAY", "requests_per_unit": 3}},
            {"key": "plan", "value": "gold", "rate_limit": {"unit": "DAY", "requests_per_unit": 4,
                                                            "replaces": [{"name": "users"}]}},
            {"key": "a", "descriptors": [{"key": "b", "value": "quoted \" and \\ and \u00fc",
                                          "rate_limit": {"unit": "HOUR", "requests_per_unit": 3}}]}]})
        weir = self.weir(f"grpc://{plane.address}")
        plane.wait("ack 1")
        for user, count in {"anna": 2, "banned": 0, "root": 6, "exempt": 6, "bot-7": 1, "watched": 6,
                            "named": 3}.items():
            self.assertEqual(weir.admitted(user), count, user)
        self.assertIn('"metadata":{"cost":[1,null],"name":"third"}', weir.ask("GET", "/admin/policies")[1])
        gold = {"domain": "edge", "descriptors": [{"user": "carl"}, {"plan": "gold"}]}
        self.assertEqual([weir.allowed(gold) for _ in range(6)].count(True), 4)
        nested = {"domain": "edge", "descriptors": [{"a": "x", "b": "quoted \" and \\ and \u00fc"}]}
        self.assertEqual([weir.allowed(nested) for _ in range(6)].count(True), 3)

    def test_limits_outlive_the_control_plane_and_a_crash_without_it(self):
        plane = self.plane()
        server = f"grpc://{plane.address}"
        plane.set(per_user(2))
        weir = self.weir(server)
        plane.wait("ack 1")
        plane.stop()
        self.assertEqual(weir.admitted("anna"), 2)
        weir.stop(kill=True)
        weir = self.weir(server)
        weir.await_ready()
        self.assertEqual(weir.admitted("ben"), 2)
        self.assertEqual(weir.metric("weir_xds_connected"), 0)
        # Another one at the same address, whose first version has a different content.
        again = self.plane(plane.address)
        again.set(per_user(4))
        again.wait("ack 1")
        self.assertEqual(weir.admitted("carl"), 4)

    def test_a_node_that_knows_no_policies_yet_is_not_ready(self):
        plane = self.plane()
        weir = self.weir(f"grpc://{plane.address}")
        plane.wait("request")
        self.assertEqual(weir.ask("GET", "/readyz")[0], 503)
        plane.set(per_user(2))
        plane.wait("ack 1")
        weir.await_ready()
        self.assertEqual(weir.admitted("anna"), 2)

    def test_files_and_the_control_plane_are_in_force_together(self):
        path = os.path.join(self.folder.name, "own.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("domain: own\ndescriptors: [{ key: ip, rate_limit: { unit: day, requests_per_unit: 1 } }]\n")
        plane = self.plane()
        plane.set(per_user(2))
        weir = self.weir(f"grpc://{plane.address}", "--policies", path)
        plane.wait("ack 1")
        own = {"domain": "own", "descriptors": [{"ip": "10.0.0.1"}]}
        self.assertEqual([weir.allowed(own) for _ in range(2)], [True, False])
        self.assertEqual(weir.admitted("anna"), 2)

    def test_a_large_state_arrives_whole(self):
        plane = self.plane()
        plane.set({"name": "edge", "domain": "edge", "descriptors": [
            {"key": "user", "value": f"user-{i}-{'x' * 50}", "rate_limit": {"unit": "DAY", "requests_per_unit": i % 5}}
            for i in range(8000)]})
        weir = self.weir(f"grpc://{plane.address}")
        plane.wait("ack 1")
        self.assertEqual(weir.admitted(f"user-7999-{'x' * 50}"), 4)
        plane.set(per_user(1))
        plane.wait("ack 2")
        self.assertEqual(weir.admitted("anna"), 1)

    def test_mutual_tls(self):
        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=self.folder.name, check=True, capture_output=True)

        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
                "-out", "ca.pem", "-subj", "/CN=authority", "-days", "2")
        for name in ("plane", "weir"):
            openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key",
                    "-out", f"{name}.csr", "-subj", f"/CN={name}")
            with open(os.path.join(self.folder.name, "names"), "w", encoding="utf-8") as file:
                file.write("subjectAltName=IP:127.0.0.1\n")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                    "-out", f"{name}.pem", "-days", "2", "-extfile", "names")
        path = {name: os.path.join(self.folder.name, name)
                for name in ("ca.pem", "plane.pem", "plane.key", "weir.pem", "weir.key")}
        plane = self.plane("127.0.0.1:0", path["plane.pem"], path["plane.key"], path["ca.pem"])
        plane.set(per_user(2))
        # Without a client certificate it gets nothing.
        stranger = self.weir(f"grpcs://{plane.address}", WEIR_XDS_TLS_CA=path["ca.pem"])
        end = time.monotonic() + DEADLINE
        while "cannot reach the control plane" not in stranger.said():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(stranger.ask("GET", "/readyz")[0], 503)
        stranger.stop()
        weir = self.weir(f"grpcs://{plane.address}", WEIR_XDS_TLS_CA=path["ca.pem"],
                         WEIR_XDS_TLS_CERT=path["weir.pem"], WEIR_XDS_TLS_KEY=path["weir.key"])
        plane.wait("ack 1")
        self.assertEqual(weir.admitted("anna"), 2)


if __name__ == "__main__":
    if shutil.which("go") is None:
        print("skipped: the control plane is built with go, which is not installed")
        sys.exit(SKIPPED)
    WEIR, FETCH, PLANE = sys.argv[1:4]
    subprocess.run([FETCH], check=True)
    unittest.main(argv=sys.argv[:1])
