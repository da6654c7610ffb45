#!/usr/bin/env python3
"""What honest clients notice, and what the service holds, while others attack it.

Usage: attack.py [SECONDS [NAME]]     SECONDS per turn (default 2); only attacks whose name contains NAME

An honest load of checks over HTTP runs at a fixed rate, alternately alone and beside each attack. Printed are the medians of
its p99, their ratio, and the peak memory, descriptors and threads of the service. Clients on a network have processors of
their own. Here all share those of one machine, so the service has the first processor to itself, with one reactor; everything else
runs on the second one, the honest load at a real-time priority where that is allowed, and the attackers at the lowest priority.

That is not enough: a kernel that does not preempt system calls makes the honest load wait while an attacker's `send` copies
megabytes. So latency is measured from the moment of sending to the moment when the kernel had the answer for the client
(SO_TIMESTAMPNS), and how late the load itself was in sending is printed in a separate column. The figure describes the
service, not which process gets a processor.
"""

import json
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

# Replaces this folder, whose http.py would shadow Python's own.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "fault", "soak")
from program import Program  # noqa: E402

RATE = 2000
TURNS = 5
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL = (field(b":method", b"POST") + field(b":scheme", b"http") + field(b":authority", b"x") +
        field(b":path", b"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit") + field(b"te", b"trailers") +
        field(b"content-type", b"application/grpc"))
BAD = field(b":method", b"POST") + field(b":scheme", b"http") + field(b":path", b"/")
HELLO = PREFACE + frame(4, 0, 0)


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Attacker:
    """Sends what `pieces` yields over one connection after another until the time is up."""

    def __init__(self, port, pieces, end, reads):
        self.port, self.pieces, self.end, self.reads = port, pieces, end, reads
        self.sent = self.connections = 0

    def run(self):
        while time.monotonic() < self.end:
            try:
                self.once()
            except OSError:
                time.sleep(0.001)

    def once(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            self.connections += 1
            for piece in self.pieces():
                connection.sendall(piece)
                self.sent += len(piece)
                if self.reads:
                    drain(connection)
                if time.monotonic() > self.end:
                    return
            time.sleep(0.2)


def drain(connection):
    try:
        while connection.recv(1 << 20, socket.MSG_DONTWAIT):
            pass
    except BlockingIOError:
        pass


def many(piece, count=1_000_000):
    return lambda: (piece for _ in range(count))


def headers_without_settings():
    yield HELLO
    for base in range(1, 1 << 24, 2000):
        yield b"".join(frame(1, 4, stream, BAD) for stream in range(base, base + 2000, 2))


def headers_with_settings():
    yield HELLO + frame(4, 1, 0)
    for base in range(1, 1 << 24, 2000):
        yield b"".join(frame(1, 5, stream, BAD) for stream in range(base, base + 2000, 2))


def rapid_reset():
    yield HELLO + frame(4, 1, 0)
    for base in range(1, 1 << 24, 2000):
        yield b"".join(frame(1, 4, s, CALL) + frame(3, 0, s, b"\0\0\0\x08") for s in range(base, base + 2000, 2))


def continuations():
    yield HELLO + frame(4, 1, 0) + frame(1, 0, 1, CALL)
    while True:
        yield b"".join(frame(9, 0, 1, field(b"x-long", b"y" * 120) * 100) for _ in range(20))


def open_messages():
    yield HELLO + frame(4, 1, 0)
    message = b"\0\0\0\x3f\xf0" + b"m" * 16368
    for stream in range(1, 1 << 20, 2):
        yield frame(1, 4, stream, CALL) + frame(0, 0, stream, message)


def long_keys():
    number = 0
    while True:
        yield b"".join(command(b"CL.THROTTLE", b"%d-%d-" % (os.getpid(), number + i) + b"k" * 3900, b"15", b"30", b"86400") for i in range(50))
        number += 50


def guesses():
    while True:
        yield b"".join(b"GET /admin/status HTTP/1.1\r\nHost: localhost\r\nX-API-Key: guess-%d\r\n\r\n" % i for i in range(100))


CHECK = b'POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n{"key":"a"}'
VERIFY = b"GET /admin/rate-limit/verify HTTP/1.1\r\nHost: localhost\r\nX-API-Key: the-key-of-this-bench\r\n\r\n"

LARGE = b'{"events":[' + b"{}," * 2_600_000 + b"{}]}"  # 7.8 MB, 260 times as many events as a batch may contain


def large(path):
    return many(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path, len(LARGE)) + LARGE)


