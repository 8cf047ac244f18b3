from shrimpmx.wait.strategy import Strategy

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
