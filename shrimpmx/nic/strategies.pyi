from shrimpmx.nic.coalescing import CoalescingPolicy

class Disabled(CoalescingPolicy):
    def __init__(self) -> None: ...

class TimedPolicy(CoalescingPolicy):
    delay_ns: int
    mark_resets_timer: bool
    free_running: bool
    def __init__(
        self, delay_ns: int, mark_resets_timer: bool = True, free_running: bool = False
    ) -> None: ...
    def use_clock(self, phase: float, drift: float) -> int: ...

class Timeout(TimedPolicy):
    frames: int
    def __init__(self, delay_ns: int, frames: int = 0, free_running: bool = False) -> None: ...

class OpenMx(TimedPolicy): ...

class Stream(TimedPolicy):
    @property
    def interrupt_deferred(self) -> bool: ...
