"""How many of mpi4py's own tests passed, as part of a page, from what
`tools/mpi4py_conformance.py` has kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from shrimpmx.page.origin import facts_of, made_in
from shrimpmx.page.published import Published, Table, read_published

CONFORMANCE_FILE = "conformance.json"
# In the order of a cell.
OUTCOMES = ("passed", "not ended", "failed", "unsupported", "skipped")
LEGEND = (
    "Each cell is a number of passed cases. Unsupported: the failure names a refused call. Failed: "
    "on any rank. Not ended: the process ended during the case, or the test file exceeded its time "
    "limit (hung). Skipped: "
    "by the test itself, on every rank."
)


class _Count(BaseModel):
    """How many cases of a file came to each outcome; `end`: how the file ended, '' for well."""

    outcomes: dict[str, int]
    end: str = ""


class _Failure(BaseModel):
    case: str
    ranks: list[int]
    why: str


class _Mpi(BaseModel):
    """`files`: by number of ranks, then by file. `refused` and `skipped` are reasons, each with its
    number of cases.
    """

    name: str
    files: dict[int, dict[str, _Count]]
    refused: dict[str, int]
    skipped: dict[str, int]
    failed: list[_Failure]


class _Conformance(BaseModel):
    """`programs`: by name, what came out under each MPI."""

    environment: dict[str, Any]
    source: str
    notes: list[str] = []
    mpis: list[_Mpi]
    programs: dict[str, list[str]]


def conformance_in(path: Path) -> Published:
    """The test of conformance in a file; InputError if it is none."""
    found = read_published(path, "test of conformance", _Conformance)
    tables = [table for mpi in found.mpis for table in _tables(mpi)]
    if found.programs:
        heads = ("program", *(mpi.name for mpi in found.mpis))
        rows = tuple((name, *came_out) for name, came_out in found.programs.items())
        tables.append(Table("Demonstrations and benchmarks", heads, rows))
    return Published(
        title="MPI conformance",
        made=", ".join((f"tests of {found.source}", *made_in(found.environment))),
        lines=(LEGEND, *found.notes, *(line for mpi in found.mpis for line in _lines(mpi))),
        tables=tuple(tables),
        origin=tuple(facts_of(found.environment, {})),
    )


def _lines(mpi: _Mpi) -> Iterator[str]:
    for ranks, files in mpi.files.items():
        yield f"{mpi.name}, {_ranks(ranks)}: {_cell(_all(files.values()))}"
    for what, why in (("refused calls", mpi.refused), ("reasons to skip", mpi.skipped)):
        if why:
            yield f"{mpi.name}, {what}: {', '.join(f'{each} ({n})' for each, n in why.items())}"


def _tables(mpi: _Mpi) -> Iterator[Table]:
    names = dict.fromkeys(name for files in mpi.files.values() for name in files)
    rows = (
        (name, *(_cell(files[name]) if name in files else "" for files in mpi.files.values()))
        for name in names
    )
    yield Table(f"{mpi.name}, by file", ("file", *map(_ranks, mpi.files)), tuple(rows))
    if mpi.failed:
        failed = ((each.case, "/".join(map(str, each.ranks)), each.why) for each in mpi.failed)
        yield Table(f"{mpi.name}: what failed", ("case", "ranks", "why"), tuple(failed))


def _ranks(count: int) -> str:
    return f"{count} rank{'s' * (count > 1)}"


def _all(counts: Iterable[_Count]) -> _Count:
    total: dict[str, int] = {}
    for each in counts:
        for outcome, count in each.outcomes.items():
            total[outcome] = total.get(outcome, 0) + count
    return _Count(outcomes=total)


def _cell(found: _Count) -> str:
    """`1419, 40 not ended`: those that passed, then the others."""
    counts: Mapping[str, int] = found.outcomes
    others = [f"{counts[each]} {each}" for each in OUTCOMES[1:] if counts.get(each)]
    return ", ".join((str(counts.get(OUTCOMES[0], 0)), *others, *filter(None, [found.end])))
