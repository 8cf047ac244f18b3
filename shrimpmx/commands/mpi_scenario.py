"""An MPI program as a scenario, whose runs are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shrimpmx.commands.mpi_executor import ProgramExecutor
from shrimpmx.results.outside import HERE, QUIET
from shrimpmx.results.runs import ANY
from shrimpmx.settings.platform import Platform
from shrimpmx.study.own_rules import code_of_rules
from shrimpmx.study.point import Point
from shrimpmx.study.program import Program, Rules
from shrimpmx.study.progress import Quiet
from shrimpmx.study.scenario import Scenario
from shrimpmx.study.sweep import Sweep

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


def program_sweep(
    point: Point,
    executor: ProgramExecutor,
    rules: tuple[Rules, Rules],
    output: Path | None,
    settings: Sequence[str],
    progress: Quiet | None = None,
) -> Sweep:
    """The sweep of one run of the program at the point, whose result is kept in `output`, if it is
    to be; `rules` are the user's own policies and strategies.
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
        engine=executor.engine.describe(),
        cpus=executor.engine.cpus(),
        progress=progress,
    )
