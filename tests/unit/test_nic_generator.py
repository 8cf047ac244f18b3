"""The traffic generator: connecting, window, acknowledgements, going back."""

from __future__ import annotations

import pytest
from support.agents import make_generator
from support.memory import assert_counts
from support.nic import PLAIN, Handler, Nodes, make_firmware, run
from support.packets import (
    ConnectPacket,
    NackLibPacket,
    Packet,
    SmallPacket,
    TinyPacket,
    TrucPacket,
    decode,
    encode,
    node_address,
)

from shrimpmx.errors import InputError
from shrimpmx.link.rings import ring_links
from shrimpmx.nic.generator import TrafficGenerator
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.shared.node import put_frame, take_frames
from shrimpmx.wire.check import check

RANK_SESSION = 0xABCD
RESEND_NS = 1_000_000


class Rank:
    """The rank under test at node 0: what it would put on the link to node 1."""

    def __init__(self, nodes: Nodes, generator: TrafficGenerator) -> None:
        self.nodes = nodes
        self.generator = generator
        self.acknum = 0

    def send(self, packet: Packet, time_ns: int = 0) -> None:
        assert put_frame(self.nodes[1], "link", 0, encode(packet), time_ns)

    def head(self) -> dict[str, object]:
        return {
            "source": node_address(0),
            "destination": node_address(1),
            "peer_index": 0,
        }

    def connect(self, session: int = RANK_SESSION, first: int = 1, connect_seqnum: int = 1) -> None:
        self.send(
            ConnectPacket(
                **self.head(),  # type: ignore[arg-type]
                src_endpoint=3,
                dst_endpoint=0,
                src_session_id=session,
                target_recv_seqnum_start=first,
                connect_seqnum=connect_seqnum,
            )
        )

    def ack(self, seqnum: int, acknum: int | None = None, session: int | None = None) -> None:
        self.acknum += 1
        session = self.generator.session if session is None else session
        self.send(
            TrucPacket(
                **self.head(),  # type: ignore[arg-type]
                session=session,
                session_id=session,
                lib_seqnum=seqnum,
                acknum=self.acknum if acknum is None else acknum,
            )
        )

    def received(self) -> list[Packet]:
        return [decode(data) for _, data in take_frames(self.nodes[0], "link", 1)]

    def seqnums(self) -> list[int]:
        return [
            packet.lib_seqnum
            for packet in self.received()
            if isinstance(packet, (TinyPacket, SmallPacket))
        ]


def make(
    faults: LinkFaults | None = None, **options: object
) -> tuple[Nodes, TrafficGenerator, Rank]:
    rings = ("link_ring_entries", "rx_ring_entries")
    nodes = Nodes(**{name: options.pop(name) for name in rings if name in options})
    options.setdefault("resend_delay_ns", RESEND_NS)
    generator = make_generator(
        nodes[1],
        *ring_links(nodes.nodes, 1, PLAIN, faults),
        **options,  # type: ignore[arg-type]
    )
    return nodes, generator, Rank(nodes, generator)


def test_it_waits_for_a_connect_request() -> None:
    _, generator, rank = make()
    assert generator.step_at(1000) == 0
    assert generator.due_ns is None
    assert not generator.connected
    assert rank.received() == []


def test_it_answers_and_streams() -> None:
    nodes, generator, rank = make(size=128, match=0x0102030405060708, count=3)
    rank.connect(connect_seqnum=9)
    assert generator.step_at(1000) == 5
    reply, *messages = rank.received()
    assert reply == ConnectPacket(
        destination=node_address(0),
        source=node_address(1),
        peer_index=1,
        dst_endpoint=3,
        src_endpoint=0,
        src_session_id=RANK_SESSION,
        key_or_session=generator.session,
        target_recv_seqnum_start=1,
        is_reply=1,
        connect_seqnum=9,
    )
    pattern = bytes(range(8, 128))
    assert messages == [
        SmallPacket(
            destination=node_address(0),
            source=node_address(1),
            peer_index=1,
            marked=True,
            dst_endpoint=3,
            src_endpoint=0,
            lib_seqnum=1 + i,
            lib_piggyack=1,
            match_info=0x0102030405060708,
            session=RANK_SESSION,
            data=i.to_bytes(8, "little") + pattern,
        )
        for i in range(3)
    ]
    assert_counts(nodes.counters(1), {"generated_packets": 3, "sunk_packets": 1})
    assert generator.due_ns == 1000 + RESEND_NS


