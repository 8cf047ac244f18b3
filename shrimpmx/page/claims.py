"""The claims of reproductions as one table of a page, from what each has kept of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from shrimpmx.errors import InputError
from shrimpmx.page.origin import Facts, facts_of, made_in
from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.papers.claims_report import (
    ENGINE_WORDS,
    colour_of,
    digits,
    measured_words,
    paper_words,
    with_share,
)
from shrimpmx.papers.digests import rule_digests
from shrimpmx.papers.finding import StatisticFinding, judged_again
from shrimpmx.papers.registry import PAPERS
from shrimpmx.papers.summary import EFFECT_HEADS, HEADLINE_HEADS, effect_rows, headline_rows
from shrimpmx.results.expectation_kinds import Verdict
from shrimpmx.results.json_file import read_json
from shrimpmx.results.result import check_schema
from shrimpmx.results.words import unit_words

NOTHING = "—"


class _Judged(BaseModel):
    """What a claim and each of its parts have alike."""

    result: str
    words: str
    shares: tuple[float, ...]
    needs: str

    @property
    def came_out(self) -> str:
        """What came out, with its share of the paper's effect."""
        return with_share(self.words, self.shares)


class _Case(BaseModel):
    """What a statistic is judged by."""

    verdict: str
    detail: str
    measured: float | None
    ci95: list[float] | None
    figures: list[float]
    undecided: bool
    pair: int


class _Part(_Judged):
    text: str
    paper: tuple[float, ...]
    decides: bool
    evidence: str
    because: tuple[str, ...]
    scope: str
    measured: float | None
    ci95: list[float] | None
    unit: str
    figures: list[float]
    cases: tuple[_Case, ...] = Field(min_length=1)


class _Claim(_Judged):
    id: str
    source: str
    paper: str
    reason: str
    engine: str
    evidence: tuple[str, ...]
    parts: tuple[_Part, ...]


class _Kept(BaseModel):
    claims: tuple[_Claim, ...] = Field(min_length=1)
    frozen: dict[str, str] = {}
    seed: int | None = None
    settings: tuple[str, ...] = ()
    environment: dict[str, Any] = {}
    costs: dict[str, float] = {}


@dataclass(frozen=True)
class ClaimCell:
    """What came out of a claim in one reproduction, or of a statistic, with its figures."""

    words: str
    colour: str = "open"


@dataclass(frozen=True)
class ClaimRow:
    """A claim, or with an empty `name` one of its statistics, with a cell for each reproduction."""

    name: str
    what: str
    paper: str
    cells: tuple[ClaimCell, ...]


