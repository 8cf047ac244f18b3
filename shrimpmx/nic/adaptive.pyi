from shrimpmx.nic.strategies import CoalescingPolicy

class AdaptiveRate(CoalescingPolicy):
    conservative: bool
    dilation: float
    rate: int
    interval_ns: int
    def __init__(self, conservative: bool = False, dilation: float = 1.0) -> None: ...
    @property
    def latency_class(self) -> str: ...

class MarksAdaptive(AdaptiveRate): ...

Profiles = tuple[tuple[int, int], ...]

EQE_PROFILES: Profiles
CQE_PROFILES: Profiles

class DimDecision:
    dilation: float
    profile: int
    steps_left: int
    steps_right: int
    tired: int
    def __init__(self, dilation: float = 1.0) -> None: ...
    def feed(self, bytes: int, packets: int, events: int, now_ns: int) -> int: ...
    @property
    def state(self) -> str: ...

class Dim(CoalescingPolicy):
    decision: DimDecision
    delay_ns: int
    frames: int
    def __init__(self, dilation: float = 1.0) -> None: ...

class DimCqe(Dim): ...
