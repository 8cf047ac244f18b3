"""The findings of an exploration in its result, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from shrimpmx.errors import InputError

# The key of an exploration in its result.
KEY = "explore"


class Measured(BaseModel):
    """A median with its interval."""

    model_config = ConfigDict(allow_inf_nan=False)

    median: float
    ci95: tuple[float, float]


class KeptSetting(BaseModel):
    """A setting: figures, or why it failed."""

    name: str
    runs: int
    failed: str = ""
    time: Measured | None = None
    cpu: Measured | None = None
    run_cpu_time: Measured | None = None
    run_handler_cpu_time: Measured | None = None
    interrupts: Measured | None = None

    @model_validator(mode="after")
    def _has_figures(self) -> Self:
        if not self.failed and None in self.figures():
            raise ValueError("neither figures nor a reason")
        return self

    def figures(self) -> tuple[Measured | None, ...]:
        """In the order of the table."""
        return self.time, self.cpu, self.run_cpu_time, self.run_handler_cpu_time, self.interrupts


class Kept(BaseModel):
    """What Findings.as_dict gives, as far as tables and pictures need it."""

    program: str
    objective: str = Field(pattern="^(time|cpu|interrupts)$")
    recommended: str
    contenders: tuple[str, ...]
    exact: bool
    frontier: tuple[str, ...]
    settings: tuple[KeptSetting, ...]
    texts: tuple[tuple[str, tuple[str, ...]], ...]


def kept_in(document: Mapping[str, Any], name: str = "the result") -> Kept | None:
    """The exploration that made a result; None: none did. InputError if it is damaged; `name` is
    the result's in the sentence.
    """
    kept = document.get(KEY)
    if kept is None:
        return None
    try:
        return Kept.model_validate(kept)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(f"{name} is damaged: {KEY}.{place} cannot be read") from None
