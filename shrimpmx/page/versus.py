"""Two results of a page beside each other: what they are, and what changed between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shrimpmx.page.downloads import Stored
from shrimpmx.page.origin import flat
from shrimpmx.results.comparison import FASTER, SLOWER, compare
from shrimpmx.results.words import axis_title, value_words
from shrimpmx.show.cells import legend
from shrimpmx.show.compared import (
    ComparedTable,
    compared_tables,
    counted_lines,
    hosts_line,
    reasons_of,
    repeating_lines,
)

# Of the environment, what is shown even where both have the same.
ALWAYS = ("cpu model", "system", "versions: shrimpmx", "code", "commit", "time")
COLOURS = {FASTER: "good", SLOWER: "bad"}


@dataclass(frozen=True)
class Versus:
    """`hosts` names the hosts of the times where they differ; `sides` describe the results: a name,
    both values, and whether they differ. Results with nothing in common have no tables.
    """

    hosts: str
    sides: tuple[tuple[str, str, str, bool], ...]
    tables: tuple[ComparedTable, ...]
    counted: tuple[str, ...]
    legend: str
    notes: tuple[str, ...]


def versus(first: Stored, second: Stored) -> Versus:
    """The second result beside the first."""
    found = compare(first.document, second.document)
    settings = [
        (axis_title(name), value_words(name, one), value_words(name, other))
        for name, one, other in found.settings
    ]
    sides = [(name, a, b, a != b) for name, a, b in (*_told(first, second), *settings)]
    tables = tuple(compared_tables(found))
    words = [cell for table in tables for row in table.rows for cell in row]
    counted = tuple(counted_lines(found)) if tables else ()
    notes = (*reasons_of(found), *repeating_lines(found))
    hosts = "".join(hosts_line(found))
    return Versus(hosts, tuple(sides), tables, counted, legend(words), notes)


def _told(first: Stored, second: Stored) -> Iterator[tuple[str, str, str]]:
    """What each is, in both: its place and scenario, and the environments as far as they differ."""
    yield "result", str(first.path), str(second.path)
    for key in ("scenario", "engine", "command"):
        one, other = (str(each.document.get(key, "—")) for each in (first, second))
        yield key, one, other
    one_flat, other_flat = (dict(flat(each.document["environment"])) for each in (first, second))
    for name in dict.fromkeys((*one_flat, *other_flat)):
        a, b = one_flat.get(name, "—"), other_flat.get(name, "—")
        if a != b or name in ALWAYS:
            yield name, a, b
