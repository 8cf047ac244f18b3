from shrimpmx.costs.meter import Prices
from shrimpmx.shared.control import Control
from shrimpmx.shared.host import Host

class CpuUser:
    used_ns: int
    sleeps: int
    preemptions: int

class SimulatedHost(Host):
    def __init__(self, control: Control, task: CpuUser, prices: Prices | None = None) -> None: ...
    def count_in(self, agent: int, runner: int) -> None: ...
    def burn_round(self, duration_ns: int) -> None: ...
    def makes_passes(self, pass_ns: int) -> None: ...
