from shrimpmx.host.busy_poll import BusyPoll
from shrimpmx.native.trace import Trace
from shrimpmx.settings.mx import MxParameters
from shrimpmx.shared.control import Control
from shrimpmx.shared.host import Host
from shrimpmx.shared.node import Node
from shrimpmx.wait.waiter import Waiter

class EndpointCore:
    node: Node
    control: Control
    host: Host
    waiter: Waiter | None
    index: int
    def __init__(
        self,
        node: Node,
        index: int,
        runner: int,
        waiter: Waiter | None = None,
        parameters: MxParameters | None = None,
        key: int = 0,
        agent: int | None = None,
        session_id: int | None = None,
        first_seqnum: int = 1,
        busy_poll: BusyPoll | None = None,
        host: Host | None = None,
    ) -> None: ...
    def use_trace(self, trace: Trace, number: int) -> None: ...
