"""Runs every shell command of the Markdown files against a real service.

Usage: run_commands.py WEIR ROOT

Commands are in blocks marked sh. A service with the embedded defaults runs for each page, on free
ports that replace 8080, 8081 and 6380; the page's commands run in one folder, in order, and
each must exit with 0, and print what PRINTS says. Programs that run until they are stopped must still run after a moment. Files
that pages refer to are in tests/docs/files. What cannot run here is listed below, with the reason.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FENCE = re.compile(r"^```(?:sh|bash|console|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = {  # the beginning of a command → where it is run instead
    "./dev": "CI runs ./dev itself",
    "cmake": "tests/package/install_test.py builds and installs the library",
    "grpcurl": "tests/integration/grpc speaks to the same methods",
    "weir migrate": "needs a database; tests/conformance", "kcat": "needs Kafka; tests/fault/notify",
    "docker": "tests/deploy", "helm": "tests/deploy", "kubectl": "tests/deploy",
    "systemctl": "tests/deploy", "journalctl": "tests/deploy", "sudo": "tests/deploy",
    "apt": "tests/deploy", "cpack": "tests/deploy", "dpkg": "tests/deploy", "promtool": "tests/deploy",
    "git": "not ours", "npm": "tests/browser", "deploy/make-databases.sh": "tests/e2e/compose",
}
PRINTS = {  # what a command must print; for one that keeps running, the output is awaited
    "weir dispatch --config bank": '"eventId":"pay-now"',
    "weir slots show pay-now": "DONE",
}
LASTING = ("weir serve", "weir proxy", "weir sender", "weir dispatch")


def pages(root):
    yield os.path.join(root, "README.md")
    for folder, _, names in sorted(os.walk(os.path.join(root, "docs"))):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".md"))


def commands_of(block):
    """Commands of a block: continued lines are joined, comments and prompts removed."""
    for line in block.replace("\\\n", " ").splitlines():
        line = re.sub(r"^\s*\$ ", "", line).strip()
        line = re.sub(r"\s+# .*$", "", line)
        line = re.sub(r"^build/release/(?=weir\b)", "", line)  # the program under test is on the path
        if line and not line.startswith("#"):
            yield line


class Service:
    def __init__(self, weir, folder):
        words = [weir, "serve", "--data", f"{folder}/service-data"]
        for door in ("http", "grpc", "resp"):
            words += [f"--{door}", "127.0.0.1:0"]
        self.child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True)
        self.ports = {}
        while len(self.ports) < 3:
            line = self.child.stdout.readline()
            if not line:
                raise SystemExit("the service did not start")
            found = re.match(r"listening (\w+) .*:(\d+)", line)
            if found:
                self.ports[found[1]] = found[2]

    def adapt(self, command):
        for port, door in (("8080", "http"), ("8081", "grpc"), ("6380", "resp")):
            command = re.sub(rf"\b{port}\b", self.ports[door], command)
        return command

    def stop(self):
        self.child.terminate()
        self.child.wait(timeout=120)


def environment(weir, folder, service):
    tools = os.path.join(folder, ".tools")
    os.makedirs(tools)
    os.symlink(weir, os.path.join(tools, "weir"))
    curl = os.path.join(tools, "curl")
    with open(curl, "w", encoding="utf-8") as out:  # an HTTP error status is a failure here
        out.write(f'#!/bin/sh\nexec {shutil.which("curl")} --fail-with-body "$@"\n')
    os.chmod(curl, 0o755)
    return dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}",
                WEIR_URL=f"http://127.0.0.1:{service.ports['http']}")


def run_lasting(command, folder, env):
    # It gets free ports of its own, so that it does not collide with others.
    words = command.removesuffix("&").strip()
    if words.startswith("weir serve"):
        words += " --http 127.0.0.1:0 --grpc 127.0.0.1:0 --resp 127.0.0.1:0 --data ./other-data"
    if words.startswith("weir proxy"):
        words += " --listen 127.0.0.1:0"
    wanted = PRINTS.get(command)
    output = os.path.join(folder, ".output")
    with open(output, "w", encoding="utf-8") as printed:
        child = subprocess.Popen(["bash", "-c", "exec " + words], cwd=folder, env=env,
                                 stdout=printed, stderr=subprocess.PIPE, text=True)
    for _ in range(30):
        try:
            child.wait(timeout=1)
            return f"ended with {child.returncode}: {child.stderr.read()}"
        except subprocess.TimeoutExpired:
            if not problem_of(output, wanted):
                break
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=120)
    return problem_of(output, wanted)


def problem_of(output, wanted):
    with open(output, encoding="utf-8") as printed:
        return missing(wanted, printed.read())


def missing(wanted, printed):
    if wanted is None or wanted in printed:
        return None
    return f"did not print {wanted}: {printed[-500:]}"


def run(command, folder, env):
    done = subprocess.run(["bash", "-euc", command], cwd=folder, env=env, capture_output=True,
                          text=True, check=False, timeout=120)
    if done.returncode == 0:
        return missing(PRINTS.get(command), done.stdout)
    return f"ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"


def run_page(weir, root, page):
    with open(page, encoding="utf-8") as text:
        blocks = FENCE.findall(text.read())
    commands = [command for block in blocks for command in commands_of(block)]
    ran = left = 0
    if not commands:
        return ran, left
    with tempfile.TemporaryDirectory(prefix="weir-docs-") as folder:
        shutil.copytree(os.path.join(root, "tests/docs/files"), folder, dirs_exist_ok=True)
        service = Service(weir, folder)
        try:
            env = environment(weir, folder, service)
            for command in commands:
                if any(re.match(re.escape(word) + r"\b", command) for word in ELSEWHERE):
                    left += 1
                    continue
                lasting = command.startswith(LASTING)
                adapted = service.adapt(command)
                problem = (run_lasting if lasting else run)(adapted, folder, env)
                if problem:
                    sys.exit(f"{os.path.relpath(page, root)}: {command}\n  {problem}")
                ran += 1
        finally:
            service.stop()
    return ran, left


def main():
    weir, root = os.path.abspath(sys.argv[1]), sys.argv[2]
    ran = left = 0
    for page in pages(root):
        one, other = run_page(weir, root, page)
        ran, left = ran + one, left + other
    print(f"{ran} commands run, {left} run by other tests")
    if not ran:
        sys.exit("no command was found")


if __name__ == "__main__":
    main()
