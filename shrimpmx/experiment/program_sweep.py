"""An MPI program as a scenario, whose runs are kept."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shrimpmx.cluster.launch import Launch
from shrimpmx.experiment.engines import SIMULATED
from shrimpmx.experiment.own_rules import code_of_rules
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.program import Program, Rules
from shrimpmx.experiment.program_executor import ProgramExecutor
from shrimpmx.experiment.progress import Quiet
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.disturbance import HERE, QUIET
from shrimpmx.results.runs import ANY
from shrimpmx.settings.platform import DRAW, Platform
from shrimpmx.show.sections import DRAWS

METRICS = ("run_time", "run_cpu_time", "run_handler_cpu_time", "run_interrupts", "work_share")


def program_scenario(
    program: Program,
    name: str,
    defaults: Mapping[str, Any] | None = None,
    platforms: Mapping[str, Platform] = MappingProxyType({}),
    **fields: Any,
) -> Scenario:
    """A scenario of the program; its `fields` are those of Scenario. What --set sets comes before
    `defaults`; `platforms` are a user's own, by file. InputError if it cannot be used.
    """
    scenario = Scenario(
        name=name,
        title="An MPI program",
        parameters={**(defaults or {}), **program.parameters()},
        metrics=METRICS,
        **fields,
    )
    return scenario.changed(program.settings, platforms)


def command_line(
    words: Sequence[str],
    program: Program,
    settings: Sequence[str],
    launch: Launch,
    timeout: float | None,
) -> str:
    """The command line that runs the program by a command with its own options, `words`, started
    so, under these settings. `timeout` in s.
    """
    plain = Program((), 1)
    words = ["shrimpmx", *words, "-n", str(program.ranks)]
    words += ["--slots", str(program.slots)] if program.slots else []
    words += ["--nodes", str(program.nodes)] if program.nodes is not None else []
    words += ["--engine", SIMULATED] if not program.real else []
    words += ["--map-by", program.map_by] if program.map_by != plain.map_by else []
    words += ["--bind-to", program.bind_to] if program.bind_to != plain.bind_to else []
    for name, value in launch.environment.items():
        words += ["-x", f"{name}={value}"] if os.environ.get(name) != value else []
    words += ["--wdir", launch.directory] if launch.directory else []
    words += ["--timeout", f"{timeout:g}"] if timeout is not None else []
    for setting in settings:
        words += ["--set", setting]
    own = program.words
    return shlex.join([*words, *(["--"] if own[0].startswith("-") else []), *own])


def program_sweep(
    point: Point,
    executor: ProgramExecutor,
    rules: tuple[Rules, Rules],
    output: Path | None,
    settings: Sequence[str],
    command: str,
    runs: int = 1,
    progress: Quiet | None = None,
    draws: int = 0,
) -> Sweep:
    """The sweep of so many runs of the program at the point, and of one under each of so many
    `draws` of its platform, whose result is kept in `output`, if it is to be; `rules` are the
    user's own policies and strategies, `command` makes it again.
    """
    own = point.parameters.platform.profile
    policies, waits = rules
    platforms = {point.shown["platform"]: own} if isinstance(own, Platform) else {}
    executor.engine.onlooker = progress
    return Sweep(
        Scenario(
            name="mpirun",
            title="An MPI program",
            parameters=point.shown,
            metrics=METRICS,
            repeats=runs,
            sweep={DRAW: tuple(range(draws + 1))} if draws else {},
            sections=(DRAWS,) if draws else (),
            platforms=platforms,
            policies=policies,
            waits=waits,
            code=code_of_rules((*policies.values(), *waits.values())),
        ),
        executor,
        output=output,
        figures=HERE if executor.engine.is_real else QUIET,
        prober=lambda _cpus: (ANY, None),  # two processes that would delay the program's start
        retries=0,  # what it did beside its messages would be done twice
        changes=settings,
        made_with={"command": command},
        engine=executor.engine.describe(),
        cpus=executor.engine.cpus(),
        progress=progress,
    )
