from shrimpmx.shared.control import Control
from shrimpmx.shared.host import Host
from shrimpmx.simulation.world import Task

class SimulatedHost(Host):
    def __init__(self, control: Control, task: Task) -> None: ...
    def count_in(self, agent: int, runner: int) -> None: ...
