"""Runs a copy of ./dev in a separate tree, with stubs for the tools it calls."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
WORDS = ("setup", "build", "run", "test", "bench", "fuzz", "image", "fmt", "lint", "ci", "help")
CTEST_PASSES = "echo '100% tests passed, 0 tests failed out of 7'"
CTEST_FAILS = ("echo '71% tests passed, 2 tests failed out of 7'; echo;"
               "echo 'The following tests FAILED:';"
               "echo '\t  3 - unit.a.b_test (Failed)'; echo '\t  5 - e2e.c_test (Timeout)'; exit 8")


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-dev-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        shutil.copy(os.path.join(ROOT, "dev"), self.root)
        self.write("packages.txt", "# what is needed\nthere\nmissing\nfor-tests\n")
        self.write("packages-program.txt", "# of which the program\nthere\nmissing\n")
        for name in ("dpkg-query", "sudo", "apt-get", "id", "cmake", "ctest", "ninja", "shellcheck",
                     "clang-format-14", "python3"):
            self.stub(name, "")
        self.stub("id", "echo 1000")  # not root: commands that change the system go through sudo
        self.stub("sudo", f'echo "$@" >> {self.root}/sudo.log; [ "$1" != tee ] || cat >/dev/null')
        self.stub("dpkg-query", "echo there installed; echo missing installed; echo for-tests installed")
        self.stub("ctest", CTEST_PASSES)
        for folder in ("include", "src", "apps", "tests", "examples", "bench", "fuzz", "simulation", "scripts", ".ci"):
            os.makedirs(os.path.join(self.root, folder))
        self.write(".ci/run", "")
        for folder in ("kafka", "envoy", "otlp", "mysql", "mysql8", "deploy"):
            self.write(f"tests/support/{folder}/fetch.sh", "#!/bin/sh\n")
        for name in ("node", "npm"):
            self.stub(name, "")
        self.write("tests/browser/package-lock.json", "{}")
        self.write("tests/browser/node_modules/.weir-lock", "{}")
        self.write("build/fuzz/parser_fuzz", "#!/bin/sh\necho 'stat::number_of_executed_units: 9'\n")

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, 0o755)

    def stub(self, name, body):
        self.write("bin/" + name, f"#!/bin/sh\n{body}\n")

    def dev(self, *words):
        environment = {"PATH": self.root + "/bin:/usr/bin:/bin", "HOME": self.root, "WEIR_JOBS": "2"}
        done = subprocess.run([os.path.join(self.root, "dev"), *words], cwd="/", env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def system_changes(self):
        path = os.path.join(self.root, "sudo.log")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as log:
            return log.read()

    def test_help_explains_every_word(self):
        code, output, _ = self.dev("help")
        self.assertEqual(code, 0)
        for word in WORDS:
            self.assertRegex(output, rf"(?m)^  {word}\b")

    def test_the_image_is_made_of_the_release_program_by_root(self):
        code, _, errors = self.dev("image")
        self.assertEqual(code, 0, errors)
        self.assertIn("tests/deploy/image_root.sh build/release/weir", self.system_changes())

    def test_unknown_words_are_refused(self):
        code, _, errors = self.dev("dance")
        self.assertEqual(code, 2)
        self.assertIn("no such command: dance", errors)
        code, _, errors = self.dev("test", "slow")
        self.assertEqual(code, 2)
        self.assertIn("no such label: slow", errors)

    def test_setup_leaves_a_complete_system_alone(self):
        self.assertEqual(self.dev("setup")[0], 0)
        self.assertEqual(self.system_changes(), "")

    @unittest.skipIf(os.path.exists("/usr/sbin/policy-rc.d"), "this system has a policy of its own")
    def test_setup_installs_only_what_is_missing_and_starts_no_daemon(self):
        self.stub("dpkg-query", "echo there installed; echo missing not-installed; exit 1")
        self.assertEqual(self.dev("setup")[0], 0)
        changes = self.system_changes().splitlines()
        self.assertEqual(changes[0], "tee /usr/sbin/policy-rc.d")
        self.assertEqual(changes[-1], "rm -f /usr/sbin/policy-rc.d")
        installs = [line for line in changes if " install " in line]
        self.assertEqual(len(installs), 1)
        self.assertTrue(installs[0].endswith(" install missing"))

    def test_the_program_alone_takes_only_its_own_packages(self):
        self.stub("dpkg-query", "echo there installed; echo missing installed; echo for-tests not-installed; exit 1")
        self.write("build/release/weir", "#!/bin/sh\n")
        self.stub("cmake", f'echo "$@" >> {self.root}/cmake.log')
        self.assertEqual(self.dev("run")[0], 0)
        self.assertEqual(self.dev("build", "release", "weir")[0], 0)
        self.assertEqual(self.system_changes(), "")
        with open(os.path.join(self.root, "cmake.log"), encoding="utf-8") as log:
            self.assertEqual(log.read().count("--preset release -DWEIR_BENCH=OFF"), 2)
        self.assertEqual(self.dev("build", "release")[0], 0)
        self.assertIn("install for-tests", self.system_changes())

    def test_a_failed_installation_is_an_error_and_leaves_no_policy(self):
        self.stub("dpkg-query", "echo there installed")
        self.stub("sudo", f'echo "$@" >> {self.root}/sudo.log; case $1 in tee) cat >/dev/null;; '
                          'env) echo no such package; exit 100;; esac')
        code, _, errors = self.dev("setup")
        self.assertEqual(code, 2)
        self.assertIn("no such package", errors)
        if not os.path.exists("/usr/sbin/policy-rc.d"):
            self.assertTrue(self.system_changes().endswith("rm -f /usr/sbin/policy-rc.d\n"))

    def test_the_last_line_counts_checks_and_tests(self):
        # 10 steps: format, layers, scripts, build dev, what was specified, lint, build asan, tsan and fuzz, fuzz parser;
        # 3 runs of 7 tests: dev, asan, tsan.
        code, output, errors = self.dev("test")
        self.assertEqual((code, errors), (0, ""))
        self.assertTrue(output.endswith("[dev]\n100% tests passed, 0 tests failed out of 7\n"
                                        "31 passed, 0 failed\n"), output)

    def test_failed_tests_are_counted_and_named(self):
        self.stub("ctest", CTEST_FAILS)
        code, output, _ = self.dev("test", "unit")
        self.assertEqual(code, 1)
        self.assertIn("FAILED dev: unit.a.b_test\nFAILED dev: e2e.c_test\n", output)
        self.assertTrue(output.endswith("6 passed, 2 failed\n"), output)  # with the build

    def test_a_run_without_tests_is_a_failure(self):
        self.stub("ctest", "echo 'No tests were found!!!'; exit 8")
        code, output, _ = self.dev("test", "unit")
        self.assertEqual(code, 1)
        self.assertTrue(output.endswith("1 passed, 1 failed\n"), output)

    def test_a_failed_build_ends_the_run(self):
        self.stub("cmake", 'case $1 in --build) echo broken; exit 1;; esac')
        code, output, _ = self.dev("test")
        self.assertEqual(code, 1)
        self.assertIn("FAILED build dev\n", output)
        self.assertNotIn("== test dev", output)
        self.assertTrue(output.endswith("3 passed, 1 failed\n"), output)

    def test_a_failed_check_does_not_hide_the_tests(self):
        self.stub("clang-format-14", "exit 1")
        self.write("src/a.cc", "")
        code, output, _ = self.dev("test")
        self.assertEqual(code, 1)
        self.assertIn("FAILED format\n", output)
        self.assertTrue(output.endswith("30 passed, 1 failed\n"), output)

    def test_a_crash_found_by_fuzzing_is_a_failure(self):
        self.write("build/fuzz/parser_fuzz", "#!/bin/sh\necho heap-buffer-overflow\nexit 77\n")
        code, output, _ = self.dev("test")
        self.assertEqual(code, 1)
        self.assertIn("heap-buffer-overflow", output)
        self.assertIn("FAILED fuzz parser\n", output)


if __name__ == "__main__":
    unittest.main()
