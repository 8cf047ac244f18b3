"""Results as one HTML page: question, verdicts, tables, where they come from, and their data;
written where it is to be.

Nothing in it is loaded from elsewhere, and it has no script. The same results give the same page.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from shrimpmx.errors import ShrimpmxError
from shrimpmx.native.files import write_whole
from shrimpmx.native.streams import put, tell
from shrimpmx.page.claims import Claims, claims_in
from shrimpmx.page.downloads import Room, Stored, stored_in
from shrimpmx.page.explored import explored_in
from shrimpmx.page.part import Part, core_of, part_of
from shrimpmx.page.versus import COLOURS, versus
from shrimpmx.show.plot.draw import drawn
from shrimpmx.show.plot.style import DARK, patterns

TEMPLATE, FRAGMENT = "page.html", "fragment.html"
# Neither HTML nor UTF-8 has these, or they turn the order of the letters behind them around.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def page_of(
    results: Sequence[Stored], claims: Sequence[Claims] = (), *, compared: bool = False
) -> bytes:
    """The page of some results, at least one, and of the claims that they were made for;
    `compared`: they are two, and stand beside each other first.
    """
    room = Room()
    parts = [part_of(stored, number, room) for number, stored in enumerate(results, 1)]
    figures = [figure for part in parts for figure in part.drawn]
    drawings = drawn([figure.spec for figure in figures])
    return _rendered(
        TEMPLATE,
        drawings=dict(zip(figures, drawings, strict=True)),
        patterns=patterns("".join(drawings)),
        dark=DARK,
        title=_title(parts, claims, compared),
        parts=parts,
        claims=claims,
        versus=versus(*results) if compared else None,
        colours=COLOURS,
    ).encode()


def fragment_of(document: Mapping[str, Any], path: Path, anchor: str) -> str:
    """What came out of a result in `path`, in short, for a page of others, where `anchor` is its
    own name.
    """
    explored = explored_in(document, path)
    return _rendered(FRAGMENT, part=core_of(document, anchor), explored=explored)


def _title(parts: Sequence[Part], claims: Sequence[Claims], compared: bool) -> str:
    if claims:
        return "The papers' claims, and the outcome"
    if compared:
        return "Two results side by side"
    return parts[0].title if len(parts) == 1 else f"{len(parts)} results of shrimpmx"


def _rendered(template: str, **context: Any) -> str:
    text = _templates().get_template(template).render(**context)
    return _UNPRINTABLE.sub("\ufffd", text)


@functools.cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


PAGE_FILE = "report.html"


def write_page(
    directories: Sequence[Path], claims: Sequence[Path], place: Path, *, compared: bool = False
) -> None:
    """Write the page of the results in some directories to `place`; `claims` are files of
    reproductions that they belong to, and `compared` as that of page_of.

    InputError if one is missing, damaged or empty, MachineError if the page cannot be written.
    """
    judged = [claims_in(path) for path in claims]
    page = page_of([stored_in(directory) for directory in directories], judged, compared=compared)
    write_whole(place, page, "give another file with --output")


def write_beside(
    output: Path,
    directories: Sequence[Path],
    claims: Sequence[Path] = (),
    say: Callable[[str], None] = put,
) -> None:
    """Write the page of the results in `directories` into `output`, and `say` its path; `claims` as
    those of write_page.

    Where it cannot be written it says why: the results are kept all the same.
    """
    try:
        write_page(directories, claims, output / PAGE_FILE)
    except ShrimpmxError as error:
        command = f"shrimpmx report {shlex.quote(str(output))}"
        tell(f"shrimpmx: there is no page of it: {error}; `{command}` writes it")
    else:
        say(f"page: {output / PAGE_FILE}")
