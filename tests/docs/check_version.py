"""Checks that everything that states Weir's version states the one of CMakeLists.txt. Usage: … ROOT

That is what an operator copies (image tags, the package's name, the chart), what programs request (find_package),
and the newest release of CHANGELOG.md.
"""

import os
import re
import sys

FULL = {  # file → where it states the whole version
    "deploy/helm/weir/Chart.yaml": r'^(?:version|appVersion): "?([\d.]+)"?',
    "deploy/kubernetes/weir.yaml": r"image: weir:([\d.]+)",
    "deploy/kubernetes/sidecar.yaml": r"image: weir:([\d.]+)",
    "docs/guide/deployment.md": r"weir[:_](\d+\.\d+\.\d+)",
    "docs/reference/openapi.yaml": r"^  version: ([\d.]+)",
    "README.md": r"(?<![\d.])(0\.\d+\.\d+)(?!\.?\d)",
}
SHORT = ("docs/guide/embedding.md", "docs/guide/limiter.md", "tests/package/consumer/CMakeLists.txt")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as text:
        return text.read()


def found(root, path, pattern):
    return re.findall(pattern, read(root, path), re.MULTILINE)


def main():
    root = sys.argv[1]
    version = found(root, "CMakeLists.txt", r"project\(weir VERSION ([\d.]+)")[0]
    wrong = []
    places = [(path, pattern, version) for path, pattern in FULL.items()]
    places += [(path, r"find_package\(weir ([\d.]+)", version.rpartition(".")[0]) for path in SHORT]
    for path, pattern, wanted in places:
        named = found(root, path, pattern)
        if not named or set(named) != {wanted}:
            wrong.append(f"{path}: names {named}, not {wanted}")
    released = found(root, "CHANGELOG.md", r"^## \[(\d[\d.]*)\]")[0]
    if released != version:
        wrong.append(f"CHANGELOG.md: the newest release is {released}, CMakeLists.txt has {version}")
    print("\n".join(wrong) or f"{len(places)} files name {version}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
