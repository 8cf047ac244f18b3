"""A validation of simulated hosts as part of a page, from what `validate --json` has kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from shrimpmx.experiment.validation.comparison import Compared
from shrimpmx.experiment.validation.families import FAMILIES
from shrimpmx.experiment.validation.words import (
    FIGURE_HEADS,
    KIND_HEADS,
    WORD_HEADS,
    failure_lines,
    kind_rows,
    row_words,
    summary_lines,
)
from shrimpmx.page.origin import facts_of, made_in
from shrimpmx.page.published import Published, Table, read_published
from shrimpmx.results.words import value_words

VALIDATION_FILE = "validation.json"


class _Accuracy(BaseModel):
    points: int
    counts: int
    counts_within: int
    timed_counts: int
    timed_counts_within: int
    certain_counts: int
    certain_counts_within: int
    times: int
    median_error: float | None


class _Summary(_Accuracy):
    orders_certain: int
    orders_reversed: list[str]
    families: dict[str, _Accuracy]
    state: str
    left_aside: dict[str, int]
    not_compared: int
    disturbed: int
    retaken: int
    disturbances: dict[str, int]
    real_again: _Accuracy | None = None


class _Failed(BaseModel):
    family: str
    params: dict[str, Any]
    reason: str


class _Validation(BaseModel):
    environment: dict[str, Any]
    repeats: int
    rows: list[Compared]
    summary: _Summary
    failed: list[_Failed]


def validation_in(path: Path) -> Published:
    """The validation in a file; InputError if it is none."""
    found = read_published(path, "validation", _Validation)
    rows = tuple((row.family, _words(row.params), *row_words(row)) for row in found.rows)
    heads = ("kind of points", "parameters", *WORD_HEADS, *FIGURE_HEADS)
    return Published(
        title="Validation of simulated hosts",
        made=", ".join((*made_in(found.environment), f"{found.repeats} runs of each point")),
        lines=(
            *summary_lines(found.summary.model_dump()),
            *failure_lines([each.model_dump() for each in found.failed]),
        ),
        tables=(Table("Each point", heads, rows),),
        origin=tuple(facts_of(found.environment, {})),
    )


def kinds_in(path: Path) -> Table:
    """The figures of each kind of points of the validation in a file, and of all points."""
    found = read_published(path, "validation", _Validation)
    axis = {family.name: family.compare or "" for family in FAMILIES}
    return Table("By kind of points", KIND_HEADS, tuple(kind_rows(found.rows, axis)))


def _words(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value_words(name, value)}" for name, value in params.items())
