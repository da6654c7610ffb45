#!/usr/bin/env python3
"""Weir's /v1/check against nginx's limit_req, on the same machine in the same run.

Both servers answer wrk on loopback with one reactor or worker each, pinned to the first processor; wrk
runs on the others. The proxy is measured last, by bench/proxy.sh. Rates depend on what else runs, so the ratio is of requests per
second of server CPU, from /proc/<pid>/stat. Rounds alternate between the servers; medians are printed.

Usage: WEIR_BUILD=build/release bench/http.py [--seconds 3] [--rounds 3]
"""

import argparse
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONNECTIONS = 64
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

POLICIES = """\
policies:
  - name: per-user
    match: { user: "*" }
    quota: { token_bucket: { capacity: 1000000000, refill_per_second: 1000000 } }
"""

NGINX = """\
worker_processes 1;
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/error.log crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  limit_req_zone $http_x_user zone=users:16m rate=1000000r/s;
  server {{
    listen 127.0.0.1:{port} reuseport;
    location / {{
      limit_req zone=users burst=1000000 nodelay;
      return 200;
    }}
  }}
}}
"""

# One user of 10,000 per request. nginx reads the key from a header, Weir from the JSON body, so
# each gets only what it needs.
LUA = """\
local server, depth = "{server}", {depth}
local function one(n)
  local user = "user-" .. (n % 10000)
  if server == "weir" then
    return wrk.format("POST", "/v1/check", {{["Content-Type"] = "application/json"}},
                      '{{"descriptors":[{{"user":"' .. user .. '"}}]}}')
  end
  return wrk.format("GET", "/", {{["X-User"] = user}})
end
local made = {{}}
function init(args)
  local n = 0
  for i = 1, 1000 do
    local parts = {{}}
    for j = 1, depth do n = n + 7919; parts[j] = one(n) end
    made[i] = table.concat(parts)
  end
end
local next = 0
function request()
  next = next % 1000 + 1
  return made[next]
end
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / CLOCK_TICKS


def wait_for(port):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"nothing listens on port {port}")


class Server:
    """A server under test and the processes whose CPU time is counted."""

    def __init__(self, name, command, port):
        self.name = name
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(port)

    def pids(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as children:
            return [self.process.pid] + [int(pid) for pid in children.read().split()]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def start_weir(weir, folder, pin):
    port = free_port()
    policies = os.path.join(folder, "policies.yaml")
    with open(policies, "w", encoding="utf-8") as file:
        file.write(POLICIES)
    command = pin + [weir, "serve", "--http", f"127.0.0.1:{port}", "--grpc", "off", "--resp", "off",
                     "--data", os.path.join(folder, "data"), "--policies", policies]
    return Server("weir", command, port)


def start_nginx(folder, pin):
    port = free_port()
    config = os.path.join(folder, "nginx.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(NGINX.format(dir=folder, port=port))
    return Server("nginx", pin + ["nginx", "-p", folder, "-c", config], port)


class Measure:
    """One run of wrk: requests per second, and per second of the server's CPU."""

    def __init__(self, server, folder, pin, depth, duration):
        script = os.path.join(folder, f"{server.name}-{depth}.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write(LUA.format(server=server.name, depth=depth))
        before = cpu_seconds(server.pids())
        run = subprocess.run(
            pin + ["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{duration}s", "-s", script,
                   f"http://127.0.0.1:{server.port}"],
            capture_output=True, text=True, check=True)
        cpu = cpu_seconds(server.pids()) - before
        out = run.stdout
        if "Non-2xx" in out or "Socket errors" in out:
            raise SystemExit(f"{server.name} did not answer all requests with 200:\n{out}")
        requests = int(re.search(r"(\d+) requests in", out).group(1))
        self.rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))
        self.per_cpu_second = requests / cpu


