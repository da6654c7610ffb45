"""Sends envoyproxy/ratelimit the requests of answers.json again and records its answers.

Usage: record.py [FILE]     (Debian's /usr/bin/python3, with grpcio; go, redis-server, protoc)

The service is built from its Go module, and runs with limits.yaml and a separate Redis: once unmodified
(`plain`), once with response headers and dynamic metadata (`rich`). Each fact is [second, request,
answer]. FILE defaults to answers.json beside this script: give another one to compare first.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

VERSION = "v1.4.1-0.20260122083618-3fb702589d36"
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, *[".."] * 5))
PROTOS = os.path.join(ROOT, "src/protocol/grpc/proto")
PATIENCE = 30
RICH = {"LIMIT_RESPONSE_HEADERS_ENABLED": "true", "LIMIT_RESET_HEADER": "x-reset",
        "RESPONSE_DYNAMIC_METADATA": "true"}


def build():
    home = os.path.join(ROOT, "build/ratelimit")
    os.makedirs(home, exist_ok=True)
    subprocess.run(["go", "install", f"github.com/envoyproxy/ratelimit/src/service_cmd@{VERSION}"], check=True,
                   cwd=home, env={**os.environ, "GOBIN": home, "GOFLAGS": "-mod=mod", "GOWORK": "off"})
    return os.path.join(home, "service_cmd")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


def messages(folder):
    """The protocol's messages, built from our own descriptions of them."""
    files = [os.path.relpath(os.path.join(path, name), PROTOS) for path, _, names in os.walk(PROTOS)
             for name in names if path.startswith(os.path.join(PROTOS, "envoy"))]
    subprocess.run(["protoc", "-I", PROTOS, f"--python_out={folder}", *files], check=True)
    sys.path.insert(0, folder)
    from envoy.service.ratelimit.v3 import rls_pb2
    return rls_pb2


class Service:
    """envoyproxy/ratelimit with an empty Redis."""

    def __init__(self, program, folder, settings):
        config = os.path.join(folder, "runtime/ratelimit/config")
        os.makedirs(config, exist_ok=True)
        with open(os.path.join(HERE, "limits.yaml"), encoding="utf-8") as limits:
            with open(os.path.join(config, "limits.yaml"), "w", encoding="utf-8") as copy:
                copy.write(limits.read())
        redis, self.port, http, debug = (free_port() for _ in range(4))
        self.children = [subprocess.Popen(
            ["redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--save", ""], cwd=folder,
            stdout=subprocess.DEVNULL)]
        await_port(redis)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.children.append(subprocess.Popen([program], cwd=folder, **quiet, env={
            **os.environ, "USE_STATSD": "false", "LOG_LEVEL": "error", "REDIS_SOCKET_TYPE": "tcp",
            "REDIS_URL": f"127.0.0.1:{redis}", "RUNTIME_ROOT": os.path.join(folder, "runtime"),
            "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_WATCH_ROOT": "false", "HOST": "127.0.0.1",
            "GRPC_HOST": "127.0.0.1", "DEBUG_HOST": "127.0.0.1", "PORT": str(http), "GRPC_PORT": str(self.port),
            "DEBUG_PORT": str(debug), **settings}))
        await_port(self.port)

    def stop(self):
        for child in reversed(self.children):
            child.terminate()
            child.wait(PATIENCE)


def record(facts, service, rls):
    import grpc
    from google.protobuf import json_format
    channel = grpc.insecure_channel(f"127.0.0.1:{service.port}")
    call = channel.unary_unary("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
                               request_serializer=rls.RateLimitRequest.SerializeToString,
                               response_deserializer=rls.RateLimitResponse.FromString)
    recorded = []
    for _, request, _ in facts:
        left = 1 - time.time() % 1
        if left < 0.2:  # so that the second of the answer is known
            time.sleep(left)
        second = int(time.time())
        answer = call(json_format.ParseDict(request, rls.RateLimitRequest()), timeout=PATIENCE, wait_for_ready=True)
        if int(time.time()) != second:
            raise SystemExit("an answer took longer than the rest of its second; run it again")
        recorded.append([second, request, json_format.MessageToDict(answer)])
    channel.close()
    return recorded


def write(path, parts):
    def lines(facts):
        return ",\n".join(json.dumps(fact, separators=(",", ":"), ensure_ascii=False) for fact in facts)
    with open(path, "w", encoding="utf-8") as out:
        out.write("{" + ",\n".join(f'"{name}":[\n{lines(facts)}\n]' for name, facts in parts.items()) + "}\n")


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "answers.json")
    with open(os.path.join(HERE, "answers.json"), encoding="utf-8") as file:
        asked = json.load(file)
    program = build()
    parts = {}
    with tempfile.TemporaryDirectory(prefix="weir-record-") as folder:
        rls = messages(folder)
        for name, settings in (("plain", {}), ("rich", RICH)):
            service = Service(program, folder, settings)
            try:
                parts[name] = record(asked[name], service, rls)
            finally:
                service.stop()
    write(target, parts)
    print(f"{sum(map(len, parts.values()))} answers of {VERSION} are in {target}")


if __name__ == "__main__":
    main()