@pytest.mark.parametrize(("size", "kind"), [(0, TinyPacket), (32, TinyPacket), (33, SmallPacket)])
def test_sizes(size: int, kind: type[Packet]) -> None:
    _, generator, rank = make(size=size, count=1)
    rank.connect()
    generator.step_at(0)
    packet = rank.received()[1]
    assert type(packet) is kind
    assert isinstance(packet, (TinyPacket, SmallPacket))
    assert len(packet.data) == size


def test_a_step_sends_64_and_the_window_limits() -> None:
    _, generator, rank = make(window=100)
    rank.connect()
    assert generator.step_at(1000) == 1 + 1 + 64
    assert generator.due_ns == 1000  # there is more to send
    assert generator.step_at(1000) == 36
    assert generator.step_at(1001) == 0
    assert rank.seqnums() == list(range(1, 101))
    rank.ack(11)
    assert generator.step_at(1002) == 1 + 10
    assert rank.seqnums() == list(range(101, 111))
    assert (generator.sent_count, generator.acked_count) == (110, 10)


def test_piggybacked_acknowledgements_count() -> None:
    _, generator, rank = make(window=4)
    rank.connect()
    generator.step_at(0)
    rank.send(TinyPacket(**rank.head(), session=generator.session, lib_piggyack=4))
    rank.send(TinyPacket(**rank.head(), session=77, lib_piggyack=5))  # type: ignore[arg-type]
    generator.step_at(1)
    assert generator.acked_count == 3


def test_acknowledgements_that_cannot_be_believed_are_left() -> None:
    nodes, generator, rank = make(window=10)
    rank.connect()
    generator.step_at(0)
    rank.ack(5, acknum=100)
    rank.ack(6, acknum=99)  # overtaken
    rank.ack(7, acknum=100)  # the same again
    rank.ack(8, acknum=101, session=1)  # another session's
    rank.ack(4, acknum=102)  # older than what is known
    rank.ack(30, acknum=103)  # never sent
    rank.ack(6 | 0x4000, acknum=104)  # other session bits
    generator.step_at(1)
    assert generator.acked_count == 4
    assert nodes.counters(1)["sunk_acks"] == 7


def test_it_goes_back_to_the_first_unacknowledged() -> None:
    nodes, generator, rank = make(window=8)
    rank.connect()
    generator.step_at(0)
    rank.ack(4)
    generator.step_at(500)  # progress: the delay starts again
    assert rank.seqnums() == list(range(1, 12))
    assert generator.due_ns == 500 + RESEND_NS
    assert generator.step_at(499 + RESEND_NS) == 0
    assert generator.step_at(500 + RESEND_NS) == 8
    assert rank.seqnums() == list(range(4, 12))
    assert nodes.counters(1)["generated_resent"] == 8
    # All of the first ones come after all, in the middle of the next round.
    rank.ack(12)
    generator.step_at(600 + RESEND_NS)
    assert rank.seqnums() == list(range(12, 20))
    assert nodes.counters(1)["generated_resent"] == 8


def test_it_stops_after_count_messages() -> None:
    _, generator, rank = make(count=70, window=512)
    rank.connect()
    generator.step_at(0)
    generator.step_at(1)
    assert rank.seqnums() == list(range(1, 71))
    assert not generator.done
    rank.ack(71)
    generator.step_at(2)
    assert generator.done
    assert generator.due_ns is None


def test_sequence_numbers_wrap_inside_their_session() -> None:
    _, generator, rank = make(window=10)
    rank.connect(first=0x4000 | 0x3FFC)
    generator.step_at(0)
    expected = [0x7FFC, 0x7FFD, 0x7FFE, 0x7FFF, 0x4000, 0x4001, 0x4002, 0x4003, 0x4004, 0x4005]
    assert rank.seqnums() == expected
    rank.ack(0x4003)
    generator.step_at(1)
    assert generator.acked_count == 7


