"""Replays 10 million realistic lines: weir replay's speed and memory. Usage: WEIR_BUILD=build/release bench/replay.py"""

import os
import random
import subprocess
import sys
import tempfile
import time

LINES = int(os.environ.get("REPLAY_LINES", "10000000"))
POLICIES = """policies:
  - {name: per-ip, match: {ip: "*"}, quota: {token_bucket: {capacity: 100, refill_per_second: 10}}}
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 1000, window: 1m}}}
  - {name: pay, match: {ip: "*", route: /v1/pay}, quota: {sliding_counter: {limit: 5, window: 10s}}}
"""


def write_log(path):
    """A day of traffic: a million addresses, a few of which send most requests, as in real logs."""
    rng = random.Random(1)
    routes = ["/", "/v1/pay", "/v1/orders?page=2", "/static/app.js", "/v1/users/42", "/search?q=x"]
    # Pieces are drawn and joined a thousand at a time, which makes this fast.
    with open(path, "w", encoding="utf-8") as out:
        for block in range(LINES // 1000):
            second = block * 86_400 * 1000 // LINES
            stamp = (f"[16/Nov/2026:{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02} +0000]")
            lines = []
            for _ in range(1000):
                number = min(int(rng.paretovariate(0.4)), 1_000_000)
                lines.append(f'10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255} - '
                             f'{"-" if number % 3 else f"user{number % 5000}"} {stamp} '
                             f'"GET {routes[number * 7 % 6]} HTTP/1.1" 200 1234 "-" "Mozilla/5.0 (X11)"\n')
            out.write("".join(lines))


def main():
    weir = os.path.join(os.environ.get("WEIR_BUILD", "build/release"), "weir")
    with tempfile.TemporaryDirectory(prefix="weir-replay-") as folder:
        log = os.path.join(folder, "access.log")
        write_log(log)
        with open(f"{folder}/p.yaml", "w", encoding="utf-8") as out:
            out.write(POLICIES)
        start = time.monotonic()
        child = subprocess.Popen([weir, "replay", "--log", log, "--policies", f"{folder}/p.yaml",
                                  "--json"], stdout=subprocess.PIPE)
        child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        took = time.monotonic() - start
    if status != 0:
        sys.exit(f"replay ended with {status}")
    print(f"figure replay.lines_per_s {LINES / took:.0f} lines/s")
    print(f"figure replay.peak_rss {usage.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
