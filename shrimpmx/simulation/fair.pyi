from shrimpmx.simulation.scheduler import Scheduler

WEIGHTS: dict[int, int]

class FairScheduler(Scheduler):
    def __init__(self, slice_ns: int, wakeup_ns: int) -> None: ...
