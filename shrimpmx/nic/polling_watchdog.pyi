from shrimpmx.nic.strategies import Timeout

class PollingWatchdog(Timeout):
    def __init__(self, delay_ns: int) -> None: ...
