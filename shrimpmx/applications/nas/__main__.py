"""Runs a benchmark: mpirun -n RANKS python -m shrimpmx.applications.nas KERNEL CLASS."""

from __future__ import annotations

import argparse
import sys
from bisect import bisect
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

from shrimpmx.applications import refuse_without_mpi

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:
    refuse_without_mpi("nas", error)

from shrimpmx.applications.nas.kernel import Kernel, Outcome

# Where each one is; only the one that runs is loaded.
KERNELS = {
    "BT": "shrimpmx.applications.nas.block_tridiagonal:BlockTridiagonal",
    "CG": "shrimpmx.applications.nas.conjugate_gradient:ConjugateGradient",
    "EP": "shrimpmx.applications.nas.ep:EmbarrassinglyParallel",
    "FT": "shrimpmx.applications.nas.fourier_transform:FourierTransform",
    "IS": "shrimpmx.applications.nas.integer_sort:IntegerSort",
    "LU": "shrimpmx.applications.nas.lower_upper:LowerUpper",
    "MG": "shrimpmx.applications.nas.multigrid:Multigrid",
    "SP": "shrimpmx.applications.nas.scalar_pentadiagonal:ScalarPentadiagonal",
}
CLASSES = ("S", "W", "A", "B")


def kernel_named(name: str) -> Kernel[Any]:
    """The benchmark of one of the names in KERNELS."""
    module, _, attribute = KERNELS[name].partition(":")
    kernel: Kernel[Any] = getattr(import_module(module), attribute)()
    return kernel


def refusal(kernel: Kernel[Any], problem: Any, ranks: int, memory_bytes: int | None) -> str | None:
    """Why it can't run on so many ranks of a machine with so much memory, if known; or None."""
    if not kernel.takes_ranks(ranks, problem):
        allowed = " or ".join(map(str, nearest_ranks(kernel, problem, ranks)))
        return (
            f"{kernel.name}'s number of ranks must be {kernel.ranks_rule()}, not {ranks}: "
            f"take {allowed}"
        )
    needed = kernel.memory_bytes(problem, ranks)
    if memory_bytes is not None and needed > memory_bytes:
        return (
            f"{kernel.name} needs about {needed / 1e9:.1f} GB for this class, and this machine has "
            f"{memory_bytes / 1e9:.1f} GB free: take a smaller class"
        )
    return None


def nearest_ranks(kernel: Kernel[Any], problem: Any, ranks: int) -> list[int]:
    """The next smaller number of ranks that it takes, and the next larger one, if there is one."""
    # Powers of two and squares: the next one is at most the double.
    taken = [count for count in range(1, 2 * ranks + 1) if kernel.takes_ranks(count, problem)]
    at = bisect(taken, ranks)
    return taken[max(0, at - 1) : at + 1]


def free_memory_bytes() -> int | None:
    """Memory that new processes can have without swapping; None if the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = (line.split()[1] for line in lines if line.startswith("MemAvailable"))
    return next((int(size) * 1024 for size in sizes), None)


def show(kernel: Kernel[Any], problem: Any, letter: str, ranks: int, outcome: Outcome) -> None:
    """Prints the result in NPB's order."""
    seconds = outcome.seconds
    print(f"NAS Parallel Benchmarks: {kernel.name}, {kernel.title}, class {letter}")
    print(f"size           {kernel.describe(problem)}")
    print(f"ranks          {ranks}")
    print(f"time, s        {seconds:.6g}")
    print(f"Mop/s          {outcome.operations / seconds / 1e6:.6g}")
    for check in outcome.checks:
        verdict = "holds" if check.holds else "WRONG"
        print(f"check          {check.name}: {check.computed:.15g}, "
              f"official {check.official:.15g}: {verdict}")  # fmt: skip
    successful = all(check.holds for check in outcome.checks)
    print(f"verification   {'successful' if successful else 'FAILED'}", flush=True)


class Parser(argparse.ArgumentParser):
    """Of the words that all ranks have alike: rank 0 alone says what is wrong with them."""

    def error(self, message: str) -> NoReturn:
        """Ends all ranks, each its own process, with exit code 2."""
        self.exit(2, f"nas: {message}\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends this rank's process."""
        super().exit(status, message if MPI.COMM_WORLD.rank == 0 else None)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Prints it once."""
        if MPI.COMM_WORLD.rank == 0:
            super().print_help(file)


def main(words: list[str]) -> int:
    """Returns the exit code: 1 if a verification value is wrong, 2 if it can't run."""
    parser = Parser(prog="nas", description=__doc__)
    parser.add_argument(
        "kernel", type=str.upper, choices=KERNELS, metavar="KERNEL", help=", ".join(KERNELS)
    )
    parser.add_argument(
        "problem_class", type=str.upper, choices=CLASSES, metavar="CLASS", help=", ".join(CLASSES)
    )
    parser.add_argument(
        "--iterations",
        type=int,
        metavar="N",
        help="first N of the ten iterations of IS, each verified",
    )
    options = parser.parse_args(words)
    world = MPI.COMM_WORLD
    kernel = kernel_named(options.kernel)
    problem = kernel.problems[options.problem_class]
    if options.iterations is not None:
        problem = kernel.shortened(problem, options.iterations)
        if problem is None:
            parser.error(
                f"{kernel.name} cannot have {options.iterations} iterations: only IS takes fewer "
                "than NPB's, 1 to 10"
            )
    why_not = refusal(kernel, problem, world.size, free_memory_bytes()) if world.rank == 0 else None
    if (why_not := world.bcast(why_not)) is not None:
        if world.rank == 0:
            print(f"nas: {why_not}", file=sys.stderr)
        return 2
    outcome = kernel.run(problem, world)
    slowest = world.allreduce(outcome.seconds, MPI.MAX)
    if world.rank == 0:
        whole = Outcome(slowest, outcome.operations, outcome.checks)
        show(kernel, problem, options.problem_class, world.size, whole)
    return 0 if all(check.holds for check in outcome.checks) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
