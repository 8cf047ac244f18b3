"""Write docs/claims.md's tables of the papers' platforms, from the files of these.

python tools/platform_values.py
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import parts

from shrimpmx.experiment.platform_files import known_platforms
from shrimpmx.native.files import write_whole
from shrimpmx.settings.platform import Entry

PAGE = Path(__file__).resolve().parents[1] / "docs" / "claims.md"
BEGIN, END = "<!-- tools/platform_values.py writes this part -->\n", "<!-- end of the part -->\n"
# Those that stand for the hosts of a paper.
PLATFORMS = ("myri10g-2009", "shrimp-1996")
HOSTS = {"all": "", "real": ", real processes", "simulated": ", simulated hosts"}
# Of a parameter's name, how its value is said: by how much it is divided, and the unit.
UNITS = {"_per_second": ((1e9, "G"), (1e6, "M")), "_ns": ((1e6, "ms"), (1e3, "µs"), (1, "ns"))}


def value_words(name: str, value: Any) -> str:
    """A value of a platform; `name` is "table.parameter", of a cost in ns "costs.cost"."""
    if isinstance(value, list):
        return ", ".join(value_words(name, each) for each in value)
    ending = "_ns" if name.startswith("costs.") else name[name.rfind("_per_second") :]
    ending = "_ns" if name.endswith("_ns") else ending
    for divisor, unit in UNITS.get(ending, ()):
        if value >= divisor:
            return f"{value / divisor:.10g} {unit}"
    return f"`{value}`" if isinstance(value, str) else str(value).lower()


def row(name: str, entry: Entry) -> str:
    """A value's line: parameter and hosts, value, origin and source, claims that calibrated it."""
    claims = ", ".join(entry.calibrated_by)
    cells = (
        f"`{name}`{HOSTS[entry.hosts]}",
        value_words(name, entry.value),
        entry.origin,
        entry.source,
        claims,
    )
    return f"| {' | '.join(cells)} |"


def lines() -> Iterator[str]:
    """The tables."""
    platforms = known_platforms()
    for number, name in enumerate(PLATFORMS):
        yield from ("",) * (number > 0)
        yield from (f"`{name}`:", "")
        yield "| parameter | value | origin | source | calibrated by |"
        yield "| --- | --- | --- | --- | --- |"
        yield from (row(*each) for each in platforms[name].entries())


def page_with(page: str) -> str:
    """The page with the tables as they are now."""
    return parts.page_with(page, BEGIN, END, lines())


if __name__ == "__main__":
    argparse.ArgumentParser(description=str(__doc__).partition("\n")[0]).parse_args()
    write_whole(PAGE, page_with(PAGE.read_text()))
