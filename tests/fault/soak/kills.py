#!/usr/bin/env python3
"""Kills `weir serve` at random moments while all its embedded jobs are busy. Usage: kills.py WEIR KILLS

Limits with the journal (sync), slots, notify and policies write into one data folder; the program is killed with SIGKILL,
started again, and queried for everything acknowledged since the previous start. Counted: acknowledged writes that are lost,
and excess admissions: permits beyond a limit, slots beyond a window's cap, messages beyond a user's. Both must be 0.
"""

import collections
import random
import sys
import tempfile
import threading
import time

from program import GONE, Client, Program

LIMIT = 10
KEYS = 20
USERS = 5
CAP = 7
SLOTS = 5
POLICY = "policies: [{name: p, match: {user: '*'}, quota: {fixed_window: {limit: %d, window: 100d}}}]\n" % LIMIT
JOBS = ("limits", "slots", "notify", "policies")


class Round:
    """The answers that clients received during one life of the program."""

    def __init__(self, number):
        self.number = number
        self.permits = collections.Counter()  # key → admitted
        self.slots = {}  # event → scheduledTime
        self.windows = collections.Counter()  # windowStart → slots
        self.messages = {}  # event id → user
        self.sends = collections.Counter()  # user → sent
        self.policies = []

    def limits(self, client, i):
        key = f"{self.number}-{i % KEYS}"
        status, body = client.ask("POST", "/v1/check", {"descriptors": [{"user": key}]})
        expect("limits", status in (200, 429), status, body)
        if body["allowed"]:
            self.permits[key] += 1

    def slots_job(self, client, i):
        event = f"e-{self.number}-{i}"
        # Few windows, so that the cap is reached.
        status, body = client.ask("POST", "/api/v1/slots", {"eventId": event, "configName": "c",
                                                            "requestedTime": f"2031-01-01T00:{self.number % 60:02d}:00Z"})
        expect("slots", status == 200, status, body)
        self.slots[event] = body["scheduledTime"]
        self.windows[body["windowStart"]] += 1

    def notify(self, client, i):
        user = f"u-{self.number}-{i % USERS}"
        if i < USERS:
            status, body = client.ask("POST", "/api/config", {"userId": user, "rateLimit": CAP, "timeWindow": 525600})
            expect("notify", status == 200, status, body)
            return
        status, body = client.ask("POST", "/api/send", {"userId": user, "message": "m"})
        expect("notify", status in (200, 404, 429), status, body)
        if status == 200:
            self.messages[body["eventId"]] = user
            self.sends[user] += 1

    def policies_job(self, client, i):
        key = f"p-{self.number}-{i}"
        status, body = client.ask("POST", "/admin/policies", {"key": key, "type": "TOKEN_BUCKET", "capacity": 5})
        expect("policies", status == 201, status, body)
        self.policies.append(key)

    def lost(self, client):
        """Acknowledged writes that are missing, by job."""
        lost = collections.Counter()
        for key, admitted in self.permits.items():
            _, body = client.ask("POST", "/v1/peek", {"descriptors": [{"user": key}]})
            lost["limits"] += max(0, admitted - (LIMIT - body["remaining"]))
        for event, scheduled in self.slots.items():
            status, body = client.ask("GET", f"/api/v1/slots/{event}")
            lost["slots"] += status != 200 or body["scheduledTime"] != scheduled
        for event in self.messages:
            lost["notify"] += client.ask("GET", f"/api/messages/{event}")[0] != 200
        for user, sent in self.sends.items():
            _, body = client.ask("GET", f"/api/quota/{user}")
            lost["notify"] += max(0, sent - body["used"])
        for key in self.policies:
            lost["policies"] += client.ask("GET", f"/admin/policies/{key}")[0] != 200
        return lost

    def too_many(self):
        over = collections.Counter()
        over["limits"] = sum(max(0, count - LIMIT) for count in self.permits.values())
        over["notify"] = sum(max(0, count - CAP) for count in self.sends.values())
        return over

    def writes(self):
        return {"limits": sum(self.permits.values()), "slots": len(self.slots), "notify": len(self.messages),
                "policies": len(self.policies)}


def expect(job, right, status, body):
    if not right:
        print(f"{job}: unexpected answer {status} {body}", flush=True)
        raise ConnectionError


def work(job, port):
    """One thread: runs a job repeatedly, until the service is gone."""
    client = Client(port)
    try:
        for i in range(1_000_000):
            job(client, i)
    except GONE:
        pass
    finally:
        client.close()


def drain(client, round_):
    """Uses up the remaining limits of this round, across the kill."""
    for key in list(round_.permits):
        while True:
            _, body = client.ask("POST", "/v1/check", {"descriptors": [{"user": key}]})
            if not body["allowed"]:
                break
            round_.permits[key] += 1
    for user in list(round_.sends):
        while True:
            status, _ = client.ask("POST", "/api/send", {"userId": user, "message": "m"})
            if status != 200:
                break
            round_.sends[user] += 1


def start(weir, folder):
    return Program(weir, ["serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data", folder + "/data",
                          "--policies", folder + "/policies.yaml", "--journal", "sync", "--log-level", "error"], ["http"])


def soak(weir, kills, folder):
    totals = {name: collections.Counter() for name in ("writes", "lost", "over")}
    windows = collections.Counter()
    program = start(weir, folder)
    client = Client(program.ports["http"])
    client.ask("POST", "/admin/rate-limit/config", {"configName": "c", "maxPerWindow": SLOTS, "windowSize": "PT1S"})
    for number in range(kills):
        round_ = Round(number)
        jobs = (round_.limits, round_.slots_job, round_.notify, round_.policies_job)
        threads = [threading.Thread(target=work, args=(job, program.ports["http"])) for job in jobs]
        for thread in threads:
            thread.start()
        time.sleep(random.uniform(0.02, 0.3))  # any moment
        program.kill()
        for thread in threads:
            thread.join()
        program = start(weir, folder)
        client = Client(program.ports["http"])
        totals["lost"].update(round_.lost(client))
        totals["writes"].update(round_.writes())
        drain(client, round_)
        totals["over"].update(round_.too_many())
        windows.update(round_.windows)
        if (number + 1) % 100 == 0:
            print(f"{number + 1} kills: {dict(totals['writes'])} answered, {sum(totals['lost'].values())} lost, "
                  f"{sum(totals['over'].values())} too many", flush=True)
    totals["over"]["slots"] = sum(max(0, count - SLOTS) for count in windows.values())
    _, verdict = client.ask("GET", "/admin/rate-limit/verify")
    clean = verdict["clean"] and program.close() == 0
    return totals, clean


def main():
    weir, kills = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/policies.yaml", "w") as file:
            file.write(POLICY)
        totals, clean = soak(weir, kills, folder)
    for job in JOBS:
        print(f"soak {job}: kills {kills}, answered writes {totals['writes'][job]}, lost {totals['lost'][job]}, "
              f"admissions too many {totals['over'][job]}")
    print(f"verify of slots: {'clean' if clean else 'NOT CLEAN'}")
    bad = sum(totals["lost"].values()) + sum(totals["over"].values())
    sys.exit(0 if bad == 0 and clean else 1)


if __name__ == "__main__":
    main()
