"""grpcio for Python against the gRPC endpoint: RLS, weir.v1, health and reflection over a real socket.

Run by ctest with the server (test_server.cc), protoc and the folder of the .proto files as arguments.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc

PROGRAM, PROTOC, PROTO_ROOT = sys.argv[1:4]
PROTOS = [
    "envoy/config/core/v3/base.proto",
    "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
    "envoy/service/ratelimit/v3/rls.proto",
    "envoy/type/v3/ratelimit_unit.proto",
    "weir/v1/weir.proto",
]
ENVOY_CONFIG = """
domain: edge
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 3 }
  - key: user
    value: free
    rate_limit: { unlimited: true }
"""


class PythonClient(unittest.TestCase):
    tls = False

    @classmethod
    def make_certificate(cls, root):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-days", "2", "-subj", "/CN=weir-test", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", str(root / "key.pem"), "-out", str(root / "cert.pem")],
            check=True, capture_output=True)
        return [str(root / "cert.pem"), str(root / "key.pem")]

    @classmethod
    def open_channel(cls, root):
        if not cls.tls:
            return grpc.insecure_channel(cls.address)
        trusted = (root / "cert.pem").read_bytes()
        return grpc.secure_channel(cls.address, grpc.ssl_channel_credentials(trusted))

    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.work.name)
        subprocess.run([PROTOC, "-I", PROTO_ROOT, f"--python_out={root}", *PROTOS], check=True)
        if not cls.tls:  # the generated modules can be imported only once
            sys.path.insert(0, str(root))
        (root / "envoy.yaml").write_text(ENVOY_CONFIG)
        cls.server = subprocess.Popen(
            [PROGRAM, str(root / "envoy.yaml"), *(cls.make_certificate(root) if cls.tls else [])],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in cls.server.stdout:
            found = re.search(r"listening grpc (127\.0\.0\.1:\d+)", line)
            if found:
                cls.address = found.group(1)
                break
        else:
            raise RuntimeError("the server did not open its gRPC door")
        threading.Thread(target=cls.server.stdout.read, daemon=True).start()
        cls.channel = cls.open_channel(root)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.server.terminate()
        cls.server.wait(timeout=120)
        cls.work.cleanup()

    def rls(self, user, **fields):
        from envoy.service.ratelimit.v3 import rls_pb2

        call = self.channel.unary_unary(
            "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            request_serializer=rls_pb2.RateLimitRequest.SerializeToString,
            response_deserializer=rls_pb2.RateLimitResponse.FromString)
        request = rls_pb2.RateLimitRequest(domain="edge", **fields)
        request.descriptors.add().entries.add(key="user", value=user)
        return call(request, timeout=120)

    def test_a_limit_of_envoys_configuration_is_enforced(self):
        # 3 a day: OK, OK, OK, OVER_LIMIT.
        self.assertEqual([self.rls("a").overall_code for _ in range(4)], [1, 1, 1, 2])
        status = self.rls("a").statuses[0]
        self.assertEqual((status.current_limit.requests_per_unit, status.current_limit.unit), (3, 4))
        self.assertEqual(self.rls("b", hits_addend=3).statuses[0].limit_remaining, 0)
        self.assertEqual(self.rls("free").statuses[0].limit_remaining, 2**32 - 1)

    def test_errors_have_a_code_and_a_sentence(self):
        call = self.channel.unary_unary(
            "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
        with self.assertRaises(grpc.RpcError) as caught:
            call(b"", timeout=120)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("domain", caught.exception.details())
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel.unary_unary("/no.Such/Method")(b"", timeout=120)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_a_stream_of_checks_is_answered_in_order(self):
        from weir.v1 import weir_pb2

        call = self.channel.stream_stream(
            "/weir.v1.Limiter/CheckStream",
            request_serializer=weir_pb2.CheckBatchRequest.SerializeToString,
            response_deserializer=weir_pb2.CheckBatchResponse.FromString)

        def requests():
            for number in range(200):
                request = weir_pb2.CheckBatchRequest(domain="edge", id=number)
                check = request.checks.add()
                check.descriptors.add().entries.add(key="user", value="streamed")
                yield request

        answers = list(call(requests(), timeout=120))
        self.assertEqual([answer.id for answer in answers], list(range(200)))
        verdicts = [answer.responses[0].verdict for answer in answers]
        self.assertEqual(verdicts[:4], [weir_pb2.ALLOWED] * 3 + [weir_pb2.LIMITED])

    def test_health_and_cancelling_a_watch(self):
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b"", timeout=120), b"\x08\x01")  # status (field 1) = SERVING (1)
        watch = self.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=120)
        self.assertEqual(next(watch), b"\x08\x01")
        watch.cancel()
        with self.assertRaises(grpc.RpcError) as caught:
            next(watch)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.CANCELLED)

    def test_a_deadline_ends_a_call_that_goes_on(self):
        watch = self.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=0.5)
        self.assertEqual(next(watch), b"\x08\x01")
        with self.assertRaises(grpc.RpcError) as caught:
            next(watch)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        # The connection remains usable.
        self.assertEqual(self.rls("free").overall_code, 1)

    def test_a_cancelled_stream_leaves_the_connection_as_it_was(self):
        from weir.v1 import weir_pb2

        waiting = threading.Event()
        call = self.channel.stream_stream(
            "/weir.v1.Limiter/CheckStream",
            request_serializer=weir_pb2.CheckBatchRequest.SerializeToString,
            response_deserializer=weir_pb2.CheckBatchResponse.FromString)

        def requests():
            request = weir_pb2.CheckBatchRequest(domain="edge", id=7)
            request.checks.add().descriptors.add().entries.add(key="user", value="cancelled")
            yield request
            waiting.wait(60)

        answers = call(requests(), timeout=120)
        self.assertEqual(next(answers).id, 7)
        answers.cancel()
        waiting.set()
        with self.assertRaises(grpc.RpcError) as caught:
            next(answers)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.CANCELLED)
        self.assertEqual(self.rls("free").overall_code, 1)

    def test_reflection_lists_the_services(self):
        for version in ("v1", "v1alpha"):
            call = self.channel.stream_stream(
                f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
            # list_services is field 7, a string: tag 0x3a, length 0.
            answer = next(call(iter([b"\x3a\x00"]), timeout=120))
            self.assertIn(b"weir.v1.Limiter", answer)

    def test_a_message_over_the_limit_is_over_the_limit(self):
        self.assertEqual(self.rls("x" * (5 << 20)).overall_code, 2)


class PythonClientOverTls(PythonClient):
    tls = True

    def test_in_the_clear_nothing_is_answered(self):
        with grpc.insecure_channel(self.address) as channel:
            with self.assertRaises(grpc.RpcError) as caught:
                channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=5)
        self.assertIn(caught.exception.code(),
                      (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
