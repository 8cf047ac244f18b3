from collections.abc import Sequence

from shrimpmx.nic.letters import NicLetters
from shrimpmx.nic.page_interrupts import PageInterrupts
from shrimpmx.nic.port import Port
from shrimpmx.settings.parameters import LinkFaults, NicParameters
from shrimpmx.shared.node import Node

class VmmcFirmware(Port):
    interrupts: PageInterrupts
    letters: NicLetters
    def __init__(
        self,
        nodes: Sequence[Node],
        index: int,
        parameters: NicParameters,
        faults: LinkFaults | None = None,
        lends: bool = False,
    ) -> None: ...
