"""Runs scripts/check_layers.py on a tree that follows the rules and on trees that break one each."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts/check_layers.py")

GOOD = {
    "include/weir/clock.h": "#include <atomic>\n",
    "include/weir/engine.h": '#include <span>\n#include "weir/clock.h"\n',
    "src/base/clock.cc": '#include "weir/clock.h"\n#include <x86intrin.h>\n#include <sys/mman.h>\n',
    "src/base/hash.h": "#include <cstdint>\n",
    "src/engine/table.h": '#include "base/hash.h"\n#include "engine/slot.h"\n',
    "src/store/store.h": '#include "weir/engine.h"\n',
    "src/store/sql/combiner.h": '#include "store/store.h"\n',
    "src/store/redis/store.cc": '#include "store/redis/store.h"\n#include "store/store.h"\n'
                                '#include "drivers/redis/client.h"\n#include <hiredis/hiredis.h>\n',
    "src/store/postgres/store.cc": '#include "store/sql/combiner.h"\n',
    "src/library/backend.cc": '#include "store/redis/store.h"\n#include "store/postgres/store.h"\n',
    "src/limiter/limiter.cc": '#include "store/store.h"\n#include "policy/request.h"\n',
    "src/protocol/grpc/rls.cc": '#include "rls.pb.h"\n#include "limiter/limiter.h"\n',
    "apps/weir/main.cc": '#include "store/redis/store.h"\n#include "slots/sqlite/store.h"\n',
    "examples/first.cc": '#include <iostream>\n#include "weir/engine.h"\n',
}

# One wrong file each, and what the error must say.
BAD = [
    ("src/base/strings.cc", '#include "engine/table.h"\n', "it may include nothing"),
    ("src/algorithm/step.h", "\n#include <simdjson.h>\n", "must not include <simdjson.h>"),
    ("src/engine/table.cc", '#include "rls.pb.h"\n', 'must not include "rls.pb.h"'),
    ("src/policy/rules.cc", '#include "store/store.h"\n', "policy includes"),
    ("src/limiter/local.cc", '#include "store/memory/store.h"\n', "uses the concrete store/memory"),
    ("src/slots/start.cc", '#include "slots/sqlite/store.h"\n', "uses the concrete slots/sqlite"),
    ("src/store/open.cc", '#include "store/redis/store.h"\n', "uses the concrete store/redis"),
    ("src/store/redis/x.cc", '#include "store/postgres/y.h"\n', "must stay apart"),
    ("src/drivers/redis/x.cc", '#include "drivers/sqlite/db.h"\n', "must stay apart"),
    ("src/store/oracle/store.cc", "", "not listed under backends, drivers or shared"),
    ("src/helpers/x.cc", "", "src/helpers is not a layer"),
    ("src/engine/shard.cc", '#include "table.h"\n', "write the path from src/"),
    ("include/weir/quota.h", "#include <boost/json.hpp>\n", "only the standard library"),
    ("include/weir/filter.h", '#include "base/hash.h"\n', "only weir/ headers"),
    ("examples/bad.cc", '#include "engine/table.h"\n', "only weir/ headers"),
]


def run_on(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def test_good_tree_passes(self):
        self.assertEqual(run_on(GOOD), (0, f"layers hold: {len(GOOD) - 1} files\n"))

    def test_each_bad_file_is_named_with_its_line(self):
        for name, text, why in BAD:
            with self.subTest(file=name):
                code, output = run_on({**GOOD, name: text})
                self.assertEqual(code, 1)
                self.assertEqual(output.count("\n"), 1, output)
                self.assertIn(why, output)
                line = 1 + len(text) - len(text.lstrip("\n"))
                self.assertTrue(output.startswith(f"{name}:{line}: "), output)

    def test_empty_tree_is_an_error(self):
        self.assertEqual(run_on({})[0], 1)


if __name__ == "__main__":
    unittest.main()
