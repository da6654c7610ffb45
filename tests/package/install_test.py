"""Builds and runs a program of another project with the library: installed into an empty prefix and
found there, and added as a folder. Neither may need a third party's header or library.

Usage: install_test.py CMAKE BUILD_DIR SOURCE_DIR CXX [SANITIZE]
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


def build_and_run(cmake, folder, *definitions):
    """Builds the consumer in `folder` and returns the program, having checked what it prints."""
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
        check_headers(cxx, prefix)
        check_libraries(found)
        added = build_and_run(cmake, os.path.join(folder, "added"), f"-DWEIR_SOURCE={source}", *flags)
        check_libraries(added)
    print("installed and found, added as a folder: built, ran, needs nothing else")


if __name__ == "__main__":
    main()
