"""What `explore` is asked: a program, the settings to try, and what the best one has least of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.nics.kind import kind_of
from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.experiment.explore import grid
from shrimpmx.experiment.explore.measured import OBJECTIVES
from shrimpmx.experiment.explore.race import RUNS_MOST
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.program import OPTIONS as PROGRAM_OPTIONS
from shrimpmx.experiment.program import Program, cores_of, limits_of
from shrimpmx.experiment.program_sweep import command_line, program_scenario
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.settings.assignments import split_setting
from shrimpmx.settings.names import parameter_name
from shrimpmx.settings.platform import Platform

ALL = {
    "coalescing": tuple(grid.COALESCING),
    "placement": tuple(grid.PLACEMENTS),
    "wait": tuple(grid.WAITS),
}
# Parameters that options choose, beside those of mpirun.
OPTIONS = {
    **PROGRAM_OPTIONS,
    "coalescing": "--coalescing",
    "rx_queues": "--placement",
    "irq_binding": "--placement",
    "wait": "--wait",
}


@dataclass(frozen=True)
class Question:
    """A `program` with the `environment` and directory that it starts in, and the settings to try:
    its own lists times these. `budget` and `runs` are None for what the engine takes. `draws`:
    of a fitted platform's costs, under which the best settings run again. `prefix`: what names of
    arguments have in front where the user gives them.
    """

    program: Program
    coalescing: Sequence[str] = ALL["coalescing"]
    placement: Sequence[str] = ALL["placement"]
    wait: Sequence[str] = ALL["wait"]
    objective: str = "time"
    budget: float | None = None
    runs: int | None = None
    draws: int = 0
    seed: int = 1
    timeout: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    wdir: str = ""
    prefix: str = "--"

    def check(self) -> None:
        """InputError for what cannot be asked."""
        dashes = self.prefix
        if self.objective not in OBJECTIVES:
            raise InputError(
                f"{dashes}objective must be one of {', '.join(OBJECTIVES)}, not {self.objective!r}"
                f"{did_you_mean(self.objective, OBJECTIVES)}"
            )
        if self.budget is not None and not (math.isfinite(self.budget) and self.budget > 0):
            raise InputError(f"{dashes}budget must be more than 0 seconds, not {self.budget:g}")
        if self.runs is not None and not 1 <= self.runs <= RUNS_MOST:
            raise InputError(f"{dashes}runs must be 1 to {RUNS_MOST}, not {self.runs}")
        if self.draws < 0:
            raise InputError(f"{dashes}draws must be 0 or more, not {self.draws}")
        for name in ALL:
            given = getattr(self, name)
            for each in given:
                if given.count(each) > 1:
                    raise InputError(f"{dashes}{name} names {each!r} twice")
        grid.check_placements(self.placement, f"{dashes}placement")

    def scenario(self, platforms: Mapping[str, Platform] = MappingProxyType({})) -> Scenario:
        """The settings as a scenario; `platforms` are a user's own, by file. InputError if it
        cannot be used.
        """
        self.check()
        program = self.program
        given = program_scenario(program, "explore", platforms=platforms)
        if "cores" in given.sweep:
            raise InputError("give cores one value: explore derives the placements from it")
        cores = cores_of(program.ranks, given.parameters)
        scenario = program_scenario(
            program,
            "explore",
            {"cores": cores, **limits_of(program.ranks, given.parameters)},
            given.platforms,
            repeats=RUNS_MOST,
            **grid.axes_of(self.coalescing, self.placement, self.wait, cores),
        )
        for point in scenario.points():
            nic, nodes = point.parameters.nic, point.parameters.cluster.nodes
            if not kind_of(nic).interrupts:
                raise InputError(f"explore compares interrupts, which nic {nic.nic_kind!r} lacks")
            if nodes < 2:
                raise InputError(
                    "explore needs at least two nodes: on a single node no "
                    "message passes through a NIC"
                )
        return grid.distinct(scenario)

    def command(self, more: Sequence[str] = ()) -> str:
        """The command line that explores the same, with `more` options."""
        words = ["explore", *more]
        for name, default in ALL.items():
            given = tuple(getattr(self, name))
            words += [f"--{name}", ",".join(given)] if given != default else []
        words += ["--for", self.objective] if self.objective != "time" else []
        for option, value in (("--budget", self.budget), ("--runs", self.runs)):
            words += [option, f"{value:g}"] if value is not None else []
        words += ["--draws", str(self.draws)] if self.draws else []
        words += ["--seed", str(self.seed)] if self.seed != 1 else []
        return self._command(words, self.program.settings)

    def repeating(self, scenario: Scenario, point: Point) -> str:
        """The command line that runs the program under the setting of a point."""
        own = [
            setting
            for setting in self.program.settings
            if parameter_name(split_setting(setting)[0]) not in scenario.sweep
        ]
        chosen = [f"{name}={_word(value)}" for name, value in self.setting(scenario, point).items()]
        return self._command(["mpirun"], [*own, *chosen])

    def setting(self, scenario: Scenario, point: Point) -> dict[str, Any]:
        """The parameters that a point was chosen by."""
        return {name: point.shown[name] for name in scenario.sweep}

    def _command(self, words: Sequence[str], settings: Sequence[str]) -> str:
        launch = Launch(self.environment, self.wdir)
        return command_line(words, self.program, settings, launch, self.timeout)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
