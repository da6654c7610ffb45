"""Reads the output of benches and compares it with bench/marks.txt. Usage: check_marks.py MARKS < OUTPUT

Passes the output on. Fails if a figure has not reached its mark, or if none of the figures is in the list.
"""

import sys


def read_marks(path):
    marks = []
    for line in open(path):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 4 or words[1] not in ("at-least", "at-most"):
            sys.exit(f"{path}: invalid line: {line.strip()}")
        marks.append((words[0], words[1] == "at-least", float(words[2]), words[3]))
    return marks


def read_figures(lines):
    figures = {}
    for line in lines:
        print(line, end="", flush=True)
        words = line.split()
        if len(words) == 4 and words[0] == "figure":
            figures[words[1]] = (float(words[2]), words[3])
    return figures


def main():
    marks, figures = read_marks(sys.argv[1]), read_figures(sys.stdin)
    checked = failed = 0
    for name, least, mark, unit in marks:
        if name not in figures:
            continue
        checked += 1
        value, measured_in = figures[name]
        reached = measured_in == unit and (value >= mark if least else value <= mark)
        failed += not reached
        print(f"mark {'reached' if reached else 'MISSED'}: {name} is {value:g} {measured_in}, {'at least' if least else 'at most'} {mark:g} {unit}")
    if checked == 0:
        sys.exit("no figure has a mark")
    print(f"marks: {checked} checked, {failed} missed")
    sys.exit(1 if failed else 0)


main()
