"""The link: serialisation and delay to the nanosecond, and every fault exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nic import Nodes, frame, small_frame
from support.packets import ConnectPacket, encode

from shrimpmx.errors import InputError
from shrimpmx.link.line import FaultSource
from shrimpmx.link.rings import RingEgress
from shrimpmx.native.drawing import seed_of
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.shared.node import put_frame, take_frames

TEN_GIGABIT = 10_000_000_000
HOLD_NS = 100_000


def make_link(
    nodes: Nodes, rate: int = 0, delay_ns: int = 0, faults: LinkFaults | None = None
) -> RingEgress:
    link = RingEgress(nodes[1], rate, delay_ns, faults)
    link.add_node(nodes[0])
    return link


def arrivals(nodes: Nodes) -> list[int]:
    return [time_ns for time_ns, _ in take_frames(nodes[0], "link", 1)]


def received(nodes: Nodes) -> list[bytes]:
    return [data for _, data in take_frames(nodes[0], "link", 1)]


def test_frames_are_visible_after_a_flush() -> None:
    nodes = Nodes()
    link = make_link(nodes)
    assert link.send(0, 0, frame(1))
    assert received(nodes) == []
    assert link.flush_at(0) is None
    assert received(nodes) == [frame(1)]


def test_a_frame_takes_its_bytes_and_24_more() -> None:
    nodes = Nodes()
    link = make_link(nodes, TEN_GIGABIT, 500)
    # 168 + 24 bytes at 10 Gb/s are 153.6 ns; the fraction is carried on.
    for _ in range(5):
        assert link.send(1000, 0, small_frame(128))
    link.flush_at(1000)
    assert arrivals(nodes) == [1653, 1807, 1960, 2114, 2268]


def test_an_idle_link_starts_afresh() -> None:
    nodes = Nodes()
    link = make_link(nodes, TEN_GIGABIT, 500)
    for now_ns in (1000, 1153, 2000):  # idle, still busy for 0.6 ns, idle
        link.send(now_ns, 0, small_frame(128))
    link.flush_at(2000)
    assert arrivals(nodes) == [1653, 1807, 2653]


def test_without_a_rate_frames_take_no_time() -> None:
    nodes = Nodes()
    link = make_link(nodes, 0, 7)
    for now_ns in (5, 5, 6):
        link.send(now_ns, 0, frame())
    link.flush_at(6)
    assert arrivals(nodes) == [12, 12, 13]


@given(
    st.integers(1_000, 400_000_000_000),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 128)), min_size=1, max_size=40),
)
def test_any_rate_is_kept_exactly(rate: int, sends: list[tuple[int, int]]) -> None:
    nodes = _shared_nodes
    link = make_link(nodes, rate, 500)
    now_ns, free_ns = 0, Fraction(0)
    expected = []
    for gap_ns, length in sends:
        now_ns += gap_ns
        if now_ns > int(free_ns):
            free_ns = Fraction(now_ns)
        data = small_frame(length)
        free_ns += Fraction((len(data) + 24) * 8 * 10**9, rate)
        expected.append(int(free_ns) + 500)
        assert link.send(now_ns, 0, data)
    link.flush_at(now_ns)
    assert arrivals(nodes) == expected


_shared_nodes = Nodes()


def test_a_full_link_ring_refuses_and_takes_more_later() -> None:
    nodes = Nodes(link_ring_entries=16)
    link = make_link(nodes)
    assert [link.send(0, 0, frame(i)) for i in range(17)] == [True] * 16 + [False]
    link.flush_at(0)
    assert received(nodes) == [frame(i) for i in range(16)]
    assert link.send(0, 0, frame(16))


def test_each_node_has_its_own_ring() -> None:
    nodes = Nodes(3)
    link = RingEgress(nodes[2], 0, 0)
    for node in nodes.nodes:
        link.add_node(node)
    for destination in (1, 0, 1):
        link.send(0, destination, frame(destination, destination, 2))
    link.flush_at(0)
    assert len(take_frames(nodes[0], "link", 2)) == 1
    assert len(take_frames(nodes[1], "link", 2)) == 2
    assert take_frames(nodes[2], "link", 2) == take_frames(nodes[0], "link", 1) == []


def test_bad_destinations_and_lengths() -> None:
    nodes = Nodes()
    link = make_link(nodes)
    with pytest.raises(InputError, match="no link from node 1 to node 5"):
        link.send(0, 5, frame())
    with pytest.raises(InputError, match="1501 bytes cannot pass a link of mtu 1500"):
        link.send(0, 0, bytes(1501))
    with pytest.raises(InputError, match="no link ring for node 9"):
        RingEgress(Nodes(10)[9], 0, 0).add_node(nodes[0])
    with pytest.raises(InputError, match="mtu 1500, the link 9000"):
        RingEgress(Nodes(mtu=9000)[1], 0, 0).add_node(nodes[0])
    with pytest.raises(InputError, match="no ring 'rx' 7"):
        take_frames(nodes[0], "rx", 7)
    with pytest.raises(InputError, match="too long"):
        put_frame(nodes[0], "rx", 0, bytes(2000))


# -- faults -----------------------------------------------------------------

FRAMES = 400
ALL = 2**64 - 1


class Reference:
    """The documented generator: splitmix64 spreads the seed, xorshift64* draws."""

    def __init__(self, purpose: str, seed: int, source: int) -> None:
        x = seed_of(purpose, seed, source)
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & ALL
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & ALL
        self.state = x ^ x >> 31

    def next(self) -> int:
        x = self.state
        x ^= x >> 12
        x ^= x << 25 & ALL
        x ^= x >> 27
        self.state = x
        return x * 0x2545F4914F6CDD1D & ALL

    def happens(self, rate: float) -> bool:
        return rate > 0 and self.next() <= min(int(rate * 2**64), ALL)


def send_all(nodes: Nodes, link: RingEgress, count: int = FRAMES) -> list[bytes]:
    """Send numbered frames 1 us apart, then wait until nothing is held back."""
    for number in range(count):
        assert link.send(number * 1000, 0, frame(number))
    due_ns = link.flush_at(count * 1000)
    while due_ns is not None:
        due_ns = link.flush_at(due_ns)
    return received(nodes)


@pytest.mark.parametrize("seed", [0, 1, 12345])
@pytest.mark.parametrize("source", [0, 1])
def test_faults_are_the_seeds(seed: int, source: int) -> None:
    faults = LinkFaults(loss=0.1, corrupt=0.2, duplicate=0.3, reorder=0.4, seed=seed)
    drawn = FaultSource(faults, source)
    rates = {"loss": 0.1, "corruption": 0.2, "duplication": 0.3, "reordering": 0.4}
    references = [Reference(purpose, seed, source) for purpose in rates]
    names = ("loss", "corrupt", "duplicate", "reorder")
    for _ in range(FRAMES):
        happen = [each.happens(rate) for each, rate in zip(references, rates.values(), strict=True)]
        expected = [name for name, happens in zip(names, happen, strict=True) if happens]
        assert drawn.draw_for(frame()) == tuple(["loss"] if happen[0] else expected)


@pytest.mark.parametrize("others", [{"corrupt": 0.3}, {"duplicate": 0.5, "reorder": 0.5}])
def test_a_fault_hits_the_same_frames_whatever_other_faults_there_are(
    others: dict[str, float],
) -> None:
    alone = FaultSource(LinkFaults(loss=0.2, seed=5), 0)
    beside = FaultSource(LinkFaults(loss=0.2, seed=5, **others), 0)
    for _ in range(FRAMES):
        assert ("loss" in alone.draw_for(frame())) == ("loss" in beside.draw_for(frame()))


def test_loss() -> None:
    nodes = Nodes()
    link = make_link(nodes, faults=LinkFaults(loss=0.25, seed=3))
    reference = Reference("loss", 3, 1)
    kept = [frame(i) for i in range(FRAMES) if not reference.happens(0.25)]
    assert send_all(nodes, link) == kept
    assert link.fault_counts() == {
        "loss": FRAMES - len(kept),
        "duplicate": 0,
        "corrupt": 0,
        "reorder": 0,
    }
    assert 60 < FRAMES - len(kept) < 140


def test_duplicates_follow_at_once_and_take_their_time_on_the_line() -> None:
    nodes = Nodes()
    link = make_link(nodes, TEN_GIGABIT, faults=LinkFaults(duplicate=1.0))
    link.send(0, 0, small_frame(128))
    link.send(0, 0, small_frame(127))
    link.flush_at(0)
    taken = take_frames(nodes[0], "link", 1)
    assert [data for _, data in taken] == [small_frame(128)] * 2 + [small_frame(127)] * 2
    assert [time_ns for time_ns, _ in taken] == [153, 307, 460, 612]


def test_corruption_flips_one_bit_behind_the_addresses() -> None:
    nodes = Nodes()
    link = make_link(nodes, faults=LinkFaults(corrupt=1.0, seed=5))
    places = set()
    for number, data in enumerate(send_all(nodes, link)):
        flipped = int.from_bytes(data) ^ int.from_bytes(frame(number))
        assert flipped.bit_count() == 1
        assert data[:12] == frame(number)[:12]
        places.add(flipped)
    assert len(places) > 200  # of 384


@pytest.mark.parametrize("degree", [1, 3, 8])
def test_reordering_lets_so_many_frames_pass(degree: int) -> None:
    nodes = Nodes()
    faults = LinkFaults(reorder=0.05, reorder_degree=degree, seed=2)
    link = make_link(nodes, faults=faults)
    reference = Reference("reordering", 2, 1)
    expected: list[int] = []
    held: list[list[int]] = []  # [number, overtaken]
    for number in range(FRAMES):
        if reference.happens(0.05):
            held.append([number, 0])
        else:
            expected.append(number)
            for one in held:
                one[1] += 1
        expected += [one[0] for one in held if one[1] >= degree]
        held = [one for one in held if one[1] < degree]
    expected += [one[0] for one in held]
    assert send_all(nodes, link) == [frame(number) for number in expected]
    assert expected != sorted(expected)
    assert link.fault_counts()["reorder"] > 5


def test_a_held_frame_goes_after_a_while_though_nothing_overtakes_it() -> None:
    nodes = Nodes()
    link = make_link(nodes, delay_ns=10, faults=LinkFaults(reorder=1.0))
    assert link.send(1000, 0, frame(1))
    assert link.flush_at(1000) == 1000 + HOLD_NS
    assert received(nodes) == []
    assert link.flush_at(1000 + HOLD_NS - 1) == 1000 + HOLD_NS
    assert link.flush_at(1000 + HOLD_NS) is None
    assert take_frames(nodes[0], "link", 1) == [(1000 + HOLD_NS + 10, frame(1))]


def test_held_frames_wait_for_room() -> None:
    nodes = Nodes(link_ring_entries=16)
    link = make_link(nodes, faults=LinkFaults(reorder=1.0))
    for number in range(40):
        assert link.send(0, 0, frame(number))
    seen: list[bytes] = []
    now_ns = HOLD_NS
    while (due_ns := link.flush_at(now_ns)) is not None:
        seen += received(nodes)
        now_ns = due_ns
    assert seen + received(nodes) == [frame(number) for number in range(40)]


def test_more_held_frames_than_there_is_room_for_go_in_order() -> None:
    nodes = Nodes()
    link = make_link(nodes, faults=LinkFaults(reorder=1.0, reorder_degree=64))
    for number in range(70):
        assert link.send(0, 0, frame(number))
    link.flush_at(0)
    assert received(nodes) == [frame(number) for number in range(64, 70)]
    assert link.fault_counts()["reorder"] == 64


def test_times_never_go_back_in_a_link_ring() -> None:
    nodes = Nodes()
    faults = LinkFaults(duplicate=0.2, reorder=0.3, reorder_degree=2, seed=9)
    link = make_link(nodes, 1_000_000_000, 100, faults)
    for number in range(FRAMES):
        assert link.send(number * 300, 0, frame(number))
    link.flush_at(10**9)
    times = arrivals(nodes)
    assert times == sorted(times)


@pytest.mark.parametrize("knob", ["loss", "duplicate", "corrupt", "reorder"])
def test_faults_can_be_kept_to_packet_types(knob: str) -> None:
    nodes = Nodes()
    link = make_link(nodes, faults=LinkFaults(**{knob: 1.0}, only=("connect",)))
    for number in range(10):
        link.send(0, 0, frame(number))
    link.flush_at(0)
    assert received(nodes) == [frame(number) for number in range(10)]
    link.send(0, 0, encode(ConnectPacket()))
    assert link.fault_counts()[knob] == 1


def test_frames_are_conserved_under_all_faults() -> None:
    nodes = Nodes()
    faults = LinkFaults(loss=0.1, duplicate=0.1, reorder=0.1, reorder_degree=3, seed=4)
    link = make_link(nodes, faults=faults)
    seen = send_all(nodes, link)
    counts = link.fault_counts()
    assert len(seen) == FRAMES - counts["loss"] + counts["duplicate"]
    assert set(seen) <= {frame(number) for number in range(FRAMES)}
