"""A simulated world without agents, whose tasks note when they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shrimpmx.native.perf import SwitchLog
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.scheduler import Scheduler
from shrimpmx.simulation.schedulers import schedulers_of
from shrimpmx.simulation.world import REST_NS, Task, World
from support.memory import make_control

MODEL = HostModelParameters(
    poll_ns=10, yield_ns=100, slice_ns=1000, wakeup_ns=500, tick_ns=0, tick_phase="aligned"
)
FOR_EVER_NS = 10**15
CPUS = 8
NEVER_NS = 2**63 - 1

Work = Callable[[SimulatedHost], None]


class Scene:
    """A world without agents, and what its tasks note.

    Its CPUs, each a host, have the scheduler of `parameters`, which are those of host and model;
    with `ticks` all hosts tick so many ns apart, and so far are they ahead.
    """

    def __init__(
        self,
        seed: int = 1,
        ticks: tuple[int, int] | None = None,
        rest_ns: int = REST_NS,
        **parameters: Any,
    ) -> None:
        self.control = make_control(["one"], [])
        of_model = parameters.keys() & HostModelParameters.model_fields.keys()
        model = MODEL.model_copy(update={name: parameters.pop(name) for name in of_model})
        make = schedulers_of(HostParameters(**parameters), model, seed, cpus_per_host=1)

        def scheduler(cpu: int) -> Scheduler:
            made = make(cpu)
            if ticks is not None:
                made.use_ticks(*ticks)
            return made

        self.log = SwitchLog(range(CPUS), 1024)
        self.world = World(
            self.control,
            [],
            model,
            scheduler,
            FOR_EVER_NS,
            switches=self.log,
            rest_ns=rest_ns,
            seed=seed,
        )
        self.notes: list[tuple[str, int]] = []

    def note(self, what: str) -> None:
        self.notes.append((what, self.control.now_ns()))

    def task(self, name: str, work: Work, cpu: int = 0, **turns: Any) -> Task:
        def life(host: SimulatedHost) -> None:
            work(host)
            self.note(name)

        return self.world.add(name, cpu, life, **turns)

    def switches(self, cpu: int = 0) -> list[tuple[int, int]]:
        """When which process gets a CPU, as it is now: pairs of time, ns, and number in the log."""
        self.world.cpu(cpu).settle(FOR_EVER_NS)
        return self.log.begins()[cpu]

    def run(self) -> list[tuple[str, int]]:
        """To the end of all tasks; when each ended, ns."""
        self.world.run(lambda: all(task.state == "ended" for task in self.world.tasks))
        return self.notes


def burns(duration_ns: int) -> Work:
    return lambda host: host.burn(duration_ns)
