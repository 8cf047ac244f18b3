from shrimpmx.wait.strategy import Strategy

class Conditional(Strategy):
    baseline_ns: int
    limit_ns: int
    def __init__(self, baseline_ns: int) -> None: ...
