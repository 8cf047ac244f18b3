from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.shared.node import Node

def start(
    driver: DriverEndpoint,
    peer: int,
    dst_endpoint: int,
    *,
    length: int,
    region: int,
    session: int = 0,
    rdma_id: int = 0,
    rdma_seqnum: int = 0,
    remote_offset: int = 0,
    cookie: int = 0,
) -> int: ...
def active(node: Node, endpoint: int) -> int: ...
def handovers(node: Node) -> int: ...
