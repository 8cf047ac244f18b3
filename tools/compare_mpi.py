"""shrimpmx's MPI beside Open MPI and MPICH: the same programs of mpi4py on one node, in turns.

    python tools/compare_mpi.py                      # some minutes
    python tools/compare_mpi.py pingpong --turns 9   # measurements whose names begin so

Debian's packages openmpi-bin and mpich; one that is not installed is left out. Prints the median of
the turns for each MPI, and the median of the turns' ratios between shrimpmx and the better of the
others: above 1 shrimpmx is better. A turn runs all of them, one after another.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import inputs  # noqa: E402
from other_mpis import Mpi, mpich, open_mpi  # noqa: E402

from shrimpmx.cluster.place.topology import Topology  # noqa: E402

PROGRAM = str(ROOT / "tools/compare_mpi_program.py")
LIMIT_S = 120.0
# Of the NAS Parallel Benchmarks: a second or less each.
KERNELS = ("CG S", "FT S", "IS W", "LU S", "MG S")
BUSY_LOOP = "while True: pass"


@dataclass(frozen=True)
class Measurement:
    """A figure or two: what the program is asked for, and by which strategies our ranks wait."""

    name: str
    ranks: int
    words: tuple[str, ...]
    cpus: tuple[int, ...]
    units: tuple[tuple[str, float], ...] = (("µs", 1e6),)
    waits: tuple[str, ...] = ("",)  # "": what mpirun takes by itself
    is_rate: bool = False
    has_hogs: bool = False
    is_bound: bool = True  # each rank to one of the CPUs, or none of them (--bind-to none)


def measurements() -> Iterator[Measurement]:
    """Near and far, as far as this machine has both; then what needs two CPUs of any kind."""
    examples = Topology.of_this_machine().examples()
    apart = [pair for pair in examples.values() if len(set(pair)) == 2]
    if not apart:
        print("compare_mpi.py: two CPUs are needed, and this process has one", file=sys.stderr)
        raise SystemExit(2)
    places = {"near": apart[0], "far": apart[-1]} if len(apart) > 1 else {"": apart[0]}
    if len(apart) == 1:
        print("All CPUs are equally far apart here: nothing is measured twice.")
    for place, cpus in places.items():
        behind = f", {place}" if place else ""
        yield Measurement(f"pingpong of 8 B{behind}", 2, ("pingpong", "8", "2000"), cpus)
        yield Measurement(f"bandwidth of 4 MiB{behind}", 2, ("bandwidth", str(4 << 20), "10"), cpus,
                          (("GB/s", 1.0),), is_rate=True)  # fmt: skip
        yield Measurement(f"rate of 8 B in a window of 64{behind}", 2, ("rate", "64", "200"), cpus,
                          (("M/s", 1.0),), is_rate=True)  # fmt: skip
    cpus = apart[-1]
    yield Measurement("start of 4 ranks", 4, ("start",), cpus, (("s", 1.0),))
    for size_bytes in (1024, 65536):
        words = ("alltoall", str(size_bytes), "30")
        yield Measurement(f"alltoall of {size_bytes >> 10} KiB, 4 ranks", 4, words, cpus)
    both = (("µs wall", 1e6), ("µs CPU", 1e6))
    yield Measurement("five pairs, 0 to 300 µs burnt", 10, ("pairs", "300", "200"), cpus, both,
                      waits=("sched", "block", "spin-block"))  # fmt: skip
    for ranks, waits in ((2, ("",)), (8, ("sched", "block"))):
        for kernel in KERNELS:
            words = ("nas", *kernel.split())
            yield Measurement(f"{kernel}, {ranks} ranks", ranks, words, cpus, (("s", 1.0),), waits)
    for kernel in KERNELS:
        yield Measurement(f"unbound, {kernel}, 8 ranks", 8, ("nas", *kernel.split()), cpus,
                          (("s", 1.0),), ("sched", "block"), is_bound=False)  # fmt: skip
    yield Measurement("pingpong of 8 B, a hog on each CPU", 2, ("pingpong", "8", "50"), cpus,
                      waits=("block", "spin-block"), has_hogs=True)  # fmt: skip


def ours(wait: str, is_bound: bool) -> Mpi:
    """shrimpmx by one of its waiting strategies, or by that which mpirun takes by itself."""
    settings = ("--set", f"wait={wait}") if wait else ()
    settings += () if is_bound else ("--bind-to", "none")
    command = (sys.executable, "-m", "shrimpmx", "mpirun", "--nodes", "1", *settings, "-n")
    return Mpi(f"shrimpmx {wait}".strip(), command, {"PYTHONPATH": str(ROOT)})


def installed(scratch: Path) -> list[Mpi]:
    """The other MPIs that are here; one that is not is named."""
    found = {"Open MPI": open_mpi(), "MPICH": mpich(scratch)}
    for name in (name for name, mpi in found.items() if mpi is None):
        print(f"{name} is left out: it is not installed.")
    return [mpi for mpi in found.values() if mpi is not None]


def measure(mpi: Mpi, one: Measurement) -> list[float]:
    """One run; its figures in the measurement's units, or none if it failed."""
    variables = {"OPENBLAS_NUM_THREADS": "1", "COMPARE_BEGAN": str(time.time()), **mpi.variables}
    if one.is_bound and not mpi.name.startswith("shrimpmx"):  # whose launcher binds ranks
        variables["COMPARE_CPUS"] = ",".join(map(str, one.cpus))
    try:
        done = subprocess.run(
            [*mpi.command, str(one.ranks), sys.executable, PROGRAM, *one.words],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, one.cpus),
        )
    except subprocess.TimeoutExpired:
        print(f"{one.name}: {mpi.name} took more than {LIMIT_S:.0f} s", file=sys.stderr)
        return []
    found = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("figure")]
    if not found:
        print(f"{one.name}: {mpi.name} failed: {done.stderr[-300:]}", file=sys.stderr)
        return []
    return [float(text) * scale for text, (_, scale) in zip(found[0], one.units, strict=True)]


