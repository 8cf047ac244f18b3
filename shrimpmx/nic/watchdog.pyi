from shrimpmx.nic.strategies import Timeout

class Watchdog(Timeout):
    def __init__(self, delay_ns: int) -> None: ...
