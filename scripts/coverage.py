#!/usr/bin/env python3
"""Which branches of protocol, policy and core the tests take. For ./dev coverage.

  coverage.py targets [PART]            prints the tests that count, as targets to build
  coverage.py report BUILD [PART]       runs them, prints the figure of each part and its files with the most gaps, and
                                        writes every branch that was not taken into BUILD/gaps-PART.txt

A part is one of protocol, policy and core; without one, all of them. Exits with 1 if a part is below 95 %, or a test failed.

What counts is a side of a condition in the source, as clang maps it: each operand of && and ||, each condition of if, ?:,
for and while, and each case label has a side for true and one for false. A side is taken if it is taken in any
instantiation of its template. Exception paths that the compiler adds are not in that map; conditions that are constant where they
are compiled, assertions, defaulted comparisons, and the missing default of a switch over an enumeration do not count.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The folders of each part, and the tests that count for it. Core is the code that decides.
PARTS = {
    "protocol": (["src/protocol"], ["unit/protocol"]),
    "policy": (["src/policy"], ["unit/policy"]),
    "core": (["src/algorithm", "src/engine", "src/limiter", "src/filter", "src/store/memory", "src/store/guard", "src/store/lease"],
             ["unit/algorithm", "unit/engine", "unit/filter", "unit/limiter", "unit/store/memory", "unit/store/guard",
              "unit/store/lease", "conformance/store/memory_test.cc"]),
}
WANTED = 95.0  # per cent


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


def run_all(build, names):
    """Runs the tests; returns how many failed."""
    profiles = build / "profiles"
    profiles.mkdir(exist_ok=True)
    for old in profiles.iterdir():
        old.unlink()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WEIR_JOBS", os.cpu_count()))) as pool:
        for name, problem in pool.map(lambda one: run(build, one), names):
            if problem:
                failed += 1
                print(f"{name}: {problem}")
    return failed


def exported(build, names):
    """The functions of clang's map, with their counts."""
    merged = build / "profiles" / "all.profdata"
    raw = [str(file) for file in (build / "profiles").glob("*.profraw")]
    subprocess.run(["llvm-profdata-14", "merge", "-sparse", "-o", str(merged), *raw], check=True)
    programs = [str(build / name) for name in names if (build / name).exists()]
    objects = [word for program in programs[1:] for word in ("-object", program)]
    text = subprocess.run(["llvm-cov-14", "export", f"-instr-profile={merged}", programs[0], *objects], check=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text)["data"][0]["functions"]


def sides(functions, folders):
    """{file: {(line, column, end line, end column, side): taken}} of the folders. A condition in a macro belongs to the file that
    defines the macro, so assert.h has those of assertions. Generated files are in no folder."""
    found = collections.defaultdict(lambda: collections.defaultdict(bool))
    prefixes = tuple(f"{folder}/" for folder in folders)
    for function in functions:
        # ccache may have compiled it in another clone.
        files = [re.sub(r"^.*/(?=src/)", "", os.path.normpath(file)) for file in function["filenames"]]
        for line, column, end_line, end_column, true, false, file, _, _ in function["branches"]:
            if not files[file].startswith(prefixes):
                continue
            known = found[files[file]]
            known[line, column, end_line, end_column, True] |= true > 0
            known[line, column, end_line, end_column, False] |= false > 0
    return {name: known for name, known in found.items() if (ROOT / name).exists()}


def counted(known, lines):
    """Excludes assertions, comparisons that the compiler generates, and the side of a switch that no value of its enumeration takes:
    the compiler warns if a value is left out."""
    def counts(line, column):
        text = lines[line - 1]
        return not (re.match(r"\s*assert\(", text) or text.endswith("= default;") or text[:column - 1].endswith("switch ("))
    return {place: taken for place, taken in known.items() if counts(place[0], place[1])}


def gaps_of(name, known, lines):
    for line, column, end_line, end_column, side in sorted(place for place, taken in known.items() if not taken):
        text = lines[line - 1][column - 1:end_column - 1 if end_line == line else None]
        yield f"{name}:{line}:{column}: never {'true' if side else 'false'}: {text}"


def report(build, parts):
    names = list(targets(parts))
    failed = run_all(build, names)
    functions = exported(build, names)
    below = []
    for part in parts:
        missing, total = {}, 0
        for name, known in sorted(sides(functions, PARTS[part][0]).items()):
            lines = (ROOT / name).read_text().splitlines()
            kept = counted(known, lines)
            total += len(kept)
            missing[name] = list(gaps_of(name, kept, lines)), len(kept)
        gaps = sum(len(lines) for lines, _ in missing.values())
        figure = 100 * (total - gaps) / max(total, 1)
        print(f"coverage {part}: {figure:.1f} % of {total} branches")
        for name, (lines, count) in sorted(missing.items(), key=lambda one: -len(one[1][0]))[:8]:
            if lines:
                print(f"  {name}: {len(lines)} of {count} not covered")
        list_file = build / f"gaps-{part}.txt"
        list_file.write_text("".join(line + "\n" for lines, _ in missing.values() for line in lines))
        print(f"  all {gaps} in {os.path.relpath(list_file, ROOT)}")
        if figure < WANTED:
            below.append(part)
    if failed or below:
        sys.exit(f"{failed} tests failed; below {WANTED} %: {', '.join(below) or 'none'}")


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
