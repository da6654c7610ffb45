"""Checks docs/reference/seeds.md against the tests. Usage: check_seeds.py [--ran] PAGE BUILD…

Every statement must have a test, or a figure that a bench measures, or a reason why it is done differently, or a note
that it is not done yet; the table at the head of the page must count them correctly. Every named
test must exist in ctest and in its program, if that is built. With --ran, each must also have run in the last
run of ctest in one of the BUILDs and passed in all that ran it; a skipped one is listed and is not a failure, since
a machine may lack what it needs.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

ROW = re.compile(r"^\| (\d)\.(\d+) \| (.+?) \| (.+) \|$")
REASON = re.compile(r"^\*\*(differs|measured|not yet):\*\* (.{10,})$")
KINDS = ("measured", "differs", "not yet")
# A line of the table at the head, with its five numbers.
COUNT = re.compile(r"^\| (?:\[(\d)\. [^|]*|all) \|((?: \d+ \|){5})$")
# `ctest.name`, then any number of `Suite.Test` of it.
NAME = re.compile(r"`([^`]+)`")


class Problems(list):
    def add(self, place, text):
        self.append(f"{place}: {text}")


def is_ctest(name):
    return name[0].islower()


def read_page(path, problems):
    """(id, ctest name, test inside of it or None) of each proof; a message for each row that has none."""
    proofs, expected, rows = [], {}, 0
    with open(path, encoding="utf-8") as page:
        lines = page.read().splitlines()
    for line in lines:
        row = ROW.match(line)
        if not row:
            if re.match(r"^\| \d", line):
                problems.add(line[:60], "is no row of a statement")
            continue
        rows += 1
        part, number, _, cell = row.groups()
        place = f"{part}.{number}"
        expected[part] = expected.get(part, 0) + 1
        if int(number) != expected[part]:
            problems.add(place, f"should be {part}.{expected[part]}")
        if REASON.match(cell):
            continue
        names = NAME.findall(cell)
        if not names or not is_ctest(names[0]):
            problems.add(place, "has neither a test nor a reason")
            continue
        proofs += proofs_of(place, names)
    if rows == 0:
        problems.add(path, "has no statements")
    check_counts(lines, problems)
    return rows, proofs


def check_counts(lines, problems):
    """The table at the head: statements, proven by tests, and then by the words of KINDS."""
    counted = {}
    for line in lines:
        if row := ROW.match(line):
            reason = REASON.match(row[4])
            for part in (row[1], "all"):
                counts = counted.setdefault(part, dict.fromkeys(("all", "test") + KINDS, 0))
                counts["all"] += 1
                counts[reason[1] if reason else "test"] += 1
    for line in lines:
        count = COUNT.match(line)
        if not count:
            continue
        part = count[1] or "all"
        right = list(counted.get(part, {}).values())
        if [int(number) for number in re.findall(r"\d+", count[2])] != right:
            problems.add(line[:40], f"should count {right}")


def proofs_of(place, names):
    proofs, current, used = [], None, True
    for name in names:
        if is_ctest(name):
            if not used:
                proofs.append((place, current, None))
            current, used = name, False
        else:
            proofs.append((place, current, name))
            used = True
    if not used:
        proofs.append((place, current, None))
    return proofs


def plain(test):
    """The name of a test without its parameters: `A/Suite.Test/0` is `Suite.Test`."""
    suite, _, name = test.partition(".")
    return f"{suite.split('/')[-1] if not suite.split('/')[-1].isdigit() else suite.split('/')[0]}.{name.split('/')[0]}"


def known_tests(build):
    """Runs in another folder: even to list tests, ctest empties the log of the folder that it is given."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            file.write(f'subdirs("{os.path.abspath(build)}")\n')
        text = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], capture_output=True, text=True,
                              check=True).stdout
    return {test["name"]: test.get("command", []) for test in json.loads(text)["tests"]}


