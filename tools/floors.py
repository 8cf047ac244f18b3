"""How close the emulator comes to its floors: bare C programs that do what a row cannot do without.

    python tools/floors.py                  # all of them, about half a minute
    python tools/floors.py receive          # those whose names begin so
    python tools/floors.py --turns 9

Compiles the programs, runs each in turns with the row of `shrimpmx bench` that it bounds, and
prints both medians and the median of the turns' ratios: 1.00 is as fast as the floor. The ratio
of two neighbours in time is what lasts on a shared machine. docs/performance.md says what is in a
floor.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import inputs
import numpy as np

from shrimpmx.bench.run import benchmarks
from shrimpmx.experiment.engines import chosen_engine

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("receive_floor", "pingpong_floor", "waiting_sketch")
# As the extension modules are built.
OPTIONS = ("-O2", "-std=gnu11", "-pthread", "-Ishrimpmx")
TURNS = 5
# A turn of a row, s; in one second so much is done where nothing is slow.
SECONDS = 0.5
MESSAGES_PER_SECOND = 4_000_000
ROUND_TRIPS_PER_SECOND = 10_000
# Five pairs that compute for 0 to 300 us before each send: figure 3 of the waiting paper.
PAIRS, MOST_US, EXCHANGES = 5, 300, 250


@dataclass(frozen=True)
class Floor:
    """A program with its arguments, and the row that it bounds, both in `unit`.

    `program` prints its figure; `row` measures one turn of the emulator's.
    """

    name: str
    unit: str
    program: tuple[str, ...]
    row: Callable[[], float]
    is_rate: bool = False


def floors(seconds: float) -> list[Floor]:
    """Every floor with its row, of which a turn takes about `seconds`."""
    messages = str(max(20_000, int(seconds * MESSAGES_PER_SECOND)))
    round_trips = str(max(100, int(seconds * ROUND_TRIPS_PER_SECOND)))
    measures = {each.name: each.measure for each in benchmarks(chosen_engine())}
    cpus = tuple(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])

    def row(name: str, scale: float = 1.0) -> Callable[[], float]:
        return lambda: float(np.median(measures[name](seconds).figures)) / scale

    found = [
        Floor(
            f"receive path, {coalescing}",
            "M msg/s",
            ("receive_floor", coalescing, messages, *cpus),
            row(f"receive_path_128B[{coalescing},block,no-limit]", 1e6),
            is_rate=True,
        )
        for coalescing in ("stream", "timeout")
    ]
    found.append(
        Floor(
            "ping-pong 0 B, two nodes",
            "us",
            ("pingpong_floor", round_trips, *cpus),
            row("pingpong_0B[disabled]"),
        )
    )
    found += [
        Floor(
            f"waiting, five pairs, {wait}",
            "us",
            ("waiting_sketch", wait, str(PAIRS), "0", str(MOST_US), str(EXCHANGES)),
            partial(waiting_row, wait),
        )
        for wait in ("block", "sched")
    ]
    return found


def waiting_row(wait: str) -> float:
    """Wall time of a rank per round trip in figure 3 of the waiting paper, us."""
    settings = {"platform": "none", "pairs": PAIRS, "wait": wait, "repeats": 1}
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(
            [
                *(sys.executable, "-m", "shrimpmx", "run", "waiting/fig3_multiprogramming"),
                *(f"{key}={value}" for key, value in settings.items()),
                *("--output", f"{place}/result", "--json", f"{place}/result.json"),
            ],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        result = json.loads(Path(place, "result.json").read_text())
    return float(result["points"][0]["metrics"]["wall_time"]["median"])


def compile_programs(compiler: str, place: Path) -> None:
    """Build every floor in `place`."""
    for name in PROGRAMS:
        subprocess.run(
            [compiler, *OPTIONS, "-o", str(place / name), f"tools/{name}.c"],
            cwd=ROOT,
            check=True,
        )


def figure_of(floor: Floor, place: Path) -> float:
    """One turn of a floor's program."""
    program, *words = floor.program
    done = subprocess.run(
        [place / program, *words], capture_output=True, text=True, check=True, timeout=120
    )
    figure = float(re.findall(r"[0-9.]+", done.stdout)[0])
    return figure / 1e6 if floor.is_rate else figure


def compare(floor: Floor, place: Path, turns: int) -> str:
    """A line with the floor, the row, and their ratio."""
    pairs = np.array([(figure_of(floor, place), floor.row()) for _ in range(turns)])
    bare, measured = pairs[:, 0], pairs[:, 1]
    ratios = measured / bare if floor.is_rate else bare / measured
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    return (
        f"{floor.name:28} {np.median(bare):9.4g} {np.median(measured):9.4g} {floor.unit:8}"
        f" {middle:5.2f}  ({low:.2f} to {high:.2f})"
    )


def main() -> int:
    """Compare what the command line names, or all; 0, also without a compiler."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of names")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"of each pair ({TURNS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of a turn ({SECONDS})")
    options = parser.parse_args()
    inputs.check(options, {"turns": (1, 1000), "seconds": (0.01, 1000)})
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("floors: not measured, since there is no C compiler (cc or gcc) to build them")
        return 0
    if len(os.sched_getaffinity(0)) < 2:
        print("floors: not measured, since they need two CPUs and this process may use only one")
        return 0
    every = floors(options.seconds)
    chosen = [f for f in every if not options.names or f.name.startswith(tuple(options.names))]
    if not chosen:
        parser.error(f"there are {', '.join(repr(floor.name) for floor in every)}")
    with tempfile.TemporaryDirectory() as place:
        compile_programs(compiler, Path(place))
        print(f"{'':28} {'floor':>9} {'measured':>9} {'':8} ratio  (middle half of the turns)")
        for floor in chosen:
            print(compare(floor, Path(place), options.turns), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
