from shrimpmx.simulation.host import CpuUser

POLICIES: tuple[str, ...]
WEIGHTS: tuple[int, ...]

class Schedulable(CpuUser):
    nice: int
    gang: int
    def __init__(self, nice: int = 0, policy: str = "normal", gang: int = -1) -> None: ...

class Scheduler:
    waiting: list[Schedulable]
    running: Schedulable | None
