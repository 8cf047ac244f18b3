"""A simulated world without agents, whose tasks note when they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.schedulers import schedulers_of
from shrimpmx.simulation.world import Task, World
from support.memory import make_control

MODEL = HostModelParameters(poll_ns=10, yield_ns=100, slice_ns=1000, wakeup_ns=500)
FOR_EVER_NS = 10**15
NEVER_NS = 2**63 - 1

Work = Callable[[SimulatedHost], None]


class Scene:
    """A world without agents, and what its tasks note. Its CPUs have the scheduler of `host`."""

    def __init__(self, **host: Any) -> None:
        self.control = make_control(["one"], [])
        schedulers = schedulers_of(HostParameters(**host), MODEL)
        self.world = World(self.control, [], MODEL, schedulers, FOR_EVER_NS)
        self.notes: list[tuple[str, int]] = []

    def note(self, what: str) -> None:
        self.notes.append((what, self.control.now_ns()))

    def task(self, name: str, work: Work, cpu: int = 0, **turns: Any) -> Task:
        def life(host: SimulatedHost) -> None:
            work(host)
            self.note(name)

        return self.world.add(name, cpu, life, **turns)

    def run(self) -> list[tuple[str, int]]:
        """To the end of all tasks; when each ended, ns."""
        self.world.run(lambda: all(task.state == "ended" for task in self.world.tasks))
        return self.notes


def burns(duration_ns: int) -> Work:
    return lambda host: host.burn(duration_ns)