def tests_inside(command):
    """The tests in a program or script, as Suite.Test; None if it is not built."""
    scripts = [word for word in command if word.endswith(".py") and os.path.exists(word)]
    if scripts:
        found = set()
        with open(scripts[0], encoding="utf-8") as text:
            suite = None
            for line in text:
                if match := re.match(r"class (\w+)", line):
                    suite = match[1]
                elif (match := re.match(r"    def (test_\w+)", line)) and suite:
                    found.add(f"{suite}.{match[1]}")
        return found
    if not command or not os.path.exists(command[0]):
        return None
    listed = subprocess.run([command[0], "--gtest_list_tests"], capture_output=True, text=True, check=False).stdout
    found, suite = set(), ""
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if not line.startswith(" "):
            suite = name
        elif suite.endswith("."):
            found.add(plain(suite + name.strip()))
    return found


def check_existence(proofs, builds, problems):
    known, inside = {}, {}
    for build in builds:
        for name, command in known_tests(build).items():
            if name not in known or not os.path.exists((known[name] or [""])[0]):
                known[name] = command
    for place, name, test in proofs:
        if name not in known:
            problems.add(place, f"there is no test {name}")
            continue
        if test is None:
            continue
        if name not in inside:
            inside[name] = tests_inside(known[name])
        if inside[name] is not None and test not in inside[name]:
            problems.add(place, f"{name} has no {test}")


def last_runs(builds):
    """By ctest name: whether it passed in all builds that ran it, and what it printed."""
    runs = {}
    for build in builds:
        for name, (passed, output) in last_run(build).items():
            before = runs.get(name)
            if before is None or before[0]:
                runs[name] = (passed, output)
    return runs


def last_run(build):
    with open(os.path.join(build, "Testing/Temporary/LastTest.log"), encoding="utf-8", errors="replace") as log:
        text = log.read()
    parts = re.split(r"^\d+/\d+ Testing: (\S+)$", text, flags=re.MULTILINE)
    return {name: ("\nTest Passed.\n" in part, part) for name, part in zip(parts[1::2], parts[2::2])}


def outcomes(output):
    """The outcome of each inner test: ok, SKIPPED or FAILED; the worst if it ran several times."""
    found = {}
    for word, test in re.findall(r"^\[\s+(OK|SKIPPED|FAILED)\s+\] ([^\s(,]+)", output, re.MULTILINE):
        name = plain(test)
        if found.get(name) not in ("FAILED", "SKIPPED") or word == "FAILED":
            found[name] = word
    for test, suite, word in re.findall(r"^(test_\w+) \(\w+\.(\w+)[^)]*\) \.\.\. (?:.*?)(ok|skipped|FAIL|ERROR)", output,
                                        re.MULTILINE):
        found[f"{suite}.{test}"] = {"ok": "OK", "skipped": "SKIPPED"}.get(word, "FAILED")
    return found


def check_run(proofs, runs, problems):
    skipped = set()
    for place, name, test in proofs:
        if name not in runs:
            problems.add(place, f"{name} did not run")
            continue
        passed, output = runs[name]
        if "\nTest Skipped" in output or "\nskipped:" in output:
            skipped.add(name)
            continue
        if not passed:
            problems.add(place, f"{name} did not pass")
            continue
        if test is None:
            continue
        outcome = outcomes(output).get(test)
        if outcome == "SKIPPED":
            skipped.add(f"{name} {test}")
        elif outcome != "OK":
            problems.add(place, f"{name} {test} did not run")
    return skipped


def summary(rows, proofs, skipped, ran):
    text = f"{rows} statements, {len({proof[1:] for proof in proofs})} tests named"
    if not ran:
        return text
    open_rows = {place for place, name, test in proofs if name in skipped or f"{name} {test}" in skipped}
    if not open_rows:
        return text + ", all of them ran"
    return text + f", {len(skipped)} skipped: on this machine {len(open_rows)} statements are not proven or only in part"


def main(words):
    ran = "--ran" in words
    page, *builds = [word for word in words if word != "--ran"]
    problems = Problems()
    rows, proofs = read_page(page, problems)
    runs = last_runs(builds) if ran else {}
    check_existence(proofs, builds, problems)
    skipped = check_run(proofs, runs, problems) if ran and not problems else set()
    for problem in problems:
        print(f"{page}: {problem}")
    for name in sorted(skipped):
        print(f"skipped on this machine: {name}")
    if problems:
        sys.exit(1)
    print(summary(rows, proofs, skipped, ran))


if __name__ == "__main__":
    main(sys.argv[1:])
