"""A data folder on a 1.5 MB file system that fills up. Usage: full_disk_test.py WEIR

Changes that do not fit are refused with a message and not made; nothing acknowledged is lost; a change and its
audit log entry are both there or neither; checks continue; once there is room again, changes do as well. Needs permission to
mount a tmpfs; without it the test reports this and is skipped.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request


class Service:
    def __init__(self, weir, data):
        self.child = subprocess.Popen([weir, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data", data],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.child.stdout:
            if line.startswith("listening http "):
                self.origin = "http://" + line.split()[2]
                return
        sys.exit("the program did not start")

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.origin + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self):
        self.child.terminate()
        return self.child.wait(timeout=120)


failures = []


def check(condition, what):
    if not condition:
        failures.append(what)


def policy(name):
    return {"key": name, "type": "TOKEN_BUCKET"}


def fill(service):
    """Creates policies until one is refused; returns those created."""
    made = []
    for i in range(20_000):
        status, body = service.ask("POST", "/admin/policies", policy(f"p{i}"))
        if status != 201:
            check(status == 503 and "disk is full" in body, f"refused with {status}: {body}")
            return made
        made.append(f"p{i}")
    sys.exit("the file system did not fill up")


def all_or_nothing(service, made):
    """Every policy has its audit log entry, and every entry its policy."""
    audited, before = set(), 0
    while True:
        page = json.loads(service.ask("GET", f"/admin/audit?limit=1000&before={before}")[1])
        audited |= {e["target"].removeprefix("policy:") for e in page["changes"] if e["action"] == "policy.create"}
        if "next" not in page:
            break
        before = page["next"]
    check(audited == set(made), f"{len(audited)} in the log, {len(made)} made")
    there = [name for name in made if service.ask("GET", "/admin/policies/" + name)[0] == 200]
    check(there == made, f"{len(there)} of {len(made)} are there")


def configs(service):
    """Changes of other kinds: refused ones were not made."""
    for i in range(50):
        status, body = service.ask("POST", "/api/config", {"userId": f"u{i}", "rateLimit": 3, "timeWindow": 60})
        found, _ = service.ask("GET", f"/api/config/u{i}")
        check(found == (200 if status == 200 else 404) or "so it is in force" in body, f"u{i}: {status} {found} {body}")
        name = f"c{i}"
        status, body = service.ask("POST", "/admin/rate-limit/config", {"configName": name, "windowSize": "PT1M", "maxPerWindow": 1})
        found, _ = service.ask("GET", "/admin/rate-limit/config/" + name)
        check(found == (200 if status == 201 else 404) or "so it is in force" in body, f"{name}: {status} {found} {body}")
    check(status == 503, f"there was room for 50 configs: {status}")


def run(weir, folder):
    data = os.path.join(folder, "data")
    service = Service(weir, data)
    made = fill(service)
    configs(service)
    for _ in range(100):
        check(service.ask("POST", "/v1/check", {"key": "a"})[0] == 200, "a check was not answered")
    all_or_nothing(service, made)
    check(service.stop() == 0, "the service did not end well")

    service = Service(weir, data)  # on the full disk
    all_or_nothing(service, made)
    check(service.ask("POST", "/v1/check", {"key": "a"})[0] == 200, "a check was not answered after a restart")
    subprocess.run(["mount", "-o", "remount,size=16m", folder], check=True)
    check(service.ask("POST", "/admin/policies", policy("roomy"))[0] == 201, "with room again nothing can be changed")
    service.stop()
    return len(made)


def main():
    weir = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "weir-test", folder], capture_output=True, check=False)
        if mounted.returncode != 0:
            print("skipped: may not mount a tmpfs here")
            return 0
        try:
            made = run(weir, folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=False)
    for failure in failures[:20]:
        print(failure)
    print(f"{made} policies fitted, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
