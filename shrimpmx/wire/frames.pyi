from shrimpmx.shared.node import Node

def put_frame(
    node: Node, which: str, index: int, frame: bytes, time_ns: int = 0, length: int | None = None
) -> bool: ...
def take_frames(
    node: Node, which: str, index: int = 0, limit: int | None = None
) -> list[tuple[int, bytes]]: ...
