"""Traces of every endpoint reach an OTLP receiver built from the OpenTelemetry project's own messages and service.

Usage: traces_test.py WEIR FETCH FOLDER

FETCH puts the package opentelemetry-proto into FOLDER. Each test starts the program with a separate receiver.
"""

import concurrent.futures
import http.client
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

WEIR, FETCH, FOLDER = sys.argv[1:4]
subprocess.run([FETCH], check=True)
sys.path.insert(0, FOLDER)

import grpc  # noqa: E402
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service  # noqa: E402
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service_grpc  # noqa: E402
from opentelemetry.proto.trace.v1 import trace_pb2 as trace  # noqa: E402

DEADLINE = 120
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
SAMPLED = f"00-{TRACE}-{CALLER}-01"
UNSAMPLED = f"00-{TRACE}-{CALLER}-00"


def attributes(items):
    return {a.key: a.value.string_value if a.value.HasField("string_value") else a.value.int_value for a in items}


class Collected:
    """What a receiver was sent. Thread-safe."""

    def __init__(self):
        self.changed = threading.Condition()
        self.spans, self.resources, self.headers = [], [], []

    def take(self, request, headers):
        with self.changed:
            self.headers.append({name.lower(): value for name, value in headers})
            for resource in request.resource_spans:
                self.resources.append(attributes(resource.resource.attributes))
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self.changed.notify_all()

    def wait(self, enough):
        """Waits until `enough(spans)`; returns the spans."""
        with self.changed:
            if not self.changed.wait_for(lambda: enough(self.spans), DEADLINE):
                raise AssertionError(f"these spans do not do: {self.spans}")
            return list(self.spans)


