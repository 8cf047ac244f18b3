from shrimpmx.wait.strategy import Strategy

class SpinThen(Strategy):
    limit_ns: int
    fallback: Strategy
    def __init__(self, limit_ns: int, fallback: Strategy) -> None: ...
