from shrimpmx.simulation.host import CpuUser

POLICIES: tuple[str, ...]
WEIGHTS: tuple[int, ...]

class Schedulable(CpuUser):
    nice: int
    gang: int
    realtime: int
    def __init__(
        self, nice: int = 0, policy: str = "normal", gang: int = -1, realtime: int = 0
    ) -> None: ...

class Scheduler:
    waiting: list[Schedulable]
    running: Schedulable | None
    def use_ticks(self, tick_ns: int, ahead_ns: int = 0) -> None: ...

class RealtimeScheduler(Scheduler):
    def __init__(self, others: Scheduler) -> None: ...
