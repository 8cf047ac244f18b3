from shrimpmx.link.line import EmulatedLine
from shrimpmx.link.rings import RingIngress
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.shared.node import Node

class Switch(Agent):
    ports_count: int
    def __init__(
        self,
        control: Control,
        agent: int,
        parameters: NicParameters,
        slot_bytes: int,
        nodes: int,
        ports: int,
    ) -> None: ...
    def attach(self, node: Node) -> int: ...
    def join(self, other: Switch) -> tuple[int, int]: ...
    def route_up(self, port: int) -> None: ...
    def route(self, node: int, port: int) -> None: ...

class SwitchLink(EmulatedLine): ...

def switch_links(
    node: Node,
    switch: Switch,
    port: int,
    parameters: NicParameters,
    faults: LinkFaults | None = None,
) -> tuple[SwitchLink, RingIngress]: ...
