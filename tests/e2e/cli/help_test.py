"""Every command's --help fits a screen, and the shells accept the completion scripts.

Usage: help_test.py WEIR
"""

import re
import shutil
import subprocess
import sys

MOST_LINES, COLUMNS = 40, 100
GROUPS = "Run|Use a running service|Try before you enforce|Subcommands"


def run(*words, text=None):
    return subprocess.run(words, input=text, capture_output=True, text=True, check=False, timeout=120)


def commands(weir, path=()):
    """The path of every command, from its own help."""
    yield path
    shown = run(weir, *path, "--help").stdout
    for section in re.findall(rf"^(?:{GROUPS}):\n((?:  .*\n?)+)", shown, re.MULTILINE):
        for word in re.findall(r"^  (\w+)", section, re.MULTILINE):
            yield from commands(weir, path + (word,))


def check_help(weir, path):
    done = run(weir, *path, "--help")
    lines = done.stdout.splitlines()
    rows = sum(max(1, -(-len(line) // COLUMNS)) for line in lines)  # a long line takes several rows
    if done.returncode != 0 or not lines:
        sys.exit(f"weir {' '.join(path)} --help: exit {done.returncode}")
    if rows > MOST_LINES:
        sys.exit(f"weir {' '.join(path)} --help: {rows} lines, more than {MOST_LINES}")


def check_bash(weir):
    script = run(weir, "completion", "bash").stdout
    probe = script + ('\nCOMP_WORDS=(weir policy ro); COMP_CWORD=2; _weir; echo "${COMPREPLY[@]}"'
                      '\nCOMP_WORDS=(weir slots config se); COMP_CWORD=3; _weir; echo "${COMPREPLY[@]}"'
                      '\nCOMP_WORDS=(weir top --o); COMP_CWORD=2; _weir; echo "${COMPREPLY[@]}"')
    done = run("bash", "-euc", probe)
    if done.stdout != "rollback\nset\n--once\n":
        sys.exit(f"bash completes: {done.stdout!r} {done.stderr}")


def main():
    weir = sys.argv[1]
    found = list(commands(weir)) + [("completion",)]
    for path in found:
        check_help(weir, path)
    for needed in ("audit", "check", "explain", "policy", "reset", "top", "status", "notify", "replay", "slots"):
        if (needed,) not in found:
            sys.exit(f"no command {needed}")
    check_bash(weir)
    for shell, check in (("zsh", "-n"), ("fish", "--no-execute")):
        script = run(weir, "completion", shell)
        if script.returncode != 0 or "rollback" not in script.stdout:
            sys.exit(f"completion {shell}: exit {script.returncode}")
        if shutil.which(shell):
            done = run(shell, check, "/dev/stdin", text=script.stdout)
            if done.returncode != 0:
                sys.exit(f"{shell} does not take the script: {done.stderr}")
    print(f"{len(found)} commands fit a screen")


if __name__ == "__main__":
    main()
