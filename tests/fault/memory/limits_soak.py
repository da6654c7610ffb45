"""Kills `weir serve` on the memory store at random moments. Usage: limits_soak.py WEIR KILLS

With --journal sync, 10 a day stay 10, whatever is killed when. With --journal async, a kill may restore the permits
admitted in its last moments, and no more. Prints the counts; docs/reference/bounds.md states the bounds.
"""

import http.client
import json
import random
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 10
KEYS = 40
# 10 ms and a write; on a busy machine the journal's thread may be delayed longer.
MOMENTS = 1.0
POLICY = "policies: [{name: p, match: {user: '*'}, quota: {fixed_window: {limit: %d, window: 100d}}}]\n" % LIMIT


class Service:
    def __init__(self, weir, folder, journal):
        self.child = subprocess.Popen(
            [weir, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data", folder + "/data",
             "--policies", folder + "/policies.yaml", "--journal", journal],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.child.stdout:
            if line.startswith("listening http "):
                self.port = int(line.split()[2].rsplit(":", 1)[1])
                return
        sys.exit("the program did not start")

    def kill(self):
        self.child.kill()
        self.child.wait()


class Clients:
    """Threads that charge keys and record each admission with its time, until the service is gone."""

    def __init__(self, port, keys, admitted, times):
        self.threads = [threading.Thread(target=self.run, args=(port, keys, admitted, times)) for _ in range(3)]
        for thread in self.threads:
            thread.start()

    def run(self, port, keys, admitted, times):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            while True:
                key = random.choice(keys)
                if ask(connection, key):
                    times.append(time.monotonic())
                    admitted.append(key)
        except (OSError, http.client.HTTPException):
            return

    def join(self):
        for thread in self.threads:
            thread.join()


def ask(connection, key):
    connection.request("POST", "/v1/check", json.dumps({"descriptors": [{"user": key}]}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status not in (200, 429):
        sys.exit(f"status {answer.status}: {body}")
    return json.loads(body)["allowed"]


def one_kill(weir, folder, journal, number):
    """Total admissions, those beyond the limits, and those shortly before the kill."""
    keys = [f"{number}-{i}" for i in range(KEYS)]
    admitted, times = [], []
    service = Service(weir, folder, journal)
    clients = Clients(service.port, keys, admitted, times)
    time.sleep(random.uniform(0.01, 0.25))
    killed = time.monotonic()
    service.kill()
    clients.join()
    late = sum(1 for at in times if at > killed - MOMENTS)
    service = Service(weir, folder, journal)
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    for key in keys:
        while ask(connection, key):
            admitted.append(key)
    service.kill()
    over = sum(max(0, admitted.count(key) - LIMIT) for key in keys)
    return len(admitted), over, late


def main():
    weir, kills = sys.argv[1], int(sys.argv[2])
    failed = False
    for journal in ("sync", "async"):
        total = over = 0
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/policies.yaml", "w") as file:
                file.write(POLICY)
            for number in range(kills):
                admitted, beyond, late = one_kill(weir, folder, journal, number)
                total, over = total + admitted, over + beyond
                if beyond > (0 if journal == "sync" else late):
                    print(f"kill {number}: {beyond} admissions beyond the limits")
                    failed = True
        print(f"soak weir serve --journal {journal}: kills {2 * kills}, admissions {total}, beyond the limits {over}")
    sys.exit(1 if failed else 0)


main()