class HttpReceiver:
    def __init__(self, status=200):
        collected = self.collected = Collected()
        receiver = self
        self.status, self.asked = status, 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.asked += 1
                if receiver.status == 200:
                    assert self.path == "/v1/traces", self.path
                    assert self.headers["Content-Type"] == "application/x-protobuf"
                    collected.take(service.ExportTraceServiceRequest.FromString(body), self.headers.items())
                answer = service.ExportTraceServiceResponse().SerializeToString()
                self.send_response(receiver.status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class GrpcReceiver(service_grpc.TraceServiceServicer):
    def __init__(self):
        self.collected = Collected()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        service_grpc.add_TraceServiceServicer_to_server(self, self.server)
        self.url = f"grpc://127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def Export(self, request, context):
        self.collected.take(request, context.invocation_metadata())
        return service.ExportTraceServiceResponse()

    def close(self):
        self.server.stop(None)


class Process:
    """The program, on free ports, in a separate folder."""

    def __init__(self, *words, **settings):
        self.folder = tempfile.TemporaryDirectory()
        self.log = open(os.path.join(self.folder.name, "log"), "w+", encoding="utf-8")
        self.child = subprocess.Popen(
            [WEIR, *words, "--data", self.folder.name, "--log-format", "json"], stdout=subprocess.PIPE,
            stderr=self.log, text=True, env={**os.environ, **settings})
        self.doors = {}

    def await_doors(self, *names):
        while not all(name in self.doors for name in names):
            line = self.child.stdout.readline()
            assert line, self.lines()
            found = re.match(r"listening (\S+) (\S+)", line)
            if found:
                self.doors[found[1]] = found[2]
        return self

    def lines(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8") as text:
            return [json.loads(line) for line in text if line.startswith("{")]

    def refusals(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            found = [line for line in self.lines() if line["message"] == "limited"]
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"no line of a refusal: {self.lines()}")

    def stop(self):
        self.child.terminate()
        self.child.wait(DEADLINE)
        self.child.stdout.close()
        self.log.close()
        self.folder.cleanup()

    def http(self, method, path, body=None, headers=None, door="http"):
        host, port = self.doors[door].split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=DEADLINE)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        answer = (response.status, dict(response.getheaders()), response.read().decode())
        connection.close()
        return answer

    def resp(self, *words):
        host, port = self.doors["resp"].split(":")
        with socket.create_connection((host, int(port)), DEADLINE) as connection:
            text = f"*{len(words)}\r\n" + "".join(f"${len(w)}\r\n{w}\r\n" for w in words)
            connection.sendall(text.encode())
            return connection.recv(4096).decode()

    def metric(self, name):
        body = self.http("GET", "/metrics")[2]
        found = re.search(rf"^{re.escape(name)} (\S+)$", body, re.M)
        return None if found is None else float(found[1])


def serve(receiver, ratio="1", **settings):
    return Process("serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0",
                   WEIR_TRACES_ENDPOINT=receiver.url, WEIR_TRACES_RATIO=ratio, WEIR_TRACES_INTERVAL="50ms",
                   **settings).await_doors("http", "grpc", "resp")


def named(spans, name):
    return [span for span in spans if span.name == name]


class Traces(unittest.TestCase):
    def family(self, spans, name):
        """The request, its decision and the store call, checked to be nested."""
        request, = named(spans, name)
        decide, = [s for s in named(spans, "weir.decide") if s.parent_span_id == request.span_id]
        store, = [s for s in named(spans, "weir.store") if s.parent_span_id == decide.span_id]
        self.assertEqual({request.trace_id, decide.trace_id, store.trace_id}, {request.trace_id})
        self.assertEqual(request.kind, trace.Span.SPAN_KIND_SERVER)
        self.assertEqual(store.kind, trace.Span.SPAN_KIND_CLIENT)
        self.assertLessEqual(request.start_time_unix_nano, decide.start_time_unix_nano)
        self.assertLessEqual(decide.start_time_unix_nano, store.start_time_unix_nano)
        self.assertLessEqual(store.end_time_unix_nano, decide.end_time_unix_nano)
        self.assertLessEqual(decide.end_time_unix_nano, request.end_time_unix_nano)
        # Wall clock: within a day of this machine's.
        self.assertLess(abs(request.start_time_unix_nano / 1e9 - time.time()), 86400)
        return request, decide, store

    def start(self, *args, **kwargs):
        process = serve(*args, **kwargs)
        self.addCleanup(process.stop)
        return process

    def receive(self, kind, **kwargs):
        receiver = kind(**kwargs)
        self.addCleanup(receiver.close)
        return receiver

    def test_a_check_over_http_joins_its_callers_trace(self):
        receiver = self.receive(HttpReceiver)
        weir = self.start(receiver, ratio="0")
        _, headers, _ = weir.http("POST", "/v1/check", '{"key":"user-123"}', {"traceparent": SAMPLED, "X-Request-Id": "r-1"})
        spans = receiver.collected.wait(lambda spans: len(spans) >= 3)
        request, decide, store = self.family(spans, "/v1/check")
        self.assertEqual(request.trace_id.hex(), TRACE)
        self.assertEqual(request.parent_span_id.hex(), CALLER)
        self.assertEqual(headers["traceparent"], f"00-{TRACE}-{request.span_id.hex()}-01")
        told = attributes(request.attributes)
        self.assertEqual(told["weir.door"], "http")
        self.assertEqual(told["http.response.status_code"], 200)
        self.assertEqual(told["http.request.header.x-request-id"], "r-1")
        told = attributes(decide.attributes)
        self.assertEqual((told["weir.key"], told["weir.policy"], told["weir.outcome"]),
                         ("user-123", "default", "allowed"))
        self.assertEqual(told["weir.remaining"], 99)
        self.assertEqual(attributes(store.attributes)["db.system"], "memory")
        resource = receiver.collected.resources[0]
        self.assertEqual(resource["service.name"], "weir")
        self.assertIn("service.version", resource)

    def test_callers_that_do_not_sample_are_not_traced(self):
        receiver = self.receive(HttpReceiver)
        weir = self.start(receiver, ratio="1")
        for _ in range(20):
            weir.http("POST", "/v1/check", '{"key":"quiet"}', {"traceparent": UNSAMPLED})
        weir.http("POST", "/v1/check", '{"key":"loud"}')
        spans = receiver.collected.wait(lambda spans: len(spans) >= 3)
        self.assertEqual([attributes(s.attributes)["weir.key"] for s in named(spans, "weir.decide")], ["loud"])

    def test_every_call_has_its_name(self):
        receiver = self.receive(HttpReceiver)
        weir = self.start(receiver)
        names = ["check", "peek", "refund", "release", "reserve", "settle"]
        for name in names:
            weir.http("POST", f"/v1/{name}", '{"key":"a"}')
        weir.http("GET", "/v1/auth")
        wanted = {f"/v1/{name}" for name in [*names, "auth"]}
        receiver.collected.wait(lambda spans: wanted <= {span.name for span in spans})

    def test_other_pages_are_requests_too(self):
        receiver = self.receive(HttpReceiver)
        weir = self.start(receiver)
        weir.http("GET", "/admin/policies")
        span, = named(receiver.collected.wait(lambda spans: named(spans, "http")), "http")
        told = attributes(span.attributes)
        self.assertEqual((told["http.request.method"], told["url.path"]), ("GET", "/admin/policies"))

    def test_grpc_to_a_grpc_receiver(self):
        receiver = self.receive(GrpcReceiver)
        weir = self.start(receiver, ratio="0", WEIR_TRACES_HEADERS="x-tenant: blue")
        with grpc.insecure_channel(weir.doors["grpc"]) as channel:
            check = channel.unary_unary("/weir.v1.Limiter/Check")
            key = b"user-7"
            check(b"\x32" + bytes([len(key)]) + key, metadata=(("traceparent", SAMPLED),), timeout=DEADLINE)
        request, decide, _ = self.family(receiver.collected.wait(lambda spans: len(spans) >= 3), "grpc")
        self.assertEqual((request.trace_id.hex(), request.parent_span_id.hex()), (TRACE, CALLER))
        self.assertEqual(attributes(request.attributes)["rpc.method"], "/weir.v1.Limiter/Check")
        self.assertEqual(attributes(decide.attributes)["weir.key"], "user-7")
        self.assertEqual(receiver.collected.headers[0]["x-tenant"], "blue")

    def test_redis_commands_begin_traces(self):
        receiver = self.receive(GrpcReceiver)
        weir = self.start(receiver)
        self.assertTrue(weir.resp("CL.THROTTLE", "user-9", "5", "10", "60").startswith("*5"))
        self.family(receiver.collected.wait(lambda spans: len(spans) >= 3), "CL.THROTTLE")
        weir.resp("WEIR.CHECK", "user-9")
        request, decide, _ = self.family(receiver.collected.wait(lambda spans: len(spans) >= 6), "WEIR.*")
        self.assertEqual(request.parent_span_id, b"")
        self.assertEqual(attributes(decide.attributes)["weir.key"], "user-9")

    def test_the_proxy_passes_its_span_on(self):
        receiver = self.receive(HttpReceiver)
        seen = []

        class Upstream(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                seen.append(self.headers.get_all("traceparent"))
                self.send_response(204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        self.addCleanup(upstream.server_close)
        self.addCleanup(upstream.shutdown)
        proxy = Process("proxy", "--upstream", f"http://127.0.0.1:{upstream.server_port}", "--listen", "127.0.0.1:0",
                        "--per-ip", "1/60m", WEIR_TRACES_ENDPOINT=receiver.url, WEIR_TRACES_RATIO="0").await_doors("proxy")
        self.addCleanup(proxy.stop)
        self.assertEqual(proxy.http("GET", "/page", headers={"Traceparent": SAMPLED}, door="proxy")[0], 204)
        request, decide, _ = self.family(receiver.collected.wait(lambda spans: len(spans) >= 3), "proxy")
        self.assertEqual(seen, [[f"00-{TRACE}-{request.span_id.hex()}-01"]])
        self.assertEqual(attributes(request.attributes)["http.response.status_code"], 204)
        self.assertEqual(attributes(decide.attributes)["weir.outcome"], "allowed")
        status, _, body = proxy.http("GET", "/page", headers={"X-Request-Id": "r-2", "Accept": "application/json"},
                                     door="proxy")
        self.assertEqual((status, json.loads(body)["message"]), (429, "Rate limit exceeded for key: 127.0.0.1"))
        line, = proxy.refusals()
        self.assertEqual((line["door"], line["request_id"], line["policy"]), ("proxy", "r-2", "per-ip"))

    def test_a_receiver_that_is_away_costs_spans_and_nothing_else(self):
        receiver = self.receive(HttpReceiver, status=503)
        weir = self.start(receiver, WEIR_TRACES_QUEUE="64")
        for i in range(300):
            self.assertEqual(weir.http("POST", "/v1/check", json.dumps({"key": f"k{i}"}))[0], 200)
        end = time.monotonic() + DEADLINE
        while not weir.metric('weir_trace_spans_dropped_total{reason="queue"}') and time.monotonic() < end:
            weir.http("POST", "/v1/check", '{"key":"more"}')
        self.assertGreater(weir.metric('weir_trace_spans_dropped_total{reason="queue"}'), 0)
        self.assertEqual(weir.metric("weir_trace_spans_exported_total"), 0)
        receiver.status = 200  # it works again
        receiver.collected.wait(lambda spans: len(spans) >= 3)

    def test_keys_that_are_no_text_do_not_spoil_a_batch(self):
        receiver = self.receive(HttpReceiver)
        weir = self.start(receiver)
        host, port = weir.doors["resp"].split(":")
        with socket.create_connection((host, int(port)), DEADLINE) as connection:
            connection.sendall(b"*5\r\n$11\r\nCL.THROTTLE\r\n$3\r\n\xff\xc3z\r\n$1\r\n5\r\n$2\r\n10\r\n$2\r\n60\r\n")
            connection.recv(4096)
        _, decide, _ = self.family(receiver.collected.wait(lambda spans: len(spans) >= 3), "CL.THROTTLE")
        self.assertEqual(attributes(decide.attributes)["weir.key"], "cl|??z")

    def test_the_last_spans_are_sent_at_the_end(self):
        receiver = self.receive(HttpReceiver)
        process = Process("serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                          WEIR_TRACES_ENDPOINT=receiver.url, WEIR_TRACES_INTERVAL="10m").await_doors("http")
        process.http("POST", "/v1/check", '{"key":"last"}', {"traceparent": SAMPLED})
        process.stop()
        self.assertEqual(len(receiver.collected.wait(lambda spans: len(spans) >= 3)), 3)


class Refusals(unittest.TestCase):
    """Log lines of denied checks, at every endpoint."""

    def start(self, **settings):
        process = Process("serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0",
                          "--threads", "1", **settings).await_doors("http", "grpc", "resp")
        self.addCleanup(process.stop)
        return process

    def test_http(self):
        weir = self.start()
        for _ in range(2):
            weir.http("POST", "/v1/check", '{"key":"user-1","cost":90}', {"X-Request-Id": "r-3", "traceparent": SAMPLED})
        line, = weir.refusals()
        self.assertEqual((line["door"], line["key"], line["request_id"], line["policy"], line["trace_id"]),
                         ("http", "user-1", "r-3", "default", TRACE))

    def test_grpc(self):
        weir = self.start()
        with grpc.insecure_channel(weir.doors["grpc"]) as channel:
            check = channel.unary_unary("/weir.v1.Limiter/Check")
            for _ in range(2):
                check(b"\x32\x03abc\x18\x5a", metadata=(("x-request-id", "r-4"),), timeout=DEADLINE)
        line, = weir.refusals()
        self.assertEqual((line["door"], line["key"], line["request_id"]), ("grpc", "abc", "r-4"))

    def test_resp(self):
        weir = self.start()
        for _ in range(2):
            weir.resp("WEIR.CHECK", "user-2", "90")
        line, = weir.refusals()
        self.assertEqual((line["door"], line["key"]), ("resp", "user-2"))
        self.assertRegex(line["request_id"], "^[0-9a-f]{16}$")

    def test_throttle(self):
        weir = self.start()
        for _ in range(3):
            weir.resp("CL.THROTTLE", "user-3", "0", "1", "3600")
        self.assertEqual([(line["door"], line["key"]) for line in weir.refusals()[:1]], [("resp", "cl|user-3")])

    def test_a_flood_is_bounded_and_counted(self):
        weir = self.start(WEIR_LOG_REFUSALS="2")
        host, port = weir.doors["resp"].split(":")
        one = b"*5\r\n$11\r\nCL.THROTTLE\r\n$5\r\nflood\r\n$1\r\n0\r\n$1\r\n1\r\n$5\r\n86400\r\n"
        begun = time.monotonic()
        with socket.create_connection((host, int(port)), DEADLINE) as connection:
            count = 2000
            connection.sendall(one * count)
            read = 0
            while read < 5 * count:
                read += connection.recv(65536).count(b":")
        seconds = int(time.monotonic() - begun) + 2
        lines = weir.refusals()
        self.assertLessEqual(len(lines), 2 * seconds)
        time.sleep(1.1)  # the limit of log lines is per second
        weir.resp("CL.THROTTLE", "flood", "0", "1", "86400")
        end = time.monotonic() + DEADLINE
        while sum(line["suppressed"] + 1 for line in weir.refusals()) < count and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(sum(line["suppressed"] + 1 for line in weir.refusals()), count)

    def test_keys_can_be_hashed(self):
        weir = self.start(WEIR_LOG_KEYS="hashed", WEIR_LOG_KEY_SALT="pepper")
        for key in ("user-5", "user-5", "user-6", "user-6"):
            weir.http("POST", "/v1/check", json.dumps({"key": key, "cost": 90}))
        end = time.monotonic() + DEADLINE
        while len(weir.refusals()) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        one, other = [line["key"] for line in weir.refusals()]
        self.assertRegex(one, "^#[0-9a-f]{16}$")
        self.assertNotEqual(one, other)
        self.assertFalse(any("user-5" in json.dumps(line) for line in weir.lines()))

    def test_a_refused_caller_is_told_its_key(self):
        weir = self.start()
        weir.http("POST", "/admin/policies", json.dumps({"key": "127.0.0.1", "type": "TOKEN_BUCKET", "capacity": 1,
                                                         "refillRate": 1, "windowSeconds": 60}))
        json_please = {"Accept": "application/json"}
        for _ in range(20):
            status, _, body = weir.http("GET", "/v1/auth", headers=json_please)
            if status == 429:
                break
        told = json.loads(body)
        self.assertEqual((told["status"], told["error"], told["message"]),
                         (429, "Too Many Requests", "Rate limit exceeded for key: 127.0.0.1"))
        self.assertRegex(told["timestamp"], r"^\d{4}-\d\d-\d\dT.*Z$")

    def test_what_is_left_is_a_gauge_if_asked_for(self):
        weir = self.start(WEIR_METRICS_TOKENS_REMAINING="true")
        weir.http("POST", "/v1/check", '{"key":"user-4","cost":30}')
        body = weir.http("GET", "/metrics")[2]
        self.assertIn('weir_tokens_remaining{domain="default",policy="default"} 70', body)

    def test_without_being_asked_there_is_no_gauge(self):
        weir = self.start()
        weir.http("POST", "/v1/check", '{"key":"user-4"}')
        self.assertNotIn("weir_tokens_remaining", weir.http("GET", "/metrics")[2])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