@dataclass(frozen=True)
class Glance:
    """A table of what came of reproductions at a glance."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Reproduced:
    """One reproduction; `reasons` have the name and result of a claim."""

    heading: str
    made: str
    reasons: tuple[tuple[str, str], ...]
    origin: tuple[Facts, ...]


@dataclass(frozen=True)
class Claims:
    """The claims of some reproductions, and before them what came of these at a glance."""

    glances: tuple[Glance, ...]
    rows: tuple[ClaimRow, ...]
    reproductions: tuple[Reproduced, ...]


def claims_in(paths: Sequence[Path]) -> Claims:
    """The claims in some files, a column for each. InputError if one is no such file, or holds no
    claim yet.
    """
    kept = [_read(path) for path in paths]
    headings = list(_headings(kept, paths))
    present = rule_digests({})
    judged = [{each.id: each for each in document.claims} for document in kept]
    rows = [row for name in _union(judged) for row in _rows([each.get(name) for each in judged])]
    found = list(zip(headings, kept, strict=True))
    reproduced = tuple(_reproduced(*each, present) for each in found)
    return Claims(tuple(_glances(found)), tuple(rows), reproduced)


def _glances(found: Sequence[tuple[str, _Kept]]) -> Iterator[Glance]:
    """What came of reproductions with these headings, the tables that have any rows: effects one
    reproduction after the other, headlines side by side.
    """
    claims = {heading: [each.model_dump() for each in kept.claims] for heading, kept in found}
    effects = [
        (heading, *row) for heading, each in claims.items() for row in effect_rows(PAPERS, each)
    ]
    if effects:
        head = ("on", *EFFECT_HEADS)
        yield Glance("Effects by paper and evidence", head, tuple(_less_repeated(effects, 2)))
    came = [{row[:2]: row[2:] for row in headline_rows(PAPERS, each)} for each in claims.values()]
    names = dict.fromkeys(name for each in came for name in each)
    headlines = [(*name, *_headline_cells([each.get(name) for each in came])) for name in names]
    if headlines:
        head = (*HEADLINE_HEADS[:3], *claims)
        rows = tuple(_less_repeated(headlines, 1))
        yield Glance("Headlines of the papers' abstracts", head, rows)


def _less_repeated(rows: Sequence[tuple[str, ...]], most: int) -> Iterator[tuple[str, ...]]:
    """The rows, with leading cells blank (`most` at most) where they equal the row above."""
    for row, above in zip(rows, [(), *rows], strict=False):
        shared = max(count for count in range(most + 1) if row[:count] == above[:count])
        yield ("",) * shared + row[shared:]


def _headline_cells(found: Sequence[Sequence[str] | None]) -> Iterator[str]:
    """The claims of a headline, then what came of it in each reproduction; None: one has it not."""
    yield next(each[0] for each in found if each)
    for each in found:
        if each is None:
            yield NOTHING
            continue
        _, words, share, evidence = each
        yield "; ".join(filter(None, (", ".join(filter(None, (words, share))), evidence)))


def _read(path: Path) -> _Kept:
    document = read_json(path, "reproduction")
    check_schema(document, "reproduction", path)
    try:
        kept = _Kept.model_validate(document)
        claims = tuple(map(_judged_again, kept.claims))
        return kept.model_copy(update={"claims": claims})
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(f"reproduction {path} is damaged, or not finished: {place!r}") from None


def _judged_again(claim: _Claim) -> _Claim:
    """By the rules of this version, where it knows the claim."""
    known = _CLAIMS.get(claim.id)
    if known is None:
        return claim
    return _Claim.model_validate(judged_again(known, claim.model_dump()).as_dict())


def _headings(kept: Sequence[_Kept], paths: Sequence[Path]) -> Iterator[str]:
    """On what each was made; of those that were made alike, also the name of the directory."""
    words = [
        " and ".join(dict.fromkeys(ENGINE_WORDS.get(each.engine, each.engine) for each in claims))
        for claims in (document.claims for document in kept)
    ]
    for each, path in zip(words, paths, strict=True):
        yield each if words.count(each) == 1 else f"{each}, {path.absolute().parent.name}"


def _reproduced(heading: str, document: _Kept, present: Mapping[str, str]) -> Reproduced:
    seed = () if document.seed is None else (f"seed {document.seed}",)
    same = "those" if document.frozen == present else "others than those"
    judged = f"rules, scenarios and platforms: {same} of this version"
    return Reproduced(
        heading,
        ", ".join((*made_in(document.environment), *seed, *document.settings, judged)),
        tuple((f"{each.id}, {each.words}", each.reason) for each in document.claims if each.reason),
        tuple(facts_of(document.environment, document.costs)),
    )


def _rows(found: Sequence[_Claim | None]) -> Iterator[ClaimRow]:
    """A claim, then its statistics, as the reproductions found them; None: one has it not."""
    first = next(each for each in found if each)
    claim = _CLAIMS.get(first.id)
    what = f"{claim.setup} ({first.source})" if claim else first.source
    yield ClaimRow(first.id, what, first.paper, tuple(map(_claim_cell, found)))
    parts = [{part.text: part for part in each.parts} if each else {} for each in found]
    for text in _union(parts):
        mine = [each.get(text) for each in parts]
        known = [_statistic(claim, text, each.engine if each else "") for each in found]
        paper = next(
            paper_words(statistic) if statistic else " / ".join(map(digits, part.paper))
            for part, statistic in zip(mine, known, strict=True)
            if part
        )
        yield ClaimRow("", text, paper, tuple(map(_part_cell, mine, known)))


def _union(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return iter(dict.fromkeys(name for each in found for name in each))


_CLAIMS = {claim.id: claim for claims in PAPERS.values() for claim in claims}


def _statistic(claim: Claim | None, text: str, engine: str) -> Statistic | None:
    """That of this version, if it has one of that text: an engine may have its own."""
    statistics = claim.statistics if claim else ()
    alike = [each for each in statistics if each.expectation.text == text]
    return next((each for each in alike if each.is_for(engine)), None)


def _claim_cell(claim: _Claim | None) -> ClaimCell:
    if claim is None:
        return ClaimCell(NOTHING)
    words = "; ".join(filter(None, (claim.came_out, ", ".join(claim.evidence))))
    return ClaimCell(words, colour_of(claim.result, claim.evidence))


def _part_cell(part: _Part | None, statistic: Statistic | None) -> ClaimCell:
    if part is None:
        return ClaimCell(NOTHING)
    words = part.came_out if part.decides else f"beside: {part.came_out}"
    if part.measured is None:
        return ClaimCell(words)
    words = "; ".join(filter(None, (words, part.evidence)))
    return ClaimCell(f"{_figure_words(part, part.measured, statistic)}; {words}")


def _figure_words(part: _Part, measured: float, statistic: Statistic | None) -> str:
    """The figures that it was judged by; of a statistic that this version lacks, the one that
    decided.
    """
    if statistic is None:
        return f"{digits(measured)} {unit_words(part.unit)}".rstrip()
    keys = ("text", "measured", "ci95", "unit", "figures")
    verdict = Verdict(verdict="", detail="", **{key: getattr(part, key) for key in keys})
    return measured_words(StatisticFinding(statistic, verdict, part.evidence))
