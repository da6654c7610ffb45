#!/usr/bin/env python3
"""Which branches of protocol, policy and core the tests take. For ./dev coverage.

  coverage.py targets [PART]            prints the tests that count, as targets to build
  coverage.py report BUILD [PART]       runs them and prints the figure of each part, and its files with the most gaps

A part is one of protocol, policy and core; without one, all of them.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Which folders a part is, and which tests count for it. Core is what decides.
PARTS = {
    "protocol": (["src/protocol"], ["unit/protocol", "unit/service"]),
    "policy": (["src/policy"], ["unit/policy"]),
    "core": (["src/algorithm", "src/engine", "src/limiter", "src/filter", "src/store/memory", "src/store/guard", "src/store/lease"],
             ["unit/algorithm", "unit/engine", "unit/filter", "unit/limiter", "unit/store/memory", "unit/store/guard",
              "unit/store/lease", "conformance/store/memory_test.cc"]),
}


def targets(parts):
    for test in (test for part in parts for test in PARTS[part][1]):
        path = ROOT / "tests" / test
        files = [path] if path.is_file() else sorted(path.rglob("*_test.cc"))
        for file in files:
            yield str(file.relative_to(ROOT / "tests").with_suffix("")).replace("/", ".")


def run(build, name):
    program = build / name
    if not program.exists():
        return name, "was not built"
    profile = build / "profiles" / f"{name}.profraw"
    done = subprocess.run([str(program)], env={**os.environ, "LLVM_PROFILE_FILE": str(profile)}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return name, None if done.returncode == 0 else done.stdout.decode(errors="replace")[-2000:]


def measured(build, parts):
    """{file: (branches, taken)} of the parts."""
    (build / "profiles").mkdir(exist_ok=True)
    for old in (build / "profiles").iterdir():
        old.unlink()
    names = list(targets(parts))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, problem in pool.map(lambda one: run(build, one), names):
            if problem:
                print(f"{name}: {problem}")
    merged = build / "profiles" / "all.profdata"
    raw = [str(file) for file in (build / "profiles").glob("*.profraw")]
    subprocess.run(["llvm-profdata-14", "merge", "-sparse", "-o", str(merged), *raw], check=True)
    programs = [str(build / name) for name in names if (build / name).exists()]
    objects = [word for program in programs[1:] for word in ("-object", program)]
    sources = [str(ROOT / folder) for part in parts for folder in PARTS[part][0]]
    text = subprocess.run(["llvm-cov-14", "export", "-summary-only", f"-instr-profile={merged}", programs[0], *objects, *sources],
                          check=True, stdout=subprocess.PIPE).stdout
    files = json.loads(text)["data"][0]["files"]
    return {str(pathlib.Path(f["filename"]).relative_to(ROOT)):
            (f["summary"]["branches"]["count"], f["summary"]["branches"]["covered"]) for f in files}


def report(build, parts):
    files = measured(build, parts)
    for part in parts:
        folders = PARTS[part][0]
        own = {name: figures for name, figures in files.items() if any(name.startswith(f + "/") for f in folders)}
        total, taken = (sum(figures[i] for figures in own.values()) for i in (0, 1))
        print(f"coverage {part}: {100 * taken / max(total, 1):.1f} % of {total} branches")
        gaps = collections.Counter({name: count - seen for name, (count, seen) in own.items()})
        for name, missing in gaps.most_common(8):
            if missing:
                print(f"  {name}: {missing} of {own[name][0]} not taken")


def main():
    words = sys.argv[1:]
    parts = [words.pop()] if words and words[-1] in PARTS else list(PARTS)
    if words == ["targets"]:
        print(" ".join(targets(parts)))
    elif len(words) == 2 and words[0] == "report":
        report(pathlib.Path(words[1]).resolve(), parts)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
