"""Checks that every relative link of the project's Markdown files leads to a file. Usage: … ROOT"""

import os
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def pages(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in ("build", "node_modules", "weir-data")
                      and not f.startswith(".")]
        for name in files:
            if name.endswith(".md"):
                yield os.path.join(folder, name)


def main():
    root = sys.argv[1]
    broken = count = 0
    for page in sorted(pages(root)):
        with open(page, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                for target in LINK.findall(line):
                    if re.match(r"[a-z]+:|#", target):
                        continue
                    count += 1
                    path = os.path.join(os.path.dirname(page), target.split("#")[0])
                    if not os.path.exists(path):
                        broken += 1
                        print(f"{os.path.relpath(page, root)}:{number}: leads nowhere: {target}")
    print(f"{count} links, {broken} broken")
    return 1 if broken or not count else 0


if __name__ == "__main__":
    sys.exit(main())
