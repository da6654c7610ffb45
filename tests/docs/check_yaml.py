"""Checks that Weir accepts every configuration and policy file shown on the pages.

Usage: check_yaml.py WEIR ROOT

A block that begins with a list is policies without their heading. Blocks for other programs, and those that show
only the fields that change, are named below. Files and keys that a block refers to need not exist.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OTHERS = ("typed_per_filter_config:", "# Traefik")
PARTS = ("  - name: per-user\n    shadow: false", "move:\n")
TOLERATED = re.compile(r"cannot be read: No such file|cannot read a key from|expected 64 hexadecimal digits")


def blocks(root):
    pages = glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True)
    for page in sorted(pages) + [os.path.join(root, "README.md")]:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for found in BLOCK.finditer(text):
            place = f"{os.path.relpath(page, root)}:{text.count(chr(10), 0, found.start()) + 2}"
            yield place, re.sub(rf"^{found[1]}", "", found[2], flags=re.MULTILINE)


def problems(weir, folder, text):
    if text.lstrip(" ").startswith("- "):
        text = "policies:\n" + text
    path = os.path.join(folder, "shown.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([weir, "config", "check", path], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 0:
        return []
    return [line for line in done.stderr.splitlines()
            if not TOLERATED.search(line) and not line.startswith(("warning:", "note:", " "))]


def main():
    weir, root = sys.argv[1:]
    checked, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for place, text in blocks(root):
            if text.startswith(PARTS) or any(mark in text for mark in OTHERS):
                continue
            checked += 1
            wrong += [f"{place}: {line}" for line in problems(weir, folder, text)]
    if wrong or checked < 20:
        sys.exit("\n".join(wrong) or f"only {checked} blocks found")
    print(f"{checked} files are valid")


if __name__ == "__main__":
    main()
