#!/usr/bin/env python3
"""Compares THROTTLE of Weir with the real throttlecrab, command by command.

Usage: throttlecrab.py WEIR-PROGRAM THROTTLECRAB-SERVER [COMMANDS [SEED]]

First the edges: numbers, keys and arguments that are invalid, or at their maximum. Then both get the same random
commands (20000), one after the other, for a few keys, each with a fixed rate. An answer is equal if it is the same
once the two differences in seconds that the guide lists are removed: throttlecrab rounds down, and its fourth integer
is longer by the time of a burst. Time passes between the two answers, so a number may differ by one when a permit or a
second falls in between. Differences listed in docs/guide/from-redis-cell.md are counted by kind; others are printed and
the program exits with 1. The server comes from `cargo install throttlecrab-server`.
"""

import collections
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from redis_cell import Client, free_port, running

# How the two treat a command. The others are in the guide's table.
EQUAL, BOTH_REFUSE, ONLY_WEIR_REFUSES = "equal", "both refuse", "only Weir refuses"

EDGES = [
    (EQUAL, ("a", 5, 1, 60)),
    (EQUAL, ("b", 5, 1, 60, 5)),
    (EQUAL, ("c", 5, 1, 60, 6)),
    (EQUAL, ("c2", 5, 1, 60, 1000)),
    (EQUAL, ("d", 5, 1, 60, 0)),
    (EQUAL, ("e", "+5", "+1", "+60", "+2")),
    (EQUAL, ("f", "005", "01", "060", "02")),
    (EQUAL, ("g", 5, 1, 60, "-0")),
    (EQUAL, ("", 5, 1, 60)),
    (EQUAL, ("h i", 5, 1, 60)),
    (EQUAL, ("ключ", 5, 1, 60)),
    (EQUAL, ("k" * 4000, 5, 1, 60)),
    (EQUAL, ("i", 1000000, 1000000, 1, 7)),
    (EQUAL, ("j", 100, 7, 86400, 99)),
    (BOTH_REFUSE, ()),
    (BOTH_REFUSE, ("k",)),
    (BOTH_REFUSE, ("k", 5, 1)),
    (BOTH_REFUSE, ("k", 5, 1, 60, 1, 1)),
    (BOTH_REFUSE, ("k", 0, 1, 60)),
    (BOTH_REFUSE, ("k", -1, 1, 60)),
    (BOTH_REFUSE, ("k", 5, 0, 60)),
    (BOTH_REFUSE, ("k", 5, -1, 60)),
    (BOTH_REFUSE, ("k", 5, 1, 0)),
    (BOTH_REFUSE, ("k", 5, 1, -60)),
    (BOTH_REFUSE, ("k", 5, 1, 60, -1)),
    (BOTH_REFUSE, ("k", "x", 1, 60)),
    (BOTH_REFUSE, ("k", "", 1, 60)),
    (BOTH_REFUSE, ("k", 5, "1.5", 60)),
    (BOTH_REFUSE, ("k", 5, 1, "60s")),
    (BOTH_REFUSE, ("k", 5, 1, " 60")),
    (BOTH_REFUSE, ("k", 5, 1, 60, "+-1")),
    (BOTH_REFUSE, ("k", 5, 1, 60, "9223372036854775808")),
    (BOTH_REFUSE, ("k", "-9223372036854775808", 1, 60)),
    (ONLY_WEIR_REFUSES, ("k" * 4001, 5, 1, 60)),
    (ONLY_WEIR_REFUSES, ("l", 2 ** 40 + 1, 1000000, 1)),
    (ONLY_WEIR_REFUSES, ("m", 5, 2 ** 40 + 1, 60)),
    (ONLY_WEIR_REFUSES, ("n", 2, 1, 36525 * 86400)),  # a bucket that takes two centuries to fill
]


def commands(count, seed):
    """Key, burst, count, period and quantity: rates of all sizes, and costs that fit, just fit and do not."""
    generator = random.Random(seed)
    rates = {}
    for at in range(count):
        key = "k%d" % generator.randrange(200)
        if key not in rates or generator.random() < 0.002:
            rates[key] = (generator.choice([1, 2, 2, 3, 5, 5, 15, 100, 1000]), generator.choice([1, 2, 3, 7, 30, 100, 1000]),
                          generator.choice([1, 2, 10, 60, 3600, 86400]))
        burst = rates[key][0]
        yield at, key, rates[key], generator.choice([0, 1, 1, 1, 1, 2, 3, burst, burst + 1, burst + 2])


def seconds_fit(ours, theirs, rate, slack=0):
    """Throttlecrab's seconds rounded up, and until the bucket is full rather than a burst (less two permits) later."""
    burst, count, period = rate
    longer = (burst - 2) * period / count
    least = math.ceil(max(0, theirs[3] - longer)) if theirs[3] > 0 else 0  # it returns 0 for everything below 0, too
    most = math.ceil(max(0, theirs[3] + 1 - longer))
    return least - slack <= ours[3] <= most + slack and -slack <= ours[4] - theirs[4] <= 1 + slack


