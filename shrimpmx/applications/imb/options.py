"""The options of IMB that there are here, and the reasons why others are not; sizes,
repetitions and groups of processes by its rules.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NoReturn

MESSAGES = 1000  # repetitions of a sample, at most
OVERALL_BYTES = 40 << 20  # that a sample moves by its repetitions, at most
SECONDS = 10.0  # that a sample takes, about
LOGS = (0, 22)  # of the smallest size but 0, and of the largest
LARGEST_LOG = 30  # a length must be an int of MPI


def sizes_by_log(low: int, high: int, unit: int) -> list[int]:
    """0 and the powers of two from 2^low to 2^high bytes, none below an element of `unit` bytes."""
    return [0, *(1 << log for log in range(low, high + 1) if 1 << log >= unit)]


def whole_units(sizes: Iterable[int], unit: int) -> list[int]:
    """The sizes in order, each as so many whole elements of `unit` bytes, and each once."""
    return list(dict.fromkeys(size - size % unit for size in sizes))


def repetitions(size: int, most: int, overall_bytes: int) -> int:
    """`most`, or as many as move `overall_bytes` with messages of `size` bytes; at least 1."""
    return max(1, min(most, overall_bytes // size)) if size else most


def within(planned: int, call_s: float, limit_s: float) -> int:
    """Of the planned repetitions those that a time limit allows, at `call_s` seconds a call."""
    return max(1, min(planned, int(limit_s / call_s))) if call_s > 0 else planned


def groups(least: int, ranks: int) -> list[int]:
    """Numbers of processes to run on: `least`, doubled while it is less, and all `ranks`."""
    found = []
    while least < ranks:
        found.append(least)
        least *= 2
    return [*found, ranks]


MEGABYTE = 1 << 20  # of -iter
MEMORY_BYTES = 10**9  # of the buffers of a process
ON_OFF = {"on": True, "off": False}

# Options of IMB-MPI1 that are refused, and what to do instead.
REFUSED = {
    "-multi": "one group runs at a time",
    "-map": "choose the places of ranks by mpirun, as by its --map-by",
    "-off_cache": "buffers are used again in each repetition",
    "-thread_level": "mpi4py initialises MPI: set MPI4PY_RC_THREAD_LEVEL",
    "-include": "name the benchmarks that you want",
    "-exclude": "name the benchmarks that you want",
    "-imb_barrier": "barriers are those of MPI",
    "-data_type": "messages are bytes, and reductions sum floats",
    "-red_data_type": "messages are bytes, and reductions sum floats",
    "-contig_type": "messages are contiguous",
    "-zero_size": "name the sizes that you want by -msglen",
    "-warm_up": "each size is warmed up",
    "-aggregate_mode": "MPI-1 has one mode",
    "-mem_alloc_type": "buffers are numpy's",
}


class RefusedError(Exception):
    """The command line cannot be used; the text says why."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    benchmarks: tuple[str, ...]
    messages: int = MESSAGES
    overall_bytes: int = OVERALL_BYTES
    limit_s: float | None = SECONDS  # None: no limit
    logs: tuple[int, int] = LOGS
    lengths: tuple[int, ...] = ()  # in place of powers of two
    least_processes: int = 2
    memory_bytes: float = MEMORY_BYTES
    sync: bool = True
    root_shift: bool = False
    check: bool = False

    def sizes(self, unit: int) -> list[int]:
        """Sizes in bytes, of messages with elements of `unit` bytes."""
        return whole_units(self.lengths, unit) if self.lengths else sizes_by_log(*self.logs, unit)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusedError(message)


