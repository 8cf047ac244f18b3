"""A progress bar with the time left, on standard error."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from shrimpmx.scenario import RunPlan

Method = TypeVar("Method", bound=Callable[..., None])


def _unless_nobody_looks(method: Method) -> Method:
    """A bar on a terminal that was closed meanwhile is no reason to fail."""

    @functools.wraps(method)
    def attempt(*arguments: Any) -> None:
        with contextlib.suppress(OSError):
            method(*arguments)

    return cast(Method, attempt)


class Bar:
    """Shows how a sweep goes on.

    It is drawn between runs only, without rich's refresh thread: a process with threads must
    not fork, and every run forks its agents.
    """

    def __init__(self, name: str) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[point]}"),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task(name, total=None, point="")

    @_unless_nobody_looks
    def begin(self, total: int, done: int) -> None:
        """A sweep of `total` runs begins, of which `done` are there already."""
        self._progress.start()
        self._progress.update(self._task, total=total, completed=done)
        self._progress.refresh()

    @_unless_nobody_looks
    def running(self, plan: RunPlan) -> None:
        """A run begins."""
        point = ", ".join(str(value) for value in plan.point.shown.values())
        self._progress.update(self._task, point=point)
        self._progress.refresh()

    @_unless_nobody_looks
    def finished(self, plan: RunPlan) -> None:
        """A run is kept."""
        self._progress.advance(self._task)
        self._progress.refresh()

    @_unless_nobody_looks
    def end(self) -> None:
        """The sweep is over, or was interrupted."""
        self._progress.stop()
