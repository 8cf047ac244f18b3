"""Claims as a table: what the paper found beside what was measured here, and why not."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from shrimpmx.papers.claim import CLAIM_WORDS, REPRODUCED, Claim, Finding, Statistic
from shrimpmx.results.expectation_kinds import OPPOSITE, Order, Ratio, Verdict
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.words import unit_words

# Below this width of a terminal columns would be too narrow to be read.
TABLE_WIDTH = 110
_STYLES = {REPRODUCED: "green", CLAIM_WORDS[OPPOSITE]: "red"}
_OTHER_STYLE = "yellow"


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print claims with their verdicts, then the reasons of those that are not reproduced."""
    table = Table(title_justify="left")
    table.add_column("claim", no_wrap=True)
    table.add_column("what", ratio=3)
    table.add_column("paper", ratio=2)
    table.add_column("measured here", ratio=2)
    table.add_column("verdict", no_wrap=True)
    for finding in findings:
        for row in _rows(finding):
            table.add_row(*row)
        table.add_section()
    console.width = max(console.width, TABLE_WIDTH)
    console.print(table)
    for finding in findings:
        if finding.reason:
            words = f"{finding.claim.id}, {_styled(finding.verdict)}: {escape(finding.reason)}"
            console.print(Padding(words, (0, 0, 0, 2), expand=False), highlight=False)
    console.print(f"\n{summary_words(findings)}")


def summary_words(findings: Sequence[Finding]) -> str:
    """How many claims have each verdict."""
    counts = dict.fromkeys(CLAIM_WORDS.values(), 0)
    for finding in findings:
        counts[finding.verdict] += 1
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


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
    """A claim in one row, or with one more for each of several statistics."""
    claim, verdict = finding.claim, _styled(finding.verdict)
    head = (claim.id, escape(claim.setup), escape(claim.paper))
    if len(finding.parts) == 1:
        return [(*head, measured_words(claim.statistics[0], finding.parts[0]), verdict)]
    rows = [(*head, "", f"[bold]{verdict}[/bold]")]
    for statistic, part in zip(claim.statistics, finding.parts, strict=False):
        word = _styled(CLAIM_WORDS[part.verdict])
        rows.append(
            (
                "",
                f"· {escape(part.text)}",
                escape(paper_words(statistic)),
                measured_words(statistic, part),
                word if statistic.decides else f"(beside: {word})",
            )
        )
    return rows


def _styled(verdict: str) -> str:
    style = _STYLES.get(verdict, _OTHER_STYLE)
    return f"[{style}]{verdict}[/{style}]"


def paper_words(statistic: Statistic) -> str:
    """The paper's own figures of a statistic; '' where it gives none."""
    return _figures_words(statistic, statistic.paper) if statistic.paper else ""


def measured_words(statistic: Statistic, part: Verdict) -> str:
    """The figures that a part of a claim was judged by; a single one with its interval."""
    if part.measured is None:
        return "—"
    if isinstance(statistic.expectation, Order):
        return _figures_words(statistic, part.figures)
    return _figures_words(statistic, [part.measured], part.ci95)


def _figures_words(
    statistic: Statistic, figures: Sequence[float], interval: Sequence[float] | None = None
) -> str:
    """Figures with their unit; a ratio with what tells small effects from none."""
    is_ratio = isinstance(statistic.expectation, Ratio)
    one = _ratio_digits if is_ratio else _digits
    words = " / ".join(map(one, figures))
    if interval is not None and interval[0] < interval[1]:
        words += f" ({one(interval[0])} to {one(interval[1])})"
    if is_ratio:
        return f"ratio {words}"
    known = METRICS.get(statistic.expectation.metric)
    return f"{words} {unit_words(known.unit)}" if known else words


def _digits(figure: float) -> str:
    """Four digits, and none that say nothing: counts stay whole."""
    return f"{figure:.4g}" if abs(figure) < 10_000 else f"{figure:,.0f}"


def _ratio_digits(ratio: float) -> str:
    return f"{ratio:.3f}"