def parser(known: Sequence[str]) -> argparse.ArgumentParser:
    """The command line. Rank 0 alone parses it, since it prints the help."""
    made = _Parser(
        prog="imb",
        allow_abbrev=False,
        description="IMB's MPI-1 benchmarks in mpi4py.",
        add_help=False,
    )
    add = made.add_argument
    add("benchmark", nargs="*", help=f"{', '.join(known)}; all of them if none is named")
    add("-h", "-help", "--help", action="help", help="shows this")
    add("-input", metavar="FILE", help="a file with names of benchmarks, one a line")
    add("-npmin", type=int, default=2, metavar="N", help="processes of the smallest group (2)")
    add("-iter", default="", metavar="N[,MB]", help="most repetitions, and most MiB that these "
        f"move ({MESSAGES},{OVERALL_BYTES // MEGABYTE})")  # fmt: skip
    add("-iter_policy", choices=("dynamic", "off"), default="dynamic", help="off: no time limit")
    add("-time", type=float, default=SECONDS, metavar="S", help=f"limit of a size; {SECONDS:g} s")
    add("-mem", type=float, default=MEMORY_BYTES / 1e9, metavar="GB",
        help="leave out sizes with larger buffers per process; 1")  # fmt: skip
    add("-msglog", default="", metavar="[MIN:]MAX", help="sizes 0 and 2^MIN to 2^MAX; 0:22")
    add("-msglen", metavar="LENGTHS", help="these sizes: bytes with commas, or a file of lines")
    add("-sync", choices=ON_OFF, default="on", help="processes meet before each collective call")
    add("-root_shift", choices=ON_OFF, default="off", help="each process is the root in turn")
    add("-check", action="store_true", help="checks all data received; times are longer then")
    for name in REFUSED:
        add(name, nargs="?", help=argparse.SUPPRESS, default=argparse.SUPPRESS, dest=name)
    return made


def parse(words: Sequence[str], known: Sequence[str]) -> Options:
    """The options of a command line, or RefusedError; `known` are the benchmarks."""
    given = parser(known).parse_intermixed_args(list(words))
    for name, why in REFUSED.items():
        if name in given:
            raise RefusedError(f"there is no {name} here: {why}")
    names = [*given.benchmark, *(_lines(given.input, "-input") if given.input else ())]
    messages, overall_bytes = _iterations(given.iter)
    _require(given.npmin >= 2, f"-npmin must be at least 2, not {given.npmin}")
    for name, number in (("-time", given.time), ("-mem", given.mem)):
        _require(number > 0 and isfinite(number), f"{name} must be more than 0, not {number:g}")
    _require(not (given.msglog and given.msglen), "-msglog and -msglen exclude each other")
    return Options(
        tuple(dict.fromkeys(_known(name, known) for name in names)) or tuple(known),
        messages,
        overall_bytes,
        given.time if given.iter_policy == "dynamic" else None,
        _logs(given.msglog) if given.msglog else LOGS,
        _lengths(given.msglen) if given.msglen else (),
        given.npmin,
        given.mem * 1e9,
        ON_OFF[given.sync],
        ON_OFF[given.root_shift],
        given.check,
    )


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise RefusedError(sentence)


def _known(name: str, known: Sequence[str]) -> str:
    spelt = {each.lower(): each for each in known}
    _require(name.lower() in spelt, f"no benchmark {name!r}; there are {', '.join(known)}")
    return spelt[name.lower()]


def _lines(path: str, option: str) -> list[str]:
    """The lines of a file that have more than a comment."""
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"{option}: cannot read {path!r}: {error}") from None
    return [words for line in lines if (words := line.partition("#")[0].strip())]


def _whole(word: str, meaning: str, least: int, most: int) -> int:
    try:
        number = int(word)
    except ValueError:
        number = least - 1
    _require(least <= number <= most, f"{meaning} must be from {least} to {most}, not {word!r}")
    return number


def _iterations(words: str) -> tuple[int, int]:
    """Of -iter: the repetitions, and the bytes that they move."""
    if not words:
        return MESSAGES, OVERALL_BYTES
    number, _, megabytes = words.partition(",")
    messages = _whole(number, "the repetitions of -iter", 1, 10**9)
    if not megabytes:
        return messages, OVERALL_BYTES
    return messages, _whole(megabytes, "the MiB of -iter", 1, 10**6) * MEGABYTE


def _logs(words: str) -> tuple[int, int]:
    low, colon, high = words.rpartition(":")
    largest = _whole(high, "the larger number of -msglog", 0, LARGEST_LOG)
    return (_whole(low, "the smaller number of -msglog", 0, largest) if colon else 0), largest


def _lengths(words: str) -> tuple[int, ...]:
    """Of -msglen: lengths with commas, or those of a file."""
    listed = "," in words or words.isdecimal()
    takes = "-msglen takes lengths with commas, or a file"
    lines = words.split(",") if listed else _lines(words, takes)
    _require(bool(lines), f"-msglen: {words!r} has no lengths")
    return tuple(_whole(line, "a length of -msglen", 0, 1 << LARGEST_LOG) for line in lines)
