from shrimpmx.native.trace import Capture
from shrimpmx.shared.node import Node

class Egress:
    source: int
    mtu: int
    failure: BaseException | None
    def __init__(self, node: Node) -> None: ...
    def use_capture(self, capture: Capture) -> None: ...
    def send(self, now_ns: int, destination: int, frame: bytes) -> bool: ...
    def flush_at(self, now_ns: int) -> int | None: ...

class Ingress:
    look_ns: int
    look_every_ns: int
    failure: BaseException | None
    def use_capture(self, capture: Capture, end: int) -> None: ...
