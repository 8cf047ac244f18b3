"""Claims as tables: effects at a glance, headlines, and each claim beside what came out here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from shrimpmx.papers.claim import REAL, US_PER_S, Claim, Statistic
from shrimpmx.papers.effects import GOOD, REVERSED
from shrimpmx.papers.evidence import CALIBRATED, INVARIANT
from shrimpmx.papers.finding import Finding, Shown, StatisticFinding, share_words
from shrimpmx.papers.summary import EFFECT_HEADS, HEADLINE_HEADS, effect_rows, headline_rows
from shrimpmx.results.expectation_kinds import (
    Between,
    Difference,
    Growth,
    Order,
    Ratio,
)
from shrimpmx.results.judging import RATIO_UNIT, SHARE_UNIT
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.statistics import RATIO_MOST, ratio_text
from shrimpmx.results.words import unit_words, value_words

# Below this width of a terminal columns would be too narrow to be read.
TABLE_WIDTH = 110
ENGINE_WORDS = {"forked": "real processes", "simulated": "simulated hosts"}


def print_findings(
    findings: Sequence[Finding], papers: Mapping[str, Sequence[Claim]], console: Console
) -> None:
    """Print what results on one engine say of claims of these papers: effects at a glance,
    headlines of abstracts, each claim, then the reasons.
    """
    console.width = max(console.width, TABLE_WIDTH)
    kept = [finding.as_dict() for finding in findings]
    _print_rows(EFFECT_HEADS, list(effect_rows(papers, kept)), console)
    _print_rows(HEADLINE_HEADS, list(headline_rows(papers, kept)), console)
    table = Table(title_justify="left")
    table.add_column("claim", no_wrap=True)
    table.add_column("what", ratio=3)
    table.add_column("paper", ratio=2)
    engine = findings[0].engine if findings else REAL
    table.add_column(ENGINE_WORDS[engine], ratio=2)
    table.add_column("result, share of the paper's effect", ratio=1)
    table.add_column("evidence", no_wrap=True)
    for finding in findings:
        for row in _rows(finding):
            table.add_row(*row)
        table.add_section()
    console.print(table)
    for finding in findings:
        if finding.reason:
            words = f"{finding.claim.id}, {_styled(finding.shown)}: {escape(finding.reason)}"
            console.print(Padding(words, (0, 0, 0, 2), expand=False), highlight=False)


def _print_rows(heads: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """A table, if it has any rows."""
    if not rows:
        return
    table = Table(*heads, box=None)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    console.print()


def print_claims(claims: Sequence[Claim], console: Console) -> None:
    """Print claims with what they are about, nothing measured."""
    table = Table(box=None)
    for heading in ("claim", "kind", "where", "what", "paper"):
        table.add_column(heading, no_wrap=heading in ("claim", "kind"))
    for claim in claims:
        table.add_row(
            *(escape(words) for words in (claim.id, claim.kind, claim.source, claim.setup)),
            escape(claim.paper),
        )
    console.width = max(console.width, TABLE_WIDTH)
    console.print(table)


def _rows(finding: Finding) -> list[tuple[str, ...]]:
    """A claim in one row, or with one more for each of its statistics."""
    claim, shown = finding.claim, finding.shown
    head = (claim.id, escape(claim.setup), escape(claim.paper))
    if not finding.parts:
        return [(*head, "—", _styled(shown), "")]
    result = f"[bold]{with_share(_styled(shown), shown.shares)}[/bold]"
    rows: list[tuple[str, ...]] = [(*head, "", result, shown.evidence_words)]
    for part in finding.parts:
        own = Shown(part.result, part.words, part.shares, (part.evidence,))
        words = with_share(_styled(own), part.shares)
        rows.append(
            (
                "",
                f"· {escape(part.verdict.text)}",
                escape(paper_words(part.statistic)),
                measured_words(part),
                words if part.statistic.decides else f"(beside: {words})",
                part.evidence,
            )
        )
    return rows


def with_share(words: str, shares: Sequence[float]) -> str:
    """A result with its share of the paper's effect, where it has one."""
    return f"{words}, {share_words(shares)}" if shares else words


