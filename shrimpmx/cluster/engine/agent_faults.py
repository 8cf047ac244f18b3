"""Processes that a run kills, stops and continues by itself, as its spec says."""

from __future__ import annotations

import logging
import math
import signal
from collections.abc import Callable, Sequence

from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import AgentFault

LOGGER = logging.getLogger("shrimpmx.cluster")


class AgentFaults:
    """Carries out `faults` in time."""

    def __init__(self, faults: Sequence[AgentFault], placement: Placement) -> None:
        self._faults, self._placement = faults, placement
        self._planned: list[tuple[float, AgentFault]] = []
        self._stopped: list[tuple[float, int]] = []

    def begin(self, now_s: float) -> None:
        """The ranks begin: from now on the time counts."""
        planned = [(now_s + fault.after_s, fault) for fault in self._faults]
        self._planned = sorted(planned, key=lambda timed: timed[0])

    def apply(self, now_s: float, send: Callable[[int, signal.Signals], None]) -> float:
        """Do what is due; the time of what comes next.

        `send`, called with a process's index and a signal, sends it. It is not kept: a run that
        keeps itself keeps its memory.
        """
        while self._planned and self._planned[0][0] <= now_s:
            _, fault = self._planned.pop(0)
            index = self._placement.process_index(fault.process)
            LOGGER.info("fault: %s %s", fault.action, fault.process)
            send(index, signal.SIGKILL if fault.action == "kill" else signal.SIGSTOP)
            if fault.action != "kill" and fault.stop_for_s > 0:
                self._stopped.append((now_s + fault.stop_for_s, index))
        for moment, index in [timed for timed in self._stopped if timed[0] <= now_s]:
            self._stopped.remove((moment, index))
            send(index, signal.SIGCONT)
        return min((moment for moment, _ in [*self._planned, *self._stopped]), default=math.inf)

    def postpone(self, late_s: float) -> None:
        """The run stood still for so long."""
        self._planned = [(moment + late_s, fault) for moment, fault in self._planned]
        self._stopped = [(moment + late_s, index) for moment, index in self._stopped]
