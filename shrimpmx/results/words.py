"""How axes, values and figures are said, in tables, verdicts and on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

KIB = 1024
MIB = 1024 * KIB
SIMULATED_WORDS = "Simulated hosts under a virtual clock: nothing was timed in this run."
NO_PLATFORM_WORDS = "Hosts without a platform: only costs set by parameters take time."
_TITLES = {
    "size_bytes": "message",
    "wait": "waiting",
    "delay_us": "delay",
}
# What several values of an axis are called.
_PLURALS = {
    "size_bytes": "sizes",
    "coalescing": "coalescing strategies",
    "wait": "waiting strategies",
    "delay_us": "delays",
    "mode": "modes",
    "platform": "platforms",
}
_UNITS = {"_us": "µs", "_usecs": "µs", "_ns": "ns", "_s": "s"}


# What each message asks of a host, by the names of its costs.
_OF_MESSAGES = {"packet": "packets", "event": "events", "send": "sends"}


def virtual_times_words(platform: str, compute: str | int, costs: Mapping[str, int]) -> list[str]:
    """Of what times of programs on simulated hosts are: hosts of that platform, "none" for none,
    which have these costs, ns, and what programs compute between their calls.
    """
    if platform == "none":
        hosts = (
            "Times are virtual, of hosts whose own work takes no time: --set platform=NAME "
            "gives it a machine's costs."
        )
    else:
        hosts = f"Times are virtual, of hosts of the platform {platform}."
        if free := [words for name, words in _OF_MESSAGES.items() if not costs.get(name)]:
            hosts += f" It has no cost of {' or '.join(free)}: these are free."
    if compute == "none":
        computes = "takes no time: --set compute=measured gives it its CPU time here"
    elif compute == "measured":
        computes = "takes its CPU time here, so no two runs are equal"
    else:
        computes = f"takes {compute} ns for each call"
    return [hosts, f"The program's computing between its calls {computes}."]


def is_simulated(document: Mapping[str, Any]) -> bool:
    """Whether a result comes from simulated hosts."""
    return document.get("engine") == "simulated"


def hosts_words(document: Mapping[str, Any]) -> str:
    """Whose times a result has: real processes or simulated hosts, what these are charged, and the
    platform.
    """
    platforms = {str(point["params"].get("platform", "none")) for point in document["points"]}
    hosts = "real processes"
    if is_simulated(document):
        alike = all(point["params"].get("hosts") == "as-real" for point in document["points"])
        hosts = "simulated hosts" + (" charged as real processes" if alike else "")
    if platforms <= {"none"}:
        return hosts
    return f"{hosts} with the costs of {', '.join(sorted(platforms))}"


def _field(axis: str) -> str:
    """An axis without its group, however it was written: 'nic.rx-usecs' is 'rx_usecs'."""
    return axis.rpartition(".")[2].replace("-", "_")


def size_words(size_bytes: int) -> str:
    """A size as people say it: 0 B, 128 B, 32 KiB, 1 MiB."""
    if size_bytes and size_bytes % MIB == 0:
        return f"{size_bytes // MIB} MiB"
    if size_bytes and size_bytes % KIB == 0:
        return f"{size_bytes // KIB} KiB"
    return f"{size_bytes} B"


def number_words(value: float) -> str:
    """A figure with three or four digits that mean something."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def unit_words(unit: str) -> str:
    """A metric's unit as people write it."""
    return "µs" if unit == "us" else unit


def titled(title: str, unit: str) -> str:
    """A metric's title with its unit, unless it says it: interrupts are per message in words, of
    a time per packet they do not tell in what it is measured.
    """
    said = unit in title or ("per" in title.split() and unit not in _UNITS.values())
    return title if said else f"{title}, {unit}"


def axis_title(axis: str) -> str:
    """What an axis is called at the head of a row or a column."""
    return _TITLES.get(_field(axis), _field(axis))


def value_words(axis: str, value: Any) -> str:
    """The value of an axis with its unit."""
    field = _field(axis)
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        if field.endswith("_bytes") and isinstance(value, int):
            return size_words(value)
        unit = next((unit for ending, unit in _UNITS.items() if field.endswith(ending)), "")
        return f"{value} {unit}".rstrip()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def heading_words(axis: str, value: Any) -> str:
    """A value at the head of a column; a word speaks for itself, a number has its axis' name."""
    if _field(axis) == "platform":
        return place_words(axis, value)
    words = value_words(axis, value)
    return words if isinstance(value, str) else f"{axis_title(axis)} {words}"


def place_words(axis: str, value: Any) -> str:
    """A value that stands alone, among others or in a sentence: generator mode, waiting spin."""
    if _field(axis) == "mode":
        return f"{value} mode"
    if _field(axis) == "size_bytes":
        return f"messages of {value_words(axis, value)}"
    if _field(axis) == "platform" and value == "none":
        return "no platform"
    return f"{axis_title(axis)} {value_words(axis, value)}"


def values_words(axis: str, values: Iterable[Any], all_values: Iterable[Any]) -> str:
    """Which values of an axis are meant: one, all of them, or some."""
    some, everything = list(values), list(all_values)
    if len(some) == 1:
        return place_words(axis, some[0])
    if len(some) == len(everything):
        return f"all {_PLURALS.get(_field(axis), f'values of {axis_title(axis)}')}"
    return f"{axis_title(axis)} {', '.join(value_words(axis, value) for value in some)}"


def part_words(*, marked: bool, share_percent: float) -> str:
    """Which part of an MPI program's run its figures are of, and how much of it that is."""
    part = "the program's work, from the last return from MPI_Init to each rank's MPI_Finalize"
    if marked:
        part = "the sections marked by MPI_Pcontrol"
    return f"Figures cover {part}: {share_percent:.3g} % of a whole run."
