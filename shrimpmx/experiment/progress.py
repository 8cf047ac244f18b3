"""How a sweep tells how it goes on."""

from __future__ import annotations

from typing import Protocol

from shrimpmx.experiment.scenario import RunPlan


class Progress(Protocol):
    """Is told how a sweep goes on, and, as an Onlooker, how its runs do."""

    position: str

    def begin(self, total: int, done: int) -> None: ...
    def running(self, plan: RunPlan, position: str) -> None: ...
    def again(self, why: str) -> None: ...
    def waits_for(self, words: str) -> None: ...
    def finished(self, plan: RunPlan) -> None: ...
    def end(self) -> None: ...


class Quiet:
    """Progress that is not shown."""

    def __init__(self) -> None:
        self.position = ""

    def begin(self, total: int, done: int) -> None:
        """A sweep of `total` runs begins, of which `done` are there already."""

    def running(self, plan: RunPlan, position: str) -> None:
        """A run begins, which is there in the sweep, in words."""
        self.position = position

    def again(self, why: str) -> None:
        """The run is taken again."""

    def waits_for(self, words: str) -> None:
        """What the run, or the sweep, waits for now."""

    def finished(self, plan: RunPlan) -> None:
        """A run is kept; of runs beside each other, too."""

    def end(self) -> None:
        """The sweep is over, or was interrupted."""


def awaited_words(runs: int, workers: int) -> str:
    """So many runs, one or more, that as many workers make."""
    return f"{runs} run{'s' * (runs > 1)} on {workers} worker{'s' * (workers > 1)}"
