"""Sizes, repetitions and groups of processes, by IMB's rules."""

from __future__ import annotations

from collections.abc import Iterable

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
