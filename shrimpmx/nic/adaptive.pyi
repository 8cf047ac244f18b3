from shrimpmx.nic.coalescing import CoalescingPolicy

class AdaptiveRate(CoalescingPolicy):
    conservative: bool
    dilation: float
    rate: int
    interval_ns: int
    def __init__(self, conservative: bool = False, dilation: float = 1.0) -> None: ...
    @property
    def latency_class(self) -> str: ...

class MarksAdaptive(AdaptiveRate): ...
