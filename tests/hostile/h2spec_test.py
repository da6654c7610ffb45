"""Runs h2spec against the gRPC door: h2spec_test.py SERVER FETCH.

Every case must pass, but for those in EXCEPTIONS, which a later RFC has withdrawn; each says which.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

SKIPPED = 77

# (section, number in it): why the door does not do what h2spec wants.
EXCEPTIONS = {
    ("http2/5.3.1", 2): "RFC 9113, 5.3.2 deprecates priorities; a PRIORITY frame's dependency means nothing",
}


def serve(server, folder):
    policies = Path(folder) / "policies.yaml"
    policies.write_text(
        'policies: [{name: u, match: {user: "*"}, quota: {fixed_window: {limit: 9, window: 1h}}}]\n'
    )
    process = subprocess.Popen([server, str(policies)], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    match = re.fullmatch(r"listening grpc 127\.0\.0\.1:(\d+)\n", line)
    if match is None:
        process.kill()
        raise SystemExit(f"the server did not start: {line!r}")
    return process, int(match.group(1))


def outcomes(report):
    """Yields (section, number, what is tested, how it failed or None)."""
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        for number, case in enumerate(suite.iter("testcase"), start=1):
            problem = case.find("failure")
            if problem is None:
                problem = case.find("error")
            text = None if problem is None else " ".join("".join(problem.itertext()).split())
            yield case.get("package") or suite.get("package"), number, case.get("classname"), text


def judge(report):
    passed, failures, excused = 0, [], []
    for section, number, title, problem in outcomes(report):
        if problem is None:
            passed += 1
        elif (section, number) in EXCEPTIONS:
            excused.append(f"{section}/{number}: {EXCEPTIONS[section, number]}")
        else:
            failures.append(f"{section}/{number} {title}: {problem}")
    print(f"h2spec: {passed} passed, {len(excused)} excepted, {len(failures)} failed")
    for line in excused:
        print(f"  excepted {line}")
    for line in failures:
        print(f"  FAILED {line}")
    return 0 if passed > 100 and not failures else 1


def main():
    server, fetch = sys.argv[1:]
    if shutil.which("go") is None:
        print("skipped: h2spec is built with go, which is not installed")
        return SKIPPED
    subprocess.run([fetch], check=True)
    h2spec = Path(fetch).resolve().parents[3] / "build" / "h2spec" / "h2spec"
    with tempfile.TemporaryDirectory() as folder:
        process, port = serve(server, folder)
        try:
            report = Path(folder) / "report.xml"
            subprocess.run(
                [str(h2spec), "--host", "127.0.0.1", "--port", str(port), "--timeout", "10",
                 "--path", "/grpc.health.v1.Health/Check", "--junit-report", str(report)],
                stdout=subprocess.DEVNULL, timeout=240, check=False,
            )
            if process.poll() is not None:
                print(f"the server ended by itself: {process.returncode}")
                return 1
            return judge(report)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
