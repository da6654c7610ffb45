"""Installs the library into an empty prefix and builds and runs a program with it, from nothing else.

Usage: install_test.py CMAKE BUILD_DIR CXX [SANITIZE]
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Two permits in a window and a clock that stands still: the third is refused.
EXPECTED = "allowed, 1 left\nallowed, 0 left\nlimited, 0 left\n"
# What a plain C++ program needs on Debian; anything else is a third party's.
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


def check_headers(cxx, prefix):
    """Every header that the public headers pull in is ours or comes with the compiler."""
    listing = run(cxx, "-std=c++20", "-M", "-I", os.path.join(prefix, "include"),
                  os.path.join(HERE, "consumer/main.cc"))
    used = {os.path.realpath(name) for name in listing.replace("\\\n", " ").split()[2:]}
    foreign = [name for name in used - plain_headers()
               if not name.startswith((os.path.realpath(prefix), "/usr/lib/"))]
    if foreign:
        sys.exit(f"the public headers need {foreign}")
    if not any(name.startswith(os.path.realpath(prefix)) for name in used):
        sys.exit("the program was not compiled against the installed headers")


def main():
    cmake, build, cxx = sys.argv[1:4]
    sanitize = sys.argv[4] if len(sys.argv) > 4 else ""
    with tempfile.TemporaryDirectory(prefix="weir-install-") as folder:
        prefix, consumer = os.path.join(folder, "prefix"), os.path.join(folder, "build")
        run(cmake, "--install", build, "--prefix", prefix, "--component", "library")
        flags = [f"-DCMAKE_CXX_FLAGS=-fsanitize={sanitize}"] if sanitize else []
        run(cmake, "-G", "Ninja", "-S", os.path.join(HERE, "consumer"), "-B", consumer,
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={cxx}", *flags)
        run(cmake, "--build", consumer)
        program = os.path.join(consumer, "consumer")
        output = run(program)
        if output != EXPECTED:
            sys.exit(f"the program printed\n{output}instead of\n{EXPECTED}")
        check_headers(cxx, prefix)
        libraries = [line.split()[0] for line in run("ldd", program).strip().split("\n")]
        foreign = [name for name in libraries if not PLAIN_LIBRARIES.search(name)]
        if foreign:
            sys.exit(f"the program needs {foreign}")
    print("installed, found, built and ran; needs only", ", ".join(libraries))


if __name__ == "__main__":
    main()