def test_a_repeated_request_is_answered_again_and_changes_nothing() -> None:
    _, generator, rank = make(window=4)
    rank.connect()
    generator.step_at(0)
    rank.received()
    rank.connect(connect_seqnum=2)
    generator.step_at(1)
    replies = rank.received()
    assert [type(packet) for packet in replies] == [ConnectPacket]
    assert generator.sent_count == 4


def test_a_restarted_rank_gets_a_new_stream() -> None:
    _, generator, rank = make(window=4)
    rank.connect()
    generator.step_at(0)
    rank.ack(3)
    generator.step_at(1)
    rank.received()
    rank.connect(session=0xBEEF, first=0x4001)
    generator.step_at(2)
    messages = [packet for packet in rank.received() if isinstance(packet, SmallPacket)]
    assert [packet.lib_seqnum for packet in messages] == [0x4001, 0x4002, 0x4003, 0x4004]
    assert {packet.session for packet in messages} == {0xBEEF}


def test_a_nack_ends_the_stream_until_somebody_connects() -> None:
    _, generator, rank = make(window=4)
    rank.connect()
    generator.step_at(0)
    rank.send(NackLibPacket(**rank.head(), nack_type=2, lib_seqnum=1))  # type: ignore[arg-type]
    generator.step_at(1)
    assert not generator.connected
    assert generator.due_ns is None
    rank.received()
    rank.connect()
    generator.step_at(2)
    assert rank.seqnums() == [1, 2, 3, 4]


def test_it_takes_frames_when_they_arrive() -> None:
    _, generator, rank = make()
    rank.send(ConnectPacket(**rank.head(), src_session_id=1), 5000)  # type: ignore[arg-type]
    generator.step_at(1000)
    assert generator.due_ns == 5000
    assert not generator.connected
    generator.step_at(5000)
    assert generator.connected


def test_bad_frames_are_only_counted() -> None:
    nodes, generator, rank = make()
    for data in (bytes(60), b"\xff" * 60, encode(ConnectPacket())[:59]):
        put_frame(nodes[1], "link", 0, data)
    stranger = {**rank.head(), "peer_index": 4000}
    rank.send(ConnectPacket(**stranger, src_session_id=1))  # type: ignore[arg-type]
    generator.step_at(0)
    assert not generator.connected
    assert nodes.counters(1)["sunk_packets"] == 4


def test_a_full_link_ring_stops_it_for_a_while() -> None:
    _, generator, rank = make(link_ring_entries=16, window=100)
    rank.connect()
    assert generator.step_at(1000) == 17  # the request and 16 frames
    assert generator.due_ns == 6000
    assert len(rank.received()) == 16
    generator.step_at(6000)
    assert rank.seqnums() == list(range(16, 32))


def test_bad_options() -> None:
    with pytest.raises(InputError, match="0 to 128 bytes, not 129"):
        make(size=129)
    for window in (0, 8192):
        with pytest.raises(InputError, match=f"1 to 8191 messages, not {window}"):
            make(window=window)
    with pytest.raises(InputError, match="'messages' or 'invalid' frames, not 'broken'"):
        make(frames="broken")


@pytest.mark.parametrize(
    "faults",
    [
        None,
        LinkFaults(loss=0.05, seed=3),
        LinkFaults(duplicate=0.1, seed=3),
        LinkFaults(reorder=0.1, reorder_degree=3, seed=3),
    ],
)
def test_through_the_nic_every_message_comes_in_order(faults: LinkFaults | None) -> None:
    """Generator, link with faults, firmware, and a rank that takes only what comes next."""
    nodes = Nodes()
    options = {"count": 150, "window": 32, "resend_delay_ns": RESEND_NS}
    generator = make_generator(
        nodes[1],
        *ring_links(nodes.nodes, 1, PLAIN, faults),
        **options,  # type: ignore[arg-type]
    )
    nic = make_firmware(nodes, coalescing="stream", rx_usecs=10)
    rank, handler = Rank(nodes, generator), Handler(nodes)
    expected, now_ns = 1, 0
    rank.connect()
    while not generator.done:
        now_ns = run([generator, nic], now_ns, now_ns + 10_000, [handler]) + 1_000
        for _, data in handler.frames:
            packet = decode(data)
            if isinstance(packet, SmallPacket) and packet.lib_seqnum == expected:
                assert packet.data[:8] == (expected - 1).to_bytes(8, "little")
                expected += 1
        handler.frames.clear()
        rank.ack(expected)
        assert now_ns < 10**9
    assert expected == 151
    counters = nodes.counters(1)
    assert counters["generated_packets"] == 150 + counters.get("generated_resent", 0)
    assert (counters.get("generated_resent", 0) > 0) == (
        faults is not None and not faults.duplicate
    )


