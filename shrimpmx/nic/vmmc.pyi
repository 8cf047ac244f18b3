from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.nic.lending import Lending
from shrimpmx.nic.letters import NicLetters
from shrimpmx.nic.page_interrupts import PageInterrupts
from shrimpmx.nic.port import Port
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node

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
