"""What MPI_Comm_spawn asks for. A rank's program can write anything there, so all is checked."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Command(BaseModel):
    """A program with its arguments, quoted, the numbers of ranks of it that will do, the best one
    first, the directory where they start, their node, None: any, and their first error handler.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    words: Annotated[list[str], Field(min_length=1)]
    counts: list[Annotated[int, Field(ge=0)]]
    directory: str
    node: int | None
    error_handler: str


class Request(BaseModel):
    """What a rank asks for. Its program can write anything there."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    commands: Annotated[list[Command], Field(min_length=1)]
