"""The NAS Parallel Benchmarks on one rank beside plain numpy forms of them, in CPU time.

    python tools/nas_plain.py                               # all of them, class S
    python tools/nas_plain.py BT SP --class W --steps 10    # not all of the 200 and 400 steps

Both take turns in one process, a world of one rank; a time is that of the part that NPB times. A
plain form (`nas_plain_flow`, `nas_plain_kernels`) has whole arrays and knows nothing of MPI, of
parts of a grid and of ghosts. It must come to NPB's verification values; with --steps to those of
the benchmark after as many. The exit code is 1 if it does not. Prints the medians of the turns, and
the median of their ratios with the least and the largest one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import nas_plain_flow as flow  # noqa: E402
import nas_plain_kernels as kernels  # noqa: E402

from shrimpmx.mpi.library import library_path  # noqa: E402

FORMS = {
    "BT": flow.BlockTridiagonal,
    "CG": kernels.ConjugateGradient,
    "EP": kernels.EmbarrassinglyParallel,
    "FT": kernels.FourierTransform,
    "IS": kernels.IntegerSort,
    "LU": flow.LowerUpper,
    "MG": kernels.Multigrid,
    "SP": flow.ScalarPentadiagonal,
}
MOST = 100_000  # turns, and steps


def compare(name: str, letter: str, turns: int, steps: int | None) -> Iterator[str]:
    """Prints the row of a benchmark; yields a sentence for each wrong figure of its plain form."""
    os.environ["MPI4PY_LIBMPI"] = str(library_path())
    from mpi4py import MPI  # this process becomes a rank

    from shrimpmx.applications.nas.__main__ import kernel_named

    MPI.Wtime = time.process_time  # by which the benchmarks measure
    kernel = kernel_named(name)
    problem: Any = kernel.problems[letter]
    if cut := steps is not None and hasattr(problem, "steps"):
        problem = replace(problem, steps=steps)
    pairs = []
    for _ in range(turns):
        outcome = kernel.run(problem, MPI.COMM_WORLD)
        form = FORMS[name](problem)
        begin = time.process_time()
        form.run()
        pairs.append((outcome.seconds, time.process_time() - begin))
        for check, figure in zip(outcome.checks, form.figures(), strict=False):
            official = check.computed if cut else check.official
            if not replace(check, computed=figure, official=official).holds:
                yield f"{name} {letter}: {check.name} is {figure}, not {official}"
    ours, plain = map(median, zip(*pairs, strict=True))
    ratios = sorted(one / other for one, other in pairs)
    print(f"{name:10}{ours:12.4f}{plain:12.4f}{median(ratios):8.2f}  "
          f"({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)  # fmt: skip


def refusal(options: argparse.Namespace) -> str | None:
    """What is wrong with the command line."""
    for name in options.kernels:
        if name not in FORMS:
            return f"{name} is none of {', '.join(FORMS)}"
    if options.letter not in tuple("SWAB"):
        return f"--class must be S, W, A or B, not {options.letter}"
    for name in ("turns", "steps"):
        number = getattr(options, name)
        if number is not None and not 1 <= number <= MOST:
            return f"--{name} must be from 1 to {MOST}, not {number}"
    return None


def main(words: Sequence[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernels", nargs="*", type=str.upper, metavar="KERNEL", help="(all)")
    parser.add_argument("--class", dest="letter", type=str.upper, default="S", help="(S)")
    parser.add_argument("--turns", type=int, default=5, help="(5)")
    parser.add_argument("--steps", type=int, help="of BT, LU and SP (those of the class)")
    options = parser.parse_args(words)
    if problem := refusal(options):
        print(f"nas_plain.py: {problem}", file=sys.stderr)
        return 2
    print(f"class {options.letter}   benchmark, s    plain, s   ratio")
    wrong = [
        sentence
        for name in options.kernels or FORMS
        for sentence in compare(name, options.letter, options.turns, options.steps)
    ]
    for sentence in wrong:
        print(f"nas_plain.py: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
