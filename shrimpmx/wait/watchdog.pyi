from shrimpmx.wait.strategy import Strategy

class WatchdogWait(Strategy):
    limit_ns: int
    def __init__(self, limit_ns: int) -> None: ...
