"""What came of a reproduction at a glance: effects by paper and evidence, and headlines.

Claims are those of one engine, as `Finding.as_dict` has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shrimpmx.papers.claim import Claim
from shrimpmx.papers.effects import (
    DIFFERS,
    DIRECTION,
    MIXED,
    NO_EFFECT,
    REVERSED,
    SIZE,
    TRACE,
    UNJUDGED,
)
from shrimpmx.papers.evidence import EVIDENCE
from shrimpmx.papers.finding import shown_of
from shrimpmx.papers.headlines import HEADLINES, Headline
from shrimpmx.results.expectation_kinds import INCONCLUSIVE

ClaimData = Mapping[str, Any]
Papers = Mapping[str, Sequence[Claim]]
Row = tuple[str, ...]

_COLUMNS = {
    "in size": (SIZE,),
    "in direction": (DIRECTION,),
    "mixed": (MIXED,),
    "not": (TRACE, NO_EFFECT, DIFFERS),
    "reversed": (REVERSED,),
    "inconclusive": (INCONCLUSIVE,),
}
EFFECT_HEADS: Row = ("paper", "evidence", "effects", *_COLUMNS)
HEADLINE_HEADS: Row = ("paper", "abstract", "claims", "result", "share", "evidence")
NOT_JUDGED = "not judged"


def effect_rows(papers: Papers, claims: Sequence[ClaimData]) -> Iterator[Row]:
    """How many effects, which are the statistics that decide, came out how, a row for each paper
    and kind of evidence that there is; and how many were not judged.
    """
    by_id = {each["id"]: each for each in claims}
    for paper, known in papers.items():
        parts = [
            part
            for claim in known
            for part in by_id.get(claim.id, {}).get("parts", ())
            if part["decides"]
        ]
        for kind in EVIDENCE:
            found = Counter(
                part["result"]
                for part in parts
                if part["evidence"] == kind and part["result"] not in UNJUDGED
            )
            if found:
                counts = (sum(found[each] for each in column) for column in _COLUMNS.values())
                yield (paper, kind, str(found.total()), *map(_count, counts))
        lacking = sum(part["result"] in UNJUDGED for part in parts)
        lacking += sum(
            sum(each.decides for each in claim.statistics)
            for claim in known
            if claim.id in by_id and not by_id[claim.id]["parts"]
        )
        if lacking:
            yield (paper, NOT_JUDGED, str(lacking), *([""] * len(_COLUMNS)))


def headline_rows(papers: Papers, claims: Sequence[ClaimData]) -> Iterator[Row]:
    """What came out of what the abstracts say, a row for each headline that has a claim here."""
    by_id = {each["id"]: each for each in claims}
    for headline in HEADLINES:
        names = [name for name, _ in headline.parts if name in by_id]
        if headline.paper in papers and names:
            shown = shown_of(_parts(headline, by_id), next(_needs(names, by_id), ""))
            words = (shown.words, shown.share_words, shown.evidence_words)
            yield (headline.paper, headline.text, ", ".join(dict.fromkeys(names)), *words)


def _parts(headline: Headline, by_id: Mapping[str, ClaimData]) -> Iterator[ClaimData]:
    for name, text in headline.parts:
        for part in by_id.get(name, {}).get("parts", ()):
            if part["text"].startswith(text):
                yield part


def _needs(names: Sequence[str], by_id: Mapping[str, ClaimData]) -> Iterator[str]:
    """What claims need that have nothing to show."""
    yield from (str(by_id[name]["needs"]) for name in names if not by_id[name]["parts"])


def _count(number: int) -> str:
    return str(number) if number else ""
