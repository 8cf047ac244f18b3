"""A link on which the last fragment of a medium message overtakes others: order and times."""

from __future__ import annotations

import pytest
from support.nic import Nodes
from support.packets import MediumFragmentPacket, TinyPacket, decode, encode, node_address

from shrimpmx.link.rings import RingEgress
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.shared.node import take_frames

FRAG_BYTES, COMPATIBLE_FRAG_BYTES = 1452, 4096
HOLD_NS = 100_000
# 8 bit/ns: a frame of n bytes takes n + 24 ns.
BYTE_PER_NS = 8_000_000_000
DELAY_NS = 500
OTHERS = {"source": node_address(1), "destination": node_address(0), "peer_index": 1}


def fragments(
    count: int, seqnum: int = 1, last_bytes: int = 100, wire: str = "native", endpoint: int = 0
) -> list[bytes]:
    """The frames of a medium message of `count` fragments, the last of `last_bytes`."""
    full = FRAG_BYTES if wire == "native" else COMPATIBLE_FRAG_BYTES
    return [
        encode(
            MediumFragmentPacket(
                **OTHERS,  # type: ignore[arg-type]
                marked=number == count - 1,
                message_length=(count - 1) * full + last_bytes,
                lib_seqnum=seqnum,
                frag_seqnum=number,
                src_endpoint=endpoint,
                data=bytes(full if number < count - 1 else last_bytes),
            ),
            "native" if wire == "native" else "compatible",
        )
        for number in range(count)
    ]


def make_link(
    faults: LinkFaults, rate: int = 0, mtu: int = 1500, **layout: object
) -> tuple[Nodes, RingEgress]:
    nodes = Nodes(mtu=mtu, **layout)  # type: ignore[arg-type]
    link = RingEgress(nodes[1], rate, DELAY_NS, faults)
    link.add_node(nodes[0])
    return nodes, link


def taken(nodes: Nodes) -> list[tuple[int, bytes]]:
    return take_frames(nodes[0], "link", 1)


def numbers(frames: list[tuple[int, bytes]]) -> list[int]:
    """The fragments' numbers, in the order of their arrival."""
    return [vars(decode(data))["frag_seqnum"] for _, data in frames]


@pytest.mark.parametrize("degree", [1, 3, 31])
@pytest.mark.parametrize("count", [2, 4, 23, 32])
def test_the_last_fragment_comes_before_so_many(degree: int, count: int) -> None:
    nodes, link = make_link(LinkFaults(overtake=degree))
    frames = fragments(count)
    for data in frames:
        assert link.send(0, 0, data)
    assert link.flush_at(0) is None
    arrived = taken(nodes)
    first = max(0, count - 1 - degree)
    order = [*range(first), count - 1, *range(first, count - 1)]
    assert numbers(arrived) == order
    assert [data for _, data in arrived] == [frames[number] for number in order]
    assert link.fault_counts()["reorder"] == count - 1 - first


def test_it_takes_the_place_on_the_line_of_the_first_that_it_overtakes() -> None:
    nodes, link = make_link(LinkFaults(overtake=2), BYTE_PER_NS)
    for data in fragments(5, last_bytes=100):
        link.send(1000, 0, data)
    link.flush_at(1000)
    full, last = 1500 + 24, 148 + 24
    ends = [full, 2 * full, 2 * full + last, 3 * full + last, 4 * full + last]
    assert [time_ns for time_ns, _ in taken(nodes)] == [1000 + DELAY_NS + end for end in ends]


def test_those_overtaken_pass_an_idle_line_behind_it() -> None:
    nodes, link = make_link(LinkFaults(overtake=1), BYTE_PER_NS)
    for number, data in enumerate(fragments(3, last_bytes=100)):
        link.send(10_000 * number, 0, data)
        # One is held meanwhile: the link wants to be looked at again.
        due_ns = link.flush_at(10_000 * number)
        assert due_ns == (10_000 + HOLD_NS if number == 1 else None)
    times = [time_ns - DELAY_NS for time_ns, _ in taken(nodes)]
    assert times == [1524, 20_000 + 172, 20_000 + 172 + 1524]


def test_messages_do_not_mix() -> None:
    nodes, link = make_link(LinkFaults(overtake=2))
    one, other = fragments(4, seqnum=1), fragments(4, seqnum=1, endpoint=1)
    tiny = encode(TinyPacket(**OTHERS, data=b"t"))  # type: ignore[arg-type]
    for data in (*one[:3], *other[:3], tiny, other[3], one[3]):
        link.send(0, 0, data)
    link.flush_at(0)
    assert [data for _, data in taken(nodes)] == [
        one[0], other[0], tiny, other[3], other[1], other[2], one[3], one[1], one[2],
    ]  # fmt: skip


def test_without_the_last_one_they_go_after_a_while() -> None:
    nodes, link = make_link(LinkFaults(overtake=2))
    frames = fragments(4)
    for data in frames[:3]:
        link.send(1000, 0, data)
    assert link.flush_at(1000) == 1000 + HOLD_NS
    assert numbers(taken(nodes)) == [0]
    assert link.flush_at(1000 + HOLD_NS) is None
    assert taken(nodes) == [(1000 + HOLD_NS + DELAY_NS, data) for data in frames[1:3]]
    assert link.fault_counts()["reorder"] == 0


def test_a_resent_message_is_reordered_again() -> None:
    nodes, link = make_link(LinkFaults(overtake=1))
    for _ in range(2):
        for data in fragments(3):
            link.send(0, 0, data)
    link.flush_at(0)
    assert numbers(taken(nodes)) == [0, 2, 1] * 2


def test_a_full_link_ring_holds_them_a_little_longer() -> None:
    nodes, link = make_link(LinkFaults(overtake=15), link_ring_entries=16)
    seen: list[int] = []
    for data in fragments(32):
        while not link.send(0, 0, data):
            link.flush_at(0)
            seen += numbers(taken(nodes))
    due_ns = link.flush_at(0)
    while due_ns is not None:
        seen += numbers(taken(nodes))
        due_ns = link.flush_at(due_ns)
    assert seen + numbers(taken(nodes)) == [*range(16), 31, *range(16, 31)]


def test_the_compatible_format_too() -> None:
    nodes, link = make_link(LinkFaults(overtake=1), mtu=9000, wire_format="compatible")
    frames = fragments(3, wire="compatible")
    for data in frames:
        link.send(0, 0, data)
    link.flush_at(0)
    assert [data for _, data in taken(nodes)] == [frames[0], frames[2], frames[1]]


def test_only_may_leave_medium_messages_out() -> None:
    nodes, link = make_link(LinkFaults(overtake=1, only=("tiny",)))
    for data in fragments(3):
        link.send(0, 0, data)
    link.flush_at(0)
    assert numbers(taken(nodes)) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost_beside_other_faults(seed: int) -> None:
    faults = LinkFaults(overtake=3, loss=0.1, duplicate=0.1, corrupt=0.1, reorder=0.2, seed=seed)
    nodes, link = make_link(faults)
    sent, seen = 0, []
    for message in range(50):
        for data in fragments(8, seqnum=message):
            link.send(message * 1000, 0, data)
            sent += 1
    due_ns = link.flush_at(50_000)
    while due_ns is not None:
        due_ns = link.flush_at(due_ns)
    seen = taken(nodes)
    counts = link.fault_counts()
    assert len(seen) == sent - counts["loss"] + counts["duplicate"]
    assert [time_ns for time_ns, _ in seen] == sorted(time_ns for time_ns, _ in seen)
