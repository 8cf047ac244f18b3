from shrimpmx.wait.waiter import Strategy
from shrimpmx.wait.waiting_strategy import WaitingStrategy

class Spin(Strategy):
    def __init__(self) -> None: ...

class Sched(Strategy):
    def __init__(self) -> None: ...

class Block(Strategy):
    def __init__(self) -> None: ...

class Notify(Strategy):
    def __init__(self) -> None: ...

class SpinThen(Strategy):
    limit_ns: int
    fallback: Strategy
    def __init__(self, limit_ns: int, fallback: Strategy) -> None: ...

class Conditional(Strategy):
    baseline_ns: int
    limit_ns: int
    def __init__(self, baseline_ns: int) -> None: ...

class WatchdogWait(Strategy):
    limit_ns: int
    def __init__(self, limit_ns: int) -> None: ...

HISTORY: int
SHARES: tuple[float, ...]
EPOCH: int

class AdaptiveSpin(Strategy):
    t_block_ns: int
    limit_ns: int
    spins: bool
    on_trial: bool
    def __init__(self, t_block_ns: int) -> None: ...
    def learn(self, delay_ns: int) -> int: ...
    def pass_epoch(self, pace_ns: float) -> bool: ...

class PythonStrategy(Strategy):
    strategy: WaitingStrategy
    def __init__(self, strategy: WaitingStrategy) -> None: ...
