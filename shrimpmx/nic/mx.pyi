from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.nic.firmware import Port
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node

class MxFirmware(Port):
    handler: ReceiveHandler
    def __init__(
        self, node: Node, egress: Egress, ingress: Ingress, parameters: NicParameters
    ) -> None: ...
