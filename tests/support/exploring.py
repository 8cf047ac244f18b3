"""Explorations of synthetic programs under a virtual clock: no process runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shrimpmx.cluster.spec import FOREVER_S
from shrimpmx.errors import AgentError, RankEndedError
from shrimpmx.experiment.explore.exploration import Exploration
from shrimpmx.experiment.explore.findings import Findings
from shrimpmx.experiment.explore.grid import axes_of
from shrimpmx.experiment.explore.measured import HANDLERS_CPU, RANKS_CPU, SHARE, Measured
from shrimpmx.experiment.explore.pace import Pace
from shrimpmx.experiment.explore.race import RUNS_MOST
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.program_sweep import METRICS
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.results.disturbance import QUIET
from shrimpmx.results.metrics import Outcome

# What a program takes under a setting: run time and CPU time, s, and interrupts.
Cost = tuple[float, float, int]
# What starting and ending the processes of a run takes, s.
START_S = 0.5
# Of a setting that spins, or has a timer, beyond the best, s.
SPIN_COST, TIMER_COST = 0.5, 0.3


def measured(
    time: Sequence[float],
    cpu: Sequence[float] = (),
    interrupts: Sequence[float] = (),
    exact: bool = False,
) -> Measured:
    """A setting with these figures of its runs; ones where they are not given."""
    ones = [1.0] * len(time)
    figures = {"time": time, "cpu": cpu or ones, "interrupts": interrupts or ones}
    figures |= {RANKS_CPU: cpu or ones, HANDLERS_CPU: [0.0] * len(time)}
    figures[SHARE] = [50.0] * len(time)
    samples = {name: np.array(values) for name, values in figures.items()}
    return Measured(samples, exact=exact)


def outcome(cost: Cost, drawn: tuple[str, ...] | None = None) -> Outcome:
    """What a run of one rank gave: a tenth of its CPU time is the handler's."""
    run_s, cpu_s, interrupts = cost
    return Outcome(
        samples=np.empty(0),
        counters={"node0.nic": {"irq_raised": interrupts}},
        usage={
            "rank0": {"task_clock_ns": 0.9 * cpu_s * 1e9},
            "node0.irq0": {"task_clock_ns": 0.1 * cpu_s * 1e9},
        },
        ranks=("rank0",),
        elapsed_ns={"rank0": round(run_s * 1e9)},
        whole_ns=round(2 * run_s * 1e9),
        drawn=drawn,
    )


@dataclass
class Program:
    """A program whose figures follow from its setting; `noise` is the relative spread of times.

    Running it lets the virtual clock `now` go on, by `start_s` more. A cost of None fails. `drawn`:
    its runs are simulated, and draw these parameters.
    """

    cost: Callable[[Mapping[str, Any]], Cost | None]
    noise: float = 0.0
    now: float = 0.0
    start_s: float = START_S
    drawn: tuple[str, ...] | None = None
    ran: list[int] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def clock(self) -> float:
        return self.now

    def __call__(self, point: Point, seed: int, limit_s: float) -> Outcome:
        self.ran.append(point.index)
        self.limits.append(limit_s)
        cost = self.cost(point.shown)
        if cost is None:
            self.now += self.start_s
            raise RankEndedError("rank0 ended with exit code 9", "rank0", 9)
        run_s, cpu_s, interrupts = cost
        run_s *= 1 + self.noise * self.random.random()
        self.now += self.start_s + run_s
        return outcome((run_s, cpu_s, interrupts), self.drawn)


def cost(shown: Mapping[str, Any]) -> Cost:
    """Best without a timer, with all interrupts on one core, and asleep while it waits."""
    run_s = 1.0 + TIMER_COST * (shown["coalescing"] == "timeout")
    run_s += SPIN_COST * (shown["wait"] == "spin") + 0.1 * (shown["wait"] == "sched")
    run_s += 0.2 * (shown["irq_binding"] != "0") + 0.05 * (shown["wait"] == "spin-block")
    interrupts = {"disabled": 900, "timeout": 100, "open-mx": 300, "stream": 200}
    return run_s, run_s / 2, interrupts[shown["coalescing"]]


def best_of(found: Findings | None) -> Mapping[str, Any]:
    """The parameters of the recommended setting."""
    assert found is not None
    return found.settings[found.best].point.shown


def scenario_of(cores: int = 2, **names: Sequence[str]) -> Scenario:
    """The settings of a program: all coalescing of the papers, placements, and ways to wait."""
    axes = axes_of(
        names.get("coalescing", ("disabled", "timeout", "open-mx", "stream")),
        names.get("placement", ("round-robin", "one-core", "per-queue")),
        names.get("wait", ("spin", "sched", "block", "spin-block")),
        cores,
    )
    parameters = {"workload": "mpi", "program": "prog", "ranks": 2 * cores, "cores": cores}
    return Scenario(
        name="explore", title="-", parameters=parameters, metrics=METRICS,
        repeats=RUNS_MOST, **axes,
    )  # fmt: skip


def exploration(
    program: Program, scenario: Scenario, budget_s: float = 300.0, **options: Any
) -> Exploration:
    """An exploration of a synthetic program by run time; `execute` may run it in another way."""
    objective, execute = options.pop("objective", "time"), options.pop("execute", program)
    of_clock = Pace(budget_s, options.pop("timeout_s", FOREVER_S), program.clock)
    pace = options.pop("pace", of_clock)
    own = {"figures": QUIET, **options.pop("own", {})}  # whatever else this machine does
    made = Exploration(scenario, execute, objective, pace, own=own, **options)
    # No code runs but the test's own.
    made.sweep.check_program = lambda point: {}  # type: ignore[method-assign]
    return made


def failure_of(explored: Exploration) -> AgentError | None:
    """The error that an exploration ends with, if any."""
    try:
        explored.run()
    except AgentError as error:
        return error
    return None
