#!/usr/bin/env python3
"""Draws the pictures of choosing-an-algorithm.md from a run of the engine.

Usage: draw.py PROGRAM          writes one SVG per algorithm beside this file
       draw.py --check PROGRAM  exits 1 if a picture is not what PROGRAM gives

PROGRAM is the program built from pictures.cc; ./dev build leaves it at build/dev/pictures.
"""

import pathlib
import subprocess
import sys

SECONDS = 60
BIN = 0.5  # seconds per step of the curves
TOP = 60  # requests per second at the top of the picture
WIDTH, HEIGHT = 800, 330
LEFT, RIGHT, UPPER, LOWER = 58, 18, 84, 46

# What each picture is called, and what to look at in it.
TEXTS = {
    "token_bucket": ("Token bucket: capacity 100, refill 10 per second",
                     "A burst passes until the bucket is empty, then requests pass at the refill rate."),
    "fixed_window": ("Fixed window: 100 per 10 s",
                     "Each window starts afresh: a burst across an edge gets the limit of both."),
    "sliding_log": ("Sliding log: 100 per 10 s",
                    "Never more than 100 in any 10 s; permits come back as they were taken, 10 s later."),
    "sliding_counter": ("Sliding counter: 100 per 10 s, 2 buckets",
                        "Near the log with three counters: what a bucket holds is taken to have come evenly."),
    "concurrency": ("Concurrency: 10 in flight",
                    "Follows the service: requests take 0.8 s, from second 48 on 3 s, so fewer get in."),
}

STYLE = """
  .back { fill: #ffffff } .text { fill: #1f2328 } .dim { fill: #59636e }
  .grid { stroke: #d1d9e0 } .axis { stroke: #59636e }
  .offered { fill: #d8dee4; stroke: #818b98 } .admitted { fill: #0969da; stroke: #0550ae }
  .rate { stroke: #bc4c00 } .ratetext { fill: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117 } .text { fill: #f0f6fc } .dim { fill: #9198a1 }
    .grid { stroke: #2b323b } .axis { stroke: #9198a1 }
    .offered { fill: #343b44; stroke: #656c76 } .admitted { fill: #4493f8; stroke: #79b8ff }
    .rate { stroke: #f0883e } .ratetext { fill: #f0883e }
  }
  text { font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif }
"""


def read_runs(program):
    """The milliseconds of all requests and of those admitted, by algorithm."""
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    runs = {}
    for line in output.splitlines():
        name, milliseconds, admitted = line.split(",")
        offered, let_in = runs.setdefault(name, ([], []))
        offered.append(int(milliseconds))
        if admitted == "1":
            let_in.append(int(milliseconds))
    return runs


def per_second(times):
    """Requests per second in each step of BIN seconds."""
    counts = [0] * int(SECONDS / BIN)
    for time in times:
        counts[int(time / 1000 / BIN)] += 1
    return [count / BIN for count in counts]


def most_within(times, milliseconds):
    """The most requests in any span of that length."""
    most = oldest = 0
    for i, time in enumerate(times):
        while times[oldest] <= time - milliseconds:
            oldest += 1
        most = max(most, i - oldest + 1)
    return most


def x_of(second):
    return LEFT + (WIDTH - LEFT - RIGHT) * second / SECONDS


def y_of(rate):
    return UPPER + (HEIGHT - UPPER - LOWER) * (1 - rate / TOP)


def area(rates, style):
    """A filled staircase."""
    path = [f"M{x_of(0):.1f},{y_of(0):.1f}"]
    for step, rate in enumerate(rates):
        path.append(f"V{y_of(rate):.1f}H{x_of((step + 1) * BIN):.1f}")
    path.append(f"V{y_of(0):.1f}Z")
    return f'<path class="{style}" stroke-width="1" d="{"".join(path)}"/>'


def text(x, y, words, style="text", size=12, anchor="start", extra=""):
    return (f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'text-anchor="{anchor}"{extra}>{words}</text>')


def axes():
    parts = []
    for rate in range(0, TOP + 1, 10):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(rate):.1f}" y2="{y_of(rate):.1f}"/>')
        parts.append(text(LEFT - 8, y_of(rate) + 4, rate, "dim", 11, "end"))
    for second in range(0, SECONDS + 1, 10):
        parts.append(f'<line class="axis" x1="{x_of(second):.1f}" x2="{x_of(second):.1f}" y1="{y_of(0):.1f}" y2="{y_of(0) + 5:.1f}"/>')
        parts.append(text(x_of(second), y_of(0) + 18, second, "dim", 11, "middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "time in seconds", "dim", 11, "middle"))
    middle = (UPPER + HEIGHT - LOWER) / 2
    parts.append(text(16, middle, "requests per second", "dim", 11, "middle",
                      f' transform="rotate(-90 16 {middle:.1f})"'))
    return parts


def legend(offered, admitted):
    def box(x, style, words):
        return (f'<rect class="{style}" x="{x}" y="59" width="12" height="12"/>' + text(x + 18, 69, words))
    return [box(LEFT, "offered", f"offered: {len(offered)}"),
            box(LEFT + 130, "admitted", f"admitted: {len(admitted)}"),
            text(WIDTH - RIGHT, 69, f"most admitted in any 10 s: {most_within(admitted, 10000)}", "text", 12, "end")]


def average(name):
    """The rate that the limit allows in the long run; a concurrency limit has none."""
    if name == "concurrency":
        return []
    y = y_of(10)
    return [f'<line class="rate" stroke-width="1.5" stroke-dasharray="6 4" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
            text(x_of(26.4), y - 5, "on average 10", "ratetext", 11)]


def picture(name, offered, admitted):
    title, look_at = TEXTS[name]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
             f'<title id="t">{title}</title>', f'<desc id="d">{look_at}</desc>', f"<style>{STYLE}</style>",
             f'<rect class="back" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
             text(LEFT, 26, title, "text", 16, extra=' font-weight="600"'), text(LEFT, 46, look_at, "dim", 12.5)]
    parts += axes() + [area(per_second(offered), "offered"), area(per_second(admitted), "admitted")]
    parts += average(name) + legend(offered, admitted) + ["</svg>"]
    return "\n".join(parts) + "\n"


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        sys.exit(__doc__)
    folder = pathlib.Path(__file__).resolve().parent
    stale = []
    for name, (offered, admitted) in read_runs(arguments[-1]).items():
        file = folder / (name.replace("_", "-") + ".svg")
        svg = picture(name, offered, admitted)
        if not check:
            file.write_text(svg)
        elif not file.exists() or file.read_text() != svg:
            stale.append(file.name)
    if stale:
        sys.exit(f"not as the engine behaves: {', '.join(stale)}; run {pathlib.Path(__file__).name} PROGRAM")


if __name__ == "__main__":
    main(sys.argv[1:])
