"""A part of a page that is a title, some lines, pictures and tables: of a validation, a test of
conformance, or a fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from shrimpmx.errors import InputError
from shrimpmx.page.origin import Facts
from shrimpmx.results.json_file import read_json
from shrimpmx.results.result import check_schema
from shrimpmx.show.plot.draw import Figure


@dataclass(frozen=True)
class Table:
    """A table that a reader opens."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Published:
    """`made`: how and where, in a line."""

    title: str
    made: str
    lines: tuple[str, ...]
    tables: tuple[Table, ...]
    origin: tuple[Facts, ...]
    figures: tuple[Figure, ...] = ()


Model = TypeVar("Model", bound=BaseModel)


def read_published(path: Path, what: str, model: type[Model]) -> Model:
    """The document in a file; InputError if it is no such, where `what` names it."""
    document = read_json(path, what)
    check_schema(document, what, path)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(f"{what} {path} is damaged: {place!r}") from None
