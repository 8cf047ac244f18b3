"""Packet types by name, and the hardware addresses of nodes."""

from __future__ import annotations

# By the number on the wire (enum packet_type of wire.h).
PACKET_NAMES = {
    1: "raw",
    3: "host_query",
    4: "host_reply",
    35: "truc",
    36: "connect",
    37: "tiny",
    38: "small",
    39: "medium_frag",
    40: "rndv",
    41: "pull_request",
    42: "pull_reply",
    43: "notify",
    44: "nack_lib",
    45: "nack_mcp",
}
NODE_PREFIX = bytes((0x02, 0x5A, 0, 0))


def node_address(index: int) -> bytes:
    """Hardware address of node `index`: locally administered, its index in the last bytes."""
    return NODE_PREFIX + index.to_bytes(2, "big")
