"""Runs the commands of docs/guide/llm-tokens.md with the policies of that page, and compares what they print.

Usage: llm_tokens_test.py WEIR PAGE

A line that begins with `$ ` is a command; the lines up to the next one are what it prints, where given. `…` in
them stands for anything; a word that ends with it stands for the same text in the commands that follow.
"""

import os
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"(\w+)…")


def blocks(page):
    with open(page, encoding="utf-8") as text:
        return FENCE.findall(text.read())


def conversations(page):
    """Pairs of a command and what it prints, or None if the page does not say."""
    for _, block in blocks(page):
        if not block.startswith("$ "):
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed.strip() or None


def policies(page):
    """The contents of the page's policy files, by name."""
    named = ((re.match(r"# (\w[\w-]*\.yaml)\n", block), block) for kind, block in blocks(page) if kind == "yaml")
    return {name[1]: block for name, block in named if name}


class Service:
    def __init__(self, weir, folder, texts):
        path = os.path.join(folder, "policies")
        os.mkdir(path)
        for name, text in texts.items():
            with open(os.path.join(path, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.child = subprocess.Popen(
            [weir, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "127.0.0.1:0", "--data", folder,
             "--policies", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.ports = [re.fullmatch(r"listening \w+ .*:(\d+)\n", self.child.stdout.readline())[1] for _ in range(2)]

    def adapt(self, command):
        for port, own in zip(("8080", "6380"), self.ports):
            command = re.sub(rf"\b{port}\b", own, command)
        return command


def pattern(expected, known):
    """`expected` as a regular expression; words that end with … are groups, recorded in `known` as 0, 1, …"""
    out, at = "", 0
    for found in WORD.finditer(expected):
        out += re.escape(expected[at:found.start()]) + r"([\w.~=-]+)"
        known[found[0]] = len(known)
        at = found.end()
    return (out + re.escape(expected[at:])).replace("…", ".*")


def run(service, folder, page):
    known, ran, compared = {}, 0, 0
    for command, expected in conversations(page):
        for word, text in known.items():
            command = command.replace(word, text)
        done = subprocess.run(["bash", "-euc", service.adapt(command)], cwd=folder, capture_output=True, text=True,
                              check=False, timeout=120)
        if done.returncode != 0:
            sys.exit(f"{command}\n  ended with {done.returncode}: {done.stdout}{done.stderr}")
        ran += 1
        if expected is None:
            continue
        fresh = {}
        found = re.fullmatch(pattern(expected, fresh), done.stdout.strip(), re.DOTALL)
        if not found:
            sys.exit(f"{command}\n  printed:  {done.stdout.strip()}\n  expected: {expected}")
        known.update({word: found[1 + group] for word, group in fresh.items()})
        compared += 1
    return ran, compared


def main():
    weir, page = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory(prefix="weir-llm-") as folder:
        service = Service(weir, folder, policies(page))
        try:
            ran, compared = run(service, folder, page)
        finally:
            service.child.terminate()
            service.child.wait(timeout=120)
    print(f"{ran} commands run, the answers of {compared} compared")
    if ran < 4 or compared < 4:
        sys.exit("the page has lost commands or their answers")


if __name__ == "__main__":
    main()
