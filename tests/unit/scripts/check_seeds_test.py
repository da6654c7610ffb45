"""check_seeds.py finds the errors of a page, and nothing else."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import check_seeds  # noqa: E402


class Page(unittest.TestCase):
    def read(self, *rows):
        problems = check_seeds.Problems()
        with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as page:
            page.write("\n".join(rows))
            page.flush()
            return check_seeds.read_page(page.name, problems), problems

    def test_proofs_and_reasons(self):
        (rows, proofs), problems = self.read(
            "| 0.1 | a statement | `unit.a_test` `Suite.One`, `Suite.Two` |",
            "| 0.2 | another | **differs:** because it is better so |",
            "| 0.3 | a third | **not yet:** there is something else |",
            "| 0.4 | a fourth | `integration.docs.links` |",
            "| 0.5 | a fifth | **measured:** `./dev bench this` |")
        self.assertEqual((rows, problems), (5, []))
        self.assertEqual(proofs, [("0.1", "unit.a_test", "Suite.One"), ("0.1", "unit.a_test", "Suite.Two"),
                                  ("0.4", "integration.docs.links", None)])

    def test_a_statement_without_either_is_found(self):
        for cell in ("", "yes", "**differs:**", "`Suite.Test`", "**maybe:** some day or other"):
            self.assertTrue(self.read(f"| 0.1 | a statement | {cell} |")[1], cell)

    def test_a_number_that_is_missing_is_found(self):
        reason = "**differs:** because it is better so"
        self.assertEqual(len(self.read(f"| 0.1 | a | {reason} |", f"| 0.3 | b | {reason} |")[1]), 1)

    def test_wrong_counts_are_found(self):
        rows = ("| 0.1 | a | `unit.a_test` |", "| 0.2 | b | **differs:** because it is better so |")
        self.assertEqual(self.read("| [0. X](#x) | 2 | 1 | 0 | 1 | 0 |", "| all | 2 | 1 | 0 | 1 | 0 |", *rows)[1], [])
        self.assertEqual(len(self.read("| [0. X](#x) | 2 | 2 | 0 | 0 | 0 |", "| all | 3 | 1 | 0 | 1 | 0 |", *rows)[1]), 2)

    def test_an_empty_page_is_no_proof(self):
        self.assertEqual(len(self.read("# Title")[1]), 1)


class Runs(unittest.TestCase):
    def test_parameters_are_left_out(self):
        self.assertEqual(check_seeds.plain("Sqlite/SlotRules.Fills/0"), "SlotRules.Fills")
        self.assertEqual(check_seeds.plain("Typed/1.Works"), "Typed.Works")
        self.assertEqual(check_seeds.plain("Plain.Works"), "Plain.Works")

    def test_the_worst_outcome_counts(self):
        output = "[       OK ] A/S.T/0 (1 ms)\n[  SKIPPED ] A/S.T/1 (0 ms)\n[  FAILED  ] S.U (2 ms)\n"
        self.assertEqual(check_seeds.outcomes(output), {"S.T": "SKIPPED", "S.U": "FAILED"})
        python = "test_a (__main__.Traces.test_a) ... ok\ntest_b (__main__.Traces) ... FAIL\n"
        self.assertEqual(check_seeds.outcomes(python), {"Traces.test_a": "OK", "Traces.test_b": "FAILED"})

    def test_what_did_not_run_is_found(self):
        with tempfile.TemporaryDirectory() as build:
            os.makedirs(os.path.join(build, "Testing/Temporary"))
            with open(os.path.join(build, "Testing/Temporary/LastTest.log"), "w", encoding="utf-8") as log:
                log.write("1/2 Testing: unit.a_test\n[       OK ] S.T (1 ms)\nTest Passed.\n"
                          "2/2 Testing: unit.b_test\nTest Failed.\n")
            problems = check_seeds.Problems()
            proofs = [("0.1", "unit.a_test", "S.T"), ("0.2", "unit.a_test", "S.U"), ("0.3", "unit.b_test", None),
                      ("0.4", "unit.c_test", None)]
            check_seeds.check_run(proofs, check_seeds.last_run(build), problems)
            self.assertEqual([problem.split(":")[0] for problem in problems], ["0.2", "0.3", "0.4"])

    def test_what_was_skipped_is_not_called_run(self):
        proofs = [("0.1", "unit.a_test", "S.T"), ("0.1", "unit.a_test", "S.U"), ("0.2", "unit.b_test", None)]
        self.assertEqual(check_seeds.summary(2, proofs, set(), False), "2 statements, 3 tests named")
        self.assertEqual(check_seeds.summary(2, proofs, set(), True), "2 statements, 3 tests named, all of them ran")
        for skipped, rows in (({"unit.a_test S.U"}, 1), ({"unit.a_test S.U", "unit.b_test"}, 2)):
            text = check_seeds.summary(2, proofs, skipped, True)
            self.assertNotIn("all of them ran", text)
            self.assertIn(f"{len(skipped)} skipped: on this machine {rows} statements", text)


if __name__ == "__main__":
    unittest.main()
