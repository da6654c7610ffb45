"""Checks that README claims no figure that docs/performance.md does not have. Usage: … ROOT

A row of README that names `./dev bench` has figures; each must be in the performance page.
"""

import os
import re
import sys

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d")
# Part of the question, not of what was measured.
CONDITIONS = {"16"}


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "README.md"), encoding="utf-8") as text:
        rows = [line for line in text if line.startswith("|") and "./dev bench" in line]
    with open(os.path.join(root, "docs/performance.md"), encoding="utf-8") as text:
        measured = {number.removesuffix(".0") for number in NUMBER.findall(text.read())}
    figures = [number for row in rows for number in NUMBER.findall(row) if number not in CONDITIONS]
    unknown = [number for number in figures if number.removesuffix(".0") not in measured]
    print(f"{len(figures)} figures, not in docs/performance.md: {unknown}")
    return 1 if unknown or not figures else 0


if __name__ == "__main__":
    sys.exit(main())
