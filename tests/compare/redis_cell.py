#!/usr/bin/env python3
"""Compares CL.THROTTLE of Weir with the real redis-cell, command by command.

Usage: redis_cell.py WEIR-PROGRAM LIBREDIS_CELL.SO [COMMANDS [SEED]]

Both get the same random commands (20000), one after the other, for a few keys, each with a fixed rate. Time passes
between the two answers, so a number may differ by one when a permit or a second falls in between, and versions before 0.3
round seconds down. Differences listed in the guide are counted; others are printed and the program exits with 1.
The library comes from `cargo build --release` in the crate redis-cell.
"""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Client:
    """As much RESP as CL.THROTTLE needs."""

    def __init__(self, port):
        deadline = time.monotonic() + 20
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        request = b"*%d\r\n" % len(words)
        for word in words:
            data = str(word).encode()
            request += b"$%d\r\n%s\r\n" % (len(data), data)
        self.socket.sendall(request)
        return self.read()

    def read(self):
        line = self.file.readline().rstrip(b"\r\n")
        if line[:1] == b"*":
            return [self.read() for _ in range(int(line[1:]))]
        if line[:1] == b":":
            return int(line[1:])
        return line.decode()  # an error or a status


@contextlib.contextmanager
def running(*command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def commands(count, seed):
    """Key, burst, count, period and quantity: rates of all sizes, and costs that fit, just fit and do not."""
    generator = random.Random(seed)
    rates = {}
    for at in range(count):
        key = "k%d" % generator.randrange(200)
        if key not in rates or generator.random() < 0.002:
            rates[key] = (generator.choice([0, 1, 2, 5, 15, 100, 1000]), generator.choice([1, 2, 3, 7, 30, 100, 1000]),
                          generator.choice([1, 2, 10, 60, 3600, 86400]))
        burst = rates[key][0]
        quantity = generator.choice([0, 1, 1, 1, 1, 2, 3, burst, burst + 1, burst + 2])
        yield at, (key, *rates[key], quantity)


def near(ours, theirs, came_back):
    """One apart, except for the permits refilled between the two answers. Seconds: one for the time between the
    two, one for rounding. Around a refill one may be told to retry in a second while the other has got the permit."""
    if ours[0] != theirs[0]:
        return max(ours[3], theirs[3]) <= 1
    return abs(ours[2] - theirs[2]) <= 1 + came_back and max(abs(ours[i] - theirs[i]) for i in (1, 3, 4)) <= 2


def listed(words, theirs, ours):
    """Quantity 0 for a key that owes permits because it was given a lower rate: docs/guide/from-redis-cell.md."""
    return words[-1] == 0 and theirs[:3] == [1, ours[1], 0] and ours[:3] == [0, theirs[1], 0]


def compare(weir, cell, count, seed):
    equal = close = known = 0
    different = []
    life = {}  # a key that got a permit between the two answers is renamed: the two servers have different states for it
    for at, words in commands(count, seed):
        words = ("%s.%d" % (words[0], life.get(words[0], 0)), *words[1:])
        began = time.monotonic()
        theirs = cell.call("CL.THROTTLE", *words)
        ours = weir.call("CL.THROTTLE", *words)
        came_back = (time.monotonic() - began) * words[2] / words[3]
        if ours == theirs:
            equal += 1
        elif isinstance(ours, list) and isinstance(theirs, list) and near(ours, theirs, came_back):
            close += 1
            if ours[0] != theirs[0] or came_back > 1:
                name = words[0].split(".")[0]
                life[name] = life.get(name, 0) + 1
        elif listed(words, theirs, ours):
            known += 1
        else:
            different.append((at, words, theirs, ours))
    return equal, close, known, different


def main():
    weir_program, library = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    folder = tempfile.mkdtemp(prefix="weir-cell-")
    redis_port, weir_port = free_port(), free_port()
    try:
        with running("redis-server", "--port", str(redis_port), "--save", "", "--dir", folder, "--loadmodule", library), \
                running(weir_program, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp",
                        "127.0.0.1:%d" % weir_port, "--data", os.path.join(folder, "weir")):
            equal, close, known, different = compare(Client(weir_port), Client(redis_port), count, seed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for at, words, theirs, ours in different[:20]:
        print("command %d: CL.THROTTLE %s: redis-cell %s, Weir %s" % (at, " ".join(map(str, words)), theirs, ours))
    print("%d commands: %d equal, %d at the turn of a permit or second, %d as the guide says, %d different" %
          (count, equal, close, known, len(different)))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
