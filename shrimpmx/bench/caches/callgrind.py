"""What callgrind says: its command line, and the costs of a function in what it writes; and
the caches that it simulates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from shrimpmx.cluster.place.topology import MACHINES
from shrimpmx.errors import AgentError, InputError, did_you_mean

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
            f"--machine must be {', '.join(KNOWN_CACHES)}, or two sizes such as 32K,4M, "
            f"not {text!r}{did_you_mean(text, KNOWN_CACHES)}"
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


CLASS = "shrimpmx.bench.caches.receive_rounds.ReceiveRounds"
# What Cython puts before the name of a compiled method. Whole names: callgrind follows one only of
# several patterns that begin alike.
METHOD = "__pyx_f_" + "".join(f"{len(part)}{part}_" for part in CLASS.split("."))
HANDLER, LIBRARY = "handler_side", "library_side"
WARM, MEASURED = "warm_rounds", "measured_rounds"
NOTHING_COUNTED = (
    "callgrind found no function of the simulated receive path: "
    "is shrimpmx installed with its symbols (not stripped)?"
)


@dataclass(frozen=True)
class Cost:
    """What a function and all that it calls did. Misses are of code and data together.

    What misses the first level is what the last level is asked for.
    """

    instructions: int = 0
    data_references: int = 0
    first_misses: int = 0
    last_misses: int = 0

    @property
    def miss_rate(self) -> float | None:
        """% of the references to the last level that missed; None: there was none."""
        return 100 * self.last_misses / self.first_misses if self.first_misses else None


def command(caches: SimulatedCaches, out: Path, log: Path) -> list[str]:
    """Valgrind and its options, without the program.

    The program tells callgrind when to begin: Python starts several times faster before that.
    It dumps after each warm_rounds() and each measured_rounds(), and counts from zero behind a
    dump. (Its --zero-before and --dump-before do nothing here.)
    """
    return [
        "valgrind",
        "--tool=callgrind",
        "--cache-sim=yes",
        *caches.options(),
        "--instr-atstart=no",
        "--collect-atstart=no",
        *(f"--toggle-collect={METHOD}{name}" for name in (HANDLER, LIBRARY)),
        *(f"--dump-after={METHOD}{name}" for name in (WARM, MEASURED)),
        f"--callgrind-out-file={out}",
        f"--log-file={log}",
    ]


def dump_of(out: Path, number: int) -> Path:
    """What callgrind wrote after the measured_rounds() of that number, from 0."""
    return out.with_name(f"{out.name}.{2 * number + 2}")


def caches_of(dump: Path) -> list[str]:
    """The caches that were simulated, in callgrind's words."""
    lines = dump.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.removeprefix("desc: ") for line in lines if " cache: " in line[:20]]


def cost_of(dump: Path, method: str) -> Cost:
    """The inclusive cost of the calls of a method of ReceiveRounds.

    Raises AgentError if callgrind did not find any.
    """
    events: list[str] = []
    totals: list[int] = []
    names: dict[str, str] = {}
    callee = ""
    is_call = False
    for line in dump.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
            totals = [0] * len(events)
        elif line.startswith(("fn=", "cfn=")):
            number, _, name = line.partition("=")[2].partition(" ")
            callee = names.setdefault(number, name)
        elif line.startswith("calls="):
            is_call = callee == METHOD + method
        elif is_call:
            for index, value in enumerate(line.split()[1:]):
                totals[index] += int(value)
            is_call = False
    counts = dict(zip(events, totals, strict=True))
    if not counts.get("Ir"):
        raise AgentError(NOTHING_COUNTED)
    return Cost(
        counts["Ir"],
        sum(counts.get(name, 0) for name in ("Dr", "Dw")),
        sum(counts.get(name, 0) for name in ("I1mr", "D1mr", "D1mw")),
        sum(counts.get(name, 0) for name in ("ILmr", "DLmr", "DLmw")),
    )
