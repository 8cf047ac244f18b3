from shrimpmx.settings.parameters import LinkFaults
from shrimpmx.shared.node import Node

class LinkEgress:
    delay_ns: int
    source: int
    mtu: int
    def __init__(
        self,
        rate_bits_per_s: int,
        delay_ns: int,
        faults: LinkFaults | None = None,
        source: int = 0,
        mtu: int = 1500,
    ) -> None: ...
    def use_gap(self, mean_ns: int, jitter: float, seed: int) -> None: ...
    def add_node(self, node: Node) -> None: ...
    def send(self, now_ns: int, destination: int, frame: bytes) -> bool: ...
    def flush_at(self, now_ns: int) -> int | None: ...
    def fault_counts(self) -> dict[str, int]: ...
