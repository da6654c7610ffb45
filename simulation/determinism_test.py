"""Two processes that run the same seeds say the same, to the byte: a seed names a run.

Usage: determinism_test.py PROGRAM
"""

import subprocess
import sys

ARGUMENTS = ["--seeds", "200", "--verbose"]


def run(program):
    return subprocess.run([program, *ARGUMENTS], check=True, capture_output=True, timeout=100).stdout


def main():
    first, second = run(sys.argv[1]), run(sys.argv[1])
    if first.count(b"digest") != 200:
        sys.exit("expected 200 digests")
    for one, other in zip(first.splitlines(), second.splitlines()):
        if one != other:
            sys.exit(f"differs:\n  {one.decode()}\n  {other.decode()}")
    if first != second:
        sys.exit("one says more than the other")


main()
