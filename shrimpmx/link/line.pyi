from shrimpmx.link.ends import Egress
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.shared.node import Node

class EmulatedLine(Egress):
    delay_ns: int
    def __init__(
        self, node: Node, rate_bits_per_s: int, delay_ns: int, faults: LinkFaults | None = None
    ) -> None: ...
    def use_gap(self, mean_ns: int, jitter: float, seed: int) -> None: ...
    def fault_counts(self) -> dict[str, int]: ...
