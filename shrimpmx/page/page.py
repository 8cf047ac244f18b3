"""Results as one HTML page: question, verdicts, tables, where they come from, and their data;
written where it is to be.

Nothing in it is loaded from elsewhere, and only timelines have a script. The same results give the
same page.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from shrimpmx.errors import InputError, ShrimpmxError
from shrimpmx.native.files import write_whole
from shrimpmx.native.streams import put, tell
from shrimpmx.page.conformance import CONFORMANCE_FILE, conformance_in
from shrimpmx.page.downloads import Room, Stored, stored_in
from shrimpmx.page.explored import explored_in
from shrimpmx.page.fits import FIT_FILE, fit_in, is_fit
from shrimpmx.page.part import Part, core_of, part_of
from shrimpmx.page.published import Published
from shrimpmx.page.timelines import TIMELINE_SCRIPTS, TimelineRoom, policy_of, script_of
from shrimpmx.page.validations import VALIDATION_FILE, validation_in
from shrimpmx.page.versus import COLOURS, versus
from shrimpmx.papers.claim import CLAIMS_FILE
from shrimpmx.results.json_file import PACKED
from shrimpmx.results.result import RUN_FILE
from shrimpmx.show.plot.draw import drawn
from shrimpmx.show.plot.style import DARK, patterns

if TYPE_CHECKING:
    from shrimpmx.page.claims import Claims

TEMPLATE, FRAGMENT, FRAME = "page.html", "fragment.html", "frame.html"
# Neither HTML nor UTF-8 has these, or they turn the order of the letters behind them around.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def page_of(
    results: Sequence[Stored], others: Sequence[Path] = (), *, compared: bool = False
) -> bytes:
    """The page of some results, and of `others`, files of what is published; `compared`: the
    results are two, and stand beside each other first.

    InputError if one of the others is damaged.
    """
    judged = [path for path in others if _kind(path) == CLAIMS_FILE]
    claims = _claims(judged) if judged else None
    published = [_READERS[kind](path) for path in others if (kind := _kind(path)) in _READERS]
    return _page(results, claims, published, compared=compared)


def page_of_published(published: Sequence[Published]) -> bytes:
    """The page of what is published alone."""
    return _page((), None, published, compared=False)


def _page(
    results: Sequence[Stored],
    claims: Claims | None,
    published: Sequence[Published],
    *,
    compared: bool,
) -> bytes:
    room, timeline_room = Room(), TimelineRoom()
    parts = [
        part_of(stored, number, room, timeline_room) for number, stored in enumerate(results, 1)
    ]
    has_timeline = any(part.timelines and part.timelines.runs for part in parts)
    script = script_of(TIMELINE_SCRIPTS) if has_timeline else ""
    figures = [figure for part in parts for figure in part.drawn]
    figures += [figure for each in published for figure in each.figures]
    drawings = drawn([figure.spec for figure in figures])
    return rendered(
        TEMPLATE,
        drawings=dict(zip(figures, drawings, strict=True)),
        patterns=patterns("".join(drawings)),
        dark=DARK,
        title=_title(parts, claims, published, compared),
        parts=parts,
        claims=claims,
        published=published,
        versus=versus(*results) if compared else None,
        colours=COLOURS,
        script=script,
        policy=policy_of(script),
    ).encode()


def _claims(paths: Sequence[Path]) -> Claims:
    # All that the papers claim, which only a page of claims needs.
    from shrimpmx.page.claims import claims_in

    return claims_in(paths)


# What is published beside results, by the name of its file, which may be compressed.
_READERS = {VALIDATION_FILE: validation_in, CONFORMANCE_FILE: conformance_in, FIT_FILE: fit_in}
PUBLISHED_FILES = (CLAIMS_FILE, *_READERS)


def _kind(path: Path) -> str:
    """By the names of PUBLISHED_FILES; a fit has any name."""
    return FIT_FILE if is_fit(path) else path.name.removesuffix(PACKED)


def published_in(given: Path) -> list[Path]:
    """The files of reproductions, validations and tests of conformance that a path of the command
    line means, claims first: the file itself, or all in a directory that is no result.
    """
    if os.path.isfile(given):
        return [given] if _kind(given) in PUBLISHED_FILES else []
    if not os.path.isdir(given) or os.path.exists(given / RUN_FILE):
        return []
    found = sorted(path for end in ("", PACKED) for path in given.rglob(f"*.json{end}"))
    return [path for file in PUBLISHED_FILES for path in found if _kind(path) == file]


def fragment_of(document: Mapping[str, Any], path: Path, anchor: str) -> str:
    """What came out of a result in `path`, in short, for a page of others, where `anchor` is its
    own name.
    """
    explored = explored_in(document, path)
    return rendered(FRAGMENT, part=core_of(document, anchor), explored=explored)


@dataclass(frozen=True)
class Frame:
    """A page as Jupyter shows it within its own; `text` is HTML."""

    text: str

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 45em; border: 0"
        return f'<iframe title="Timeline" style="{style}" srcdoc="{escape(self.text)}"></iframe>'


def frame_of(path: Path) -> Frame:
    """The timelines of the result in `path`, alone. InputError if there are none."""
    stored = stored_in(path)
    timelines = TimelineRoom().timelines(stored)
    if timelines is None or not timelines.runs:
        why = timelines.left_out[0] if timelines else "it was not traced: run it with trace=True"
        raise InputError(f"{path} has no timeline: {why.rstrip('.')}")
    script = script_of(TIMELINE_SCRIPTS)
    part = {"title": stored.document["scenario"], "anchor": "frame", "timelines": timelines}
    return Frame(rendered(FRAME, part=part, dark={}, script=script, policy=policy_of(script)))


def _title(
    parts: Sequence[Part], claims: Claims | None, published: Sequence[Published], compared: bool
) -> str:
    if published:
        return "Published results of shrimpmx" if claims else published[0].title
    if claims:
        return "The papers' claims, and the outcome"
    if compared:
        return "Two results side by side"
    return parts[0].title if len(parts) == 1 else f"{len(parts)} results of shrimpmx"


def rendered(template: str, **context: Any) -> str:
    """A page's HTML from a template, whose words stay words."""
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
    directories: Sequence[Path], others: Sequence[Path], place: Path, *, compared: bool = False
) -> None:
    """Write the page of the results in some directories to `place`; `others` and `compared` are
    those of page_of.

    InputError if one is missing, damaged or empty, MachineError if the page cannot be written.
    """
    page = page_of([stored_in(directory) for directory in directories], others, compared=compared)
    write_whole(place, page, "give another file with --output")


def write_beside(
    output: Path,
    directories: Sequence[Path],
    say: Callable[[str], None] = put,
) -> None:
    """Write the page of the results in `directories`, and of what is published in `output`, into
    `output`, and `say` its path.

    Where it cannot be written it says why: the results are kept all the same.
    """
    try:
        write_page(directories, published_in(output), output / PAGE_FILE)
    except ShrimpmxError as error:
        command = f"shrimpmx report {shlex.quote(str(output))}"
        tell(f"shrimpmx: there is no page of it: {error}; `{command}` writes it")
    else:
        say(f"page: {output / PAGE_FILE}")
