"""Small clusters under drawn schedules: every seed is an order of steps, faults and deaths.

    python tools/schedules.py                      # seeds 1 to 200
    python tools/schedules.py --seeds 5000-9000    # others
    python tools/schedules.py --seeds 4711         # one, again: what it drew, and what happened

The compiled modules are built once more, into build/schedules, with the headers of
tests/support/scheduled: before each atomic operation, sleep and lock the agent whose turn it is may
have to wait, or die. Each seed runs twice, in processes of their own; both must take the same
steps. Prints the seeds that show a problem; exit code 1 then.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCHEDULED = ROOT / "tests" / "support" / "scheduled"
WORLD = ROOT / "tests" / "support" / "scheduled_world.py"
# What a world needs; the rest of the project is not built again.
PACKAGES = "native,shared,wire,link,wait,nic,host,mx,cluster"
LIMIT_S = 300  # of one seed, however slow the machine is: it hangs then


def main() -> int:
    """Run the seeds; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="1-200", help="A-B or one (1-200)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "schedules")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="seeds at a time")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    try:
        seeds = range(int(first), int(last or first) + 1)
    except ValueError:
        parser.error(f"--seeds takes A-B or a number, not {options.seeds!r}")
    tree = built(options.build)
    began, steps, wrong = time.monotonic(), 0, 0
    for seed, result, problem in results(tree, seeds, options.jobs):
        steps += result.get("steps", 0)
        if problem or len(seeds) == 1:
            print(f"seed {seed}: {problem or 'no problem'}\n  {json.dumps(result)}", flush=True)
        wrong += bool(problem)
    took = time.monotonic() - began
    print(f"{len(seeds)} seeds, {steps} steps in {took:.0f} s, each twice: {wrong} with a problem")
    return 1 if wrong else 0


def built(tree: Path) -> Path:
    """The tree with the scheduled build, made or brought up to date."""
    listed = subprocess.run(
        ["git", "ls-files", "setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE*",
         "shrimpmx"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.split():
        copy_newer(ROOT / name, tree / name)
    changed = [
        copy_newer(path, tree / path.relative_to(ROOT)) for path in SCHEDULED.rglob("*.[ch]")
    ]
    if any(changed):  # setup.py does not know that the modules depend on these
        shutil.rmtree(tree / "build", ignore_errors=True)
        for path in (tree / "shrimpmx").rglob("*.so"):
            path.unlink()
    environment = os.environ | {
        "CFLAGS": f"-I{tree / SCHEDULED.relative_to(ROOT)}",
        "SHRIMPMX_BUILD": PACKAGES,
    }
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(command, cwd=tree, check=True, env=environment)
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-O2", "-D_GNU_SOURCE", "-std=gnu11", "-fPIC", "-shared", "-o",
         str(tree / "libscheduler.so"), str(SCHEDULED / "scheduler.c")],
        check=True,
    )  # fmt: skip
    return tree


def copy_newer(source: Path, target: Path) -> bool:
    """Copy a file unless the copy is as it is; a build then takes only what has changed. Whether it
    was copied.
    """
    if target.exists() and source.read_bytes() == target.read_bytes():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    return True


def results(tree: Path, seeds: range, jobs: int) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Of each seed: what its world told, and what is wrong with it."""

    def both(seed: int) -> tuple[int, dict[str, Any], str]:
        result, problem = one(tree, seed)
        if not problem:
            again, problem = one(tree, seed)
            if not problem and again["hash"] != result["hash"]:
                problem = "its second run took other steps"
        return seed, result, problem

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(both, seeds)


def one(tree: Path, seed: int) -> tuple[dict[str, Any], str]:
    """One world of this seed."""
    environment = os.environ | {
        "SHRIMPMX_SCHEDULER": str(tree / "libscheduler.so"),
        "PYTHONPATH": f"{tree}:{ROOT / 'tests'}",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",  # whose threads are no agents
    }
    try:
        done = subprocess.run(
            [sys.executable, str(WORLD), str(seed)],
            env=environment, cwd=tree, capture_output=True, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {}, f"not done after {LIMIT_S} s"
    try:
        result: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {}, f"it ended with {done.returncode}: {done.stderr.strip()[-500:]}"
    return result, "; ".join(result["problems"])


if __name__ == "__main__":
    sys.exit(main())
