"""Compiles and runs every C++ block of a Markdown file against the library.

Usage: run_examples.py CXX LIBRARY INCLUDE FILE.md [COMPILER FLAGS]

A block with a main() is a program. Any other block is the body of a function; its #include lines go to
the top of the file. A ```text block right after a C++ block is what that block must print.
"""

import os
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
HEADERS = ("cassert", "chrono", "iostream", "sstream", "string", "string_view", "thread", "vector",
           "weir/engine.h")


class Block:
    def __init__(self, code, line):
        self.code, self.line, self.expected = code, line, None

    def is_program(self):
        return re.search(r"^int main\(", self.code, re.MULTILINE) is not None


def blocks_of(text):
    blocks, end = [], 0
    for fence in FENCE.finditer(text):
        kind, body = fence[1], fence[2]
        if kind == "cpp":
            blocks.append(Block(body, text.count("\n", 0, fence.start()) + 2))
        elif kind == "text" and blocks and not text[end:fence.start()].strip():
            blocks[-1].expected = body
        end = fence.end() if kind == "cpp" else 0
    return blocks


def fragments_source(blocks, path):
    """One program that runs the n-th fragment when called with n."""
    lines = [f"#include <{header}>" for header in HEADERS]
    for block in blocks:
        lines += re.findall(r"^#include.*$", block.code, re.MULTILINE)
    lines.append("using namespace std::chrono_literals;")
    for number, block in enumerate(blocks):
        body = re.sub(r"^#include.*$", "", block.code, flags=re.MULTILINE)
        lines += [f"static void Fragment{number}() {{", f'#line {block.line} "{path}"', body, "}"]
    lines += ["int main(int, char** argv) {", "  const int n = std::stoi(argv[1]);"]
    lines += [f"  if (n == {number}) Fragment{number}();" for number in range(len(blocks))]
    return "\n".join(lines + ["}", ""])


def compile_program(command, source, folder, name):
    path, program = os.path.join(folder, name + ".cc"), os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(source)
    done = subprocess.run([word.format(source=path, program=program) for word in command],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"does not compile:\n{done.stderr}")
    return program


def check_run(block, words, path):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{path}:{block.line}: exited with {done.returncode}\n{done.stderr}")
    if block.expected is not None and done.stdout != block.expected:
        sys.exit(f"{path}:{block.line}: printed\n{done.stdout}instead of\n{block.expected}")


def main():
    cxx, library, include, path = sys.argv[1:5]
    command = [cxx, "-std=c++20", *sys.argv[5:], "-Wall", "-Wextra", "-Werror",
               "-Wno-unused-variable", "-Wno-unused-but-set-variable",
               "-I", include, "{source}", library, "-o", "{program}", "-pthread"]
    with open(path, encoding="utf-8") as text:
        blocks = blocks_of(text.read())
    if not blocks:
        sys.exit(f"{path} has no C++ block")
    fragments = [block for block in blocks if not block.is_program()]
    with tempfile.TemporaryDirectory(prefix="weir-docs-") as folder:
        for number, block in enumerate(block for block in blocks if block.is_program()):
            source = f'#line {block.line} "{path}"\n{block.code}'
            check_run(block, [compile_program(command, source, folder, f"program{number}")], path)
        if fragments:
            source = fragments_source(fragments, path)
            program = compile_program(command, source, folder, "fragments")
            for number, block in enumerate(fragments):
                check_run(block, [program, str(number)], path)
    checked = sum(block.expected is not None for block in blocks)
    print(f"{path}: {len(blocks)} blocks compiled and run, the output of {checked} checked")


if __name__ == "__main__":
    main()
