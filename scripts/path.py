#!/usr/bin/env python3
"""Counts what a call crosses, from a profile that callgrind made of the service while it served N of them.

  valgrind --tool=callgrind --callgrind-out-file=out weir serve …   (and N calls, one after the other)
  scripts/path.py out N [--list]

Counted are the functions of src/ that were called at least N times, the classes and namespaces that they are members of, and
the files that they are written in. What the compiler inlined into its caller is a part of that.
"""

import re
import sys

NAME = re.compile(r"^(fn|cfn|fl|fi|fe|cfi|cfl|ob|cob)=\((\d+)\)(?: (.*))?$")


def read(path):
    """function → (calls, file)."""
    names = {"fn": {}, "file": {}, "ob": {}}
    calls, where = {}, {}
    file = callee = callee_file = ""
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            found = NAME.match(line)
            if found:
                key, number, name = found.groups()
                kind = "fn" if key in ("fn", "cfn") else "ob" if key in ("ob", "cob") else "file"
                if name is not None:
                    names[kind][number] = name
                name = names[kind].get(number, "")
                if key == "fl":
                    file = name
                elif key == "fn":
                    where[name] = file
                elif key in ("cfi", "cfl"):
                    callee_file = name
                elif key == "cfn":
                    callee = name
                    where.setdefault(callee, callee_file or file)
                    callee_file = ""
            elif line.startswith("calls="):
                calls[callee] = calls.get(callee, 0) + int(line[6:].split()[0])
    return {name: (count, where.get(name, "")) for name, count in calls.items()}


def strip(name):
    """Without template arguments and parameters: weir::net::Stream::Step."""
    name = re.sub(r"'\d+$", "", name)
    depth, out = 0, ""
    for c in name.replace("operator()", "operator_call").replace("(anonymous namespace)", "{file}"):
        if c in "<(":
            depth += 1
        elif c in ">)":
            depth -= 1
        elif depth == 0:
            out += c
    return out.split(" ")[-1] if "weir::" in out.split(" ")[-1] else out


def main():
    path, least = sys.argv[1], int(sys.argv[2])
    functions, classes, files = {}, set(), set()
    for name, (count, file) in read(path).items():
        at = file.find("/src/") if not file.startswith("src/") else -1
        place = file[at + 1:] if at >= 0 else file
        if count < least or not place.startswith("src/") or "weir::" not in name:
            continue
        short = strip(name)
        functions[short] = place
        files.add(place)
        if "::" in short:
            classes.add(short.rsplit("::", 1)[0])
    print(f"{len(functions)} functions, {len(classes)} classes and namespaces, {len(files)} files")
    if "--list" in sys.argv:
        for short, place in sorted(functions.items(), key=lambda pair: (pair[1], pair[0])):
            print(f"{place}: {short}")


if __name__ == "__main__":
    main()
