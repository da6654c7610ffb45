"""weir replay agrees with a slow reference written from the definitions.

Usage: replay_test.py WEIR

The reference reads the log with its own regular expression and keeps every grant it ever made:
  fixed window    floor(t / window): at most `limit` grants in one window
  sliding log     at most `limit` grants in the half-open span (t - window, t]
  token bucket    a level that starts full, gains refill × seconds up to capacity, and pays 1 per grant
A request is charged to all policies that apply, or to none if one denies it.
"""

import collections
import datetime
import fractions
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile

LINE = re.compile(r'(\S+) \S+ (\S+) \[([^\]]+)\] "(\S+) (\S+) [^"]*"')

CANDIDATE = """policies:
  - {name: per-ip, match: {ip: "*"}, quota: {fixed_window: {limit: 20, window: 1m}}}
  - {name: pay, match: {user: "*", route: /v1/pay}, quota: {token_bucket: {capacity: 10, refill_per_second: 1}}}
  - {name: images, match: {route: "/img/*"}, quota: {sliding_log: {limit: 40, window: 10s}}}
"""
CURRENT = CANDIDATE.replace("limit: 20", "limit: 30")


def generate(count, seed):
    rng, now = random.Random(seed), 1_760_000_000
    for _ in range(count):
        if rng.random() < 0.1:
            now += rng.choice((0, 1, 1, 2, 5))
        address = f"10.0.0.{min(int(rng.expovariate(0.1)), 250)}"
        user = rng.choice(("-", "alice", "bob"))
        route = rng.choice(("/", "/v1/pay", "/v1/pay?x=1", "/img/a.png", "/img/b.png"))
        zone = rng.choice((0, 2, -7))
        when = datetime.datetime.fromtimestamp(
            now, datetime.timezone(datetime.timedelta(hours=zone)))
        yield (f'{address} - {user} [{when.strftime("%d/%b/%Y:%H:%M:%S %z")}] '
               f'"GET {route} HTTP/1.1" 200 12 "-" "curl/8"')


