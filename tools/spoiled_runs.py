"""Runs of which a rank spoils memory, messages or files of its own run, each drawn from a seed.

    python tools/spoiled_runs.py --seeds 1-50
    python tools/spoiled_runs.py --seeds 7 --engine simulated --kind control

Prints each run that does not end with a sentence, or leaves something; exit code 1 if one did.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import inputs

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.leaks import adopt_orphans  # noqa: E402
from support.spoiled_runs import ENGINES, KINDS, draw_spoiled, faults_of  # noqa: E402


def main() -> int:
    """Run the seeds; the exit code."""
    parser = argparse.ArgumentParser(prog="spoiled_runs.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=inputs.seeds, default="1-50", help="A-B or one (1-50)")
    parser.add_argument("--engine", choices=ENGINES, help="default: both")
    parser.add_argument("--kind", choices=KINDS, help="default: drawn")
    options = parser.parse_args()
    adopt_orphans()
    count = wrong = 0
    for seed in options.seeds:
        for engine in [options.engine] if options.engine else ENGINES:
            faults = faults_of(draw_spoiled(seed, engine, options.kind))
            count, wrong = count + 1, wrong + bool(faults)
            for fault in faults:
                print(fault, flush=True)
    print(f"{count} runs: {wrong} with a fault")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
