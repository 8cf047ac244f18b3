"""Every ring runs full, its counter goes up, and everything still arrives once and in order.

Raw packets are not repaired; their queue is in tests/unit/test_host_raw.py.
"""

from __future__ import annotations

import pytest
from support.virtual_cluster import MILLISECOND, NicCluster, VirtualCluster, pattern

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

MX = MxParameters(resend_delay_ns=5 * MILLISECOND, ack_delay_ns=MILLISECOND)
SMALL_RING = 16
SHORT_PULLS = {"pull_resend_delay_ns": 5 * MILLISECOND}


def data(number: int, length: int) -> bytes:
    return (pattern(251, number) * (length // 251 + 1))[:length]


class Traffic:
    """Messages from one endpoint to another whose arrival is checked at the end."""

    def __init__(
        self, cluster: VirtualCluster, one: Endpoint, other: Endpoint, partner: Partner
    ) -> None:
        self.cluster, self.one, self.other, self.partner = cluster, one, other, partner
        self.lengths: list[int] = []
        self.sends: list[object] = []

    def send(self, lengths: list[int]) -> Traffic:
        for length in lengths:
            number = len(self.lengths)
            self.lengths.append(length)
            self.sends.append(self.one.isend(data(number, length), self.partner, number))
        return self

    def arrives(self) -> None:
        """In order, for the receives take any."""
        buffers = [bytearray(length) for length in self.lengths]
        receives = [self.other.irecv(buffer, 0, 0) for buffer in buffers]
        for number, receive in enumerate(receives):
            status = self.cluster.wait(self.other, receive)
            assert (status.code, status.match) == ("success", number)
            assert buffers[number] == data(number, self.lengths[number])
        for send in self.sends:
            assert self.cluster.wait(self.one, send).code == "success"  # type: ignore[arg-type]
        self.cluster.until(lambda: self.partner.unacked == 0)
        assert self.other.iprobe(0, 0) is None


def traffic(cluster: VirtualCluster) -> Traffic:
    return Traffic(cluster, *cluster.pair(MX))


def over_nics(**rings: int) -> NicCluster:
    return NicCluster(NicParameters(coalescing="timeout"), **SHORT_PULLS, **rings)


def run_unseen(flow: Traffic) -> None:
    """The receiver computes for a while and makes no passes."""
    flow.cluster.endpoints.remove(flow.other)
    flow.cluster.settle()
    flow.cluster.endpoints.append(flow.other)


# -- down: from a rank to the wire ------------------------------------------------


def test_tx_ring_of_an_endpoint() -> None:
    flow = traffic(VirtualCluster(tx_ring_entries=SMALL_RING)).send([12_000, 10, 100] * 8)
    assert flow.one.counters()["send_no_tx_slot"] > 0
    flow.arrives()
    assert flow.one.counters()["resent_messages"] == 0


def test_tx_ring_of_an_endpoint_that_pulls() -> None:
    """Many pulls start in one pass."""
    cluster = VirtualCluster(tx_ring_entries=SMALL_RING, **SHORT_PULLS)
    one, other, partner = cluster.pair(MX)
    Traffic(cluster, one, other, partner).send([40_000] * 20)
    # Only their beginnings: whole blocks of replies would not fit the other core's ring either.
    buffers = [bytearray(10) for _ in range(20)]
    receives = [other.irecv(buffer, 0, 0) for buffer in buffers]
    for number, receive in enumerate(receives):
        status = cluster.wait(other, receive)
        assert (status.code, status.match) == ("truncated", number)
        assert buffers[number] == data(number, 40_000)[:10]
    assert other.counters()["send_nomem_pull_request"] > 0


def test_tx_ring_of_a_core_with_pull_replies() -> None:
    """A pull asks for four blocks of 32 replies at once; what has no room waits."""
    flow = traffic(VirtualCluster(tx_ring_entries=64, **SHORT_PULLS))
    flow.send([300_000] * 2)
    flow.arrives()
    pulled, puller = (flow.cluster.control.agent_counters(node) for node in (0, 1))
    assert pulled["send_pull_reply"] == 2 * 205
    assert puller["pull_timeout_handler_first_block"] == 0


@pytest.mark.parametrize("kind", ["nack_lib", "nack_mcp"])
def test_tx_ring_of_a_core_with_nacks(kind: str) -> None:
    cluster = VirtualCluster(tx_ring_entries=SMALL_RING, resends_max=20, **SHORT_PULLS)
    one, other, partner = cluster.pair(MxParameters(zombies_max=0, resend_delay_ns=MILLISECOND))
    if kind == "nack_lib":
        requests = [one.isend(b"", partner, 1) for _ in range(12)]
        cluster.carry()  # so that more than the ring holds arrive together
        requests += [one.isend(b"", partner, 1) for _ in range(12)]
        cluster.close(other)
        waiting, refuser = one, 1
    else:
        requests = [other.irecv(bytearray(300_000), 1) for _ in range(6)]
        for _ in range(6):
            one.isend(data(0, 300_000), partner, 1)
        cluster.until(lambda: cluster.frames_of("rndv"))
        cluster.endpoints.remove(one)
        cluster.until(lambda: len(cluster.frames_of("pull_request")) > SMALL_RING)
        one.close()
        waiting, refuser = other, 0
    for request in requests:
        assert cluster.wait(waiting, request).code == "endpoint-closed"
    assert cluster.control.agent_counters(refuser)[f"send_nomem_{kind}"] > 0


def test_link_ring() -> None:
    """It holds frames back in the tx rings before it; none is lost."""
    cluster = over_nics(link_ring_entries=SMALL_RING)
    flow = traffic(cluster).send([30_000, 100, 40_000] * 5)
    fullest = 0

    def watch() -> bool:
        nonlocal fullest
        fullest = max(fullest, cluster.nodes[1].ring_depths()["link", 0])
        return fullest == SMALL_RING

    cluster.until(watch)
    flow.arrives()
    assert cluster.nic_counters(1)["rx_drop_ring_full"] == 0
    assert flow.one.counters()["resent_messages"] == 0


# -- up: from the wire to a rank -----------------------------------------------------


@pytest.mark.parametrize(("entries", "long"), [(16, 12_000), (64, 30_000)])
def test_rx_ring(entries: int, long: int) -> None:
    """It must hold the frames of a medium message, or of a block, that come in one burst: a
    resent one comes whole, and what overran the ring would overrun it again."""
    flow = traffic(over_nics(rx_ring_entries=entries)).send([long, 100, long, 0] * 5)
    flow.arrives()
    assert flow.cluster.nic_counters(1)["rx_drop_ring_full"] > 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("length", [30_000, 60_000], ids=["medium", "block"])
def test_a_burst_longer_than_the_rx_ring_never_comes_whole(length: int) -> None:
    """As in Open-MX, which resends whole messages and blocks: the ring takes the same frames of
    each burst, where a handler comes only when a timer says so."""
    cluster = over_nics(rx_ring_entries=SMALL_RING)
    one, other, partner = cluster.pair(MxParameters(resend_delay_ns=5 * MILLISECOND))
    one.isend(data(0, length), partner, 0)
    receive = other.irecv(bytearray(length), 0)
    cluster.advance(100 * MILLISECOND)
    assert other.test(receive) is None
    again = (
        one.counters()["resent_messages"]
        if length < 32768
        else (cluster.control.agent_counters(1)["pull_timeout_handler_first_block"])
    )
    assert again > 10


@pytest.mark.parametrize("event_ring", ["lock-free", "reset"])
@pytest.mark.parametrize("length", [0, 100, 1000, 40_000], ids=["tiny", "small", "medium", "rndv"])
def test_unexpected_events_and_recvq(event_ring: str, length: int) -> None:
    """Small and medium messages need a slot of the recvq besides, of which there are as many."""
    cluster = VirtualCluster(event_ring_entries=SMALL_RING, event_ring=event_ring, **SHORT_PULLS)
    flow = traffic(cluster).send([length] * 40)
    run_unseen(flow)
    assert cluster.control.agent_counters(1)["unexp_eventq_full"] > 0
    flow.arrives()
    assert flow.one.counters()["resent_messages"] > 0


def test_expected_events() -> None:
    cluster = VirtualCluster(event_ring_entries=SMALL_RING, tx_ring_entries=1024, **SHORT_PULLS)
    one, other, partner = cluster.pair(MX)
    buffers = [bytearray(40_000) for _ in range(30)]
    receives = [other.irecv(buffer, 0, 0) for buffer in buffers]
    for number in range(30):
        one.isend(data(number, 40_000), partner, number)
    cluster.until(lambda: other.counters()["pulls_started"] == 30)
    cluster.endpoints.remove(other)
    cluster.advance(20 * MILLISECOND)  # the pulls go on without the rank
    assert cluster.control.agent_counters(1)["exp_eventq_full"] > 0
    cluster.endpoints.append(other)
    for number, (receive, buffer) in enumerate(zip(receives, buffers, strict=True)):
        assert cluster.wait(other, receive).code == "success"
        assert buffer == data(number, 40_000)


@pytest.mark.parametrize("event_ring", ["lock-free", "reset"])
def test_rings_of_a_local_target(event_ring: str) -> None:
    cluster = VirtualCluster(endpoints=2, event_ring_entries=SMALL_RING, event_ring=event_ring)
    one, other = (cluster.open(0, index, parameters=MX) for index in (0, 1))
    flow = Traffic(cluster, one, other, cluster.connect(one, 0, 1))
    flow.send([0, 100, 1000, 4096, 40_000] * 10)
    run_unseen(flow)
    assert one.counters()["shared_eventq_full"] > 0
    flow.arrives()
    assert one.counters()["resent_messages"] == 0


def test_expected_events_of_local_pulls() -> None:
    """A rank pulls by itself; without room for the end it tries again later."""
    cluster = VirtualCluster(endpoints=2, event_ring_entries=SMALL_RING)
    one, other = (cluster.open(0, index, parameters=MX) for index in (0, 1))
    flow = Traffic(cluster, one, other, cluster.connect(one, 0, 1)).send([10_000] * 14)
    cluster.settle()  # the rndvs lie there before any receive
    receives = [(other.irecv(buffer, 0, 0), buffer) for buffer in
                [bytearray(10_000) for _ in range(14)]]  # fmt: skip
    flow.send([10_000] * 14)
    receives += [(other.irecv(buffer, 0, 0), buffer) for buffer in
                 [bytearray(10_000) for _ in range(14)]]  # fmt: skip
    for number, (receive, buffer) in enumerate(receives):
        assert cluster.wait(other, receive).code == "success"
        assert buffer == data(number, 10_000)