# name: endpoint, what is sent, concurrent connections, whether answers are read
ATTACKS = {
    "pipelined checks, answers not taken": ("http", many(CHECK * 500), 20, False),
    "bodies that never end": ("http", many(b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n" + b"x" * 60_000, 1), 200, False),
    "checks of 7.8 MB": ("http", large(b"/v1/check"), 4, True),
    "slot batches of 7.8 MB": ("http", large(b"/api/v1/slots/batch"), 4, True),
    "verify, again and again": ("http", many(VERIFY), 2, True),
    "guessed keys": ("http", guesses, 2, True),
    "HEADERS, SETTINGS not acknowledged": ("grpc", headers_without_settings, 4, False),
    "HEADERS of refused calls": ("grpc", headers_with_settings, 4, True),
    "calls that are reset": ("grpc", rapid_reset, 4, True),
    "CONTINUATION without end": ("grpc", continuations, 4, True),
    "messages without END_STREAM": ("grpc", open_messages, 4, True),
    "keys of 3,900 bytes": ("resp", long_keys, 4, True),
}
SILENT = {"3,000 silent connections, RESP": "resp", "3,000 silent connections, gRPC": "grpc"}


def attack_main(name, port, seconds):
    """Runs in a separate process, at the lowest priority."""
    end = time.monotonic() + seconds
    if name in SILENT:
        held = []
        while time.monotonic() < end:
            if len(held) < 3000:
                held.append(socket.create_connection(("127.0.0.1", port), timeout=5))
            else:
                time.sleep(0.1)
        return
    _, pieces, count, reads = ATTACKS[name]
    attackers = [Attacker(port, pieces, end, reads) for _ in range(count)]
    threads = [threading.Thread(target=attacker.run, daemon=True) for attacker in attackers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 5)


class Honest:
    """Sends checks at RATE, whether or not they are answered, over a few connections in turn."""

    CONNECTIONS = 8
    SO_TIMESTAMPNS = 35

    def __init__(self, port):
        self.took, self.late, self.errors, self.asked = [], [], 0, 0
        self.under_way = {}
        for _ in range(self.CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, self.SO_TIMESTAMPNS, 1)
            self.under_way[connection] = []
        self.connections = list(self.under_way)

    def run(self, seconds):
        start, gap = time.time_ns(), 1_000_000_000 // RATE
        count = int(seconds * RATE)
        while self.asked < count or any(self.under_way.values()):
            now = time.time_ns()
            if now > start + (seconds + 5) * 1e9:
                break
            while self.asked < count and start + self.asked * gap <= now:
                self.ask(start + self.asked * gap)
            left = start + self.asked * gap - time.time_ns() if self.asked < count else 100_000_000
            for connection in select.select(self.connections, [], [], max(0, left) / 1e9)[0]:
                self.take(connection)
        self.errors += sum(len(sent) for sent in self.under_way.values())

    def ask(self, due):
        connection = self.connections[self.asked % self.CONNECTIONS]
        body = b'{"key":"bench-%d"}' % (self.asked * 7919 % 1000)
        request = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        self.asked += 1
        now = time.time_ns()
        self.under_way[connection].append(now)
        self.late.append(now - due)
        connection.send(request)

    def take(self, connection):
        answers, control, _, _ = connection.recvmsg(1 << 16, 64)
        if not answers:
            sys.exit("attack.py: the service closed an honest connection")
        seconds, nanos = next((struct.unpack("qq", data[:16]) for _, kind, data in control if kind == self.SO_TIMESTAMPNS))
        for answer in answers.split(b"HTTP/1.1 ")[1:]:
            self.took.append(seconds * 1_000_000_000 + nanos - self.under_way[connection].pop(0))
            self.errors += answer[:3] not in (b"200", b"429")


def percentile(values, part):
    """In microseconds."""
    return sorted(values)[int((len(values) - 1) * part)] / 1000


def honest_main(port, seconds):
    """Runs in a separate process, at a high priority."""
    load = Honest(port)
    time.sleep(0.05)  # until the kernel timestamps arriving packets
    load.run(seconds)
    print(json.dumps({"p99": percentile(load.took, 0.99), "late": percentile(load.late, 0.99), "errors": load.errors}))


def first_in_line():
    """Prefix for a command so that the program does not wait for a processor."""
    words = ["chrt", "--rr", "1"]
    return words if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []


PROCESSORS = sorted(os.sched_getaffinity(0))
FIRST = first_in_line()


def honest(port, seconds):
    return subprocess.Popen([*FIRST, sys.executable, os.path.abspath(__file__), "--honest", str(port), str(seconds)], stdout=subprocess.PIPE, text=True)


def watch(service, child):
    """The peak resource use of the service while the honest load ran, and that load's result."""
    most = [0, 0, 0]
    while child.poll() is None:
        most = [max(pair) for pair in zip(most, service.holds())]
        time.sleep(0.25)  # listing 3,000 descriptors takes the kernel milliseconds, which would delay the honest load
    return most, json.loads(child.stdout.read())


def serve(weir, folder):
    return Program(weir, ["serve", "--threads", "1", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data", folder,
                          "--admin-key", "the-key-of-this-bench", "--log-level", "error"], ["http", "grpc", "resp"], before=["taskset", "-c", str(PROCESSORS[0])])


def one(weir, name, door, seconds):
    """Quiet and attacked turns alternate: if the machine stalls for a moment, one turn suffers, not the median."""
    quiet, beside, late, most, errors = [], [], [], [0, 0, 0], 0
    with tempfile.TemporaryDirectory() as folder:
        service = serve(weir, folder)
        port = service.ports["http"]
        watch(service, honest(port, 1))  # warm
        for _ in range(TURNS):
            quiet_held, result = watch(service, honest(port, seconds))
            quiet.append(result["p99"])
            attack = subprocess.Popen(["nice", "-n", "19", sys.executable, os.path.abspath(__file__), "--attack", name,
                                       str(service.ports[door]), str(seconds + 1)])
            time.sleep(1)
            held, result = watch(service, honest(port, seconds))
            if attack.wait(timeout=60) != 0:
                sys.exit(f"{name}: the attack failed")
            beside.append(result["p99"])
            late.append(result["late"])
            errors += result["errors"]
            most = [max(pair) for pair in zip(most, held)]
            time.sleep(0.5)  # until the service has released what the attacker left behind
        if service.close() != 0:
            print(f"{name}: the service did not end well")
    before, under = statistics.median(quiet), statistics.median(beside)
    print(f"| {name} | {before:.0f} | {under:.0f} | {under / before:.1f} | {min(quiet):.0f} to {max(quiet):.0f} | {min(beside):.0f} to {max(beside):.0f} | "
          f"{statistics.median(late):.0f} | "
          f"{quiet_held[0]:.0f} -> {most[0]:.0f} | {quiet_held[1]} -> {most[1]} | {quiet_held[2]} -> {most[2]} | {errors} |", flush=True)
    return under / before, errors


def main():
    if len(PROCESSORS) < 2:
        sys.exit("attack.py: needs two processors, one of them for the service alone")
    os.sched_setaffinity(0, PROCESSORS[1:2])  # everything started here inherits it
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    build = os.environ.get("WEIR_BUILD", "build/release")
    weir = os.path.join(build, "weir")
    print("| attack | p99 quiet, µs | p99 under attack | ratio | quiet, of all turns | under attack, of all turns | the load was late, p99 | memory, MiB | descriptors | threads | honest errors |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    worst, errors = 0, 0
    for name, door in [(n, a[0]) for n, a in ATTACKS.items()] + list(SILENT.items()):
        if only not in name:
            continue
        ratio, wrong = one(weir, name, door, seconds)
        worst, errors = max(worst, ratio), errors + wrong
    print(f"worst ratio {worst:.1f}, honest errors {errors}")
    return 1 if errors else 0


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--attack":
        attack_main(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    elif len(sys.argv) > 2 and sys.argv[1] == "--honest":
        honest_main(int(sys.argv[2]), float(sys.argv[3]))
    else:
        sys.exit(main())
