#!/usr/bin/env python3
"""Counts lines and files per folder of src and apps, how long functions are, and the files above 350 lines.

usage: house.py [REVISION]     a revision of this repository instead of the working tree
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LONGEST = 350


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True).stdout


def files(revision):
    """(path, text) of every .cc and .h under src and apps."""
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
        yield path, text.decode()


def blank(found):
    """Only the line breaks."""
    return "\n" * found.group(0).count("\n")


def function_lengths(text):
    """The lines of each function, from its first line to its closing brace; lambdas count in their function."""
    for pattern in (r'R"(\w*)\(.*?\)\1"', r"//[^\n]*", r"/\*.*?\*/", r'"(?:[^"\\\n]|\\.)*"', r"'(?:[^'\\\n]|\\.)'"):
        text = re.sub(pattern, blank, text, flags=re.S)
    open_blocks, head, line, first = [], "", 1, 1
    for c in text:
        if c == "\n":
            line += 1
        if c == "{":
            inside = any(is_function for is_function, _ in open_blocks)
            is_scope = re.match(r"\s*(inline )?namespace\b", head) or re.search(r"\b(class|struct|union|enum)\b[^()]*$", head)
            is_function = not inside and not is_scope and re.search(
                r"\)\s*(const|noexcept|override|final|\s)*(->[\w:<>&* ,]+)?$|\)\s*(noexcept)?\s*:\s", head)
            open_blocks.append((bool(is_function), first))
            head = ""
        elif c == "}":
            is_function, begin = open_blocks.pop() if open_blocks else (False, 0)
            if is_function:
                yield line - begin + 1
            head = ""
        elif c == ";":
            head = ""
        else:
            if not head.strip():
                head, first = "", line
            head += c


def main():
    revision = sys.argv[1] if len(sys.argv) > 1 else ""
    folders = {}
    too_long, lengths = [], []
    for path, text in files(revision):
        lines = text.count("\n")
        lengths += function_lengths(text)
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
    lengths.sort()
    print(f"{len(lengths)} functions: median {lengths[len(lengths) // 2]} lines, 90 % at most {lengths[len(lengths) * 9 // 10]}")
    for lines, path in sorted(too_long, reverse=True):
        print(f"above {LONGEST} lines: {path} ({lines})")


if __name__ == "__main__":
    main()
