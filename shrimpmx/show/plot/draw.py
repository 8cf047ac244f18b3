"""Charts as drawings: specifications in Vega-Lite, their SVG, and files of pictures."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shrimpmx.errors import MachineError
from shrimpmx.native.files import write_whole
from shrimpmx.show.plot.chart import AnyPanel, Chart, GridPanel, MapPanel, Panel
from shrimpmx.show.plot.layers import WIDTH, Sample, Spec, layer, legend
from shrimpmx.show.plot.series import panel_spec, samples_of
from shrimpmx.show.plot.spots import grid_samples, grid_spec, map_samples, map_spec, numbers_of
from shrimpmx.show.plot.style import INK, LINE, PAPER, patterns, wrapped

FORMATS = ("png", "svg")
LIBRARY = "vl-convert-python>=1.8,<2"
# Letters of a line: of a picture's title per panel, of a panel's, of the caption, of the legends
# below a panel and beside several.
TITLE_LETTERS, PANEL_LETTERS, CAPTION_LETTERS = 45, 48, 75
BELOW_LETTERS, BESIDE_LETTERS = 48, 34
# The library has the first with it, so that every machine gives the same drawing.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_INVISIBLE = re.compile('^<path [^>]*class="(?:back|fore)ground"')
_NEEDLESS = re.compile(
    f' (?:font-family="{FONT}"|opacity="1"|stroke-width="1"|pointer-events="none"'
    '|font-weight="normal"|aria-roledescription="[^"]*"|xmlns(?::\\w+)?="[^"]*")'
)
_PLACES = re.compile(' (?:d|transform)="[^"]*"')
_RENDERER = Path(__file__).with_name("renderer.py")
_LABELS = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal"}
_CONFIG: Spec = {
    "font": FONT,
    "axis": {
        **_LABELS,
        "gridColor": LINE,
        "domainColor": INK,
        "tickColor": INK,
        "labelOverlap": False,
    },
    "text": {"fill": INK, "lineBreak": "\n"},
    "title": {"color": INK, "anchor": "start", "frame": "group", "fontWeight": "bold"},
    "view": {"stroke": None},
    "errorbar": {"rule": {"stroke": INK}, "ticks": {"stroke": INK}},
}


@dataclass(frozen=True)
class Picture:
    """A drawing by its `spec` in Vega-Lite. Jupyter shows it."""

    spec: Mapping[str, Any]

    def svg(self) -> str:
        """As the text of a file. MachineError if it cannot be drawn."""
        return _whole(drawn([self.spec])[0])

    def _repr_svg_(self) -> str:
        return self.svg()


def save(charts: Sequence[Chart], directory: Path, formats: Sequence[str]) -> list[Path]:
    """Write charts into `directory`; the files. MachineError if they cannot be written."""
    svgs = [_whole(svg) for svg in drawn([picture_of(chart).spec for chart in charts])]
    made: dict[str, Sequence[bytes]] = {"svg": [svg.encode() for svg in svgs]}
    if "png" in formats:
        made["png"] = [base64.b64decode(each) for each in _answer(svgs=svgs)]
    paths = []
    for index, chart in enumerate(charts):
        for name in formats:
            paths.append(directory / f"{chart.name}.{name}")
            write_whole(paths[-1], made[name][index], "give another directory with --output")
    return paths


def picture_of(chart: Chart) -> Picture:
    """The whole chart: title, panels, one legend of them all, caption."""
    panels, numbers = chart.panels, numbers_of(chart.panels)
    columns = max(1, min(chart.columns, len(panels)))
    views = [{**_view(panel, numbers), "title": _title(panel)} for panel in panels]
    samples = {each.label: each for panel in panels for each in _samples(panel, numbers)}
    beside = len(panels) > 1
    key = legend(list(samples.values()), BESIDE_LETTERS if beside else BELOW_LETTERS)
    caption = [part for line in chart.caption for part in wrapped(line, CAPTION_LETTERS * columns)]
    below = [_words(caption, 9)] if caption else []
    heading = wrapped(chart.title, TITLE_LETTERS * columns)
    body = {"concat": views, "columns": columns, "spacing": 24}
    return Picture(
        {
            "title": {"text": heading, "fontSize": 16, "frame": "bounds"},
            "background": PAPER,
            "padding": 12,
            "vconcat": [*([{"hconcat": [body, *key]}] if beside else [*views, *key]), *below],
            "config": _CONFIG,
        }
    )


@dataclass(frozen=True, eq=False)
class Figure:
    """A panel of a page: the drawing of its `spec` stands below its title, or the `reason` why
    there is none.
    """

    title: str
    spec: Mapping[str, Any]
    reason: str


def figures_of(charts: Iterable[Chart]) -> Iterator[Figure]:
    """A figure for each panel."""
    for chart in charts:
        numbers = numbers_of(chart.panels)
        for panel in chart.panels:
            views = [_view(panel, numbers), *legend(list(_samples(panel, numbers)), BELOW_LETTERS)]
            spec = {"background": None, "padding": 2, "vconcat": views, "config": _CONFIG}
            yield Figure(panel.title, spec, panel.reason)


def drawn(specs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each as a page has it, without the hatches that it uses. MachineError if they cannot be
    drawn.
    """
    return [_lean(svg) for svg in _answer(specs=specs)] if specs else []


