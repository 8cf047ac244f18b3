"""Native MX's NIC under the virtual clock: it alone handles packets."""

from __future__ import annotations

import pytest
from support.exchange import exchange
from support.memory import assert_counts
from support.mx_nic import MxCluster
from support.nic import PLAIN
from support.packets import TinyPacket, encode, node_address
from support.virtual_cluster import MILLISECOND, pattern

from shrimpmx.native.segment import Segment
from shrimpmx.native.trace import Trace
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import put_frame

PLAIN_MX = PLAIN.model_copy(update={"nic_kind": "mx"})
LINK_NS, DMA_NS = PLAIN.link_delay_ns, PLAIN.dma_latency_ns
FAULTS = {
    "loss": LinkFaults(loss=0.1),
    "duplicate": LinkFaults(duplicate=0.2),
    "corrupt": LinkFaults(corrupt=0.1),
    "reorder": LinkFaults(reorder=0.2, reorder_degree=3),
    "all": LinkFaults(loss=0.05, duplicate=0.1, reorder=0.1, reorder_degree=7),
}
# Bytes, and packets at the receiver and at the sender for each kind, at MTU 1500.
EAGER = [(0, "tiny", 1), (32, "tiny", 1), (33, "small", 1), (128, "small", 1),
         (129, "medium_frag", 1), (1452, "medium_frag", 1), (4096, "medium_frag", 3),
         (16384, "medium_frag", 12), (32768, "medium_frag", 23)]  # fmt: skip
LARGE = [(32769, 23, 1), (65536, 45, 2), (234_880, 160, 5), (1 << 20, 715, 23)]
SESSION = 77
INTERRUPTS = ("irq_raised", "irq_wished", "irq_held_back", "irq_absorbed", "interrupts", "polls")


