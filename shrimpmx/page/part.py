"""What a page says of one result, as words and tables for its template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shrimpmx.page.downloads import Download, Room, Stored
from shrimpmx.page.explored import Explored, explored_in
from shrimpmx.page.origin import Facts, origin_of
from shrimpmx.page.timelines import TimelineRoom, Timelines
from shrimpmx.page.where import where_in
from shrimpmx.papers.charts import charts_of
from shrimpmx.results.expectation_kinds import AS_EXPECTED, OPPOSITE
from shrimpmx.show.cells import legend
from shrimpmx.show.draws import most_probable
from shrimpmx.show.plot.chart import Chart
from shrimpmx.show.plot.draw import Figure, figures_of
from shrimpmx.show.report import heading_lines, notes
from shrimpmx.show.sections import SECTIONS
from shrimpmx.show.tables import MetricTable, in_one, metric_tables

# A verdict is told by a sign of its own, not by its colour alone.
_SIGNS = {AS_EXPECTED: ("good", "✓"), OPPOSITE: ("bad", "✗")}
_OTHER_SIGN = ("open", "?")
BEST_WORDS = "bold: the best of a row"

Document = Mapping[str, Any]


@dataclass(frozen=True)
class VerdictWords:
    """A verdict with its sign, and with the class that gives it a colour."""

    sign: str
    colour: str
    verdict: str
    text: str
    scope: str
    detail: str


@dataclass(frozen=True)
class Core:
    """What came out of one result, in short. `lines` say under which settings and on whose hosts;
    `anchor` is its name in the page.
    """

    anchor: str
    name: str
    title: str
    source: str
    shows: str
    lines: list[str]
    verdicts: list[VerdictWords]
    tables: list[MetricTable]
    legend: str
    notes: list[str]


@dataclass(frozen=True)
class Part(Core):
    """One result. `texts` are sections in fixed letters, each with its title."""

    explored: Explored | None
    figures: list[Figure]
    caption: list[str]
    texts: list[tuple[str, str]]
    origin: list[Facts]
    command: str
    place: str
    downloads: list[Download]
    timelines: Timelines | None

    @property
    def drawn(self) -> list[Figure]:
        """All figures that have a drawing."""
        return [figure for figure in self.figures if not figure.reason]

    @property
    def counted(self) -> str:
        """How many verdicts there are of each kind."""
        found: dict[str, int] = {}
        for each in self.verdicts:
            found[each.verdict] = found.get(each.verdict, 0) + 1
        return ", ".join(f"{count} {verdict}" for verdict, count in found.items())


def core_of(document: Document, anchor: str) -> Core:
    """What came out of a result, in short."""
    document = most_probable(document)
    verdicts = [_verdict(item) for item in document.get("expectations", ())]
    tables = in_one(list(_tables(document)))
    texts = [word for table in tables for word in table.words()]
    texts += [each.detail for each in verdicts]
    return Core(
        anchor=anchor,
        name=document["scenario"],
        title=document.get("title") or document["scenario"],
        source=document.get("source", ""),
        shows=document.get("shows", ""),
        lines=list(heading_lines(document)),
        verdicts=verdicts,
        tables=tables,
        legend="; ".join(filter(None, (legend(texts), BEST_WORDS * any(map(_has_best, tables))))),
        notes=notes(document),
    )


def part_of(stored: Stored, number: int, room: Room, timeline_room: TimelineRoom) -> Part:
    """What a page says of its result `number`, whose data and traces take some of the rooms."""
    document = most_probable(stored.document)
    explored, charts = explored_in(document, stored.path), charts_of(document)
    core = vars(core_of(document, f"result{number}"))
    where, left_out = where_in(stored.path)
    core["tables"] = [*(each.table for each in where), *core["tables"]]
    core["legend"] = "; ".join(filter(None, (where[0].legend if where else "", core["legend"])))
    core["notes"] = [*core["notes"], *left_out]
    return Part(
        **core | ({"title": explored.title} if explored else {}),
        explored=explored,
        figures=list(figures_of([*(each.chart for each in where), *charts])),
        caption=_captions(charts, (document.get("source", ""), *core["lines"])),
        texts=[
            (SECTIONS[name].title, SECTIONS[name].text(stored.document))
            for name in document.get("sections", ())
            if name in SECTIONS
        ]
        + [(each.title, "\n".join(each.lines)) for each in where],
        origin=list(origin_of(document)),
        command=document.get("command", ""),
        place=str(stored.path),
        downloads=list(room.downloads(stored)),
        timelines=timeline_room.timelines(stored),
    )


def _tables(document: Document) -> Iterator[MetricTable]:
    metrics = dict.fromkeys(name for point in document["points"] for name in point["metrics"])
    for metric in metrics:
        yield from metric_tables(document, metric)


def _captions(charts: Sequence[Chart], said: Sequence[str]) -> list[str]:
    """The lines below some charts, each once, without those that are `said` elsewhere, or that
    another begins with.
    """
    lines = dict.fromkeys(line for chart in charts for line in chart.caption)
    whole = [line for line in lines if sum(each.startswith(line) for each in lines) == 1]
    return [line for line in whole if line not in said]


def _has_best(table: MetricTable) -> bool:
    return any(cell.best for _, cells in table.rows for cell in cells)


def _verdict(item: Mapping[str, str]) -> VerdictWords:
    colour, sign = _SIGNS.get(item["verdict"], _OTHER_SIGN)
    scope = item.get("scope", "")
    return VerdictWords(sign, colour, item["verdict"], item["text"], scope, item["detail"])
