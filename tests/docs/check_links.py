"""Checks that every relative link of the project's Markdown files leads to a file, and to a heading in it. Usage: … ROOT"""

import functools
import os
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def pages(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in ("build", "node_modules", "weir-data")
                      and not f.startswith(".")]
        for name in files:
            if name.endswith(".md"):
                yield os.path.join(folder, name)


@functools.cache
def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    with open(page, encoding="utf-8") as text:
        headings = re.findall(r"^#+ +(.*?) *$", FENCE.sub("", text.read()), re.MULTILINE)
    found, seen = set(), {}
    for heading in headings:
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = seen[anchor] = seen.get(anchor, -1) + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def leads(page, target):
    name, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
    if not os.path.exists(path):
        return False
    return not anchor or not path.endswith(".md") or anchor in anchors(path)


def main():
    root = sys.argv[1]
    broken = count = 0
    for page in sorted(pages(root)):
        with open(page, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                for target in LINK.findall(line):
                    if re.match(r"[a-z]+:", target):
                        continue
                    count += 1
                    if not leads(page, target):
                        broken += 1
                        print(f"{os.path.relpath(page, root)}:{number}: leads nowhere: {target}")
    print(f"{count} links, {broken} broken")
    return 1 if broken or not count else 0


if __name__ == "__main__":
    sys.exit(main())
