from typing_extensions import Buffer

from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.settings.mx import MxParameters
from shrimpmx.shared.host import Host
from shrimpmx.shared.node import Node

class Library:
    host: Host
    def __init__(
        self,
        node: Node,
        driver: DriverEndpoint,
        parameters: MxParameters,
        key: int,
        first_seqnum: int,
        host: Host,
    ) -> None: ...

def reach_buffer(library: Library, data: Buffer) -> tuple[str, bool, bool, bool] | str: ...
