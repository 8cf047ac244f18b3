from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class OtherFlow:
    frame_bytes: int
    interval_ns: float
    window: int
    def __init__(self, rate: float, frame_bytes: int, window: int = 0) -> None: ...

class TrafficGenerator(Agent):
    node: Node
    egress: Egress
    ingress: Ingress
    connected: bool
    session: int
    invalid: bool
    other: OtherFlow | None
    count: int
    size: int
    window: int
    resend_delay_ns: int
    def __init__(
        self,
        node: Node,
        egress: Egress,
        ingress: Ingress,
        *,
        window: int,
        resend_delay_ns: int,
        other_bytes: int,
        size: int = ...,
        count: int = 0,
        match: int = 0,
        session: int = 0x67656E31,
        frames: str = "messages",
        other_rate: float = 0,
        other_window: int = 0,
    ) -> None: ...
    @property
    def sent_count(self) -> int: ...
    @property
    def acked_count(self) -> int: ...
    @property
    def done(self) -> bool: ...
