"""Two nodes of which one pulls from the other: their drivers, without libraries or NICs."""

from __future__ import annotations

import random
from typing import Any

from shrimpmx.host import pull, regions
from shrimpmx.shared.node import take_frames
from shrimpmx.shared.sizes import HEAP_START_BYTES
from support.host_node import CORE0, RANK, SESSION, HostNode, frame
from support.packets import Packet, decode, encode

PULLER, PULLED = 0, 1
COOKIE = 0xFEEDFACECAFE
MILLISECOND = 1_000_000
HEAP_BYTES = 4 << 20


class PullPair:
    """Endpoint 0 of node 0 pulls from endpoint 0 of node 1; the test carries the frames."""

    def __init__(self, mtu: int = 1500, wire_format: str = "native", **layout: Any) -> None:
        self.format = (mtu, wire_format)
        settings = {"tx_ring_entries": 256, "heap_bytes": HEAP_BYTES, **layout}
        self.hosts = [
            HostNode.make(index=i, mtu=mtu, wire_format=wire_format, **settings) for i in (0, 1)
        ]
        self.region = 0
        self.remote_region = (0, 0)
        self.length = -1
        self.remote_offset = 0
        self.result = memoryview(b"")
        self.data = b""

    def heap(self, node: int, offset: int, length: int) -> memoryview:
        segment = self.hosts[node].node.heap_segment
        start = HEAP_START_BYTES + offset
        view: memoryview = segment.view()[start : start + length]
        return view

    def start(self, length: int, remote_offset: int = 0, **more: Any) -> int:
        """Register data there and a buffer here, and start to pull; what pull_start says."""
        if (length, remote_offset) != (self.length, self.remote_offset):
            self.length, self.remote_offset = length, remote_offset
            self._register()
        rdma_id, rdma_seqnum = self.remote_region
        fields = {"rdma_id": rdma_id, "rdma_seqnum": rdma_seqnum, "region": self.region,
                  "session": SESSION, "cookie": COOKIE, "remote_offset": remote_offset,
                  "length": length}  # fmt: skip
        return pull.start(self.hosts[PULLER].endpoint, PULLED, 0, **{**fields, **more})

    def _register(self) -> None:
        length, remote_offset = self.length, self.remote_offset
        self.data = random.Random(length).randbytes(length)
        remote = self.heap(PULLED, 64, length + remote_offset)
        remote[remote_offset:] = self.data
        self.remote_region = regions.create(self.hosts[PULLED].endpoint, remote)
        self.result = self.heap(PULLER, 128, length)
        self.result[:] = bytes(length)
        self.region, _ = regions.create(self.hosts[PULLER].endpoint, self.result)

    def requests(self) -> list[bytes]:
        """Frames that node 0 has sent, from its rank or its handlers."""
        node = self.hosts[PULLER].node
        rings = [("endpoint_tx", 0), ("core_tx", 0), ("core_tx", 1)]
        return [data for ring in rings for _, data in take_frames(node, *ring)]

    def replies(self) -> list[bytes]:
        """Frames that node 1 has sent."""
        return [data for _, data in take_frames(self.hosts[PULLED].node, "core_tx", 0)]

    def decode(self, data: bytes) -> Packet:
        mtu, wire_format = self.format
        return decode(data, mtu, wire_format)

    def send(self, node: int, *packets: Packet) -> None:
        """Deliver packets to the handler of a node."""
        self.hosts[node].receive(*[encode(packet, self.format[1]) for packet in packets])

    def nacked(self) -> bytes:
        """A frame that the puller's handler answers with a nack."""
        return frame("tiny", peer=PULLED, dst_endpoint=9)

    def answer(self) -> list[bytes]:
        """Carry all requests; the replies to them."""
        self.hosts[PULLED].receive(*self.requests())
        return self.replies()

    def carry_all(self) -> None:
        """Carry frames until none is left."""
        while replies := self.answer():
            self.hosts[PULLER].receive(*replies)

    def at(self, ns: int) -> None:
        """The puller's clock, and a tick at that time."""
        self.hosts[PULLER].control.set_virtual_ns(ns)
        self.hosts[PULLER].handlers[0].tick_at(ns)

    def ends(self) -> list[tuple[int, int, int]]:
        """(cookie, transferred, status) of each pull that ended."""
        events = self.hosts[PULLER].events()
        assert all(event["type"] == "pull_done" for event in events)
        return [(event["cookie"], event["transferred"], event["status"]) for event in events]

    def counters(self, node: int = PULLER) -> dict[str, int]:
        """What the handler of core 0 and the rank counted, together."""
        host = self.hosts[node]
        total = host.counters(CORE0)
        for name, count in host.counters(RANK).items():
            total[name] = total.get(name, 0) + count
        return total
