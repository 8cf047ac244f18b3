"""Runs benchmarks: mpirun -n RANKS python -m shrimpmx.applications.imb PingPong Alltoall."""

from __future__ import annotations

import platform
import shlex
import sys
import time

from shrimpmx.applications import refuse_without_mpi

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:
    refuse_without_mpi("imb", error)

from shrimpmx.applications.imb.benchmark import Benchmark, measure
from shrimpmx.applications.imb.collectives import (
    Allgather,
    Allreduce,
    Alltoall,
    Alltoallv,
    Barrier,
    Bcast,
    Reduce,
    ReduceScatter,
)
from shrimpmx.applications.imb.options import Options, RefusedError, groups, parse, repetitions
from shrimpmx.applications.imb.table import head, row, row_left_out
from shrimpmx.applications.imb.transfers import Exchange, PingPing, PingPong, Sendrecv

Kind = type[Benchmark]
KINDS: tuple[Kind, ...] = (
    *(PingPong, PingPing, Sendrecv, Exchange),
    *(Allreduce, Reduce, ReduceScatter, Allgather, Alltoall, Alltoallv, Bcast, Barrier),
)
BY_NAME = {kind.layout.name: kind for kind in KINDS}


def options_of(words: list[str], ranks: int) -> Options | str:
    """The options of a command line; or why it cannot be used, "" if it asks for help."""
    try:
        options = parse(words, tuple(BY_NAME))
    except RefusedError as error:
        return str(error)
    except SystemExit:
        return ""
    if ranks < 2:
        return "these benchmarks need 2 ranks or more: start them by mpirun -n 2"
    return options


def title(words: list[str], options: Options, ranks: int) -> str:
    """What stands above all tables."""
    library = MPI.Get_library_version().splitlines()[0].strip("\0 ")
    lines = (
        "IMB's MPI-1 benchmarks in mpi4py",
        f"date        {time.strftime('%Y-%m-%d %H:%M:%S')}",
        f"machine     {platform.machine()}, {platform.system()} {platform.release()}",
        f"MPI         {'.'.join(map(str, MPI.Get_version()))}, {library}",
        f"ranks       {ranks}",
        f"arguments   {shlex.join(words)}",
        "messages    MPI_BYTE; reductions: MPI_FLOAT by MPI_SUM",
        "Mbytes/sec  10^6 bytes a second",
        f"benchmarks  {' '.join(options.benchmarks)}",
    )
    return "\n".join(f"# {line}" for line in lines)


def run(kind: Kind, options: Options, group: MPI.Intracomm, waiting: int) -> int:
    """All sizes of a benchmark on a group; the number of wrong bytes. Collective over the group."""
    first = group.rank == 0
    if first:
        print(head(kind.layout, group.size, waiting, options.check), flush=True)
    defects = 0
    for size in options.sizes(kind.unit) if kind.layout.sized else [0]:
        needed_bytes = kind.memory_bytes(size, group.size)
        if needed_bytes > options.memory_bytes:
            if first:
                print(row_left_out(size, needed_bytes), flush=True)
            continue
        planned = repetitions(size, options.messages, options.overall_bytes)
        benchmark = kind(group, size, options.root_shift)
        sample = measure(
            benchmark, planned, options.limit_s, check=options.check, sync=options.sync
        )
        defects += sample.defects or 0
        if first:
            print(row(kind.layout, size, sample), flush=True)
    return defects


def run_on_groups(kind: Kind, options: Options, world: MPI.Intracomm) -> int:
    """A benchmark on each group of processes, while the others wait in a barrier; the number of
    wrong bytes, on rank 0. Collective."""
    defects = 0
    numbers = [2] if kind.layout.pair else groups(options.least_processes, world.size)
    for number in numbers:
        group = MPI.Intracomm(world.Split(0 if world.rank < number else 1, world.rank))
        if world.rank < number:
            defects += run(kind, options, group, world.size - number)
        group.Free()
        world.Barrier()
    return defects


def main(words: list[str]) -> int:
    """Returns the exit code: 1 if data are wrong, 2 if the command line cannot be used."""
    world = MPI.COMM_WORLD
    options = world.bcast(options_of(words, world.size) if world.rank == 0 else None)
    if isinstance(options, str):
        if world.rank == 0 and options:
            print(f"imb: {options}", file=sys.stderr, flush=True)
        return 2 if options else 0
    if world.rank == 0:
        print(title(words, options, world.size), flush=True)
    wrong = sum(run_on_groups(BY_NAME[name], options, world) for name in options.benchmarks)
    wrong = world.bcast(wrong)
    if wrong and world.rank == 0:
        print(f"imb: {wrong} bytes were delivered wrongly", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