def colour_of(result: str, evidence: Sequence[str]) -> str:
    """How a result is marked: as good where the paper is borne out by what could have failed."""
    if result in GOOD and not set(evidence) <= {CALIBRATED, INVARIANT}:
        return "good"
    return "bad" if result == REVERSED else "open"


_STYLES = {"good": "green", "bad": "red", "open": "yellow"}


def _styled(shown: Shown) -> str:
    style = _STYLES[colour_of(shown.result, shown.evidence)]
    return f"[{style}]{escape(shown.words)}[/{style}]"


def paper_words(statistic: Statistic) -> str:
    """The paper's own figures of a statistic, a ratio with what it is made of; '' where it gives
    none.
    """
    if not statistic.paper:
        return ""
    if isinstance(statistic.expectation, Order | Between):
        return _placed_words(statistic, statistic.paper)
    ratio = _figures_words(statistic, statistic.paper)
    return ratio + _absolute_words(statistic, statistic.absolute)


def measured_words(part: StatisticFinding) -> str:
    """The figures that a part of a claim was judged by; a single one with its interval, a ratio
    with what it is made of.
    """
    statistic, verdict = part.statistic, part.shown
    if verdict.measured is None:
        return "—"
    if isinstance(statistic.expectation, Order | Between):
        return _placed_words(statistic, verdict.figures)
    words = _figures_words(statistic, [verdict.measured], verdict.ci95)
    return words + _absolute_words(statistic, verdict.figures)


def _placed_words(statistic: Statistic, figures: Sequence[float]) -> str:
    """Figures of several places, each with what tells its place from the others."""
    places = statistic.expectation.places()
    axes = dict.fromkeys(axis for place in places for axis in place)
    telling = [axis for axis in axes if len({place.get(axis) for place in places}) > 1]
    names = (
        ", ".join(value_words(axis, place[axis]) for axis in telling if axis in place)
        for place in places
    )
    unit = unit_words(METRICS[statistic.expectation.metric].unit)
    named = zip(names, figures, strict=True)
    return f"{'; '.join(f'{name} {digits(figure)}' for name, figure in named)} {unit}"


def _absolute_words(statistic: Statistic, figures: Sequence[float]) -> str:
    """What a ratio or a share is made of, behind it."""
    expected = statistic.expectation
    if not isinstance(expected, Ratio | Growth | Difference) or not figures:
        return ""
    unit = METRICS[expected.metric].unit
    if unit == "us" and min(figures) >= US_PER_S:
        unit, figures = "s", [each / US_PER_S for each in figures]
    return f", {' / '.join(map(digits, figures))} {unit_words(unit)}"


def _figures_words(
    statistic: Statistic, figures: Sequence[float], interval: Sequence[float] | None = None
) -> str:
    """Figures with their unit; a ratio or a share with what tells small effects from none."""
    is_ratio = isinstance(statistic.expectation, Ratio | Growth)
    is_share = isinstance(statistic.expectation, Difference)
    one = ratio_digits if is_ratio or is_share else digits
    words = " / ".join(map(one, figures))
    if interval is not None and interval[0] < interval[1]:
        words += f" ({one(interval[0])} to {one(interval[1])})"
    if is_ratio or is_share:
        return f"{RATIO_UNIT if is_ratio else SHARE_UNIT} {words}"
    known = METRICS.get(statistic.expectation.metric)
    return f"{words} {unit_words(known.unit)}" if known else words


def digits(figure: float) -> str:
    """Four digits, and none that say nothing: counts stay whole."""
    return f"{figure:.4g}" if abs(figure) < 10_000 else f"{figure:,.0f}"


def ratio_digits(ratio: float) -> str:
    """Three places where they tell small effects from none."""
    return digits(ratio) if 1000 <= ratio < 0.9 * RATIO_MOST else ratio_text(ratio, 3)
