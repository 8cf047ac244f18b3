"""The polling watchdog on a NIC whose rx ring is polled; every time is exact."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.nic import Handler, Nodes, frame, make_firmware

from shrimpmx.nic.strategies import PollingWatchdog
from shrimpmx.shared.node import put_frame, take_frames

DELAY_NS = 5_000
DMA_NS = 50  # from a packet's arrival to host memory
STEP_NS = 50


class Watched:
    """A NIC with packets that arrive, a rank that polls `budget` of them at a time."""

    def __init__(
        self, arrivals_ns: list[int], polls_ns: list[int], budget: int = 64, end_ns: int = 30_000
    ) -> None:
        self.nodes = Nodes()
        self.polled: list[int] = []
        self.raised: list[tuple[int, list[int]]] = []  # when, and packets that it was for
        nic = make_firmware(self.nodes, coalescing="watchdog", rx_usecs=DELAY_NS // 1000)
        handler = Handler(self.nodes)
        for number, arrival_ns in enumerate(arrivals_ns):
            put_frame(self.nodes[0], "link", 1, frame(number), arrival_ns)
        for now_ns in range(0, end_ns, STEP_NS):
            nic.step_at(now_ns)
            if handler.serve():
                self.raised.append((now_ns, [data[40] for _, data in handler.frames]))
                handler.frames.clear()
            if now_ns in polls_ns:
                taken = take_frames(self.nodes[0], "rx", 0, budget)
                self.polled += [data[40] for _, data in taken]

    def counter(self, name: str) -> int:
        """A counter of the NIC."""
        return self.nodes.counters(0).get(name, 0)


def test_it_raises_for_what_nobody_polls() -> None:
    watched = Watched([1000, 2000], polls_ns=[])
    assert watched.raised == [(1000 + DMA_NS + DELAY_NS, [0, 1])]
    assert watched.counter("irq_raised_timeout") == 1


def test_packets_polled_in_time_leave_no_wish() -> None:
    watched = Watched([1000, 2000], polls_ns=[6000])
    assert watched.polled == [0, 1]
    assert watched.raised == []
    assert watched.counter("irq_wished") == 0


def test_a_polled_packet_ends_the_watch_and_the_next_begins_it() -> None:
    watched = Watched([1000, 9000], polls_ns=[3000])
    assert watched.raised == [(9000 + DMA_NS + DELAY_NS, [1])]


def test_a_packet_behind_a_polled_one_waits_for_its_own_delay() -> None:
    watched = Watched([1000, 5500], polls_ns=[3000])
    # The timer of the first runs out 550 ns after the second came.
    assert watched.raised == [(5500 + DMA_NS + DELAY_NS, [1])]
    assert watched.counter("irq_wished") == watched.counter("irq_raised") == 1


def test_the_watch_goes_from_one_packet_to_the_next() -> None:
    arrivals_ns = [1000, 5000, 9000, 13_000]
    watched = Watched(arrivals_ns, polls_ns=[4000, 8000, 12_000])
    assert watched.polled == [0, 1, 2]
    assert watched.raised == [(13_000 + DMA_NS + DELAY_NS, [3])]
    assert watched.counter("irq_wished") == 1


def test_a_poll_that_leaves_packets_leaves_their_delay() -> None:
    watched = Watched([1000, 2000, 3000], polls_ns=[3500], budget=1)
    assert watched.raised == [(2000 + DMA_NS + DELAY_NS, [1, 2])]


def test_a_wish_that_was_kept_back_is_absorbed_once_polled() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="watchdog", rx_usecs=DELAY_NS // 1000)
    nodes.token().value = 0  # a rank polls, for longer than the delay
    put_frame(nodes[0], "link", 1, frame(), 1000)
    for now_ns in (1000, 1050, 6050):
        nic.step_at(now_ns)
    assert nodes.wish() == 1
    take_frames(nodes[0], "rx", 0, 64)
    nodes.token().value = 1
    nic.step_at(7000)
    assert nodes.wish() == 0
    counters = nodes.counters(0)
    assert counters["irq_wished"] == counters["irq_absorbed"] == 1
    assert "irq_raised" not in counters


def test_without_a_ring_it_is_a_timeout_without_a_packet_limit() -> None:
    policy = PollingWatchdog(20_000)
    assert [policy.dma_complete(i, True, 0) for i in range(3)] == ["none"] * 3
    assert policy.due_ns == 20_000
    assert policy.deadline(20_000) == "timeout"
    assert policy.due_ns is None


TIMES = st.integers(1, 100).map(lambda n: n * 200)


@given(
    gaps_ns=st.lists(TIMES, min_size=1, max_size=12),
    polls_ns=st.lists(TIMES, max_size=12),
    budget=st.integers(1, 3),
)
def test_no_packet_is_reported_early_or_late(
    gaps_ns: list[int], polls_ns: list[int], budget: int
) -> None:
    arrivals_ns = [sum(gaps_ns[: i + 1]) for i in range(len(gaps_ns))]
    end_ns = arrivals_ns[-1] + 2 * DELAY_NS
    watched = Watched(arrivals_ns, polls_ns, budget, end_ns)
    reported = [number for _, numbers in watched.raised for number in numbers]
    assert sorted(watched.polled + reported) == list(range(len(arrivals_ns)))
    for raised_ns, numbers in watched.raised:
        # The oldest packet is due at that moment; the others come along.
        assert raised_ns == arrivals_ns[numbers[0]] + DMA_NS + DELAY_NS
    wished, absorbed = watched.counter("irq_wished"), watched.counter("irq_absorbed")
    assert wished == watched.counter("irq_raised") + absorbed
