"""Whether `shrimpmx explore` finds what is known to be best, of programs made so that it is known.

usage: explore_known.py [--times N] [--budget S] [NAME ...]

    ring       small messages between two nodes, one at a time: each one that waits for the
               coalescing timer takes 75 us longer
    transpose  large blocks: an interrupt for each packet is the most that there can be
    crowd      more ranks than CPUs, which compute: a rank that spins keeps another from computing
    server     a rank waits for rare requests: only one that sleeps needs no CPU for that

Each is explored N times (3) within S seconds (60) under eight settings, on two of this machine's
CPUs, with another seed each time. Exit code 0 if each recommendation is one of the best.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parent.parent / "scenarios/programs"
CPUS = 2

Setting = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A program with its options, and what the best settings have in common."""

    options: tuple[str, ...]
    program: tuple[str, ...]
    best: str
    is_best: Callable[[Setting], bool]


CASES = {
    "ring": Case(
        ("-n", "2", "--wait", "block,spin-block"),
        ("ring.py", "2000"),
        "any coalescing but timeout",
        lambda shown: shown["coalescing"] != "timeout",
    ),
    "transpose": Case(
        ("-n", "2", "--for", "interrupts", "--wait", "block,spin-block"),
        ("transpose.py",),
        "coalescing timeout or stream",
        lambda shown: shown["coalescing"] in ("timeout", "stream"),
    ),
    "crowd": Case(
        ("-n", "4", "--coalescing", "timeout,stream", "--placement", "per-queue"),
        ("crowd.py",),
        "any waiting but spin",
        lambda shown: shown["wait"] != "spin",
    ),
    "server": Case(
        ("-n", "2", "--for", "cpu", "--coalescing", "timeout,stream"),
        ("server.py",),
        "waiting block",
        lambda shown: shown["wait"] == "block",
    ),
}


def explored(case: Case, budget_s: float, seed: int, place: Path) -> dict[str, Any]:
    """The result of one exploration."""
    result = place / "explored.json"
    command = [sys.executable, "-m", "shrimpmx", "explore", *case.options]
    command += ["--budget", f"{budget_s:g}", "--seed", str(seed)]
    command += ["--output", str(place / "result"), "--json", str(result)]
    program, *arguments = case.program
    command += [sys.executable, str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not result.exists():
        raise SystemExit(done.stderr)
    if done.returncode:
        print(done.stderr.splitlines()[-1])
    print(done.stdout[done.stdout.index("Recommended") :].partition("\n\n")[0], flush=True)
    document: dict[str, Any] = json.loads(result.read_text())
    return document


def shown_of(document: dict[str, Any]) -> Setting:
    """The parameters of the recommended setting."""
    shown: Setting = document["explore"]["parameters"]
    return shown


def main() -> int:
    """Explore each program; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=3, metavar="N")
    parser.add_argument("--budget", type=float, default=60.0, metavar="S")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    options = parser.parse_args()
    for name in options.names:
        if name not in CASES:
            parser.error(f"there is no program {name!r}; there are {', '.join(CASES)}")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CPUS])
    missed = 0
    for name in options.names or CASES:
        case, found = CASES[name], 0
        for seed in range(1, options.times + 1):
            print(f"\n{name}, seed {seed}; best by construction: {case.best}", flush=True)
            with tempfile.TemporaryDirectory() as place:
                document = explored(case, options.budget, seed, Path(place))
            found += case.is_best(shown_of(document))
        print(f"{name}: {found} of {options.times} recommendations are among the best", flush=True)
        missed += options.times - found
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
