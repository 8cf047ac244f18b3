"""Results as one HTML page: question, verdicts, tables, where they come from, and their data.

Nothing in it is loaded from elsewhere, and it has no script. The same results give the same page.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from shrimpmx.page.claims import Claims
from shrimpmx.page.downloads import Room
from shrimpmx.page.explored import explored_in
from shrimpmx.page.part import Part, core_of, part_of
from shrimpmx.page.stored import Stored
from shrimpmx.page.versus import COLOURS, versus
from shrimpmx.show.plot.draw import drawn
from shrimpmx.show.plot.look import DARK, patterns

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
        return "What the papers say, and what came out"
    if compared:
        return "Two results beside each other"
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
