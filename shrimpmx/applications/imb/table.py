"""The tables of results, in IMB's columns."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

WIDTH = 13  # of a column
MICROSECONDS = 1e6
MEGABYTE = 1e6


@dataclass(frozen=True)
class Layout:
    """What the table of a benchmark shows."""

    name: str
    pair: bool = False  # it runs on two processes, with one time: that of the slower
    sized: bool = True  # messages have a size
    moved: int = 0  # messages of that size that a process moves in the time shown; 0: no rate


@dataclass(frozen=True)
class Sample:
    """What the repetitions of one size gave: times of a call in seconds, over the processes."""

    repetitions: int
    least_s: float
    most_s: float
    mean_s: float
    defects: int | None = None  # wrong bytes in all processes, if they were counted


def columns(layout: Layout, checked: bool) -> list[str]:
    """The heads of the columns of a benchmark."""
    size = ["#bytes"] if layout.sized else []
    times = ["t[usec]"] if layout.pair else ["t_min[usec]", "t_max[usec]", "t_avg[usec]"]
    rate = ["Mbytes/sec"] if layout.moved else []
    return [
        *size,
        "#repetitions",
        *times,
        *rate,
        *(["defects"] if checked and layout.sized else []),
    ]


def head(layout: Layout, processes: int, waiting: int, checked: bool) -> str:
    """What stands above the rows of a benchmark on some of the processes."""
    names = columns(layout, checked)
    line = "#" + "-" * (WIDTH * len(names) - 1)
    title = [f"# Benchmarking {layout.name}", f"# #processes = {processes}"]
    if waiting:
        title.append(f"# ({waiting} more in MPI_Barrier meanwhile)")
    return "\n".join(["", line, *title, line, "".join(name.rjust(WIDTH) for name in names)])


def row(layout: Layout, size: int, sample: Sample) -> str:
    """A line of the table. Rates are those of the slowest process, in 10^6 bytes a second."""
    words = [str(size)] if layout.sized else []
    words.append(str(sample.repetitions))
    times = [sample.most_s] if layout.pair else [sample.least_s, sample.most_s, sample.mean_s]
    figures = [time_s * MICROSECONDS for time_s in times]
    if layout.moved:
        slowest_s = sample.most_s
        figures.append(layout.moved * size / slowest_s / MEGABYTE if slowest_s > 0 else 0.0)
    words += [f"{figure:.2f}" for figure in figures]
    if layout.sized and sample.defects is not None:
        words.append(f"{sample.defects:.2f}")
    return "".join(word.rjust(WIDTH) for word in words)


def row_left_out(size: int, needed_bytes: int) -> str:
    """The line of a size whose buffers would need more memory than allowed."""
    # Rounded up, so that what it advises is enough.
    needed = f"{ceil(needed_bytes / 1e6) / 1e3:.3f}"
    return (
        f"{size:{WIDTH}} left out: a process needs {needed} GB for it; allow that by -mem {needed}"
    )
