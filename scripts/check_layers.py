#!/usr/bin/env python3
"""Checks which file includes which against scripts/layers.txt. Usage: check_layers.py [ROOT]

Prints one line per wrong include, `file:line: why`, and exits 1 if there is one.
"""

import fnmatch
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Angle-bracket headers that come with the compiler, the C library or the kernel.
PLAIN = re.compile(r"^([a-z0-9_]+|(sys|linux|netinet|arpa)/[a-z0-9_/]+\.h|[a-z0-9_]*intrin\.h|"
                   r"(errno|fcntl|poll|pthread|sched|signal|time|unistd|cpuid)\.h)$")
STANDARD = re.compile(r"^[a-z0-9_]+$")


class Table:
    """layers.txt, parsed and checked."""

    def __init__(self, path):
        self.layers, self.backends, self.drivers, self.shared = {}, {}, {}, {}
        self.plain, self.generated, self.composes = [], [], []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line = line.split("#")[0].strip()
                if line:
                    self._read(line, f"{path}:{number}")
        for layer, others in self.layers.items():
            for other in others:
                if other not in self.layers:
                    raise SystemExit(f"{path}: layer {layer} names {other}, which is not a layer")

    def _read(self, line, where):
        head, colon, values = line.partition(":")
        words, values = head.split(), values.split()
        kinds = {"layer": self.layers, "backends": self.backends, "drivers": self.drivers,
                 "shared": self.shared}
        if colon and len(words) == 2 and words[0] in kinds:
            kinds[words[0]][words[1]] = values
        elif colon and words in (["plain"], ["generated"], ["composes"]):
            setattr(self, words[0], values)
        else:
            raise SystemExit(f"{where}: cannot read \"{line}\"")

    def apart(self, layer):
        """Folders of the layer that never include each other."""
        return self.backends.get(layer, []) + self.drivers.get(layer, [])


def sources(root, folder):
    for path, folders, files in os.walk(os.path.join(root, folder)):
        folders.sort()
        for name in sorted(files):
            if name.endswith((".h", ".cc", ".inc")):
                yield os.path.relpath(os.path.join(path, name), root)


def includes(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found[1] == "<", found[2]


def parts(path):
    """store/redis/client.h → (store, redis); store/store.h → (store, "")."""
    names = path.split("/")
    return names[0], names[1] if len(names) > 2 else ""


def judge_public(angle, header):
    if angle and not STANDARD.match(header):
        return f"a public header includes <{header}>: only the standard library is allowed"
    if not angle and not header.startswith("weir/"):
        return f'a public header includes "{header}": only weir/ headers are allowed'
    return None


def judge(table, path, angle, header):
    """Why src/`path` must not include `header`; None if it may."""
    layer, folder = parts(path)
    if angle:
        if layer in table.plain and not PLAIN.match(header):
            return f"{layer} is part of the installed library and must not include <{header}>"
        return None
    if any(fnmatch.fnmatch(header, pattern) for pattern in table.generated):
        if layer in table.plain:
            return f'{layer} is part of the installed library and must not include "{header}"'
        return None
    if header.startswith("weir/"):
        return None
    other, other_folder = parts(header)
    if other not in table.layers:
        return f'"{header}" does not start with a layer: write the path from src/'
    if other == layer:
        if folder != other_folder and other_folder in table.apart(layer):
            if folder in table.apart(layer):
                return f"{layer}/{folder} includes {other}/{other_folder}: they must stay apart"
            return f"{layer}/ uses the concrete {other}/{other_folder}: only apps/ may"
        return None
    if other not in table.layers[layer]:
        allowed = ", ".join(table.layers[layer]) or "nothing"
        return f'{layer} includes "{header}": it may include {allowed}'
    if other_folder in table.backends.get(other, []) and layer not in table.composes:
        return f"{layer} uses the concrete {other}/{other_folder}: only apps/ may"
    return None


def judge_place(table, path):
    """Why a file must not be where it is; None if it may."""
    layer, folder = parts(path)
    if layer not in table.layers:
        return f"src/{layer} is not a layer in scripts/layers.txt"
    known = table.apart(layer) + table.shared.get(layer, [])
    if table.apart(layer) and folder and folder not in known:
        return f"src/{layer}/{folder} is not listed under backends, drivers or shared in scripts/layers.txt"
    return None


def check(root, table):
    """All errors in the tree below `root`, and how many files were checked."""
    complaints, count = [], 0
    for path in sources(root, "src"):
        count += 1
        inner = path[len("src/"):]
        if "/" not in inner:
            continue
        why = judge_place(table, inner)
        if why:
            complaints.append(f"{path}:1: {why}")
            continue
        for number, angle, header in includes(root, path):
            why = judge(table, inner, angle, header)
            if why:
                complaints.append(f"{path}:{number}: {why}")
    for folder in ("include/weir", "examples"):
        for path in sources(root, folder):
            count += 1
            for number, angle, header in includes(root, path):
                # An example may show the library with a framework; a public header must not include one.
                if folder == "examples" and angle and header.startswith("boost/"):
                    continue
                why = judge_public(angle, header)
                if why:
                    complaints.append(f"{path}:{number}: {why}")
    return complaints, count


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(here)
    complaints, count = check(root, Table(os.path.join(here, "layers.txt")))
    for complaint in complaints:
        print(complaint)
    if count == 0:
        print(f"no source files below {root}")
        return 1
    if not complaints:
        print(f"layers hold: {count} files")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
