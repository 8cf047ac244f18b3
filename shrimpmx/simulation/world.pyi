from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shrimpmx.costs.meter import Prices
from shrimpmx.native.perf import SwitchLog
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.simulation.agents import Agents
from shrimpmx.simulation.group import Group
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.logged import LoggedCpu
from shrimpmx.simulation.scheduler import Scheduler
from shrimpmx.simulation.tasks import Waiting

REST_NS: int

class Task(Waiting):
    cpu: Cpu
    host: SimulatedHost
    def compute(self, duration_ns: int) -> None: ...
    def poll(self, until_ns: int) -> None: ...
    def offer(self, until_ns: int) -> int: ...
    def sleep(self, until_ns: int) -> None: ...
    def move(self, cpu: int) -> None: ...

class Cpu(LoggedCpu): ...

class World:
    control: Control
    tasks: list[Task]
    own_tasks: list[Task]
    agents: Agents
    outside: Any
    def __init__(
        self,
        control: Control,
        agents: Sequence[tuple[Agent, int, int | None]],
        model: HostModelParameters,
        scheduler: Callable[[int], Scheduler],
        deadline_ns: int,
        nodes: int = 1,
        asleep: Callable[[int], Iterable[int]] = ...,
        switches: SwitchLog | None = None,
        rest_ns: int = ...,
        seed: int = ...,
    ) -> None: ...
    def cpu(self, number: int) -> Cpu: ...
    def add(
        self,
        name: str,
        cpu: int,
        work: Callable[[SimulatedHost], None],
        node: int = 0,
        nice: int = 0,
        policy: str = "normal",
        gang: int = -1,
        realtime: int = 0,
        process: int = 0,
        prices: Prices | None = None,
        agent: int | None = None,
    ) -> Task: ...
    def run(self, until: Callable[[], bool], goes_on: bool = False) -> None: ...
    def join(self, group: Group, number: int) -> None: ...
    def run_part(self, until: Callable[[], bool], goes_on: bool = False) -> bool: ...
    def end_wait(self, task: Task) -> None: ...
    def close(self) -> None: ...
