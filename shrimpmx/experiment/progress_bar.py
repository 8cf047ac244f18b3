"""How a sweep goes on, on standard error: a bar with the time left, or a line each minute."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO, TypeVar, cast

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from shrimpmx.cluster.engine.ending import interrupts_held
from shrimpmx.cluster.engine.output import PATIENCE_S, Target
from shrimpmx.experiment.progress import Quiet
from shrimpmx.experiment.scenario import RunPlan
from shrimpmx.native.streams import on_terminal, tell
from shrimpmx.results.words import place_words
from shrimpmx.show.terminal import console

# Columns of a terminal that leave room for a bar of rich's usual width beside the words.
WIDE = 100
# Below this many there is room for the figures and the point only.
NARROW = 72
# "100/800" and "0:01:23", which dots would make worthless.
COUNT_WIDTH, TIME_WIDTH = 7, 7
AGAIN = ", again"
# Seconds between two lines in a file or a pipe (ours).
LINE_S = 60.0
# What a terminal that takes nothing gets later, at most, and in place of the rest: the line erased,
# the cursor shown.
MOST_BYTES = 65_536
CLEARED = "\x1b[2K\x1b[G\x1b[?25h"  # no \r, which would be written at once

Method = TypeVar("Method", bound=Callable[..., None])


def _unless_nobody_looks(method: Method) -> Method:
    """A bar on a terminal that was closed meanwhile is no reason to fail.

    An interrupt is held back: rich would lose it to the error that it meets on such a terminal.
    """

    @functools.wraps(method)
    def attempt(*arguments: Any) -> None:
        with interrupts_held(), contextlib.suppress(OSError):
            method(*arguments)

    return cast(Method, attempt)


class _Unhurried:
    """A terminal that the process which draws on it waits for in no write: what it does not take at
    once it gets with what follows.

    It takes nothing while it is stopped (Ctrl-S), or its reader is slow; a run has other duties.
    """

    def __init__(self, file: TextIO) -> None:
        self._file, self._target = file, Target(file.fileno())
        self._process = os.getpid()

    def write(self, text: str) -> int:
        """Rich writes whole lines."""
        if os.getpid() != self._process:  # what a run's process prints, which is not to be lost
            return self._file.write(text)
        if self._target.left < MOST_BYTES:
            encoding, errors = self._file.encoding, self._file.errors or "strict"
            self._target.add(text.encode(encoding, errors))
        return len(text)

    def flush(self) -> None:
        """Write what is taken now."""
        if os.getpid() != self._process:
            self._file.flush()
            return
        try:
            self._target.write()
        except OSError:  # it was closed
            self._target.discard()
            raise

    def end(self) -> None:
        """Give it some time for the rest. If it still takes nothing, it gets an empty line and its
        cursor back with what is printed next.
        """
        with contextlib.suppress(OSError):  # it was closed
            self._target.write_all(PATIENCE_S)
        if self._target.left:
            self._target.discard()
            self._file.write(CLEARED)
        self._target.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _one_line(least: int | None = None) -> Column:
    return Column(no_wrap=True, overflow="ellipsis", min_width=least)


def point_words(plan: RunPlan, axes: Sequence[str]) -> str:
    """What tells a run from others, by those of the axes that its sweep has."""
    shown = plan.point.shown
    return ", ".join(place_words(axis, shown[axis]) for axis in axes if axis in shown)


class Bar(Quiet):
    """Shows how a sweep goes on, in one line; `axes` are those that tell its runs apart.

    Of one sweep among several it counts `whole` runs, those of all, with `before` done before it.

    It is drawn between runs, and within one when that tells what it waits for, without rich's
    refresh thread: a process with threads must not fork, and every run forks its agents.
    """

    def __init__(
        self,
        name: str,
        axes: Sequence[str] = (),
        width: int | None = None,
        before: int = 0,
        whole: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._file = _Unhurried(sys.stderr) if on_terminal() else None
        terminal = console(stderr=True, width=width, file=self._file)
        self._axes = axes
        self._clock = clock
        self._process = os.getpid()
        self._began_s, self._words = clock(), ""
        self._before, self._whole = before, whole
        # What is too long ends in dots: a line that wraps cannot be drawn over.
        columns: list[ProgressColumn] = [
            TextColumn("{task.description}", table_column=_one_line()),
            BarColumn(bar_width=40 if terminal.width >= WIDE else 10),
            MofNCompleteColumn(table_column=_one_line(COUNT_WIDTH)),
            TimeRemainingColumn(table_column=_one_line(TIME_WIDTH)),
            TextColumn("{task.fields[point]}", markup=False, table_column=_one_line()),
        ]
        self._progress = Progress(
            *(columns if terminal.width >= NARROW else columns[2:]),
            console=terminal,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task(name, total=None, point="")

    def lines(self) -> list[str]:
        """What it shows now, as text."""
        terminal = self._progress.console
        with terminal.capture() as shown:
            terminal.print(self._progress.get_renderable())
        return shown.get().splitlines()

    @_unless_nobody_looks
    def begin(self, total: int, done: int) -> None:
        """A sweep of `total` runs begins, of which `done` are there already."""
        self._progress.start()
        self._progress.update(self._task, total=self._whole or total, completed=self._before + done)
        self._progress.refresh()

    @_unless_nobody_looks
    def running(self, plan: RunPlan, position: str) -> None:
        """A run begins, which is there in the sweep, in words."""
        super().running(plan, position)
        self._began_s = self._clock()
        self._words = ", ".join(filter(None, [point_words(plan, self._axes), _run_of(position)]))
        self._show(self._words)

    @_unless_nobody_looks
    def again(self, why: str) -> None:
        """The run is taken again."""
        self._began_s = self._clock()
        self._words = f"{self._words.partition(AGAIN)[0]}{AGAIN} ({why})"
        self._show(self._words)

    @_unless_nobody_looks
    def waits_for(self, words: str) -> None:
        """What the run, or the sweep, waits for now."""
        since = f"{self._clock() - self._began_s:.0f} s, waits for {words}"
        self._show(", ".join(filter(None, [self._words, since])))

    @_unless_nobody_looks
    def finished(self, plan: RunPlan) -> None:
        """A run is kept; of runs beside each other the last one to end is named."""
        self._began_s = self._clock()
        self._progress.update(self._task, advance=1)
        self._show(point_words(plan, self._axes))

    def end(self) -> None:
        """The sweep is over, or was interrupted."""
        self._stop()
        if self._file:
            self._file.end()

    @_unless_nobody_looks
    def _stop(self) -> None:
        self._progress.stop()

    def _show(self, words: str) -> None:
        # A worker that this process has forked has no terminal.
        if os.getpid() == self._process:
            self._progress.update(self._task, point=words)
            self._progress.refresh()


class Lines(Quiet):
    """Tells how a sweep goes on where no bar can be drawn: a line each minute. `begun_s`: when the
    first of several sweeps began. `whole` None: how many runs there are is not known. The rest as
    those of Bar.
    """

    def __init__(
        self,
        name: str,
        axes: Sequence[str] = (),
        before: int = 0,
        whole: int | None = 0,
        begun_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._name, self._axes, self._words = name, axes, ""
        self._done, self._whole = before, whole
        self._clock, self._begun_s = clock, clock() if begun_s is None else begun_s
        self._told = self._minute()
        self._process = os.getpid()

    def begin(self, total: int, done: int) -> None:
        """A sweep of `total` runs begins, of which `done` are there already."""
        self._done += done
        if self._whole == 0:
            self._whole = total

    def running(self, plan: RunPlan, position: str) -> None:
        """A run begins, which is there in the sweep, in words."""
        super().running(plan, position)
        self._words = ", ".join(filter(None, [point_words(plan, self._axes), _run_of(position)]))
        self._tell(self._words)

    def waits_for(self, words: str) -> None:
        """What the run, or the sweep, waits for now."""
        self._tell(", ".join(filter(None, [self._words, f"waits for {words}"])))

    def finished(self, plan: RunPlan) -> None:
        """A run is kept."""
        self._done += 1
        self._tell(point_words(plan, self._axes))

    def _minute(self) -> int:
        return int((self._clock() - self._begun_s) / LINE_S)

    def _tell(self, words: str) -> None:
        # A worker that this process has forked leaves it to this one.
        if os.getpid() != self._process or self._minute() == self._told:
            return
        self._told = self._minute()
        count = f"{self._done} of {self._whole}" if self._whole else str(self._done)
        runs = "run" if count == "1" else "runs"
        tell(", ".join(filter(None, [f"{self._name}: {count} {runs} done", words])))


def progress_for(
    name: str,
    axes: Sequence[str],
    before: int = 0,
    whole: int = 0,
    begun_s: float | None = None,
) -> Quiet:
    """A bar on a terminal, else lines."""
    if on_terminal():
        return Bar(name, axes, before=before, whole=whole)
    return Lines(name, axes, before, whole, begun_s)


def _run_of(position: str) -> str:
    """Of a place in a sweep the run: its point is told by what it varies."""
    return position.rpartition(", ")[2]


class BudgetBar(Bar):
    """Shows how much of a budget, whole seconds or runs by its `clock`, a sweep has spent."""

    def __init__(
        self, name: str, axes: Sequence[str], budget: float, clock: Callable[[], float]
    ) -> None:
        super().__init__(name, axes, whole=max(1, round(budget)))
        self._clock, self._begin = clock, clock()

    @_unless_nobody_looks
    def finished(self, plan: RunPlan) -> None:
        """A run is kept."""
        self._progress.update(self._task, completed=int(self._clock() - self._begin))
        self._show(point_words(plan, self._axes))
