"""The interface between what a run is and how it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec

# -- How a run that goes on tells where it is and what it waits for.

# Between two times that an onlooker is told (ours): to draw a line takes some milliseconds of the
# CPUs that the run has.
TELL_S = 2.0
# Names of processes in a sentence.
NAMES_MAX = 3


class Onlooker(Protocol):
    """Is told how runs go on. `position`: where the run is in its sweep, in words; "" in none."""

    position: str

    def waits_for(self, words: str) -> None:
        """What the run waits for now."""


class Telling:
    """Tells an onlooker, if there is one, every TELL_S seconds of a run."""

    def __init__(
        self, onlooker: Onlooker | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._onlooker, self._clock = onlooker, clock
        self._due_s = clock() + TELL_S

    def look(self, words: Callable[[], str]) -> None:
        """Tell the words, if it is time to."""
        if self._onlooker is not None and self._clock() >= self._due_s:
            self._onlooker.waits_for(words())
            self._due_s = self._clock() + TELL_S


def names_words(names: Sequence[str]) -> str:
    """Some names, in words."""
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


class Engine(Protocol):
    """Runs what a ClusterSpec describes: `Forked` by real processes on this machine, `Simulated` on
    emulated hosts.

    `name` is that of --engine. `is_real`: times are this machine's. `onlooker` is told how runs go
    on.
    """

    name: str
    is_real: bool
    onlooker: Onlooker | None

    def describe(self) -> dict[str, Any]:
        """What a result says of it: `engine`, its name, and what its times depend on beside the
        result's parameters and environment.
        """
        return {"engine": self.name}

    def cpus(self) -> int | None:
        """How many CPUs it has for the agents of a run; None: as many as they need."""
        return len(os.sched_getaffinity(0))

    def run(self, spec: ClusterSpec) -> ClusterResult:
        """Run it to the end and return the figures; leaves nothing behind, however it ends.

        Raises InputError when the spec asks for what there is not, AgentError if a rank or an agent
        fails, dies or takes more than `spec.deadline_s` seconds, MachineError where this machine
        cannot run it, NotHereError if the engine cannot, or there are no CPUs for it.
        """

    def place(self, spec: ClusterSpec) -> Placement:
        """Where run() would run it. PlacementError if there are no CPUs for it."""
