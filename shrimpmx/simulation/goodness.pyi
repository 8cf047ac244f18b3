from shrimpmx.simulation.scheduler import Scheduler

YIELDS: tuple[str, ...]

class GoodnessScheduler(Scheduler):
    def __init__(
        self, slice_ns: int, yields: str = "expire", wake_ups: str = "at-once"
    ) -> None: ...
