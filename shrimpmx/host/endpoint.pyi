from typing import Any, Literal

from shrimpmx.shared.node import Node

RING_KINDS: dict[str, int]

class EventRing:
    def __init__(
        self, entries: int, kind: Literal["lock-free", "reset"] = "lock-free", start: int = 0
    ) -> None: ...
    def reopen(self) -> None: ...
    def put(self, match_info: int) -> bool: ...
    def die_after_publishing(self, match_info: int) -> None: ...
    def repair(self) -> None: ...
    def get(self) -> int | None: ...
    @property
    def next_id(self) -> int: ...
    @property
    def reader_id(self) -> int: ...
    @property
    def indices(self) -> tuple[int, int, int]: ...

def close_dead(node: Node, endpoint: int) -> bool: ...

class DriverEndpoint:
    node: Node
    index: int
    runner: int
    shared: bool
    def __init__(
        self,
        node: Node,
        index: int,
        runner: int,
        agent: int | None = None,
        shared: bool = False,
    ) -> None: ...
    def open(self, session: int | None = None, start_index: int = 0) -> int: ...
    def close(self) -> None: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def session(self) -> int: ...
    process_core: int | None
    def discard(self, limit: int) -> int: ...
    def take_event(self) -> dict[str, Any] | None: ...
    def command(
        self,
        kind: Literal["tiny", "small", "medium_frag", "rndv", "notify", "liback"],
        peer: int,
        dst_endpoint: int,
        *,
        session: int = 0,
        seqnum: int = 0,
        piggyack: int = 0,
        match: int = 0,
        data: bytes = b"",
        message_length: int = 0,
        frag_seqnum: int = 0,
        from_copy: bool = False,
        session_id: int = 0,
        acknum: int = 0,
        send_seq: int = 0,
        resent: int = 0,
        rdma_id: int = 0,
        rdma_seqnum: int = 0,
        rdma_offset: int = 0,
        transferred: int = 0,
    ) -> int: ...
    def command_connect(
        self,
        peer: int,
        dst_endpoint: int,
        *,
        seqnum: int = 0,
        src_session_id: int = 0,
        key_or_session: int = 0,
        target_recv_seqnum_start: int = 1,
        connect_seqnum: int = 0,
        status: int = 0,
        is_reply: bool = False,
    ) -> int: ...
