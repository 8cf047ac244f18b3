from collections.abc import Sequence

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.shared.agent import Agent

MESSAGES: int

class Stages:
    sent_ns: int
    nic_ns: int
    handled_ns: int
    received_ns: int
    posted_ns: int
    packets: int
    frames: int
    steps: int
    def __init__(
        self,
        sender: Endpoint,
        partner: Partner,
        receiver: Endpoint,
        agents: Sequence[Agent],
        longest_bytes: int,
    ) -> None: ...
    def round(self, size_bytes: int, messages: int = MESSAGES, cold: bool = True) -> None: ...