# -- packets of no valid type ---------------------------------------------


def test_invalid_packets_are_sent_once_and_awaited_by_nobody() -> None:
    nodes, generator, rank = make(frames="invalid", count=70)
    assert generator.step_at(0) == 0
    rank.connect()
    assert generator.step_at(1000) == 1 + 1 + 64
    assert not generator.done
    assert generator.due_ns == 1000
    assert generator.step_at(1000) == 6
    assert generator.done
    assert generator.due_ns is None
    assert generator.step_at(1000 + 2 * RESEND_NS) == 0
    frames = [data for _, data in take_frames(nodes[0], "link", 1)][1:]
    assert len(frames) == 70
    head = node_address(0) + node_address(1) + b"\x86\xdf\x00\x01"
    assert {(data[:16], data[16], len(data)) for data in frames} == {(head, 0, 128)}
    assert {check(data) for data in frames} == {"invalid_type"}
    assert_counts(nodes.counters(1), {"generated_invalid": 70, "sunk_packets": 1})


def test_invalid_packets_stay_within_half_the_rx_ring() -> None:
    nodes, generator, rank = make(frames="invalid", count=100, rx_ring_entries=32)
    nic, handler = make_firmware(nodes, coalescing="disabled"), Handler(nodes)
    rank.connect()
    run([generator, nic], 0, 9_000, [])
    assert nodes.counters(0)["rx_packets"] == 16
    assert nodes.counters(0)["rx_bytes"] == 15 * 128 + 60  # and the answer to the request
    # Its look at the ring is not repeated at once: it takes a cache line from the handler.
    assert handler.see_interrupt()
    assert handler.poll(5) == 5
    assert generator.step_at(9_999) == 0
    assert generator.due_ns == 10_000
    assert generator.step_at(10_000) == 5
    assert generator.due_ns == 20_000


@pytest.mark.parametrize(
    "faults", [None, LinkFaults(corrupt=0.2, seed=2), LinkFaults(loss=0.2, duplicate=0.1, seed=2)]
)
def test_no_invalid_packet_is_lost_before_a_slow_handler(faults: LinkFaults | None) -> None:
    """Frames that the link loses or the NIC refuses do not hold the others up for ever."""
    nodes, generator, rank = make(frames="invalid", count=1000, rx_ring_entries=16, faults=faults)
    nic, handler = make_firmware(nodes, coalescing="disabled"), Handler(nodes)
    rank.connect()
    now_ns = taken = in_all = 0
    while not generator.done or taken < in_all:
        run([generator, nic], now_ns, now_ns + 7_000, [])
        now_ns += 7_001
        if handler.see_interrupt() and handler.poll(3) < 3:
            handler.end()
        sent = nodes.counters(1)
        taken = len(handler.frames) + nodes.counters(0).get("rx_bad_fcs", 0)
        in_all = 1001 - sent.get("link_lost", 0) + sent.get("link_duplicated", 0)
        assert now_ns < 10**8
    assert sent["generated_invalid"] == 1000
    assert taken == in_all
    assert "rx_drop_ring_full" not in nodes.counters(0)


def test_invalid_packets_begin_again_for_a_rank_that_starts_again() -> None:
    _, generator, rank = make(frames="invalid", count=10)
    rank.connect()
    generator.step_at(0)
    assert generator.done
    rank.connect(session=0xBEEF)
    assert generator.step_at(1) == 1 + 1 + 10
