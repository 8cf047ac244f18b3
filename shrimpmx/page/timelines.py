"""The timelines of a page: the traces of a result, packed, as far as they find room."""

from __future__ import annotations

import base64
import functools
import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shrimpmx.errors import InputError
from shrimpmx.page.downloads import Stored
from shrimpmx.page.packed_trace import RECORDS_MAX, packed
from shrimpmx.show.kept_trace import SUFFIX, load_trace
from shrimpmx.show.slow_messages import slowest_text, untold_by

if TYPE_CHECKING:
    from shrimpmx.show.timeline import Timeline

# Of all timelines of a page: it stays below 5 MB with its data and pictures (ours).
ROOM_BYTES = 2_500_000
# Runs of one result: the first of each point (ours).
RUNS_MAX = 12
TIMELINE_SCRIPTS = ("trace.js", "lanes.js", "timeline.js")
TRACES = "traces"


@dataclass(frozen=True)
class PackedRun:
    """One run: `packed` is its trace in base64, `slowest` its slowest message as text."""

    name: str
    packed: str
    slowest: str


@dataclass(frozen=True)
class Timelines:
    """Those of a result. `lines` say whose times they have and what the traces lack, `left_out`
    why there are no more.
    """

    runs: tuple[PackedRun, ...]
    lines: tuple[str, ...]
    left_out: tuple[str, ...]


class TimelineRoom:
    """The room that is left in a page for timelines."""

    def __init__(self, left_bytes: int = ROOM_BYTES) -> None:
        self.left_bytes = left_bytes

    def timelines(self, stored: Stored) -> Timelines | None:
        """Those of a result; None: it was not traced."""
        paths = sorted((stored.path / TRACES).glob(f"*{SUFFIX}"))
        if not paths:
            return None
        chosen = _first_of_points(paths)[:RUNS_MAX]
        runs: list[PackedRun] = []
        lines: dict[str, None] = {}
        left_out: dict[str, None] = {}
        for path in chosen:
            try:
                trace = load_trace(path)
            except InputError as error:
                left_out[f"{error}."] = None
                continue
            run = self._run(path, trace)
            if run is None:
                left_out["Larger traces have no room in this page."] = None
                continue
            runs.append(run)
            lines |= dict.fromkeys(_lines(trace))
        if len(runs) < len(paths):
            left_out[
                f"{len(runs)} of {len(paths)} traced runs are shown; shrimpmx trace "
                f"{shlex.quote(str(stored.path))} reads all."
            ] = None
        return Timelines(tuple(runs), tuple(lines), tuple(left_out))

    def _run(self, path: Path, trace: Timeline) -> PackedRun | None:
        """None if it has no room. A trace without records has nothing to show."""
        if not trace.records:
            return None
        text = base64.b64encode(packed(trace)).decode()
        if len(text) > self.left_bytes:
            return None
        self.left_bytes -= len(text)
        slowest = slowest_text(trace, 1) or "no message is whole in this trace"
        return PackedRun(path.stem, text, slowest)


def _first_of_points(paths: list[Path]) -> list[Path]:
    """The first run of each point, then the others."""
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(path.stem.partition("-")[0], path)
    return [*first.values(), *(path for path in paths if path not in first.values())]


def _lines(trace: Timeline) -> Iterator[str]:
    if trace.dilation != 1.0:
        yield (
            f"Times are those of the emulated hosts; in the trace's files they are "
            f"{trace.dilation:g} times as long."
        )
    if len(trace.records) > RECORDS_MAX:
        yield (
            f"Of {len(trace.records)} records the {RECORDS_MAX} around the slowest message are "
            "shown."
        )
    yield from (f"{told[0].upper()}{told[1:]}." for told in untold_by(trace))


@functools.cache
def script_of(names: tuple[str, ...]) -> str:
    """The script of a page, from these files."""
    templates = Path(__file__).parent / "templates"
    parts = [(templates / name).read_text(encoding="utf-8") for name in names]
    return "\n".join(['\n"use strict";', *parts])


def policy_of(script: str, *, asks: bool = False) -> str:
    """The page's own script and style may work, and nothing may be loaded, but from whoever has
    served the page if it `asks`.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    asked = "; connect-src 'self'" if asks else ""
    return f"default-src 'none'; {own}{asked}"