def near(ours, theirs, rate, quantity, came_back):
    """One permit apart, except for those refilled between the two answers."""
    if ours[1] != theirs[1] or abs(ours[2] - theirs[2]) > (quantity if ours[0] != theirs[0] else 0) + 1 + came_back:
        return False
    if ours[0] != theirs[0]:
        refused = ours if theirs[0] == 1 else theirs
        return quantity - refused[2] <= 1 + came_back
    return seconds_fit(ours, theirs, rate, slack=1)


def left(answer, quantity):
    """The permits that were left before the command."""
    return answer[2] + (quantity if answer[0] == 1 else 0)


class Comparison:
    """Counts equal and different answers, by kind. A key with different states in the two servers is renamed."""

    def __init__(self, weir, crab):
        self.weir, self.crab = weir, crab
        self.counts = collections.Counter()
        self.different = []
        self.lives = collections.Counter()
        self.rates = {}

    def ask(self, key, rate, quantity):
        """The key's name in its current life, both answers, and how many permits were refilled between them."""
        words = (key, *rate, quantity)
        began = time.monotonic()
        theirs = self.crab.call("THROTTLE", *words)
        ours = self.weir.call("THROTTLE", *words)
        return ours, theirs, (time.monotonic() - began) * rate[1] / rate[2]

    def step(self, at, name, rate, quantity):
        key = "%s.%d" % (name, self.lives[name])
        changed = self.rates.get(key, rate) != rate
        known = key in self.rates
        self.rates[key] = rate
        ours, theirs, came_back = self.ask(key, rate, quantity)
        kind = self.kind(ours, theirs, rate, quantity, came_back, known, changed)
        self.counts[kind or "different"] += 1
        if kind is None:
            self.different.append((at, (key, *rate, quantity), theirs, ours))
        was_full = isinstance(ours, list) and left(ours, quantity) >= ours[1]
        if kind != "equal" or came_back >= 1 or (known and was_full):
            self.lives[name] += 1

    @staticmethod
    def kind(ours, theirs, rate, quantity, came_back, known, changed):
        """The kind of difference; None for an unknown one."""
        if not isinstance(ours, list) or not isinstance(theirs, list):
            return None
        if ours[:3] == theirs[:3] and seconds_fit(ours, theirs, rate):
            return "equal"
        if changed:
            return "another rate for a key"
        if rate[0] == 1 and known:
            return "a burst of 1"
        if near(ours, theirs, rate, quantity, came_back):
            return "at the turn of a permit or second"
        if known and left(theirs, quantity) > left(ours, quantity) >= ours[1]:
            return "idle keys that get more than a burst"
        return None


def edges(weir, crab):
    """How many edges are as expected; prints the others."""
    good = 0
    for expected, words in EDGES:
        theirs, ours = crab.call("THROTTLE", *words), weir.call("THROTTLE", *words)
        refused = [not isinstance(answer, list) for answer in (ours, theirs)]
        if refused == [False, False]:
            rate = tuple(int(word) for word in words[1:4])
            found = EQUAL if ours[:3] == theirs[:3] and seconds_fit(ours, theirs, rate) else "different"
        else:
            found = {(True, True): BOTH_REFUSE, (True, False): ONLY_WEIR_REFUSES, (False, True): "only throttlecrab refuses"}[
                tuple(refused)]
        if found == expected:
            good += 1
        else:
            print("THROTTLE %s: %s, not %s: throttlecrab %s, Weir %s" %
                  (" ".join(map(str, words))[:80], found, expected, theirs, ours))
    return good


def main():
    weir_program, crab_program = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    folder = tempfile.mkdtemp(prefix="weir-crab-")
    crab_port, weir_port = free_port(), free_port()
    print(subprocess.run([crab_program, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().strip())
    try:
        with running(crab_program, "--redis", "--redis-host", "127.0.0.1", "--redis-port", str(crab_port)), \
                running(weir_program, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp",
                        "127.0.0.1:%d" % weir_port, "--data", os.path.join(folder, "weir")):
            weir, crab = Client(weir_port), Client(crab_port)
            good = edges(weir, crab)
            comparison = Comparison(weir, crab)
            for command in commands(count, seed):
                comparison.step(*command)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for at, words, theirs, ours in comparison.different[:20]:
        print("command %d: THROTTLE %s: throttlecrab %s, Weir %s" % (at, " ".join(map(str, words)), theirs, ours))
    print("%d of %d edges as expected" % (good, len(EDGES)))
    print("%d commands: %s" % (count, ", ".join("%s: %d" % kind for kind in sorted(comparison.counts.items()))))
    return 1 if comparison.different or good < len(EDGES) else 0


if __name__ == "__main__":
    sys.exit(main())