def data(length: int) -> bytes:
    return pattern(4096, length) * (length // 4096) + pattern(length % 4096, 3)


def frame(number: int) -> bytes:
    """A tiny message from node 1 to the first endpoint of node 0."""
    addresses = {"destination": node_address(0), "source": node_address(1), "peer_index": 1}
    return encode(TinyPacket(**addresses, session=SESSION, marked=True, lib_seqnum=number))


def moved(before: dict[str, int], after: dict[str, int], *prefixes: str) -> dict[str, int]:
    return {
        name: n - before.get(name, 0)
        for name, n in after.items()
        if name.startswith(prefixes) and n != before.get(name, 0)
    }


def assert_no_interrupt(cluster: MxCluster) -> None:
    for index, node in enumerate(cluster.nodes):
        assert node.interrupt_counts() == [[0]]
        counters = {**cluster.nic_counters(index), **cluster.handled(index)}
        assert {counters.get(name, 0) for name in INTERRUPTS} == {0}
        assert node.ring_depths()["rx", 0] == 0


@pytest.mark.parametrize(("length", "kind", "packets"), EAGER)
def test_eager_messages_both_ways(length: int, kind: str, packets: int) -> None:
    cluster = MxCluster()
    one, other, partner = cluster.pair()
    back = cluster.connect(other, 0)
    cluster.settle()
    for sender, receiver, to, node in ((one, other, partner, 1), (other, one, back, 0)):
        nic, handled = cluster.nic_counters(node), cluster.handled(node)
        received = bytearray(length)
        receive = receiver.irecv(received, 7)
        sender.isend(data(length), to, 7)
        assert cluster.wait(receiver, receive).transferred == length
        assert received == data(length)
        assert moved(handled, cluster.handled(node), "recv_") == {
            f"recv_{kind}": packets,
            "recv_packets": packets,
        }
        arrived = moved(nic, cluster.nic_counters(node), "rx_", "mx_")
        arrived.pop("rx_bytes")
        assert arrived == {"rx_packets": packets, "rx_marked": 1, "mx_handled": packets}
        cluster.advance(20 * MILLISECOND)
    assert_no_interrupt(cluster)


@pytest.mark.parametrize("memory", ["heap", "process-vm", "bounce"])
@pytest.mark.parametrize(("length", "replies", "blocks"), LARGE)
def test_large_messages(length: int, replies: int, blocks: int, memory: str) -> None:
    cluster = MxCluster()
    one, other, partner = cluster.pair(MxParameters(memory=memory))
    before = [cluster.handled(node) for node in (0, 1)]
    received = bytearray(length)
    receive = other.irecv(received, 7)
    send = one.isend(data(length), partner, 7)
    assert cluster.wait(other, receive).transferred == length
    assert cluster.wait(one, send).transferred == length
    assert received == data(length)
    at_sender, at_receiver = (
        moved(before[node], cluster.handled(node), "recv_p", "recv_r", "recv_n", "send_pull_re")
        for node in (0, 1)
    )
    assert at_receiver.pop("recv_packets") >= replies + 1  # and acknowledgements
    assert at_receiver == {"recv_rndv": 1, "recv_pull_reply": replies, **at_receiver}
    assert at_sender["recv_pull_request"] == blocks
    assert at_sender["recv_notify"] == 1
    assert at_sender["send_pull_reply"] == replies
    assert_no_interrupt(cluster)


@pytest.mark.parametrize("fault", FAULTS)
def test_exactly_once_and_in_order_under_link_faults(fault: str) -> None:
    cluster = MxCluster(faults=FAULTS[fault], pull_resend_delay_ns=50 * MILLISECOND)
    one, other, partner = cluster.pair()
    back = cluster.connect(other, 0)
    exchange(cluster, one, other, partner)
    exchange(cluster, other, one, back)
    for number in range(4):
        received = bytearray(150_000)
        receive = other.irecv(received, 1000 + number)
        send = one.isend(data(150_000), partner, 1000 + number)
        assert cluster.wait(other, receive).code == "success"
        assert cluster.wait(one, send).code == "success"
        assert received == data(150_000)
    assert_no_interrupt(cluster)


@pytest.mark.parametrize("size_bytes", [64, 32_768, 300_000])
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_a_lost_frame_costs_a_resend_delay_and_no_more(mtu: int, size_bytes: int) -> None:
    wire_format = "compatible" if mtu == 9000 else "native"
    parameters = NicParameters(nic_kind="mx", wire_format=wire_format, mtu=mtu)
    for seed in range(1, 5):
        faults = LinkFaults(loss=0.01, seed=seed)
        cluster = MxCluster(parameters, faults, wire_format=wire_format, seed=seed)
        one, other, partner = cluster.pair()
        both = [(one, other, partner), (other, one, cluster.connect(other, 0))]
        begin_ns = cluster.now_ns
        for number in range(20):
            sender, receiver, peer = both[number % 2]
            received = bytearray(size_bytes)
            receive = receiver.irecv(received, number)
            send = sender.isend(pattern(size_bytes, number), peer, number)
            assert cluster.wait(receiver, receive).code == "success"
            assert cluster.wait(sender, send).code == "success"
            assert received == pattern(size_bytes, number)
        lost = sum(cluster.nic_counters(node).get("link_lost", 0) for node in (0, 1))
        # The longest of the timers is that of pulls, a second, which ticks four times in it.
        assert cluster.now_ns - begin_ns <= lost * 1250 * MILLISECOND + 100 * MILLISECOND


def test_a_frame_is_handled_when_its_dma_is_over_and_not_before() -> None:
    cluster = MxCluster(PLAIN_MX.model_copy(update={"dma_bytes_per_second": 10**9}))
    cluster.open(0, session_id=SESSION)
    start_ns = cluster.now_ns
    for number in range(2):
        put_frame(cluster.nodes[1], "core_tx", 0, frame(number))
    # Frames of 60 bytes: 60 ns each in the engine, one after another.
    for due_ns, handled in (
        (LINK_NS + 60 + DMA_NS - 1, 0),
        (LINK_NS + 60 + DMA_NS, 1),
        (LINK_NS + 120 + DMA_NS - 1, 1),
        (LINK_NS + 120 + DMA_NS, 2),
    ):
        cluster.advance(start_ns + due_ns - cluster.now_ns)
        assert cluster.handled(0).get("recv_tiny", 0) == handled
        assert cluster.nic_counters(0)["mx_handled"] == handled
        assert cluster.nodes[0].ring_depths()["link", 1] == 2 - handled


def test_frames_beyond_what_the_dma_holds_wait_on_their_link() -> None:
    slow = PLAIN_MX.model_copy(update={"dma_latency_ns": 10_000})
    cluster = MxCluster(slow, link_ring_entries=2048, event_ring_entries=4096)
    cluster.open(0, session_id=SESSION)
    for number in range(1500):
        while not put_frame(cluster.nodes[1], "core_tx", 0, frame(number)):
            cluster.step()
    cluster.settle()
    assert_counts(cluster.handled(0), {"recv_packets": 1500, "recv_tiny": 1500})
    assert cluster.nodes[0].ring_depths()["link", 1] == 0


def test_pull_replies_that_find_no_room_follow_without_a_timer() -> None:
    cluster = MxCluster(PLAIN_MX, tx_ring_entries=16)
    one, other, partner = cluster.pair()
    received = bytearray(1 << 20)
    start_ns = cluster.now_ns
    receive = other.irecv(received, 7)
    send = one.isend(data(1 << 20), partner, 7)
    assert cluster.wait(one, send).code == "success"
    assert cluster.wait(other, receive).code == "success"
    assert received == data(1 << 20)
    assert cluster.handled(0)["send_pull_reply"] == 715
    # Nothing but the link and the DMA takes time: 23 blocks, of which four are on their way.
    assert cluster.now_ns - start_ns < 23 * 2 * (LINK_NS + DMA_NS)


def test_lost_pull_replies_are_asked_for_again_by_the_firmware() -> None:
    faults = LinkFaults(loss=0.2, only=("pull_reply",), seed=2)
    cluster = MxCluster(faults=faults, pull_resend_delay_ns=20 * MILLISECOND)
    one, other, partner = cluster.pair()
    received = bytearray(40_000)  # one block, so that nothing but the timer tells of a loss
    receive = other.irecv(received, 7)
    send = one.isend(data(40_000), partner, 7)
    assert cluster.wait(one, send).code == "success"
    assert cluster.wait(other, receive).code == "success"
    assert received == data(40_000)
    assert cluster.handled(1)["pull_timeout_handler_first_block"] > 0
    assert cluster.handled(1)["timer_ticks"] > 0


def test_a_rank_reaches_itself_through_the_nic() -> None:
    cluster = MxCluster(nodes=1)
    by_wire = MxParameters(disable_self=True, disable_shared=True)
    one = cluster.open(0, parameters=by_wire)
    itself = cluster.connect(one, 0)
    for length in (3000, 50_000):
        received = bytearray(length)
        receive = one.irecv(received, 1)
        one.isend(data(length), itself, 1)
        assert cluster.wait(one, receive).code == "success"
        assert received == data(length)
    assert cluster.nic_counters(0)["mx_handled"] > 40


def test_what_cannot_be_believed_is_dropped_and_counted() -> None:
    cluster = MxCluster(PLAIN_MX)
    good, damaged = frame(1), bytearray(frame(2))
    damaged[16] = 0x7E  # no type of Open-MX
    for one in (good, bytes(damaged)):
        put_frame(cluster.nodes[1], "core_tx", 0, one)
    cluster.settle()
    drops = {name: n for name, n in cluster.handled(0).items() if name.startswith("drop_")}
    assert drops == {"drop_bad_endpoint": 1, "drop_unknown_type": 1}  # it is not open
    assert cluster.handled(0)["send_nack_lib"] == 1
    assert cluster.nic_counters(0)["tx_packets"] == 1


def test_frames_of_a_bad_length_never_reach_the_handler() -> None:
    cluster = MxCluster(PLAIN_MX)
    put_frame(cluster.nodes[0], "link", 1, frame(1), length=9)
    put_frame(cluster.nodes[0], "link", 1, frame(2))
    cluster.settle()
    assert cluster.nic_counters(0)["rx_bad_frame"] == 1
    assert cluster.handled(0)["recv_packets"] == 1
    assert cluster.nodes[0].ring_depths()["link", 1] == 0


def test_the_ledger_leaves_the_nic_out() -> None:
    cluster = MxCluster(cores=2, event_ring="reset")
    one, other, partner = cluster.pair()
    receive = other.irecv(bytearray(100_000), 7)
    one.isend(data(100_000), partner, 7)
    assert cluster.wait(other, receive).code == "success"
    for node in (0, 1):
        assert not [name for name in cluster.handled(node) if name.startswith("handover_")]
        assert cluster.nodes[node].endpoint_handovers(0) == 0


def test_the_trace_shows_the_frame_at_the_nic_and_the_event_at_its_handler() -> None:
    cluster = MxCluster(PLAIN_MX)
    trace = Trace.create(Segment.anonymous(Trace.size_bytes(4, 64), 1), 4, 64)
    for node, nic in enumerate(cluster.nics):
        nic.use_trace(trace, 2 + node)
    one, _, partner = cluster.pair()
    one.isend(b"", partner, 7)
    cluster.settle()
    kinds = {
        agent: {record.kind for record in trace.records() if record.agent == agent}
        for agent in range(4)
    }
    assert {"rx_frame", "dma_complete", "tx_frame"} <= kinds[3]
    assert "event" in kinds[1]
    assert not kinds[1] & {"rx_frame", "interrupt", "poll_begin"}
