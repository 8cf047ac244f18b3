from shrimpmx.nic.strategies import CoalescingPolicy
from shrimpmx.shared.node import Node

class InterruptLine:
    node: Node
    policy: CoalescingPolicy
    def __init__(
        self,
        node: Node,
        index: int,
        policy: CoalescingPolicy,
        agent: int,
        raise_if_empty: bool = False,
        of_sends: bool = False,
    ) -> None: ...
