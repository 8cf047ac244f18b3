"""How long an exploration and each of its runs may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from shrimpmx.cluster.spec import FOREVER_S
from shrimpmx.experiment.explore.race import SETTLED
from shrimpmx.results.metrics import Outcome

# A run may take so many times as long as the fastest one, and as many seconds at least; what is
# slower than that is out (ours).
PATIENCE, PATIENCE_S = 10.0, 10.0
# Until a run has ended one may take so many seconds, however short its share of the budget (ours).
FIRST_S = 30.0
# A run that is under way may go on for so long when the budget is spent (ours).
GRACE_S = 10.0
# Simulated runs for each setting, in the mean, of which SETTLED are allowed (ours).
LAPS = 3


class Limit(NamedTuple):
    """How long a run may take, and why a setting is out that takes longer; "" if it is not, since
    the budget is spent.
    """

    seconds: float
    reason: str


class Pace:
    """That of real runs: a budget of seconds by this machine's `clock`. `timeout_s` is the limit of
    any run.
    """

    def __init__(
        self,
        budget: float,
        timeout_s: float = FOREVER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget, self.timeout_s, self.clock = budget, timeout_s, clock
        # Of this machine: how long runs may go on, s, and its clock.
        self.seconds: float | None = budget
        self.real_clock = clock
        self.fastest_s: float | None = None
        # Whether the budget is none of this machine's time, and each setting gets a run.
        self.tries_all = False

    @property
    def next_step(self) -> str:
        """What gives settings more runs where the budget ended them."""
        return "raise --budget or explore fewer settings"

    def done(self, outcome: Outcome, began: float) -> float:
        """A run has ended that began then, by `clock`: what it took of the budget."""
        _ = outcome
        return self._learned(self.clock() - began)

    def given_up(self) -> None:
        """A run has ended by an error."""

    def recalled(self, run: Mapping[str, Any]) -> float | None:
        """What a run took that was made and kept before; None if it does not say."""
        return self._learned(run["took_s"]) if "took_s" in run else None

    def limit(self, left: float, pending: int) -> Limit:
        """How long the next run may take, with so much left of the budget, and so many settings
        that have not run.
        """
        if self.fastest_s is None:
            limit_s = max(left / max(1, pending), FIRST_S)
            reason = "its share of the budget, before any had ended"
        else:
            limit_s = max(PATIENCE_S, PATIENCE * self.fastest_s)
            reason = f"where the fastest run took {self.fastest_s:.1f}"
        return min(
            Limit(limit_s, f"given up after {limit_s:.1f} s, {reason}"),
            Limit(left + GRACE_S, ""),
            self._timeout(),
        )

    def _timeout(self) -> Limit:
        return Limit(self.timeout_s, f"did not end within {self.timeout_s:g} s (--timeout)")

    def _learned(self, took_s: float) -> float:
        self.fastest_s = min(took_s, self.fastest_s or took_s)
        return took_s


class SimulatedPace(Pace):
    """That of simulated runs, whose limits are of virtual time.

    Each counts one, whatever it takes this machine, so that the order of runs is the same on every
    one; where each of the `settings` may run at `most` so often, all together may in proportion.
    Where there is a budget of `seconds` by this machine's clock, that decides instead.
    """

    def __init__(
        self,
        settings: int,
        most: int = SETTLED,
        timeout_s: float = FOREVER_S,
        seconds: float | None = None,
        real_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runs = 0
        runs = max(1.0, LAPS * most / SETTLED) * settings
        if seconds is None:
            super().__init__(runs, timeout_s, lambda: self._runs)
        else:
            super().__init__(seconds, timeout_s, real_clock)
        self.tries_all = seconds is None
        self.seconds, self.real_clock = seconds, real_clock

    @property
    def next_step(self) -> str:
        return "raise --runs" if self.seconds is None else "raise --budget"

    def done(self, outcome: Outcome, began: float) -> float:
        self._runs += 1
        took_ns = outcome.whole_ns or max(outcome.elapsed_ns.values(), default=0)
        self._learned(took_ns / 1e9)
        return self.clock() - began

    def given_up(self) -> None:
        self._runs += 1

    def recalled(self, run: Mapping[str, Any]) -> float | None:
        return 1.0 if self.seconds is None else run.get("took_s")

    def limit(self, left: float, pending: int) -> Limit:
        if self.fastest_s is None:
            return self._timeout()
        limit_s = max(PATIENCE_S, PATIENCE * self.fastest_s)
        words = f"given up after {limit_s:.1f} s, where the fastest run took {self.fastest_s:.1g}"
        return min(Limit(limit_s, words), self._timeout())
