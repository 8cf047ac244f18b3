from shrimpmx.simulation.scheduler import Scheduler

class RealtimeScheduler(Scheduler):
    def __init__(self, others: Scheduler) -> None: ...
