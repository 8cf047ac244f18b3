"""Copy offload: the dma agent's copies, their order, their slots, and what goes wrong."""

from __future__ import annotations

import mmap
import struct
import threading
from typing import Any

import pytest
from support.protected import protected
from support.virtual_cluster import MILLISECOND, NicCluster, pattern

from shrimpmx.errors import InputError
from shrimpmx.host import pull, regions
from shrimpmx.host.copy_offload import CopyAgent
from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

SENDER, RECEIVER = 0, 1
SESSION = 7
FULL = 1468  # bytes of a frame at mtu 1500
OK, ENDPOINT_CLOSED, UNWRITABLE = 0, 2, 7
COOKIE = 99
QUIET_NS = MILLISECOND
# Places in layout.h and ring.h.
VECTORS_OFFSET_AT, COPY_RING_OFFSET_AT, RING_ENTRIES_AT = 112, 32, 256


def content(length: int) -> bytes:
    return pattern(1000) * (length // 1000) + pattern(length % 1000)


class Transfer:
    """Node 1 pulls from node 0 with NICs, handlers and dma agents; the rank is the test."""

    def __init__(self, length: int, kind: str = "process", **more: Any) -> None:
        coalescing = more.pop("coalescing", "open-mx")
        settings = {"rx_ring_entries": 1024, "pull_resend_delay_ns": 5 * MILLISECOND, **more}
        self.cluster = NicCluster(
            NicParameters(coalescing=coalescing), copy_offload=True, **settings
        )
        self.copiers = self.cluster.copiers
        self.drivers = [DriverEndpoint(self.cluster.nodes[i], 0, 1 + i) for i in range(2)]
        for driver in self.drivers:
            driver.open(SESSION)
        self.length = length
        self.data = bytearray(content(length))
        self.received = bytearray(length)
        self.remote, self.use = regions.create(self.drivers[SENDER], self.data, "process")
        self.region, _ = regions.create(self.drivers[RECEIVER], self.received, "process")

    def start(self) -> None:
        # Handlers' clocks begin with their first step.
        self.cluster.advance(QUIET_NS)
        assert pull.start(
            self.drivers[RECEIVER], SENDER, 0, length=self.length, region=self.region,
            session=SESSION, rdma_id=self.remote, rdma_seqnum=self.use, cookie=COOKIE,
        ) == 1  # fmt: skip

    def run(self) -> None:
        self.start()
        self.cluster.advance(20 * QUIET_NS)

    def stall(self) -> None:
        """The dma agents get no CPU."""
        self.cluster.copiers = []

    def resume(self) -> None:
        self.cluster.copiers = self.copiers

    def ends(self) -> list[tuple[int, int, int]]:
        """(cookie, bytes, status) of each end of a pull that the rank is told of."""
        events = iter(self.drivers[RECEIVER].take_event, None)
        return [(e["cookie"], e["transferred"], e["status"]) for e in events]

    def done(self) -> bool:
        return self.ends() == [(COOKIE, self.length, OK)] and self.received == self.data

    def depth(self, ring: str) -> int:
        return self.cluster.nodes[RECEIVER].ring_depths()[ring, 0]

    def handler(self, counter: str) -> int:
        return self.cluster.control.agent_counters(RECEIVER)[counter]

    def nic(self, counter: str) -> int:
        return self.cluster.nic_counters(RECEIVER)[counter]

    def dma(self, counter: str) -> int:
        return self.cluster.dma_counters(RECEIVER)[counter]


@pytest.mark.parametrize(
    ("length", "frames"),
    # The last frame of 65536 bytes has 944, so the handler copies it.
    [(65_535, 0), (65_536, 44), (45 * FULL, 45), (500_000, 340), (1 << 20, 714)],
)
def test_what_is_offloaded_and_that_it_arrives(length: int, frames: int) -> None:
    transfer = Transfer(length)
    transfer.run()
    assert transfer.done()
    assert transfer.handler("recv_pull_reply") == -(-length // FULL)
    assert transfer.handler("dmarecv_pull_reply") == transfer.dma("copies") == frames
    left = length % FULL if length % FULL < 1024 else 0
    expected = length - left if frames else 0
    assert transfer.handler("dmarecv_bytes") == transfer.dma("copied_bytes") == expected
    assert transfer.depth("rx") == transfer.depth("copy") == 0
    assert transfer.handler("dma_ring_full") == transfer.dma("copies_refused") == 0


def test_other_thresholds() -> None:
    transfer = Transfer(10_000, copy_message_bytes=10_000, copy_frame_bytes=1)
    transfer.run()
    assert transfer.done()
    assert transfer.dma("copies") == transfer.handler("recv_pull_reply") == 7
    transfer = Transfer(10_000, copy_message_bytes=10_000, copy_frame_bytes=FULL + 1)
    transfer.run()
    assert transfer.done()
    assert transfer.dma("copies") == 0


def test_a_pull_ends_with_its_last_copy_and_not_before() -> None:
    transfer = Transfer(69 * FULL)
    transfer.stall()
    transfer.start()
    transfer.cluster.advance(3 * QUIET_NS)
    assert transfer.handler("recv_pull_reply") == 69
    assert transfer.received == bytes(69 * FULL)
    assert transfer.ends() == []
    copier = transfer.copiers[RECEIVER]
    for step in range(3):
        assert transfer.ends() == [], f"before step {step}"
        assert transfer.received != transfer.data
        assert copier.step_at(transfer.cluster.now_ns) > 0
    assert transfer.done()
    assert transfer.dma("pull_done") == 1
    assert transfer.handler("pull_done") == 0


def test_slots_come_back_in_order_behind_the_copies() -> None:
    transfer = Transfer(100_000)
    transfer.stall()
    transfer.start()
    transfer.cluster.advance(3 * QUIET_NS)
    assert transfer.depth("rx") == 69
    # What is not offloaded is handled at once, but its slot waits for those before it.
    for _ in range(3):
        transfer.drivers[SENDER].command("tiny", 1, 0, seqnum=1, session=SESSION, data=b"a")
        transfer.cluster.advance(QUIET_NS)
    assert transfer.handler("recv_tiny") == 3
    assert transfer.depth("rx") == 72
    copier = transfer.copiers[RECEIVER]
    depths = []
    while copier.step_at(transfer.cluster.now_ns):
        depths.append(transfer.depth("rx"))
    assert depths == sorted(depths, reverse=True)
    assert depths[0] == 72 - 32
    assert depths[-1] == 0


def test_the_nic_and_the_handler_look_past_slots_that_wait_for_copies() -> None:
    transfer = Transfer(100_000)
    transfer.stall()
    transfer.start()
    transfer.cluster.advance(3 * QUIET_NS)
    raised, polls = transfer.nic("irq_raised"), transfer.handler("polls")
    transfer.cluster.advance(3 * QUIET_NS)
    assert (transfer.nic("irq_raised"), transfer.handler("polls")) == (raised, polls)


def test_a_stalled_dma_agent_loses_nothing() -> None:
    transfer = Transfer(300_000, rx_ring_entries=64)
    transfer.stall()
    transfer.start()
    transfer.cluster.advance(20 * QUIET_NS)
    assert transfer.nic("rx_drop_ring_full") > 0
    assert transfer.handler("recv_pull_reply") == 64
    assert transfer.depth("rx") == 64
    transfer.resume()
    transfer.cluster.advance(1000 * QUIET_NS)
    assert transfer.done()
    assert transfer.depth("rx") == transfer.depth("copy") == 0


def test_rx_rings_that_the_agent_can_empty_at_once_are_refused() -> None:
    with pytest.raises(InputError, match="copy offload needs rx rings of at least 64 frames"):
        Transfer(100_000, rx_ring_entries=32)


def test_a_full_ring_of_copies_makes_the_handler_copy() -> None:
    transfer = Transfer(69 * FULL)
    memory = transfer.cluster.nodes[RECEIVER].segment.view()
    (vectors,) = struct.unpack_from("<Q", memory, VECTORS_OFFSET_AT)
    (copies,) = struct.unpack_from("<Q", memory, vectors + COPY_RING_OFFSET_AT)
    struct.pack_into("<I", memory, copies + RING_ENTRIES_AT, 8)  # as it never is by itself
    transfer.stall()
    transfer.start()
    transfer.cluster.advance(3 * QUIET_NS)
    assert transfer.handler("dmarecv_pull_reply") == transfer.depth("copy") == 8
    assert transfer.handler("dma_ring_full") > 61  # copies, and ends of batches
    assert transfer.ends() == []
    transfer.resume()
    transfer.cluster.advance(QUIET_NS)
    assert transfer.done()
    # What was not told to the agent is handed back with the next frame.
    transfer.drivers[SENDER].command("tiny", 1, 0, seqnum=1, session=SESSION, data=b"a")
    transfer.cluster.advance(QUIET_NS)
    assert transfer.depth("rx") == 0


def test_round_robin_moves_the_vector_between_cores() -> None:
    transfer = Transfer(500_000, cores=2, coalescing="disabled", seed=3)
    transfer.run()
    assert transfer.done()
    assert transfer.dma("copies") == 340
    interrupts = transfer.cluster.nodes[RECEIVER].interrupt_counts()
    assert all(taken > 10 for core in interrupts for taken in core), interrupts


def test_a_pull_that_is_refused_waits_for_its_copies_and_they_are_not_done() -> None:
    transfer = Transfer(1 << 20)
    transfer.stall()
    transfer.start()
    transfer.cluster.until(lambda: transfer.handler("recv_pull_reply") > 40)
    transfer.drivers[SENDER].close()
    transfer.cluster.advance(3 * QUIET_NS)
    assert transfer.handler("recv_nack_mcp") > 0
    assert transfer.ends() == []
    transfer.resume()
    transfer.cluster.advance(3 * QUIET_NS)
    assert transfer.ends() == [(COOKIE, 0, ENDPOINT_CLOSED)]
    assert transfer.dma("copies_refused") == transfer.handler("dmarecv_pull_reply")
    assert transfer.depth("rx") == transfer.depth("copy") == 0
    assert pull.active(transfer.cluster.nodes[RECEIVER], 0) == 0


def test_an_endpoint_that_closes_waits_for_copies_into_its_memory() -> None:
    transfer = Transfer(1 << 20)
    transfer.stall()
    transfer.start()
    transfer.cluster.until(lambda: transfer.handler("recv_pull_reply") > 40)
    receiver = transfer.drivers[RECEIVER]
    closing = threading.Thread(target=receiver.close)
    closing.start()
    while regions.read(receiver, transfer.region, 0, 1) is not None:
        pass
    assert not receiver.is_open
    assert transfer.depth("copy") > 0
    while transfer.copiers[RECEIVER].step_at(transfer.cluster.now_ns):
        pass
    closing.join(10)
    assert not closing.is_alive()
    assert transfer.dma("copies_refused") == transfer.handler("dmarecv_pull_reply")
    assert transfer.received == bytes(1 << 20)
    transfer.resume()
    receiver.open(SESSION)
    transfer.received[:] = bytes(1 << 20)
    transfer.region, _ = regions.create(receiver, transfer.received, "process")
    transfer.length = 1 << 20
    transfer.run()
    # The frames on the way to the pull before are told apart.
    assert transfer.ends()[-1] == (COOKIE, 1 << 20, OK)
    assert transfer.received == transfer.data


def test_an_endpoint_that_closes_does_not_wait_for_copies_that_take_virtual_time() -> None:
    transfer = Transfer(1 << 20, copy_rate=10**8)
    transfer.start()
    transfer.cluster.until(lambda: transfer.dma("copies") > 40)
    receiver = transfer.drivers[RECEIVER]
    receiver.close()
    came = bytes(transfer.received)
    assert transfer.depth("copy") > 0
    transfer.cluster.advance(QUIET_NS)
    assert transfer.received == came
    assert transfer.dma("copies_refused") > 0
    assert transfer.depth("rx") == transfer.depth("copy") == 0
    # The region is free again, not lost.
    receiver.open(SESSION)
    created = {regions.create(receiver, transfer.received, "process")[0] for _ in range(256)}
    assert len(created) == 256


def test_memory_that_cannot_be_reached_ends_the_pull() -> None:
    transfer = Transfer(100_000)
    memory = protected(100_000, mmap.PROT_READ)
    transfer.region, _ = regions.create(transfer.drivers[RECEIVER], memory, "process")
    transfer.run()
    assert transfer.ends() == [(COOKIE, 0, UNWRITABLE)]
    assert transfer.depth("rx") == transfer.depth("copy") == 0


def test_a_node_without_offload_has_no_dma_agent() -> None:
    cluster = NicCluster(NicParameters())
    with pytest.raises(InputError, match="node 0 was made without copy offload"):
        CopyAgent(cluster.nodes[0], 4)
    assert ("copy", 0) not in cluster.nodes[0].ring_depths()


# -- with the library ---------------------------------------------------------

SHORT = MxParameters(resend_delay_ns=5 * MILLISECOND, ack_delay_ns=MILLISECOND)


def exchange(cluster: NicCluster, lengths: list[int]) -> tuple[Endpoint, Endpoint]:
    """Messages both ways at once, each into a buffer of its own; all must arrive in order."""
    endpoints = [cluster.open(node, parameters=SHORT) for node in range(2)]
    partners = [cluster.connect(endpoints[node], 1 - node) for node in range(2)]
    requests: list[Any] = []
    buffers = []
    for number, length in enumerate(lengths):
        for node in range(2):
            buffer = bytearray(length)
            receive = endpoints[node].irecv(buffer, number)
            requests.append((endpoints[node], receive))
            buffers.append((buffer, pattern(1000, number) * (length // 1000)))
    for number, length in enumerate(lengths):
        for node in range(2):
            message = pattern(1000, number) * (length // 1000)
            send = endpoints[node].isend(message, partners[node], number)
            requests.append((endpoints[node], send))
    for endpoint, request in requests:
        assert cluster.wait(endpoint, request).code == "success"
    for buffer, expected in buffers:
        assert buffer == expected
    return endpoints[0], endpoints[1]


@pytest.mark.nightly("each seed", but=24)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("coalescing", ["disabled", "timeout", "stream"])
@pytest.mark.parametrize("fault", ["", "loss", "duplicate", "reorder"])
def test_exactly_once_under_faults(fault: str, coalescing: str, seed: int) -> None:
    faults = LinkFaults(seed=seed, reorder_degree=5, **({fault: 0.05} if fault else {}))
    cluster = NicCluster(
        NicParameters(coalescing=coalescing), faults, seed=seed, copy_offload=True,
        rx_ring_entries=64, pull_resend_delay_ns=5 * MILLISECOND, cores=1 + seed % 2,
        copy_rate=seed // 2 * 10**9,
    )  # fmt: skip
    exchange(cluster, [1000, 150_000, 20_000, 70_000, 400_000, 64_000])
    cluster.settle()
    for node in range(2):
        assert cluster.dma_counters(node)["copies"] > 300
        depths = cluster.nodes[node].ring_depths()
        assert depths["rx", 0] == depths["copy", 0] == 0
