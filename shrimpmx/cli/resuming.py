"""The command that goes on with an interrupted result."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from shrimpmx.cluster.engine.logs import FILE_NAME as LOG_FILE
from shrimpmx.errors import DeadlineError, MachineError, StandstillError
from shrimpmx.experiment.execute import repeated
from shrimpmx.experiment.point import Point
from shrimpmx.native.streams import tell
from shrimpmx.results.result import ResultDirectory
from shrimpmx.settings.assignments import without_deadline
from shrimpmx.settings.cluster import DEADLINE_MAX_S


def settings_to_go_on(
    options: argparse.Namespace, points: Iterable[Point], error: BaseException
) -> list[str]:
    """The settings to go on with after an error: with twice the deadline if that was the reason."""
    if not isinstance(error, DeadlineError) or isinstance(error, StandstillError):
        return list(options.settings)
    longest = max(point.parameters.cluster.deadline_s for point in points)
    raised = f"deadline_s={min(2 * longest, DEADLINE_MAX_S):g}"
    return [*without_deadline(options.settings), raised]


def resume_command(
    command: Sequence[str],
    options: argparse.Namespace,
    settings: Iterable[str],
    output: Path,
    more: Sequence[str] = (),
) -> str:
    """The command line that goes on with an interrupted result, to be pasted into a shell."""
    words = [*_program(), *repeated(command, settings, options.seed)]
    words += ["--output", str(output), "--resume"]
    words += ["--json", str(options.json)] if options.json else []
    return shlex.join([*words, *more])


def _program() -> list[str]:
    """How this program can be started again from the same shell."""
    started = sys.argv[0]
    if Path(started).name != "shrimpmx":
        return [sys.executable, "-P", "-m", "shrimpmx"]
    found = shutil.which("shrimpmx")
    same = found is not None and Path(found).resolve() == Path(started).resolve()
    return ["shrimpmx" if same else started]


def say_how_to_go_on(
    done: int, total: int, output: Path, command: str, error: BaseException
) -> None:
    """What is kept of a result that `error` interrupted, and the command that goes on with it.
    Nothing of one that this machine could not begin.
    """
    if isinstance(error, MachineError) and not done:
        return
    late = isinstance(error, DeadlineError)
    told = f"the processes' last actions are in {output / LOG_FILE}\n" if late else ""
    tell(f"{told}{done} of {total} runs are kept in {output}; {going_on(output, command)}")


def going_on(output: Path, command: str) -> str:
    """The next command after an interrupt: `command`, or the one that writes the page of a result
    that was complete by then. Where no file was kept yet there is nothing to resume.
    """
    directory = ResultDirectory(output)
    if not os.path.isdir(output) or not os.listdir(output):
        command = shlex.join(word for word in shlex.split(command) if word != "--resume")
    return directory.page_advice() if directory.is_complete() else f"go on with:\n  {command}"
