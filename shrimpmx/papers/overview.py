"""What holds and what does not, on one screen: the claims of each paper by class and engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shrimpmx.papers.claim import CLASSES, Claim, named
from shrimpmx.results.expectation_kinds import NOT_RUN

# The classes from evidence on, invariants last.
_SHOWN = (*CLASSES[1:], CLASSES[0])


def overview(
    papers: Mapping[str, Sequence[Claim]], documents: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The lines of a table in Markdown: for each paper and class the claims that have it, in a
    column for each document, which has the `engine` and the `claims` of a reproduction. Of a
    calibrated one that does not hold it says what came out.
    """
    engines = [str(document["engine"]) for document in documents]
    judged = [{each["id"]: each for each in document["claims"]} for document in documents]
    lines = [_row("paper", "class", *engines), _row(*["---"] * (2 + len(engines)))]
    for paper, claims in papers.items():
        ids = [claim.id for claim in claims]
        for of_class in _SHOWN:
            found = [
                [
                    named(name, of_class, known.get(name, {}).get("outcome", ""))
                    for name in ids
                    if known.get(name, {}).get("class", NOT_RUN) == of_class
                ]
                for known in judged
            ]
            if any(found):
                lines.append(_row(paper, of_class, *map(", ".join, found)))
    return lines


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
