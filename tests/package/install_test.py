"""Builds and runs programs of another project with the library: installed into an empty prefix and
found there, and added as a folder. Neither may need third-party headers or libraries; nor may the headers
of the component `stores`, whose program shares its limits through a real Redis.

Usage: install_test.py CMAKE BUILD_DIR SOURCE_DIR CXX [SANITIZE]
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Two permits in a window and a clock that stands still: the third is denied.
EXPECTED = "allowed, 1 left\nallowed, 0 left\nlimited, 0 left\n"
# What a plain C++ program needs on Debian; anything else is third-party.
PLAIN_PACKAGES = ("libc6-dev", "linux-libc-dev", "libstdc++-12-dev", "libgcc-12-dev")
PLAIN_LIBRARIES = re.compile(r"linux-vdso|ld-linux|lib(stdc\+\+|m|gcc_s|c|pthread|asan|ubsan|tsan)\.so")


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nexited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def plain_headers():
    files = []
    for package in PLAIN_PACKAGES:
        files += run("dpkg-query", "-L", package).split("\n")
    return {os.path.realpath(name) for name in files if name}


def check_headers(cxx, prefix, source):
    """Every header that the public headers include is ours or comes with the compiler."""
    listing = run(cxx, "-std=c++20", "-M", "-I", os.path.join(prefix, "include"),
                  os.path.join(HERE, "consumer", source))
    used = {os.path.realpath(name) for name in listing.replace("\\\n", " ").split()[2:]}
    foreign = [name for name in used - plain_headers()
               if not name.startswith((os.path.realpath(prefix), "/usr/lib/"))]
    if foreign:
        sys.exit(f"the public headers need {foreign}")
    if not any(name.startswith(os.path.realpath(prefix)) for name in used):
        sys.exit("the program was not compiled against the installed headers")


def build_and_run(cmake, folder, *definitions):
    """Builds the consumer in `folder`, checks what it prints and returns the program."""
    run(cmake, "-G", "Ninja", "-S", os.path.join(HERE, "consumer"), "-B", folder, *definitions)
    run(cmake, "--build", folder)
    program = os.path.join(folder, "my_app")
    output = run(program)
    if output != EXPECTED:
        sys.exit(f"the program printed\n{output}instead of\n{EXPECTED}")
    return program


def check_libraries(program):
    libraries = [line.split()[0] for line in run("ldd", program).strip().split("\n")]
    foreign = [name for name in libraries if not PLAIN_LIBRARIES.search(name)]
    if foreign:
        sys.exit(f"the program needs {foreign}")


def is_missed(said, cmake, folder, *definitions):
    """find_package names a component that is missing or unknown."""
    done = subprocess.run([cmake, "-G", "Ninja", "-S", os.path.join(HERE, "consumer"), "-B", folder,
                           "-DWITH_STORES=ON", *definitions], capture_output=True, text=True, check=False)
    if done.returncode == 0 or said not in " ".join(done.stderr.split()):
        sys.exit(f"find_package(weir COMPONENTS …) did not say {said!r}:\n{done.stderr}")


class Redis:
    """A private server on a free port, until the block ends."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.words = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", folder]

    def __enter__(self):
        self.child = subprocess.Popen(self.words, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return f"redis://127.0.0.1:{self.port}"
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        sys.exit("redis-server did not start")

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def run_policies(folder, url):
    policies = os.path.join(folder, "policies.yaml")
    with open(policies, "w", encoding="utf-8") as out:
        out.write("policies: [{name: a, key: alice, quota: {fixed_window: {limit: 2, window: 3650d}}}]\n")
    program = os.path.join(folder, "my_policies_app")
    for store in ("memory:", url):
        output = run(program, store, policies)
        if output != EXPECTED:
            sys.exit(f"with policies on {store} the program printed\n{output}instead of\n{EXPECTED}")
    if run(program, url, policies) != "limited, 0 left\n" * 3:
        sys.exit("the limit of the policy is not shared")


def run_shared(cmake, folder):
    run(cmake, "-S", os.path.join(HERE, "consumer"), "-B", folder, "-DWITH_STORES=ON")
    run(cmake, "--build", folder)
    program = os.path.join(folder, "my_shared_app")
    with Redis(folder) as url:
        output = run(program, url)
        if output != EXPECTED:
            sys.exit(f"the program printed\n{output}instead of\n{EXPECTED}")
        # A second process finds the permits taken.
        if run(program, url) != "limited, 0 left\n" * 3:
            sys.exit("the limit is not shared")
        run_policies(folder, url)
    done = subprocess.run([program, "redis://127.0.0.1:1"], capture_output=True, text=True, check=False)
    if done.returncode != 1 or "not responding" not in done.stderr:
        sys.exit(f"without a server: {done.returncode}, {done.stderr}")


def main():
    cmake, build, source, cxx = sys.argv[1:5]
    flags = [f"-DCMAKE_CXX_COMPILER={cxx}"]
    if len(sys.argv) > 5:
        flags += [f"-DCMAKE_CXX_FLAGS=-fsanitize={sys.argv[5]}", f"-DWEIR_SANITIZE={sys.argv[5]}"]
    with tempfile.TemporaryDirectory(prefix="weir-install-") as folder:
        prefix = os.path.join(folder, "prefix")
        run(cmake, "--install", build, "--prefix", prefix, "--component", "library")
        found = build_and_run(cmake, os.path.join(folder, "found"), f"-DCMAKE_PREFIX_PATH={prefix}",
                              *flags)
        check_headers(cxx, prefix, "main.cc")
        check_libraries(found)
        is_missed("installed without its component stores", cmake, os.path.join(folder, "missed"),
                  f"-DCMAKE_PREFIX_PATH={prefix}", *flags)
        is_missed("no component sotres", cmake, os.path.join(folder, "mistyped"), "-DWEIR_COMPONENT=sotres",
                  f"-DCMAKE_PREFIX_PATH={prefix}", *flags)
        run(cmake, "--install", build, "--prefix", prefix, "--component", "stores")
        check_headers(cxx, prefix, "shared.cc")
        check_headers(cxx, prefix, "policies.cc")
        run_shared(cmake, os.path.join(folder, "found"))
        added = build_and_run(cmake, os.path.join(folder, "added"), f"-DWEIR_SOURCE={source}", *flags)
        check_libraries(added)
    print("installed and found, with and without stores, added as a folder: built, ran, needs nothing else")


if __name__ == "__main__":
    main()
