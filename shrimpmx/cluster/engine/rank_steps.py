"""What every rank does, whatever its library: announces itself, meets, works, lingers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from shrimpmx.cluster.engine.hardware import HardwareMeter
from shrimpmx.cluster.engine.parts import RunParts
from shrimpmx.cluster.engine.workloads import Samples
from shrimpmx.cluster.place.placement import ProcessPlan
from shrimpmx.errors import AbortedError, AgentError
from shrimpmx.native.perf import usage
from shrimpmx.shared.control import Control
from shrimpmx.workloads.anatomy import all_counters

# How long ranks wait for each other at the start; a machine that swaps needs a while.
MEETING_LIMIT_S = 30.0
# Between two looks at the other ranks while there is nothing to measure.
LOOK_S = 0.0002
# The same while others still measure: twice as long after each, so that those who are done do not
# take CPUs from them.
LINGER_LOOK_S = 0.001
LINGER_LOOK_MAX_S = 0.016
COUNTERS_BEFORE = "counters-before.json"


def _nothing() -> None:
    """What a rank does between two looks if nobody needs its answers."""


def announce(parts: RunParts, plan: ProcessPlan, index: int) -> None:
    """Tell the supervisor that the rank is open, and wait until the ranks may begin."""
    control = parts.memory.control
    control.set_runner_state(index, "ready")
    parts.channel.send(plan.name, "ready")
    if not control.wait_started(MEETING_LIMIT_S):
        raise AgentError(f"{plan.name} was not started within {MEETING_LIMIT_S} s")


def meet(parts: RunParts, index: int, progress: Callable[[], object] = _nothing) -> None:
    """Wait until every rank is here. Others may still need this one's answers: its `progress`."""
    control = parts.memory.control
    control.set_runner_state(index, "running")
    ranks = [i for i, plan in enumerate(parts.placement.processes) if plan.role == "rank"]
    until = time.monotonic() + MEETING_LIMIT_S
    while any(control.runner_info(other)["state"] in ("starting", "ready") for other in ranks):
        if control.stop_state() != "no":
            raise AbortedError("the run was stopped before its ranks had met")
        if time.monotonic() > until:
            raise AgentError(f"the ranks did not meet within {MEETING_LIMIT_S} s")
        progress()
        time.sleep(LOOK_S)


class Meter:
    """What the rank process `index` uses and waits, from start() to read(), and how long it takes.

    `counting`: start() notes the counters of all agents, too. `hardware`: what the CPU counts.
    """

    def __init__(
        self, control: Control, index: int, counting: bool, hardware: HardwareMeter
    ) -> None:
        self._control, self._index, self._counting = control, index, counting
        self._hardware = hardware
        self.counters: dict[str, dict[str, int]] = {}

    def start(self) -> None:
        """Begin here; what was before does not count."""
        if self._counting:
            self.counters = all_counters(self._control)
        self._hardware.start()
        # The clock around the kernel's account: no rank uses more CPU time than has passed.
        self._start_ns = self._control.now_ns()
        self._account, self._usage = self._control.runner_account(self._index), usage()

    def read(self) -> dict[str, Any]:
        """The fields of a rank's report: elapsed_ns, usage, account and what the CPU counted."""
        used, account = usage(), self._control.runner_account(self._index)
        elapsed_ns = self._control.now_ns() - self._start_ns
        return {
            **self._hardware.read(),
            "elapsed_ns": elapsed_ns,
            "usage": {name: value - self._usage[name] for name, value in used.items()},
            "account": {name: value - self._account[name] for name, value in account.items()},
        }


def meter_of(parts: RunParts, plan: ProcessPlan, index: int) -> Meter:
    """The meter of a rank. Rank 0 notes the counters for all."""
    hardware = HardwareMeter(parts.spec.hardware_counters)
    return Meter(parts.memory.control, index, plan.agents[0].number == 0, hardware)


def measure(parts: RunParts, plan: ProcessPlan, meter: Meter, work: Callable[[], Samples]) -> None:
    """Do the work and report "done" with what it took; its samples go to the run's directory.

    Work that has to be prepared starts the meter once more.
    """
    meter.start()
    samples = work()
    figures = meter.read()
    if meter.counters:
        (parts.directory / COUNTERS_BEFORE).write_text(json.dumps(meter.counters))
    np.savez(parts.directory / f"{plan.name}.npz", allow_pickle=False, **samples)
    parts.channel.send(plan.name, "done", **figures)


def linger(control: Control, progress: Callable[[], object] = _nothing) -> None:
    """Stay, and go on answering, until every rank is done."""
    look_s = LINGER_LOOK_S
    while control.stop_state() == "no":
        look_s = LINGER_LOOK_S if progress() else min(2 * look_s, LINGER_LOOK_MAX_S)
        time.sleep(look_s)
