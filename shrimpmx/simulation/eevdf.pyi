from shrimpmx.simulation.scheduler import Scheduler

class EevdfScheduler(Scheduler):
    def __init__(self, slice_ns: int) -> None: ...