@contextmanager
def hogs(cpus: Sequence[int]) -> Iterator[None]:
    """A process on each of the CPUs that never sleeps."""
    running = []
    for cpu in cpus:
        running.append(subprocess.Popen([sys.executable, "-c", BUSY_LOOP]))
        os.sched_setaffinity(running[-1].pid, {cpu})
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def compare(one: Measurement, others: Sequence[Mpi], turns: int) -> None:
    """Run all MPIs in turns, and print a row for each figure."""
    mpis = [*(ours(wait, one.is_bound) for wait in one.waits), *others]
    figures: dict[str, list[list[float]]] = {mpi.name: [] for mpi in mpis}
    for turn in range(turns):
        for mpi in mpis if turn % 2 == 0 else reversed(mpis):
            with hogs(one.cpus if one.has_hogs else ()):
                figures[mpi.name].append(measure(mpi, one))
    for place, (unit, _) in enumerate(one.units):
        of = {
            title: [figure[place] for figure in found if figure]
            for title, found in figures.items()
            if all(found)
        }
        print(f"{one.name}, {unit}: {_row(one, of)}", flush=True)


def _row(one: Measurement, of: dict[str, list[float]]) -> str:
    """Medians, and how many times as good as the better of the others ours is."""
    parts = [f"{title} {statistics.median(found):.3g}" for title, found in of.items()]
    others = [found for title, found in of.items() if not title.startswith("shrimpmx")]
    best = max if one.is_rate else min
    for title, found in of.items() if others else ():
        if title.startswith("shrimpmx"):
            better = [best(turn) for turn in zip(*others, strict=True)]
            ratios = [a / b if one.is_rate else b / a for a, b in zip(found, better, strict=True)]
            parts.append(
                f"{title.removeprefix('shrimpmx ')} {statistics.median(ratios):.2f} times as good"
            )
    return "; ".join(parts)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="how those begin that are wanted (all)")
    parser.add_argument("--turns", type=int, default=5, help="(5)")
    options = parser.parse_args()
    inputs.check(options, {"turns": (1, 1000)})
    wanted = [one for one in measurements() if one.name.startswith(tuple(options.names) or "")]
    if not wanted:
        inputs.refuse(f"no measurement begins with {' or '.join(options.names)}")
    with tempfile.TemporaryDirectory() as scratch:
        others = installed(Path(scratch))
        for one in wanted:
            compare(one, others, options.turns)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
