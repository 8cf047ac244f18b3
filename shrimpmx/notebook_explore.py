"""Explorations of MPI programs in a notebook or a script."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from shrimpmx.cli.engines import REAL
from shrimpmx.cli.explore import OPTIONS
from shrimpmx.cli.exploring import Exploring
from shrimpmx.cli.question import ALL, Question
from shrimpmx.cli.sweeping import default_output
from shrimpmx.errors import InputError
from shrimpmx.experiment.program import Program
from shrimpmx.notebook import (
    EngineName,
    Result,
    advising_time,
    engine_of,
    settings_of,
    words_of,
)

Names = str | Sequence[str]


class Explored(Result):
    """The result of an exploration. Jupyter shows its recommendation and all settings."""

    @property
    def recommended(self) -> str:
        """The name of the recommended setting, as tables have it."""
        return str(self.document["explore"]["recommended"])

    @property
    def setting(self) -> dict[str, Any]:
        """The parameters of the recommended setting, by which mpirun() runs the program so."""
        return dict(self.document["explore"]["setting"])

    @property
    def repeat(self) -> str:
        """The command line that does so."""
        return str(self.document["explore"]["repeat"])

    @property
    def commands(self) -> list[str]:
        """The commands that a real machine takes for it."""
        return list(self.document["explore"]["commands"])


def explore(
    program: str | Sequence[str],
    n: int,
    *,
    nodes: int | None = None,
    engine: EngineName = "forked",
    coalescing: Names = ALL["coalescing"],
    placement: Names = ALL["placement"],
    wait: Names = ALL["wait"],
    objective: Literal["time", "cpu", "interrupts"] = "time",
    budget: float | None = None,
    runs: int | None = None,
    seed: int = 1,
    map_by: Literal["slot", "node", "core"] = "slot",
    bind_to: Literal["core", "none"] = "core",
    environment: Mapping[str, str] | None = None,
    wdir: str | os.PathLike[str] = "",
    timeout: float | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    **settings: Any,
) -> Explored:
    """What `shrimpmx explore` does, without printing: which setting suits a program.

    `program`, `n` and `environment` are as those of mpirun(), and the others as the command's
    options; `objective` is its --for. `settings` are those of --set: a list of values is explored,
    too. Raises InputError, also for a budget too short to compare settings, MachineError,
    DeadlineError and, if the program fails under every setting, its error.
    """
    words = words_of(program, n, timeout, settings, OPTIONS)
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a number of at least 0, not {seed!r}")
    if resume and output is None:
        raise InputError("resume needs output, the result to go on with")
    question = Question(
        Program(words, n, nodes, tuple(settings_of(settings)), map_by, bind_to, engine == REAL),
        coalescing=_names(coalescing),
        placement=_names(placement),
        wait=_names(wait),
        objective=objective,
        budget=budget,
        runs=runs,
        seed=seed,
        timeout=timeout,
        environment=dict(environment or {}),
        wdir=os.fspath(wdir),
        prefix="",
    )
    hosts = engine_of(engine, timeout)
    place = Path(output) if output is not None else default_output("explore")
    exploring = Exploring(question, hosts, place, resume=resume)
    with exploring.opened("give another output, or resume=True"):
        with advising_time():
            exploring.run()
        exploring.check(*exploring.keep())
    return Explored(place)


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
