#!/usr/bin/env python3
"""Runs clang-tidy on the C++ files of a build, in parallel, and remembers what was clean.

A file that was clean is not checked again until it, a project header it includes, its compile
command or .clang-tidy changes. --changed takes only files that differ from main (or, on main itself,
from the commit before), or include a header that does.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("src/", "apps/", "tests/", "examples/", "bench/")
# The commands are GCC's: options that clang does not know are not findings.
KNOWN_TO_GCC_ONLY = "--extra-arg=-Wno-unknown-warning-option"
# Headers precompiled by GCC are useless to clang, which reads them like any other.
PRECOMPILED = re.compile(r" -include \S+/cmake_pch\.hxx| -fpch-preprocess| -Winvalid-pch| -Wno-error=invalid-pch")

# Generated files that compile several files together.
JOINED = re.compile(r"/build/.*_\d+\.cc$")


def git(*words):
    """Output lines of a git command; none if it fails."""
    done = subprocess.run(["git", "-c", "safe.directory=*", *words], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def changed_files():
    base = git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main")
    files = set(git("diff", "--name-only", *base[:1] or ["HEAD"]))
    files.update(git("ls-files", "--others", "--exclude-standard"))
    return files or set(git("diff", "--name-only", "HEAD~1"))


def taken_apart(entry):
    """The entries of the files that a joined file (cmake/weir.cmake) includes, or the entry itself."""
    if not JOINED.search(entry["file"]) or not os.path.exists(entry["file"]):
        return [entry]
    with open(entry["file"], encoding="utf-8") as text:
        parts = re.findall(r'^#include "([^"]+\.cc)"$', text.read(), re.M)
    return [{**entry, "file": os.path.join(ROOT, part),
             "command": entry["command"].replace(entry["file"], os.path.join(ROOT, part))}
            for part in parts] or [entry]


def compile_commands(build, cache):
    """Project file → its compile command; also leaves them in `cache` for clang-tidy."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as text:
        entries = json.load(text)
    entries = [apart for entry in entries for apart in taken_apart(entry)]
    for entry in entries:
        entry["command"] = PRECOMPILED.sub("", entry["command"])
    with open(os.path.join(cache, "compile_commands.json"), "w", encoding="utf-8") as out:
        json.dump(entries, out)
    commands = {}
    for entry in entries:
        name = os.path.relpath(entry["file"], ROOT)
        if name.startswith(FOLDERS):
            commands[name] = entry["command"]
    return commands


def project_headers(build):
    """Project file → the project files its object was built from, according to ninja."""
    done = subprocess.run(["ninja", "-C", build, "-t", "deps"], text=True, capture_output=True,
                          check=False)
    headers = {}
    for block in done.stdout.split("\n\n"):
        names = [os.path.relpath(os.path.normpath(os.path.join(build, line.strip())), ROOT)
                 for line in block.split("\n")[1:]]
        names = [name for name in names if not name.startswith("..")]
        headers.update((name, names) for name in names if name.endswith(".cc"))
    return headers


def fingerprint(files, command):
    digest = hashlib.sha256(command.encode())
    for name in [".clang-tidy", *sorted(files)]:
        path = os.path.join(ROOT, name)
        if os.path.exists(path):
            with open(path, "rb") as content:
                digest.update(name.encode() + b"\0" + content.read())
    return digest.hexdigest()


def tidy(cache, name):
    done = subprocess.run(["clang-tidy-14", "--quiet", "-p", cache, KNOWN_TO_GCC_ONLY,
                           os.path.join(ROOT, name)],
                          text=True, capture_output=True, check=False)
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/dev"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--budget", type=float, default=float("inf"),
                        help="seconds after which no further file is begun")
    options = parser.parse_args()
    build = os.path.abspath(options.build)

    cache = os.path.join(ROOT, "build/lint")
    os.makedirs(cache, exist_ok=True)
    commands, headers = compile_commands(build, cache), project_headers(build)
    names = sorted(commands)
    if options.changed:
        changed = changed_files()
        if ".clang-tidy" not in changed:
            names = [n for n in names if changed.intersection(headers.get(n, [n]))]

    marks = {n: os.path.join(cache, fingerprint(headers.get(n, [n]), commands[n])) for n in names}
    todo = [n for n in names if not os.path.exists(marks[n])]
    deadline = time.monotonic() + options.budget
    bad = left = 0

    def work(name):
        return name, None if time.monotonic() > deadline else tidy(cache, name)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, (name, outcome) in enumerate(pool.map(work, todo), 1):
            if outcome is None:
                left += 1
                continue
            code, text = outcome
            print(f"[{number}/{len(todo)}] {name}", flush=True)
            if code == 0:
                with open(marks[name], "w", encoding="utf-8"):
                    pass
            else:
                bad += 1
                print(text, flush=True)
    print(f"clang-tidy: {len(names) - bad - left} files clean, {bad} not"
          + (f", {left} not checked for lack of time (./dev lint all checks them)" if left else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
