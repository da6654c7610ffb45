#!/usr/bin/env python3
"""Every endpoint busy at half load for a while: memory, descriptors and latency stay flat. Usage: doors.py WEIR [MINUTES]

Checks over HTTP, gRPC and RESP come from `weir bench` at half of each endpoint's maximum alone, shared among them; alongside
run `weir proxy` in front of the service, slots, messages, policies and the admin API, and clients that connect and leave.
Prints resource use and latencies for every tenth of the time; the last must be like the first.
"""

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time

from program import GONE, Client, Program

KEYS = 20_000
# Allowed growth between the end of the warm-up and the end: allocators round up, and logs of sliding windows fill.
MEMORY = 1.15
MORE_MIB = 24
DESCRIPTORS = 16


def bench(weir, door, port, seconds, rate=None):
    words = [weir, "bench", door, "--address", f"127.0.0.1:{port}", "-c", "4", "-t", "1", "-d", str(seconds), "--keys", str(KEYS), "--json"]
    return subprocess.Popen(words + (["-r", str(rate)] if rate else []), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def result(child):
    return json.loads(child.communicate()[0])


class Others:
    """The other traffic, at a few requests a second, until stopped."""

    def __init__(self, service, proxy):
        self.stopped = threading.Event()
        self.done = {}
        self.failed = 0
        port = service.ports["http"]
        jobs = {"slots": (port, self.slots), "notify": (port, self.notify), "policies": (port, self.policies),
                "admin": (port, self.admin), "proxy": (proxy.ports["proxy"], self.proxy), "visitors": (port, None)}
        Client(port).ask("POST", "/admin/rate-limit/config", {"configName": "c", "maxPerWindow": 50, "windowSize": "PT1S"})
        Client(port).ask("POST", "/api/config", {"userId": "u", "rateLimit": 1000000, "timeWindow": 60})
        self.threads = [threading.Thread(target=self.run, args=(name, *job)) for name, job in jobs.items()]
        self.ports = list(service.ports.values())
        for thread in self.threads:
            thread.start()

    def run(self, name, port, job):
        client = Client(port)
        i = 0
        while not self.stopped.wait(0.05):
            try:
                if job is None:
                    self.visit(i)
                else:
                    job(client, i)
            except GONE:
                self.failed += 1
                client = Client(port)
            i += 1
            self.done[name] = i

    def slots(self, client, i):
        client.ask("POST", "/api/v1/slots", {"eventId": f"e{i}", "configName": "c", "requestedTime": "2031-01-01T00:00:00Z"})
        client.ask("DELETE", f"/api/v1/slots/e{i}")

    def notify(self, client, i):
        client.ask("POST", "/api/send", {"userId": "u", "message": "m"})

    def policies(self, client, i):
        client.ask("PUT" if i else "POST", "/admin/policies/p" if i else "/admin/policies",
                   {"key": "p", "type": "TOKEN_BUCKET", "capacity": 5 + i % 7})

    def admin(self, client, i):
        for path in ("/admin/status", "/admin/top", "/admin/live", "/metrics", "/admin/metrics?limit=20"):
            client.ask("GET", path)

    def proxy(self, client, i):
        client.ask("GET", "/healthz")

    def visit(self, i):
        """Connects to an endpoint, sends something or nothing, and leaves."""
        with socket.create_connection(("127.0.0.1", self.ports[i % len(self.ports)]), timeout=30) as visitor:
            if i % 2:
                visitor.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def measure(weir, service, rates, seconds):
    children = {door: bench(weir, door, service.ports[door], seconds, rate) for door, rate in rates.items()}
    time.sleep(seconds / 2)
    held = service.holds()
    results = {door: result(child) for door, child in children.items()}
    return held, results


def soak(weir, minutes, folder):
    service = Program(weir, ["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data",
                             folder + "/data", "--log-level", "error"], ["http", "grpc", "resp"])
    proxy = Program(weir, ["proxy", "--upstream", f"http://127.0.0.1:{service.ports['http']}", "--listen", "127.0.0.1:0",
                           "--per-ip", "1000000/1s", "--data", folder + "/proxy", "--log-level", "error"], ["proxy"])
    rates = {}
    for door in ("http", "grpc", "resp"):
        alone = result(bench(weir, door, service.ports[door], 3))["perSecond"]
        rates[door] = int(alone / 2 / 3)
    print("half load:", ", ".join(f"{door} {rate}/s" for door, rate in rates.items()), flush=True)
    others = Others(service, proxy)
    measure(weir, service, rates, max(5, minutes * 6))  # warm-up
    rows = []
    for tenth in range(10):
        held, results = measure(weir, service, rates, max(3, minutes * 6))
        rows.append((held, proxy.holds(), results))
        latency = ", ".join(f"{door} {r['latencyUs']['p50']}/{r['latencyUs']['p99']}" for door, r in results.items())
        print(f"{tenth + 1}/10: {held[0]:.1f} MiB, {held[1]} descriptors, {held[2]} threads; proxy {rows[-1][1][0]:.1f} MiB, "
              f"{rows[-1][1][1]} descriptors; p50/p99 in µs: {latency}", flush=True)
    others.stop()
    errors = sum(r["errors"] for _, _, results in rows for r in results.values())
    checks = sum(r["allowed"] + r["limited"] for _, _, results in rows for r in results.values())
    print(f"checks {checks}, errors {errors}, others {others.done}, failed {others.failed}")
    ends = service.close(), proxy.close()
    return rows, errors + others.failed, ends


def flat(name, first, last):
    right = last[0] <= first[0] * MEMORY + MORE_MIB and last[1] <= first[1] + DESCRIPTORS
    print(f"soak {name}: memory {first[0]:.1f} -> {last[0]:.1f} MiB, descriptors {first[1]} -> {last[1]}, threads {first[2]} -> {last[2]}")
    return right


def main():
    weir, minutes = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60
    with tempfile.TemporaryDirectory() as folder:
        rows, errors, ends = soak(weir, minutes, folder)
    right = flat("service", rows[0][0], rows[-1][0]) and flat("proxy", rows[0][1], rows[-1][1])
    for door in rows[0][2]:
        first, last = (row[2][door]["latencyUs"] for row in (rows[0], rows[-1]))
        print(f"soak {door}: p50 {first['p50']} -> {last['p50']} µs, p99 {first['p99']} -> {last['p99']} µs")
    sys.exit(0 if right and errors == 0 and ends == (0, 0) else 1)


if __name__ == "__main__":
    main()
