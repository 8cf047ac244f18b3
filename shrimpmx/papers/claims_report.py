"""Claims as a table: what the paper found beside what came out here, and what that shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from shrimpmx.papers.claim import (
    CLASSES,
    MEASURED,
    PREDICTED,
    REAL,
    US_PER_S,
    Claim,
    Finding,
    Statistic,
    StatisticFinding,
    named,
)
from shrimpmx.results.expectation_kinds import (
    REVERSED,
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
_STYLES = {MEASURED: "green", PREDICTED: "green", REVERSED: "red"}
_OTHER_STYLE = "yellow"
ENGINE_WORDS = {"forked": "real processes", "simulated": "simulated hosts"}


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print what results on one engine say of claims, then the reasons."""
    table = Table(title_justify="left")
    table.add_column("claim", no_wrap=True)
    table.add_column("what", ratio=3)
    table.add_column("paper", ratio=2)
    engine = findings[0].engine if findings else REAL
    table.add_column(ENGINE_WORDS[engine], ratio=2)
    table.add_column("class", no_wrap=True)
    for finding in findings:
        for row in _rows(finding):
            table.add_row(*row)
        table.add_section()
    console.width = max(console.width, TABLE_WIDTH)
    console.print(table)
    for finding in findings:
        if finding.reason:
            words = f"{finding.claim.id}, {_styled(finding)}: {escape(finding.reason)}"
            console.print(Padding(words, (0, 0, 0, 2), expand=False), highlight=False)
    console.print(f"\n{summary_words(findings)}")


def summary_words(findings: Sequence[Finding]) -> str:
    """The claims of each class, which do not add up: evidence first."""
    lines = []
    for of_class in (*CLASSES[1:], CLASSES[0]):
        found = [each for each in findings if each.of_class == of_class]
        ids = [named(each.claim.id, of_class, each.outcome) for each in found]
        if found:
            lines.append(f"{of_class}: {', '.join(ids)}")
    return "\n".join(lines)


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


def _rows(finding: Finding) -> list[tuple[str, str, str, str, str]]:
    """A claim in one row, or with one more for each of its statistics."""
    claim = finding.claim
    head = (claim.id, escape(claim.setup), escape(claim.paper))
    if not finding.parts:
        return [(*head, "—", _styled(finding))]
    rows = [(*head, "", f"[bold]{_styled(finding)}[/bold]")]
    for part in finding.parts:
        word = _styled(part)
        rows.append(
            (
                "",
                f"· {escape(part.verdict.text)}",
                escape(paper_words(part.statistic)),
                measured_words(part),
                word if part.statistic.decides else f"(beside: {word})",
            )
        )
    return rows


def _styled(shown: Finding | StatisticFinding) -> str:
    style = _STYLES.get(shown.of_class, _OTHER_STYLE)
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
    statistic, verdict = part.statistic, part.verdict
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
