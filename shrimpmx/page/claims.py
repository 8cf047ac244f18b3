"""The claims of reproductions as one table of a page, from what each has kept of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from shrimpmx.errors import InputError
from shrimpmx.page.origin import Facts, facts_of, made_in
from shrimpmx.papers.claim import (
    CLASSES,
    MEASURED,
    PREDICTED,
    Claim,
    Statistic,
    StatisticFinding,
    class_words,
    named,
)
from shrimpmx.papers.claims_report import ENGINE_WORDS, digits, measured_words, paper_words
from shrimpmx.papers.digests import rule_digests
from shrimpmx.papers.registry import PAPERS
from shrimpmx.results.expectation_kinds import REVERSED, Verdict
from shrimpmx.results.json_file import read_json
from shrimpmx.results.result import check_schema
from shrimpmx.results.words import unit_words

NOTHING = "—"
_COLOURS = {MEASURED: "good", PREDICTED: "good", REVERSED: "bad"}
_OTHER_COLOUR = "open"


class _Judged(BaseModel):
    """What a claim and each of its parts have alike."""

    of_class: str = Field(alias="class")
    outcome: str
    needs: str

    @property
    def words(self) -> str:
        """Its class for a reader."""
        return class_words(self.of_class, self.outcome, self.needs)


class _Part(_Judged):
    text: str
    paper: tuple[float, ...]
    decides: bool
    measured: float | None
    ci95: list[float] | None
    unit: str
    figures: list[float] = []


class _Claim(_Judged):
    id: str
    source: str
    paper: str
    reason: str
    engine: str
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
    """The class of a claim in one reproduction, or the figures and the class of a statistic."""

    words: str
    colour: str = _OTHER_COLOUR


@dataclass(frozen=True)
class ClaimRow:
    """A claim, or with an empty `name` one of its statistics, with a cell for each reproduction."""

    name: str
    what: str
    paper: str
    cells: tuple[ClaimCell, ...]


@dataclass(frozen=True)
class Reproduced:
    """One reproduction. `counted` are the claims of each class, evidence first; `reasons` have the
    name and class of a claim.
    """

    heading: str
    made: str
    counted: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    origin: tuple[Facts, ...]


@dataclass(frozen=True)
class Claims:
    """The claims of some reproductions."""

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
    found = zip(headings, kept, strict=True)
    return Claims(tuple(rows), tuple(_reproduced(*each, present) for each in found))


def _read(path: Path) -> _Kept:
    document = read_json(path, "reproduction")
    check_schema(document, "reproduction", path)
    try:
        return _Kept.model_validate(document)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(f"reproduction {path} is damaged, or not finished: {place!r}") from None


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
    same = "the rules of" if document.frozen == present else "other rules than"
    judged = f"judged by {same} this version"
    return Reproduced(
        heading,
        ", ".join((*made_in(document.environment), *seed, *document.settings, judged)),
        tuple(_counted(document.claims)),
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
    return ClaimCell(claim.words, _COLOURS.get(claim.of_class, _OTHER_COLOUR))


def _part_cell(part: _Part | None, statistic: Statistic | None) -> ClaimCell:
    if part is None:
        return ClaimCell(NOTHING)
    words = part.words if part.decides else f"beside: {part.words}"
    if part.measured is None:
        return ClaimCell(words)
    return ClaimCell(f"{_figure_words(part, part.measured, statistic)}; {words}")


def _figure_words(part: _Part, measured: float, statistic: Statistic | None) -> str:
    """The figures that it was judged by; of a statistic that this version lacks, the one that
    decided.
    """
    if statistic is None:
        return f"{digits(measured)} {unit_words(part.unit)}".rstrip()
    keys = ("text", "measured", "ci95", "unit", "figures")
    verdict = Verdict(verdict="", detail="", **{key: getattr(part, key) for key in keys})
    return measured_words(StatisticFinding(statistic, verdict, (), real=True))


def _counted(claims: Sequence[_Claim]) -> Iterator[str]:
    ids: dict[str, list[str]] = {each: [] for each in (*CLASSES[1:], CLASSES[0])}
    for claim in claims:
        ids.setdefault(claim.of_class, []).append(named(claim.id, claim.of_class, claim.outcome))
    for of_class, found in ids.items():
        if found:
            yield f"{of_class}: {', '.join(found)}"
