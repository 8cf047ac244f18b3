"""The claims of a reproduction as a table of a page, from what it has kept of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from shrimpmx.errors import InputError
from shrimpmx.papers.claim import CLASSES, MEASURED, PREDICTED, class_words, named
from shrimpmx.papers.claims_report import ENGINE_WORDS, digits, ratio_digits
from shrimpmx.results.expectation_kinds import REVERSED
from shrimpmx.results.json_file import read_json
from shrimpmx.results.judging import RATIO_UNIT, SHARE_UNIT
from shrimpmx.results.result import check_schema
from shrimpmx.results.words import unit_words

_COLOURS = {MEASURED: "good", PREDICTED: "good", REVERSED: "bad"}
_OTHER_COLOUR = "open"


class _Judged(BaseModel):
    """What a claim and each of its parts have alike."""

    of_class: str = Field(alias="class")
    outcome: str
    needs: str
    measured: float | None
    ci95: tuple[float, float] | None
    unit: str

    @property
    def words(self) -> str:
        """Its class for a reader."""
        return class_words(self.of_class, self.outcome, self.needs)

    @property
    def colour(self) -> str:
        """That of its class."""
        return _COLOURS.get(self.of_class, _OTHER_COLOUR)

    @property
    def figure(self) -> str:
        """The figure that it was judged by, with its interval."""
        if self.measured is None:
            return "—"
        is_ratio = self.unit in (RATIO_UNIT, SHARE_UNIT)
        one = ratio_digits if is_ratio else digits
        words = one(self.measured)
        if self.ci95 is not None and self.ci95[0] < self.ci95[1]:
            words += f" ({one(self.ci95[0])} to {one(self.ci95[1])})"
        if is_ratio:
            return f"{self.unit} {words}"
        return f"{words} {unit_words(self.unit)}".rstrip()


class _Part(_Judged):
    text: str
    paper: tuple[float, ...]
    decides: bool


class _Claim(_Judged):
    id: str
    source: str
    paper: str
    reason: str
    engine: str
    parts: tuple[_Part, ...]


class _Kept(BaseModel):
    claims: tuple[_Claim, ...] = Field(min_length=1)


@dataclass(frozen=True)
class ClaimRow:
    """A claim, or with an empty `name` one of its statistics."""

    name: str
    what: str
    paper: str
    measured: str
    words: str
    colour: str


@dataclass(frozen=True)
class Claims:
    """The claims of one reproduction. `counted` are those of each class, evidence first."""

    title: str
    rows: tuple[ClaimRow, ...]
    counted: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]


def claims_in(path: Path) -> Claims:
    """The claims in a file. InputError if it is no such file, or holds no claim yet."""
    document = read_json(path, "reproduction")
    check_schema(document, "reproduction", path)
    try:
        found = _Kept.model_validate(document).claims
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(f"reproduction {path} is damaged, or not finished: {place!r}") from None
    engines = dict.fromkeys(ENGINE_WORDS.get(each.engine, each.engine) for each in found)
    reasons = tuple((f"{each.id}, {each.words}", each.reason) for each in found if each.reason)
    rows = tuple(row for each in found for row in _rows(each))
    return Claims(f"Claims, on {' and '.join(engines)}", rows, tuple(_counted(found)), reasons)


def _rows(claim: _Claim) -> Iterator[ClaimRow]:
    """A claim in one row, or with one more for each of its statistics."""
    alone = len(claim.parts) == 1
    what = f"{claim.parts[0].text} ({claim.source})" if alone else claim.source
    figure = claim.figure if alone else ""
    yield ClaimRow(claim.id, what, claim.paper, figure, claim.words, claim.colour)
    for part in () if alone else claim.parts:
        words = part.words if part.decides else f"beside: {part.words}"
        paper = " / ".join(map(digits, part.paper))
        yield ClaimRow("", part.text, paper, part.figure, words, part.colour)


def _counted(claims: Sequence[_Claim]) -> Iterator[str]:
    ids: Mapping[str, list[str]] = {each: [] for each in (*CLASSES[1:], CLASSES[0])}
    for claim in claims:
        ids.get(claim.of_class, []).append(named(claim.id, claim.of_class, claim.outcome))
    for of_class, found in ids.items():
        if found:
            yield f"{of_class}: {', '.join(found)}"
