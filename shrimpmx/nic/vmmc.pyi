from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.nic.firmware import Port
from shrimpmx.nic.lent import Lending
from shrimpmx.nic.updates import PageInterrupts
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node

class NicLetters:
    node: Node
    def __init__(self, node: Node, agent: int) -> None: ...

class VmmcFirmware(Port):
    interrupts: PageInterrupts
    letters: NicLetters
    def __init__(
        self,
        node: Node,
        egress: Egress,
        ingress: Ingress,
        parameters: NicParameters,
        lending: Lending | None = None,
    ) -> None: ...
