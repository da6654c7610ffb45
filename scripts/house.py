#!/usr/bin/env python3
"""Counts the house: lines and files per folder of src and apps, and the files above 350 lines.

usage: house.py [REVISION]     a revision of this repository instead of the working tree
"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LONGEST = 350


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True).stdout


def files(revision):
    """(path, lines) of every .cc and .h under src and apps."""
    listing = (["ls-tree", "-r", "--name-only", revision, "src", "apps"] if revision else
               ["ls-files", "--cached", "--others", "--exclude-standard", "src", "apps"])
    for path in git(*listing).decode().splitlines():
        if not path.endswith((".cc", ".h")):
            continue
        if revision:
            text = git("show", f"{revision}:{path}")
        elif os.path.exists(os.path.join(ROOT, path)):
            with open(os.path.join(ROOT, path), "rb") as file:
                text = file.read()
        else:
            continue
        yield path, text.count(b"\n")


def main():
    revision = sys.argv[1] if len(sys.argv) > 1 else ""
    folders = {}
    too_long = []
    for path, lines in files(revision):
        parts = path.split("/")
        folder = "/".join(parts[:2]) if parts[0] == "src" else parts[0]
        count, total = folders.get(folder, (0, 0))
        folders[folder] = (count + 1, total + lines)
        if lines > LONGEST:
            too_long.append((lines, path))
    for folder, (count, total) in sorted(folders.items()):
        print(f"{folder:16} {count:4} files {total:6} lines")
    of_src = [value for folder, value in folders.items() if folder.startswith("src/")]
    print(f"{'src':16} {sum(c for c, _ in of_src):4} files {sum(t for _, t in of_src):6} lines")
    for lines, path in sorted(too_long, reverse=True):
        print(f"above {LONGEST} lines: {path} ({lines})")


if __name__ == "__main__":
    main()