class FixedWindow:
    def __init__(self, limit, seconds):
        self.limit, self.seconds = limit, seconds
        self.granted = collections.Counter()

    def allows(self, key, now):
        return self.granted[key, now // self.seconds] < self.limit

    def charge(self, key, now):
        self.granted[key, now // self.seconds] += 1


class SlidingLog:
    def __init__(self, limit, seconds):
        self.limit, self.seconds = limit, seconds
        self.grants = collections.defaultdict(list)

    def allows(self, key, now):
        return sum(now - self.seconds < at for at in self.grants[key]) < self.limit

    def charge(self, key, now):
        self.grants[key].append(now)


class TokenBucket:
    def __init__(self, capacity, refill):
        self.capacity, self.refill = capacity, fractions.Fraction(refill)
        self.state = {}

    def level(self, key, now):
        level, at = self.state.get(key, (fractions.Fraction(self.capacity), now))
        return min(fractions.Fraction(self.capacity), level + (now - at) * self.refill)

    def allows(self, key, now):
        return self.level(key, now) >= 1

    def charge(self, key, now):
        self.state[key] = (self.level(key, now) - 1, now)


def keys_of(address, user, route):
    """The bucket of each policy that applies, by policy name."""
    keys = {"per-ip": f"default/per-ip|ip:{address}"}
    if user != "-" and route == "/v1/pay":
        keys["pay"] = f"default/pay|route:/v1/pay|user:{user}"
    if route.startswith("/img/"):
        keys["images"] = "default/images|route:/img/*"
    return keys


def reference(lines, limit):
    policies = {"per-ip": FixedWindow(limit, 60), "pay": TokenBucket(10, 1),
                "images": SlidingLog(40, 10)}
    counts = {name: collections.Counter() for name in policies}
    verdicts, now = [], 0
    for line in lines:
        found = LINE.match(line)
        if not found:
            continue
        address, user, when, _, target = found.groups()
        try:
            at = int(datetime.datetime.strptime(when, "%d/%b/%Y:%H:%M:%S %z").timestamp())
        except ValueError:
            continue
        now = max(now, at)
        keys = keys_of(address, user, target.split("?")[0])
        refusing = [name for name, key in keys.items() if not policies[name].allows(key, now)]
        for name in refusing:
            counts[name]["limited"] += 1
        if not refusing:
            for name, key in keys.items():
                policies[name].charge(key, now)
                counts[name]["allowed"] += 1
        verdicts.append(not refusing)
    return verdicts, counts


def check(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: weir says {got}, the reference {wanted}")


def compare(shown, verdicts, counts):
    check("allowed", shown["allowed"], sum(verdicts))
    check("limited", shown["limited"], len(verdicts) - sum(verdicts))
    by_name = {policy["policy"]: policy for policy in shown["policies"]}
    for name, counted in counts.items():
        check(f"{name} allowed", by_name[name]["allowed"], counted["allowed"])
        check(f"{name} limited", by_name[name]["limited"], counted["limited"])
    check("limited keys", sum(key["count"] for key in shown["topLimited"]), shown["limited"])


def replay(weir, folder, log, *more):
    done = subprocess.run([weir, "replay", "--log", log, "--policies", f"{folder}/candidate.yaml",
                           "--json", "--top", "100000", *more],
                          capture_output=True, text=True, check=False, timeout=120)
    if done.returncode not in (0, 1):
        sys.exit(f"replay: exit {done.returncode}: {done.stderr}")
    check("refusals in the log", [line for line in done.stderr.splitlines() if "request_id" in line], [])
    return json.loads(done.stdout), done.returncode


def check_default_policy(weir, folder):
    """A request without a policy is decided as by GET /v1/auth, and the report says so."""
    def line(address):
        return json.dumps({"ts": 1_700_000_000, "remote_addr": address, "path": "/", "method": "GET",
                           "host": "shop"}) + "\n"
    for name, text in (("one.yaml", 'policies:\n  - {name: pay, match: {route: /v1/pay}, '
                                    'quota: {fixed_window: {limit: 1, window: 1m}}}\n'
                                    '  - {name: known, key: 10.0.0.9, quota: {fixed_window: '
                                    '{limit: 7, window: 1m}}}\n'),
                       ("web.yaml", 'domain: web\npolicies:\n  - {name: shop, match: {host: "*"}, '
                                    'quota: {fixed_window: {limit: 2, window: 1m}}}\n'),
                       ("deny.yaml", "unmatched: deny\n"),
                       ("own.yaml", "unmatched: deny\ndefault_policy: {quota: {fixed_window: "
                                    "{limit: 30, window: 1m}}}\n"),
                       # An IPv6 client is identified by its network.
                       ("idle.log", line("10.0.0.1") * 130 + line("10.0.0.9") * 10
                                    + line("2001:db8::1") * 60 + line("2001:db8::2") * 60)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write(text)

    def run(*more):
        done = subprocess.run([weir, "replay", f"{folder}/idle.log", "--policies",
                               f"{folder}/one.yaml", f"{folder}/web.yaml", *more], capture_output=True, text=True,
                              check=False, timeout=120)
        return done.stdout + done.stderr

    def figures(*more):
        shown = json.loads(run("--json", *more))
        return shown["candidate"]["limited"], shown["unmatched"], shown["byDefaultPolicy"]

    # 100 permits a client: 30 and 20 too many, and 3 of the 10 that have their own policy.
    check("by the default policy", figures(), (53, 0, 250))
    check("as a check", figures("--as", "check"), (0, 260, 0))
    check("as the proxy", figures("--as", "proxy"), (3, 250, 0))
    check("denied", figures("--config", f"{folder}/deny.yaml"), (253, 250, 0))
    check("its own default", figures("--config", f"{folder}/own.yaml"), (100 + 90 + 3, 0, 250))
    check("another domain", figures("--as", "check", "--domain", "web"), (258, 0, 0))
    text = run()
    for words in ("250 requests matched no policy: the default policy (token_bucket(capacity=100, "
                  "refill=10 per 1s), for each address) decided, as by GET /v1/auth",
                  "only policies of domain 'default' were tried"):
        check(f"it says '{words}'", words in text, True)
    # A configuration names its policies, in relation to itself.
    with open(os.path.join(folder, "named.yaml"), "w", encoding="utf-8") as out:
        out.write("policies: [one.yaml, web.yaml]\nunmatched: deny\n")
    bare = [weir, "replay", f"{folder}/idle.log", "--json"]
    done = subprocess.run([*bare, "--config", f"{folder}/named.yaml"], capture_output=True, text=True,
                          check=False, timeout=120)
    check("those of the configuration", done.stdout, run("--json", "--config", f"{folder}/deny.yaml"))
    for more, words in ((["--config", f"{folder}/deny.yaml"],
                         f"weir: --policies is required: {folder}/deny.yaml names no policies\n"),
                        ([], "weir: --policies is required\n")):
        done = subprocess.run([*bare, *more], capture_output=True, text=True, check=False, timeout=120)
        check(f"without policies, {more}", (done.returncode, done.stderr), (2, words))
    check("it says deny", "250 requests matched no policy and were refused (unmatched: deny)"
          in run("--config", f"{folder}/deny.yaml"), True)


def main():
    weir = sys.argv[1]
    lines = list(generate(10_000, 7))
    lines[500:500] = ["not a line", '1.2.3.4 - - [99/Jan/2025:00:00:00 +0000] "GET / HTTP/1.1" 200 1']
    # Servers write log lines when requests end, so logs are slightly out of order.
    lines[3000], lines[3600] = lines[3600], lines[3000]
    with tempfile.TemporaryDirectory(prefix="weir-replay-") as folder:
        for name, text in (("candidate.yaml", CANDIDATE), ("current.yaml", CURRENT),
                           ("access.log", "\n".join(lines))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(text)
        with gzip.open(f"{folder}/access.log.gz", "wt") as out:
            out.write("\n".join(lines) + "\n")
        shown, code = replay(weir, folder, f"{folder}/access.log", "--against",
                             f"{folder}/current.yaml", "--svg", f"{folder}/picture.svg")
        candidate, current = reference(lines, 20), reference(lines, 30)
        check("malformed", shown["malformed"], 2)
        check("exit code", code, 1)
        compare(shown["candidate"], *candidate)
        compare(shown["current"], *current)
        pairs = list(zip(candidate[0], current[0]))
        check("newly limited", shown["newlyLimited"], sum(not a and b for a, b in pairs))
        check("newly allowed", shown["newlyAllowed"], sum(a and not b for a, b in pairs))
        # The two malformed lines are not requests.
        numbers = [number for number, line in enumerate(lines, 1) if number not in (501, 502)]
        differ = [(number, "allowed" if a else "limited") for number, (a, b) in zip(numbers, pairs) if a != b]
        check("requests that differ", [(one["line"], one["now"]) for one in shown["differences"]], differ)
        check("a policy is named", all(one["policy"] and one["route"] for one in shown["differences"]), True)
        with open(f"{folder}/picture.svg", encoding="utf-8") as picture:
            check("picture", picture.read().count("<polyline"), 3)
        packed, code = replay(weir, folder, f"{folder}/access.log.gz")
        check("exit code", code, 0)
        check("gzip", packed["candidate"], shown["candidate"])
        # Two requests without an address, to which the candidate's per-ip policies cannot be applied.
        with open(f"{folder}/bare.log", "w", encoding="utf-8") as out:
            out.write('{"ts":1700000000,"path":"/elsewhere","method":"GET"}\n' * 2)
        bare, _ = replay(weir, folder, f"{folder}/bare.log")
        check("without ip", bare["withoutIp"], 2)
        text = subprocess.run([weir, "replay", f"{folder}/bare.log", "--policies",
                               f"{folder}/candidate.yaml"], capture_output=True, text=True,
                              check=False, timeout=120).stdout
        check("word of it", "2 requests have no ip in the log" in text, True)
        check_default_policy(weir, folder)
        with open(f"{folder}/broken.log", "w", encoding="utf-8") as out:
            out.write("nothing\nof the kind\n")
        done = subprocess.run([weir, "replay", "--log", f"{folder}/broken.log", "--policies",
                               f"{folder}/candidate.yaml"], capture_output=True, text=True,
                              check=False, timeout=120)
        check("exit code of no log", done.returncode, 2)
    print(f"{len(lines)} lines: {shown['candidate']['limited']} limited, as the reference says")


if __name__ == "__main__":
    main()