def _view(panel: AnyPanel, numbers: Mapping[str, str]) -> Spec:
    if panel.reason:
        return _words(wrapped(f"not available here: {panel.reason}", PANEL_LETTERS), 11)
    if isinstance(panel, MapPanel):
        return map_spec(panel, numbers)
    return grid_spec(panel) if isinstance(panel, GridPanel) else panel_spec(panel)


def _samples(panel: AnyPanel, numbers: Mapping[str, str]) -> Iterator[Sample]:
    """The rows of its legend."""
    if panel.reason:
        return
    if isinstance(panel, MapPanel):
        yield from map_samples(panel, numbers)
    elif isinstance(panel, GridPanel):
        yield from grid_samples(panel)
    else:
        yield from samples_of(panel)


def _title(panel: AnyPanel) -> Spec:
    # Above the names of groups.
    groups = isinstance(panel, Panel) and bool(panel.axis.groups)
    return {
        "text": wrapped(panel.title, PANEL_LETTERS),
        "fontSize": 12,
        "offset": 18 if groups else 6,
    }


def _words(lines: Sequence[str], size: int) -> Spec:
    """A view of lines of words."""
    mark = {"type": "text", "align": "left", "baseline": "top", "fontSize": size}
    view = layer(
        [{"text": list(lines), "title": " ".join(lines)}],
        mark,
        "text",
        x={"value": 0},
        y={"value": 0},
    )
    return {**view, "width": WIDTH, "height": (size + 4) * len(lines), "view": {"stroke": None}}


def _answer(**request: Any) -> list[str]:
    if importlib.util.find_spec("vl_convert") is None:
        raise MachineError(
            "charts need vl-convert, which is not installed; "
            f"install it with: python -m pip install '{LIBRARY}'"
        )
    command = [sys.executable, "-P", str(_RENDERER)]
    try:
        done = subprocess.run(
            command, input=json.dumps(request), capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise MachineError(f"charts cannot be drawn: {error.strerror or error}") from error
    if done.returncode:
        why = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise MachineError(f"charts cannot be drawn: {why}")
    found: list[str] = json.loads(done.stdout)
    return found


def _lean(svg: str) -> str:
    """The same drawing in half the letters, with what a reader sees who points at a mark."""
    short = re.sub(r"<[^<>]+>", _lean_tag, svg).replace("<svg ", f'<svg font-family="{FONT}" ', 1)
    mark = r'<path ([^>]*?)aria-label="([^"]*)"([^>]*?)/>'
    return re.sub(mark, r"<path \1\3><title>\2</title></path>", short)


def _lean_tag(found: re.Match[str]) -> str:
    tag = _NEEDLESS.sub("", found[0])
    return "" if _INVISIBLE.search(tag) else _PLACES.sub(lambda each: _rounded(each[0]), tag)


def _rounded(place: str) -> str:
    return re.sub(r"(\d\.\d)\d+", r"\1", place)


def _whole(svg: str) -> str:
    """With its hatches, and what a file has that is no part of a page."""
    return svg.replace("><", f"><defs>{patterns(svg)}</defs><", 1).replace(
        "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1
    )
