from shrimpmx.simulation.scheduler import Scheduler

class FairScheduler(Scheduler):
    def __init__(
        self, slice_ns: int, wakeup_ns: int, batch: bool = False, fixed: bool = False
    ) -> None: ...
