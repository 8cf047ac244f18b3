"""Which caches are simulated: a machine's, by its name or its sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shrimpmx.cluster.place.topology import MACHINES
from shrimpmx.errors import InputError, did_you_mean

LINE_BYTES = 64
FIRST_WAYS, LAST_WAYS = 8, 16
_SIZE = re.compile(r"([0-9]+)([KM]?)", re.I)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


@dataclass(frozen=True)
class SimulatedCaches:
    """First-level caches for code and for data, both of `first_bytes`, and one behind them.

    Both 0: those of this machine, as valgrind finds them.
    """

    first_bytes: int = 0
    last_bytes: int = 0

    def options(self) -> list[str]:
        """What valgrind is told."""
        if not self.first_bytes:
            return []
        first = f"{self.first_bytes},{FIRST_WAYS},{LINE_BYTES}"
        last = f"{self.last_bytes},{LAST_WAYS},{LINE_BYTES}"
        return [f"--I1={first}", f"--D1={first}", f"--LL={last}"]


# The caches of the machines that placement knows by name, where they are known, and of this one.
KNOWN_CACHES = {
    **{
        name: SimulatedCaches(*known.cache_bytes)
        for name, known in MACHINES.items()
        if known.cache_bytes
    },
    "this": SimulatedCaches(),
}


def simulated_caches(text: str) -> SimulatedCaches:
    """A name of KNOWN_CACHES, or two sizes as "32K,4M": 8 and 16 ways, lines of 64 bytes.

    Raises InputError for what is neither.
    """
    if text in KNOWN_CACHES:
        return KNOWN_CACHES[text]
    parts = [_SIZE.fullmatch(part.strip()) for part in text.split(",")]
    if len(parts) != 2 or None in parts:
        raise InputError(
            f"--machine is one of {', '.join(KNOWN_CACHES)}, or two sizes as 32K,4M, not {text!r}"
            f"{did_you_mean(text, KNOWN_CACHES)}"
        )
    first, last = (int(part[1]) * _UNITS[part[2].upper()] for part in parts if part is not None)
    for size_bytes, ways in ((first, FIRST_WAYS), (last, LAST_WAYS)):
        sets = size_bytes // (ways * LINE_BYTES)
        if sets * ways * LINE_BYTES != size_bytes or not sets or sets & (sets - 1):
            raise InputError(
                f"a cache of {size_bytes} bytes cannot be simulated: with {ways} ways and lines of "
                f"{LINE_BYTES} bytes it must be {ways * LINE_BYTES} bytes times a power of two"
            )
    return SimulatedCaches(first, last)
