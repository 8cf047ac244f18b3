from shrimpmx.wait.strategy import Strategy

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
