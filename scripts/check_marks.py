"""Reads the output of benches and compares it with bench/marks.txt. Usage: check_marks.py [--part] MARKS < OUTPUT

Echoes the output. A figure belongs to the bench that its name begins with (`engine.`, `slots.`). Fails if a figure has
not reached its mark, if a marked figure of a bench that ran was not printed, or if none of the figures is in the list.
With --part only a part of the bench ran: figures that it did not print are not reported as missing.
"""

import sys


def read_marks(path):
    marks = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
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


def bench_of(name):
    return name.split(".")[0]


def main():
    part, path = "--part" in sys.argv[1:], sys.argv[-1]
    marks, figures = read_marks(path), read_figures(sys.stdin)
    ran = {bench_of(name) for name in figures}
    checked = failed = 0
    for name, least, mark, unit in marks:
        if bench_of(name) not in ran or (part and name not in figures):
            continue
        checked += 1
        bound = f"{'at least' if least else 'at most'} {mark:g} {unit}"
        if name not in figures:
            failed += 1
            print(f"mark MISSING: {name} was not printed, {bound}")
            continue
        value, measured_in = figures[name]
        reached = measured_in == unit and (value >= mark if least else value <= mark)
        failed += not reached
        print(f"mark {'reached' if reached else 'MISSED'}: {name} is {value:g} {measured_in}, {bound}")
    if checked == 0:
        sys.exit("no figure has a mark")
    print(f"marks: {checked} checked, {failed} missed")
    sys.exit(1 if failed else 0)


main()
