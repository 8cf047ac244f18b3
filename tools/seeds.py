"""Small simulated runs, each drawn from a seed, and checked for what may not get lost.

    python tools/seeds.py                  # seeds 1 to 10000
    python tools/seeds.py --seeds 1-500    # others
    python tools/seeds.py --seeds 4711     # one: what it drew, and what is wrong with it

Prints what is wrong with each seed that shows something, and how many runs a second were checked;
exit code 1 if any did.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

import inputs

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.chaos_scenes import Scene  # noqa: E402
from support.simulated_seeds import DEADLINE_S, draw_simulated, problems_of  # noqa: E402

# Of one task of a worker.
SEEDS_AT_A_TIME = 20


def main() -> int:
    """Run the seeds; the exit code."""
    parser = argparse.ArgumentParser(prog="seeds.py", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seeds", type=inputs.seeds, default="1-10000", help="A-B or one (1-10000)"
    )
    jobs = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=jobs, help=f"runs at a time ({jobs})")
    options = parser.parse_args()
    inputs.check(options, {"jobs": inputs.JOBS})
    seeds = options.seeds
    if len(seeds) == 1:
        print(Scene(seeds[0], (), DEADLINE_S, draw_simulated(seeds[0])))
    began, wrong = time.monotonic(), 0
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        found = pool.imap(problems_of, seeds, SEEDS_AT_A_TIME)
        for seed, problems in zip(seeds, found, strict=True):
            wrong += bool(problems)
            for problem in problems:
                print(f"seed {seed}: {problem}", flush=True)
    took_s = time.monotonic() - began
    rate = len(seeds) / took_s
    print(f"{len(seeds)} seeds in {took_s:.0f} s, {rate:.0f} a second: {wrong} with a problem")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
