"""One run of a point: between two probes, and again if something disturbed it from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence, Set
from typing import Any, Protocol

from shrimpmx.bench.probe import probe
from shrimpmx.errors import NotHereError, PointFailedError
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.run_data import RunData, failed_run, impossible_run, run_data
from shrimpmx.results.disturbance import HERE, QUIET, Figures, Outside, disturbance
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.runs import ANY, DISTANCE_DILATION

# A run whose probes disagree, or that was disturbed from outside, is taken again this often; a
# machine that flips faster than a run takes will not give a pure sample, and "mixed" is then what
# is recorded.
RETRIES = 2

Prober = Callable[[Sequence[int]], tuple[str, float | None]]
# Nothing outside disturbs a simulated run.
UNDISTURBED: dict[str, Any] = {
    "prober": lambda _cpus: (ANY, None),
    "figures": QUIET,
}


class Executor(Protocol):
    """Runs one point in fresh processes; raises AgentError if an agent fails, NotHereError if
    this machine or the engine cannot, PointFailedError if the sweep is to go on without it, and
    RunCutError without this run.
    """

    def __call__(self, point: Point, seed: int) -> Outcome: ...


class Measuring:
    """Measures points by an executor, and keeps `metrics` of them.

    `retries`: how often a run is taken again at most.
    """

    def __init__(
        self,
        executor: Executor,
        metrics: Sequence[str],
        prober: Prober = probe,
        figures: Figures = HERE,
        retries: int = RETRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._executor, self._metrics = executor, metrics
        self._prober, self._retries, self._clock = prober, retries, clock
        self._outside = Outside(figures, clock)

    def __call__(
        self, point: Point, seed: int, again: Callable[[str], None] | None = None
    ) -> RunData:
        """One run between two cache-line probes; taken again if they disagree, or if it was
        disturbed from outside by what may pass; `again` is told why.

        Not if its interrupts were steered: the user did that to this run, and no verdict
        is taken from it whatever its state.
        """
        cpus = probed_cpus(point)
        causes: list[Set[str]] = []
        for attempt in range(self._retries + 1):
            before, before_ns = self._prober(cpus)
            self._outside.begin()
            begin = self._clock()
            try:
                outcome = self._executor(point, seed)
            except NotHereError as error:
                return impossible_run(point, self._metrics, str(error))
            except PointFailedError as error:
                failed = failed_run(point, self._metrics, str(error))
                return {**failed, **disturbance([*causes, set()])}
            took_s = self._clock() - begin
            causes.append(self._outside.end(outcome))
            after, after_ns = self._prober(cpus)
            state = before if before == after else "mixed"
            if outcome.dilation >= DISTANCE_DILATION:
                state = ANY
            impure = state == "mixed" or self._outside.may_pass(causes[-1])
            if not impure or outcome.steered or attempt == self._retries:
                break
            if again:
                again(", ".join(sorted(causes[-1])) or "the distance of the CPUs changed")
        self._outside.kept(causes)
        run = run_data(point, outcome, self._metrics, state, [before_ns, after_ns])
        return {**run, "took_s": took_s, **disturbance(causes)}


def probed_cpus(point: Point) -> list[int]:
    """The CPUs whose distance is probed: the first two that the point may use."""
    cpus = point.parameters.cluster.cpus or sorted(os.sched_getaffinity(0))
    return list(cpus)[:2]
