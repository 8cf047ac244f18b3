from shrimpmx.simulation.host import CpuUser

class Schedulable(CpuUser): ...

class Scheduler:
    waiting: list[Schedulable]
    running: Schedulable | None
