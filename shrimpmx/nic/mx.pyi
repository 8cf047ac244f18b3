from collections.abc import Sequence

from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.nic.port import Port
from shrimpmx.settings.parameters import LinkFaults, NicParameters
from shrimpmx.shared.node import Node

class MxFirmware(Port):
    handler: ReceiveHandler
    def __init__(
        self,
        nodes: Sequence[Node],
        index: int,
        parameters: NicParameters,
        faults: LinkFaults | None = None,
    ) -> None: ...