class Latency:
    """One run at a constant rate, in milliseconds."""

    def __init__(self, server, generator, pin, rate, duration):
        run = subprocess.run(
            pin + [generator, str(server.port), str(rate), str(duration), str(CONNECTIONS), server.name],
            capture_output=True, text=True, check=True)
        fields = run.stdout.split()
        values = dict(zip(fields[::2], map(float, fields[1::2])))
        self.rate = values["rate"]
        self.p50, self.p99, self.late99 = (values[name] / 1e3 for name in ("p50", "p99", "late99"))


def figure(name, value, unit):
    print(f"figure {name} {value:.4g} {unit}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run of wrk")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind; medians are printed")
    options = parser.parse_args()
    build = os.environ.get("WEIR_BUILD", "build/release")
    weir_path = os.path.join(build, "weir")
    generator = os.path.join(build, "http_rate")
    for needed in (weir_path, generator, "nginx", "wrk", "taskset"):
        if shutil.which(needed) is None:
            raise SystemExit(f"not found: {needed}")
    cores = sorted(os.sched_getaffinity(0))
    server_pin = ["taskset", "-c", str(cores[0])]
    load_pin = ["taskset", "-c", ",".join(map(str, cores[1:] or cores))]

    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        servers = []
        try:
            servers.append(start_weir(weir_path, folder, server_pin))
            servers.append(start_nginx(folder, server_pin))
            runs = {}
            for _ in range(options.rounds):
                for depth in (1, 16):
                    for server in servers:
                        measure = Measure(server, folder, load_pin, depth, options.seconds)
                        runs.setdefault((server.name, depth), []).append(measure)
            def median(name, depth, field):
                return statistics.median(getattr(m, field) for m in runs[name, depth])
            # Half of what one processor can do, at a constant rate; each server at half of its own maximum.
            half = {}
            for _ in range(options.rounds):
                for server in servers:
                    rate = median(server.name, 1, "per_cpu_second") / 2
                    half.setdefault(server.name, []).append(
                        Latency(server, generator, load_pin, rate, options.seconds))
        finally:
            for server in servers:
                server.stop()

    for name in ("weir", "nginx"):
        print(f"# {name}: {median(name, 1, 'rate'):.0f}/s, {median(name, 1, 'per_cpu_second'):.0f} per "
              f"CPU second; 16 pipelined: {median(name, 16, 'rate'):.0f}/s, "
              f"{median(name, 16, 'per_cpu_second'):.0f} per CPU second")
    figure("http.check.rps", median("weir", 1, "rate"), "1/s")
    figure("http.check.rps.ratio_to_nginx",
           median("weir", 1, "per_cpu_second") / median("nginx", 1, "per_cpu_second"), "x")
    figure("http.check.cpu_us", 1e6 / median("weir", 1, "per_cpu_second"), "us")
    figure("http.check.pipelined16.rps", median("weir", 16, "rate"), "1/s")
    figure("http.check.pipelined16.ratio_to_nginx",
           median("weir", 16, "per_cpu_second") / median("nginx", 16, "per_cpu_second"), "x")
    def at_half(name, field):
        return statistics.median(getattr(m, field) for m in half[name])

    for name in ("weir", "nginx"):
        print(f"# {name} at half of its capacity, {at_half(name, 'rate'):.0f}/s: "
              f"p50 {at_half(name, 'p50'):.3f} ms, p99 {at_half(name, 'p99'):.3f} ms, "
              f"of which the generator sent up to {at_half(name, 'late99'):.3f} ms late (p99)")
    figure("http.check.p50_ms", at_half("weir", "p50"), "ms")
    figure("http.check.p99_ms", at_half("weir", "p99"), "ms")
    figure("http.check.nginx_p99_ms", at_half("nginx", "p99"), "ms")
    subprocess.run(["bash", os.path.join(os.path.dirname(__file__), "proxy.sh"), weir_path], check=True,
                   env=dict(os.environ, ROUNDS=str(options.rounds), SECONDS_PER_ROUND=str(options.seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
