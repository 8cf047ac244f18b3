from shrimpmx.simulation.scheduler import Scheduler

class GangMatrix:
    slot_ns: int
    rows: int
    def __init__(self, slot_ns: int) -> None: ...

class GangScheduler(Scheduler):
    def __init__(self, matrix: GangMatrix, column: int) -> None: ...
