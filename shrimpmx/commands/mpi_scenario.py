"""An MPI program as a scenario, whose runs are kept."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from shrimpmx.commands.mpi_executor import ProgramExecutor
from shrimpmx.commands.mpi_options import Rules, program_parameters
from shrimpmx.results.json_file import write_json
from shrimpmx.results.outside import HERE, QUIET
from shrimpmx.results.runs import ANY
from shrimpmx.settings.platform import Platform
from shrimpmx.study.own_rules import code_of_rules
from shrimpmx.study.point import Point
from shrimpmx.study.scenario import Scenario
from shrimpmx.study.sweep import Sweep

METRICS = ("run_time", "run_cpu_time", "run_interrupts")


def program_scenario(
    options: argparse.Namespace,
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
        parameters={**(defaults or {}), **program_parameters(options)},
        metrics=METRICS,
        **fields,
    )
    return scenario.changed(options.settings, platforms)


def run_and_keep(
    options: argparse.Namespace,
    point: Point,
    executor: ProgramExecutor,
    rules: tuple[Rules, Rules],
) -> None:
    """Run the program at the point as the sweep of one run, and keep its result; `rules` are the
    user's own policies and strategies.
    """
    own = point.parameters.platform.profile
    policies, waits = rules
    platforms = {point.shown["platform"]: own} if isinstance(own, Platform) else {}
    sweep = Sweep(
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
        output=options.output,
        figures=HERE if executor.engine.is_real else QUIET,
        prober=lambda _cpus: (ANY, None),  # two processes that would delay the program's start
        retries=0,  # what it did beside its messages would be done twice
        changes=options.settings,
        engine=executor.engine.describe(),
        cpus=executor.engine.cpus(),
    )
    try:
        sweep.run()
    finally:
        if options.json and sweep.last_document is not None:
            write_json(options.json, sweep.last_document)
