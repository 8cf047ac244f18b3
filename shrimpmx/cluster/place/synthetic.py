"""Machines in hwloc's synthetic form: "package:2 l2:2 core:2 pu:1", a level and how many of it each
object of the level before has.

Memory, sizes and levels that say nothing about distances (NUMA nodes, dies, groups, instruction
caches) are read and have no effect. Source: hwloc's manual, chapter "Synthetic topologies".
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from shrimpmx.errors import InputError

# More CPUs than any list of cores can name.
CPUS_MAX = 4096
EXAMPLE = 'a synthetic topology is written as "package:2 l2:2 core:2 pu:1"'
# What a level is, by how its name begins; hwloc takes names that are cut short as well.
_KINDS = {
    r"pa\w*|so\w*": "package",
    r"l[1-5](u|d)?(cache)?": "cache",
    r"co\w*": "core",
    r"pu": "pu",
    r"l[1-5]i(cache)?|nu\w*|no\w*|di\w*|gr\w*|cl\w*": "other",
}
_LEVEL = re.compile(r"(?P<name>[a-z]\w*):(?P<count>\d+)(\((?P<attributes>[^()]*)\))?", re.I)
# What is attached to a level, which hwloc writes in brackets: "[numa(memory=1GB)]".
_ATTACHED = re.compile(r"\[[^\[\]]*\]")
_TOKEN = re.compile(r"[^\s()]+(\([^()]*\))?|\S")
_LOOP = re.compile(r"(\d+)\*(\d+)")


@dataclass(frozen=True)
class _Level:
    name: str
    kind: str
    count: int
    attributes: str


@dataclass(frozen=True)
class Described:
    """What a description says: number, package and core of each CPU, and the CPUs of each cache
    that several share.
    """

    cpus: tuple[tuple[int, int, int], ...]
    caches: tuple[frozenset[int], ...]


def parse_synthetic(text: str) -> Described:
    """The machine that `text` describes. InputError, which says what is wrong with it."""
    levels = [_level(match[0]) for match in _TOKEN.finditer(_ATTACHED.sub(" ", text))]
    _check(levels)
    total = math.prod(level.count for level in levels)
    if not 1 <= total <= CPUS_MAX:
        raise InputError(f"synthetic topology {text!r} has {total} CPUs; 1 to {CPUS_MAX} will do")
    numbers = _indexes(levels[-1], total)
    # How many CPUs an object of each level has: all below it.
    under = [
        math.prod(below.count for below in levels[place + 1 :]) for place in range(len(levels))
    ]
    sizes = {level.kind: size for level, size in zip(levels, under, strict=True)}
    package, core = sizes.get("package", total), sizes.get("core", 1)
    shares = {size for level, size in zip(levels, under, strict=True) if level.kind == "cache"}
    return Described(
        cpus=tuple(
            (number, place // package, min(numbers[place // core * core :][:core]))
            for place, number in enumerate(numbers)
        ),
        # Siblings share what their core has.
        caches=tuple(
            frozenset(numbers[first : first + size])
            for size in sorted(shares | {core})
            if size > 1
            for first in range(0, total, size)
        ),
    )


def _level(token: str) -> _Level:
    match = _LEVEL.fullmatch(token)
    if match is None:
        raise InputError(f"{token!r} is no level of a topology: {EXAMPLE}")
    name = match["name"].lower()
    for pattern, kind in _KINDS.items():
        if re.fullmatch(pattern, name):
            return _Level(name, kind, int(match["count"]), match["attributes"] or "")
    raise InputError(
        f"{match['name']!r} is no kind of level; there are package, l1 to l5, core, pu, and numa, "
        "die and group, which have no effect"
    )


def _check(levels: list[_Level]) -> None:
    if not levels or levels[-1].kind != "pu":
        raise InputError(f"the last level must be pu, the CPUs of a core: {EXAMPLE}")
    for kind in ("package", "core", "pu"):
        if sum(level.kind == kind for level in levels) > 1:
            raise InputError(f"there is more than one level {kind!r}: {EXAMPLE}")
    names = [level.name for level in levels]
    if len(set(names)) < len(names):
        raise InputError(f"a level is there twice: {', '.join(names)}")
    kinds = [level.kind for level in levels if level.kind in ("package", "core")]
    if kinds == ["core", "package"]:
        raise InputError(f"cores are in packages, not packages in cores: {EXAMPLE}")


def _indexes(level: _Level, total: int) -> list[int]:
    """The numbers of the CPUs from left to right, as the level's attribute `indexes` has them."""
    given = re.search(r"indexes=([^\s)]*)", level.attributes)
    if given is None:
        return list(range(total))
    if re.fullmatch(r"\d+(,\d+)*", given[1]):
        numbers = [int(number) for number in given[1].split(",")]
    elif re.fullmatch(rf"{_LOOP.pattern}(:{_LOOP.pattern})*", given[1]):
        numbers = _interleaved([(int(s), int(n)) for s, n in _LOOP.findall(given[1])], total)
    else:
        raise InputError(
            f"indexes={given[1]} is neither a list of CPUs such as 0,2,1,3 nor loops such as "
            "2*2:1*2, step and count of each"
        )
    if len(numbers) != total or len(set(numbers)) != total:
        raise InputError(
            f"indexes={given[1]} must number {total} CPUs, each once; it has "
            f"{len(set(numbers))} numbers"
        )
    return numbers


def _interleaved(loops: list[tuple[int, int]], total: int) -> list[int]:
    """Numbers that count up through the loops, the first of them fastest."""
    numbers, worth = [0] * total, 1
    for step, count in loops:
        if step == 0 or count == 0:
            raise InputError("steps and counts of the loops in indexes must not be 0")
        numbers = [known + place // step % count * worth for place, known in enumerate(numbers)]
        worth *= count
    return numbers
