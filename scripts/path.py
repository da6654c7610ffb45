#!/usr/bin/env python3
"""Counts what a call runs in the service: the functions, classes and files of src/ that run once or more for each call.

usage: path.py [--weir build/dev/weir] [--kafka kafka://host:port] [--list] [CALL…]

CALL is one of http, rls, throttle, slots, notify (all, unless given; notify only with a Kafka broker). The service runs under
callgrind twice, with few calls and with more, one after the other over one connection. A function is on the path if it was
called at least once more for each additional call. An inlined function is part of its caller. Needs valgrind; rls also
needs h2load and protoc, slots PostgreSQL, and notify PostgreSQL and Redis.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FEW, MORE = 20, 80
NAME = re.compile(r"^(fn|cfn|fl|fi|fe|cfi|cfl|ob|cob)=\((\d+)\)(?: (.*))?$")


def read(path):
    """function → (calls, file), and the pairs of caller and callee."""
    names = {"fn": {}, "file": {}, "ob": {}}
    calls, where, pairs = collections.Counter(), {}, set()
    file = caller = callee = callee_file = ""
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            found = NAME.match(line)
            if found:
                key, number, name = found.groups()
                kind = "fn" if key in ("fn", "cfn") else "ob" if key in ("ob", "cob") else "file"
                if name is not None:
                    names[kind][number] = name
                name = names[kind].get(number, "")
                if key == "fl":
                    file = name
                elif key == "fn":
                    caller = name
                    where[name] = file
                elif key in ("cfi", "cfl"):
                    callee_file = name
                elif key == "cfn":
                    callee = name
                    where.setdefault(callee, callee_file or file)
                    callee_file = ""
            elif line.startswith("calls="):
                calls[callee] += int(line[6:].split()[0])
                pairs.add((caller, callee))
    return {name: (count, where.get(name, "")) for name, count in calls.items()}, pairs


def strip(name):
    """Without template arguments and parameters: weir::net::Stream::Step."""
    name = re.sub(r"'\d+$", "", name)
    depth, out = 0, ""
    for c in name.replace("operator()", "operator_call").replace("(anonymous namespace)", "{file}"):
        if c in "<(":
            depth += 1
        elif c in ">)":
            depth -= 1
        elif depth == 0:
            out += c
    words = [word for word in out.split(" ") if "weir::" in word]
    return words[-1] if words else out


def short_of(name):
    """Like strip; a lambda belongs to the function that contains it."""
    return re.sub(r"::\{lambda.*", "", strip(name))


def on_path(few, more):
    """function → file, of those called MORE - FEW times more often; and those of them that call another."""
    (few, _), (more, pairs) = few, more
    functions = {}
    for name, (count, file) in more.items():
        at = file.find("/src/")
        place = file[at + 1:] if at >= 0 else file
        if count - few.get(name, (0, ""))[0] < MORE - FEW or not place.startswith("src/") or "weir::" not in name:
            continue
        functions[short_of(name)] = place
    shorts = {(short_of(caller), short_of(callee)) for caller, callee in pairs}
    callers = {caller for caller, callee in shorts if caller != callee and callee in functions}
    return functions, callers & functions.keys()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(ready, what, seconds=120):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            sys.exit(f"path.py: {what} did not start")
        time.sleep(0.1)


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def running(words, **options):
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


@contextlib.contextmanager
def postgres():
    with tempfile.TemporaryDirectory() as folder:
        options = {}
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            options = {"user": "postgres", "group": "postgres"}
            os.chmod(folder, 0o777)
        data, port = folder + "/data", free_port()
        subprocess.run(["initdb", "--pgdata", data, "--username", "weir", "--auth", "trust"], check=True,
                       stdout=subprocess.DEVNULL, **options)
        with running(["postgres", "-D", data, "-k", folder, "-p", str(port)], **options):
            wait_for(lambda: answers(port), "PostgreSQL")
            yield f"postgres://weir@127.0.0.1:{port}/postgres"


@contextlib.contextmanager
def redis():
    port = free_port()
    with running(["redis-server", "--port", str(port), "--save", ""]):
        wait_for(lambda: answers(port), "Redis")
        yield f"redis://127.0.0.1:{port}"


class Http:
    """One persistent connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def post(self, path, body):
        text = json.dumps(body).encode()
        self.socket.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        status = int(self.file.readline().split()[1])
        length = 0
        while (line := self.file.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        answer = self.file.read(length)
        if status >= 300:
            sys.exit(f"path.py: {path}: {status} {answer.decode()}")


def call_http(ports, count, folder):
    http = Http(ports["http"])
    for _ in range(count):
        http.post("/v1/check", {"key": "user-123"})


def call_rls(ports, count, folder):
    text = 'domain: "api" descriptors { entries { key: "user" value: "u" } }'
    message = subprocess.run(["protoc", "-I", ROOT + "/src/protocol/grpc/proto",
                              "--encode=envoy.service.ratelimit.v3.RateLimitRequest",
                              "envoy/service/ratelimit/v3/rls.proto"],
                             input=text.encode(), check=True, capture_output=True).stdout
    with open(folder + "/message", "wb") as file:
        file.write(b"\0" + len(message).to_bytes(4, "big") + message)
    subprocess.run(["h2load", "-n", str(count), "-c1", "-m1", "-d", folder + "/message",
                    "-H", "content-type: application/grpc", "-H", "te: trailers",
                    f"http://127.0.0.1:{ports['grpc']}/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"],
                   check=True, stdout=subprocess.DEVNULL)


def call_throttle(ports, count, folder):
    words = ["CL.THROTTLE", "user-123", "15", "30", "60"]
    command = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    with socket.create_connection(("127.0.0.1", ports["resp"])) as one:
        for _ in range(count):
            one.sendall(command.encode())
            answer = b""
            while answer.count(b"\n") < 6:
                answer += one.recv(4096)


def call_slots(ports, count, folder):
    http = Http(ports["http"])
    http.post("/admin/rate-limit/config", {"configName": "pay", "windowSize": "PT4S", "maxPerWindow": 100})
    for i in range(count):
        http.post("/api/v1/slots/batch", {"events": [{"eventId": f"e{i}", "configName": "pay",
                                                      "requestedTime": "2030-06-01T12:00:00Z"}]})


def call_notify(ports, count, folder):
    http = Http(ports["http"])
    http.post("/api/config", {"userId": "42", "rateLimit": 1000000, "timeWindow": 60})
    for _ in range(count):
        http.post("/api/send", {"userId": "42", "message": "hello"})


CALLS = {"http": call_http, "rls": call_rls, "throttle": call_throttle, "slots": call_slots, "notify": call_notify}


def profile(weir, call, count, options):
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/policies.yaml", "w", encoding="utf-8") as file:
            file.write('domain: api\npolicies:\n  - name: per-user\n    match: { user: "*" }\n'
                       "    quota: { token_bucket: { capacity: 1000000, refill_per_second: 1000000 } }\n")
        words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + folder + "/out", weir, "serve", "--threads", "1",
                 "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data", folder + "/data",
                 "--policies", folder + "/policies.yaml", *options]
        with open(folder + "/log", "wb") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log)
        ports = {}

        def ready():
            with open(folder + "/log", encoding="utf-8", errors="replace") as file:
                text = file.read()
            if process.poll() is not None:
                sys.exit("path.py: the service did not start:\n" + text)
            for protocol, port in re.findall(r"listening (\w+) 127\.0\.0\.1:(\d+)", text):
                ports[protocol] = int(port)
            return len(ports) == 3

        try:
            wait_for(ready, "the service")
            CALLS[call](ports, count, folder)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(300)
        return read(folder + "/out")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=ROOT + "/build/dev/weir")
    parser.add_argument("--kafka")
    parser.add_argument("--list", action="store_true", help="print the functions, too; * marks those that call others")
    parser.add_argument("calls", nargs="*", metavar="CALL", choices=[*CALLS, []])
    arguments = parser.parse_args()
    for call in arguments.calls or [name for name in CALLS if name != "notify" or arguments.kafka]:
        with contextlib.ExitStack() as stack:
            options = []
            if call == "slots":
                options = ["--slots-store", stack.enter_context(postgres())]
            if call == "notify":
                options = ["--notify-store", stack.enter_context(postgres()), "--notify-cache", stack.enter_context(redis()),
                           "--notify-broker", arguments.kafka or sys.exit("path.py: notify needs --kafka")]
            functions, callers = on_path(*(profile(arguments.weir, call, count, options) for count in (FEW, MORE)))
        classes = {name.rsplit("::", 1)[0] for name in functions if "::" in name}
        print(f"{call}: {len(functions)} functions ({len(callers)} of them call others), {len(classes)} classes and "
              f"namespaces, {len(set(functions.values()))} files", flush=True)
        if arguments.list:
            for name, place in sorted(functions.items(), key=lambda pair: (pair[1], pair[0])):
                print(f"  {place}: {name}{' *' if name in callers else ''}")


if __name__ == "__main__":
    main()
