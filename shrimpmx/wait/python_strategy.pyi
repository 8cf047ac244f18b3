from shrimpmx.wait.strategy import Strategy
from shrimpmx.wait.waiting_strategy import WaitingStrategy

class PythonStrategy(Strategy):
    strategy: WaitingStrategy
    def __init__(self, strategy: WaitingStrategy) -> None: ...
