"""check_marks.py fails if a bench misses a mark, and also if it no longer prints a figure that has one."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts/check_marks.py")
MARKS = "a.rate at-least 10 x  # ours\na.time at-most 5 ms\nb.rate at-least 1 x\n"


class Marks(unittest.TestCase):
    def check(self, output, *options):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as marks:
            marks.write(MARKS)
            marks.flush()
            return subprocess.run([sys.executable, SCRIPT, *options, marks.name], input=output, capture_output=True, text=True,
                                  check=False)

    def test_the_marks_of_the_bench_that_ran_are_checked(self):
        run = self.check("figure a.rate 10 x\nfigure a.time 5 ms\nfigure a.other 1 x\n")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("marks: 2 checked, 0 missed", run.stdout)

    def test_a_missed_mark_fails(self):
        for output in ("figure a.rate 9.9 x\nfigure a.time 5 ms\n", "figure a.rate 10 x\nfigure a.time 5.1 ms\n",
                       "figure a.rate 10 y\nfigure a.time 5 ms\n"):
            run = self.check(output)
            self.assertEqual(run.returncode, 1, output)
            self.assertIn("mark MISSED", run.stdout)

    def test_a_marked_figure_that_is_not_printed_fails(self):
        run = self.check("figure a.rate 10 x\n")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("mark MISSING: a.time was not printed, at most 5 ms", run.stdout)

    def test_a_part_of_a_bench_is_checked_for_what_it_printed(self):
        self.assertEqual(self.check("figure a.rate 10 x\n", "--part").returncode, 0)
        self.assertEqual(self.check("figure a.rate 9 x\n", "--part").returncode, 1)
        self.assertEqual(self.check("figure a.other 9 x\n", "--part").returncode, 1)

    def test_without_any_mark_it_fails(self):
        self.assertEqual(self.check("figure c.rate 10 x\n").returncode, 1)
        self.assertEqual(self.check("").returncode, 1)


if __name__ == "__main__":
    unittest.main()
