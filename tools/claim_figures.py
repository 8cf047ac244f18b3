"""The tables of docs/claim-figures.md: each statistic of a claim, the paper's figures and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shrimpmx.papers.claim import Claim, Statistic, StatisticFinding, class_words
from shrimpmx.papers.claims_report import ENGINE_WORDS, measured_words, paper_words
from shrimpmx.results.expectation_kinds import NOT_RUN, Verdict

# What stands where an engine judges nothing.
NOTHING = "—"
Document = Mapping[str, Any]


def tables(papers: Mapping[str, Sequence[Claim]], documents: Sequence[Document]) -> Iterator[str]:
    """The lines of a table in Markdown for each paper, with a column for each document, which has
    the `engine` and the `claims` of a reproduction: a row for each claim with its classes, and one
    for each of its statistics. What stands beside a claim has one if it was run.
    """
    engines = [str(document["engine"]) for document in documents]
    judged = [{each["id"]: each for each in document["claims"]} for document in documents]
    heads = ("claim", "what", "paper", *(ENGINE_WORDS[engine] for engine in engines))
    for number, (paper, claims) in enumerate(papers.items()):
        yield from ("",) * (number > 0)
        yield from (f"## {paper.capitalize()}", "", _row(*heads), _row(*["---"] * len(heads)))
        for claim in claims:
            found = dict(zip(engines, (each.get(claim.id) for each in judged), strict=True))
            classes = (f"**{_class_words(each)}**" for each in found.values())
            yield _row(f"**{claim.id}**", claim.setup, claim.paper, *classes)
            yield from _statistics(claim, found)


def _statistics(claim: Claim, found: Mapping[str, Document | None]) -> Iterator[str]:
    """A row for each text: an engine may have a statistic of its own of that text."""
    by_text: dict[str, list[Statistic]] = {}
    for statistic in claim.statistics:
        by_text.setdefault(statistic.expectation.text, []).append(statistic)
    for text, alike in by_text.items():
        cells = [
            next((_cell(each, kept) for each in alike if each.is_for(engine)), NOTHING)
            for engine, kept in found.items()
        ]
        if set(cells) != {NOTHING} or any(each.decides for each in alike):
            yield _row("", text, paper_words(alike[0]), *cells)


def _cell(statistic: Statistic, claim: Document | None) -> str:
    """The figures that came out of a statistic, and its class."""
    parts = {each["text"]: each for each in claim["parts"]} if claim else {}
    kept = parts.get(statistic.expectation.text)
    if not kept:
        return NOTHING
    keys = ("text", "measured", "ci95", "unit", "figures")
    verdict = Verdict(verdict="", detail="", **{key: kept[key] for key in keys})
    words = kept["class"] if statistic.decides else f"beside: {kept['class']}"
    if verdict.measured is None:
        return words
    return f"{measured_words(StatisticFinding(statistic, verdict, (), real=True))}; {words}"


def _class_words(claim: Document | None) -> str:
    return class_words(claim["class"], claim["outcome"], claim["needs"]) if claim else NOT_RUN


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
