"""A sender that acts as the NICs for its own short updates: as a NIC does, in order, or not at all.

The NICs stand still unless a test steps them. So what is there at once the sender has carried out.
"""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lent import PAGE, LentPair
from support.vmmc import PLAIN_VMMC
from support.vmmc_layout import Page

from shrimpmx.settings.nic import NicParameters

ROOM = 1500 - 36
FLIGHT_MAX_NS = 10_000
BYTES_MAX = 65536


@pytest.fixture
def pair() -> Iterator[LentPair]:
    made = LentPair()
    yield made
    made.close()


def plain(**changes: object) -> NicParameters:
    return PLAIN_VMMC.model_copy(update=changes)


# -- the same as the NIC ---------------------------------------------------------------


def test_an_update_is_there_at_once_without_the_nic(pair: LentPair) -> None:
    before = pair.arrived()
    pair.out.update(b"lent", offset=3)
    assert bytes(pair.buffer.memory[:8]) == b"\0\0\0lent\0"
    assert pair.arrived() == before + 1
    assert not pair.rig.step(*pair.rig.nics), "something was left for the NICs"


@pytest.mark.parametrize("word", [Page.OFF, Page.BLOCK, Page.NOTIFY])
@pytest.mark.parametrize(
    ("offset", "length"),
    [
        *[(0, 1), (8, 4), (16, 8), (5, 23), (5, 24), (5, 25), (PAGE - 2, 4)],
        *[(0, ROOM), (0, ROOM + 1), (100, 3 * ROOM), (PAGE - 1, 2 * ROOM + 30)],
    ],
)
def test_it_is_what_the_nic_does(word: Page, offset: int, length: int) -> None:
    """Memory, page words, what is told to the handler, and every counter of both NICs."""
    data = random.Random(length).randbytes(length)
    found = []
    for lends in (True, False):
        pair = LentPair(lends)
        before = pair.arrived()
        pair.rig.watch(0, 0, 1, 2, word=word)
        pair.out.update(data, offset=offset, interrupt=True)
        assert (pair.arrived() > before) == lends
        pair.settle()
        process = pair.rig.process(0)
        found.append(
            (
                bytes(pair.buffer.memory),
                list(pair.rig.pages(0)),
                (process.fired, process.notifications, list(pair.rig.core(0).pending)),
                pair.counters(),
                pair.rig.control.agent_counters(pair.rig.rank_agent(1)),
                pair.rig.depositing(0) % 2,
            )
        )
        pair.close()
    assert found[0][0][offset : offset + length] == data
    assert found[0] == found[1]


@pytest.mark.parametrize("length", [1, ROOM, 3 * ROOM + 10])
@pytest.mark.parametrize("exported", [4 * PAGE, ROOM + 100])
def test_its_trace_is_what_the_nics_record(length: int, exported: int) -> None:
    """Each NIC's records in the same order, and their times as far apart; some are drops."""
    parameters = plain(link_delay_ns=2000, dma_latency_ns=500, link_bits_per_second=8 * 10**9)
    found = []
    for lends in (True, False):
        pair = LentPair(lends, parameters=parameters)
        trace = pair.use_trace()
        pair.rig.export_entry(0).length = exported
        pair.rig.watch(0, 0, 1, 2)
        pair.out.update(bytes(length), interrupt=True)
        pair.settle()
        records = trace.records()
        start_ns = records[0].time_ns
        found.append([(r.agent, r.kind, r.a, r.b, r.time_ns - start_ns) for r in records])
        pair.close()
    assert found[0] == found[1]
    kinds = [kind for _, kind, *_ in found[0]]
    packets = -(-length // ROOM)
    assert [kinds.count(kind) for kind in ("tx_frame", "rx_frame", "dma_complete")] == [packets] * 3
    assert kinds.count("drop") == max(0, packets - exported // ROOM)
    assert kinds.count("irq_raised") == (length <= exported)


@pytest.mark.parametrize("length", [1, ROOM, 3 * ROOM + 10])
@pytest.mark.parametrize("exported", [4 * PAGE, ROOM + 100])
def test_its_capture_is_what_the_nics_keep(length: int, exported: int) -> None:
    parameters = plain(link_delay_ns=2000, dma_latency_ns=500, link_bits_per_second=8 * 10**9)
    found = []
    for lends in (True, False):
        pair = LentPair(lends, parameters=parameters)
        capture = pair.use_capture()
        pair.rig.export_entry(0).length = exported
        pair.out.update((bytes(range(256)) * 20)[:length], interrupt=True)
        pair.settle()
        frames = capture.frames()
        start_ns = frames[0].time_ns
        found.append(
            [
                each._replace(time_ns=each.time_ns - start_ns, data=without_generation(each.data))
                for each in frames
            ]
        )
        pair.close()
    assert found[0] == found[1]
    packets = -(-length // ROOM)
    assert [each.received for each in found[0]].count(True) == packets
    dropped = [each for each in found[0] if each.dropped is not None]
    assert len(dropped) == max(0, packets - exported // ROOM)


def without_generation(frame: bytes) -> bytes:
    """A frame without that of its export, which each process draws."""
    return frame[:24] + frame[28:]


def test_no_interrupt_is_raised_that_was_not_asked_for(pair: LentPair) -> None:
    pair.rig.watch(0, 0)
    before = pair.rig.nic_counters(0)
    pair.out.update(b"x")
    assert pair.rig.pages(0)[0] == Page.BLOCK
    pair.out.update(b"x", interrupt=True)
    assert pair.rig.pages(0)[0] == Page.FIRED
    assert pair.rig.nic_counters(0)["irq_raised"] == before.get("irq_raised", 0) + 1


def test_it_takes_as_long_as_the_flight() -> None:
    pair = LentPair(parameters=plain(link_delay_ns=6_000, dma_latency_ns=3_000))
    before_ns = pair.rig.now_ns
    pair.out.update(b"x")
    assert pair.buffer.memory[0] == ord("x")
    assert pair.rig.now_ns - before_ns >= 9_000
    pair.close()


@pytest.mark.parametrize("length", [10, 2 * ROOM + 10])
def test_what_fits_no_export_is_a_counted_drop_for_each_packet(pair: LentPair, length: int) -> None:
    packets = -(-length // ROOM)
    entry = pair.rig.export_entry(0)
    entry.length = 1
    pair.out.update(bytes([1]) * length)
    assert pair.rig.nic_counters(0)["drop_vmmc_out_of_range"] == packets
    entry.generation += 1
    pair.out.update(bytes([1]) * length)
    assert pair.rig.nic_counters(0)["drop_vmmc_not_exported"] == packets
    assert not pair.buffer.memory.any()
    pair.rig.process(0).state = 0
    pair.out.update(bytes([1]) * length)
    assert pair.rig.nic_counters(0)["drop_vmmc_no_process"] == packets
    assert pair.rig.depositing(0) % 2 == 0


def test_of_an_update_that_is_partly_out_of_range_the_rest_is_deposited_as_by_the_nic() -> None:
    found = []
    for lends in (True, False):
        pair = LentPair(lends)
        pair.rig.export_entry(0).length = ROOM + 100
        pair.out.update(bytes([7]) * (2 * ROOM))
        pair.settle()
        found.append((bytes(pair.buffer.memory), pair.counters()))
        pair.close()
    assert found[0] == found[1]
    assert found[0][0].count(7) == ROOM
    assert found[0][1][0]["drop_vmmc_out_of_range"] == 1


# -- when it leaves it to the NIC ---------------------------------------------------------


def sends_by_itself(pair: LentPair, data: bytes = b"x") -> bool:
    """Whether an update is there at once; it is there in any case when the NICs have run."""
    pair.buffer.memory[:] = 0
    pair.out.update(data)
    at_once = bytes(pair.buffer.memory[: len(data)]) == data
    pair.settle()
    assert bytes(pair.buffer.memory[: len(data)]) == data
    return at_once


def test_not_while_something_lies_in_the_tx_ring(pair: LentPair) -> None:
    pair.sender.letter(0, 0, 16, b"first")
    assert not sends_by_itself(pair)
    assert sends_by_itself(pair)


def test_not_while_an_earlier_packet_is_on_its_link(pair: LentPair) -> None:
    """Taken by the sending NIC, not yet by the receiving one."""
    pair.sender.letter(0, 0, 16, b"first")
    assert pair.rig.step(pair.rig.nics[1])
    assert pair.rig.nodes[0].ring_depths()["link", 1] == 1
    assert not sends_by_itself(pair)


def test_not_while_somebody_else_acts_as_the_nics(pair: LentPair) -> None:
    with pair.locked():
        pair.out.update(b"x")
        assert pair.buffer.memory[0] == 0
    pair.settle()
    assert pair.buffer.memory[0] == ord("x")
    assert sends_by_itself(pair)


@pytest.mark.parametrize(
    ("parameters", "length", "by_itself"),
    [
        (plain(link_delay_ns=FLIGHT_MAX_NS - 50), 1, True),
        (plain(link_delay_ns=FLIGHT_MAX_NS - 49), 1, False),
        (plain(dma_bytes_per_second=10**9), 1000, True),
        (plain(dma_bytes_per_second=10**8), 1000, False),
        (plain(link_bits_per_second=8 * 10**8), 1000, False),
        # Several packets pass the link, then the last one its DMA: 8.9 and 1.5 us, or 0.1.
        (plain(link_bits_per_second=8 * 10**9, dma_bytes_per_second=10**9), 8780, False),
        (plain(link_bits_per_second=8 * 10**9, dma_bytes_per_second=10**10), 8780, True),
        (plain(), BYTES_MAX, True),
        (plain(), BYTES_MAX + 1, False),
    ],
)
def test_only_for_as_long_as_it_may_wait(
    parameters: NicParameters, length: int, by_itself: bool
) -> None:
    pair = LentPair(pages=20, parameters=parameters)
    assert sends_by_itself(pair, b"x" * length) == by_itself
    pair.close()


def test_not_under_a_virtual_clock_which_would_never_move() -> None:
    pair = LentPair(clock="virtual")
    assert not sends_by_itself(pair)
    pair.close()


# -- order -------------------------------------------------------------------------------

SENDS = st.tuples(
    st.integers(1, 75).map(lambda words: 4 * words),  # too many to wait for above about 100 bytes
    st.sampled_from(["free", "locked", "letter first"]),
    st.integers(0, 4),  # steps of the NICs after it
)


class Watcher:
    """Looks at flag and data as a receiver does, after everything that happens."""

    def __init__(self, pair: LentPair, sends: list[tuple[int, str, int]]) -> None:
        self.memory, self.sends, self.seen = pair.buffer.memory, sends, 0

    def look(self) -> None:
        flag = int(self.memory[PAGE : PAGE + 4].view("<u4")[0])
        assert flag >= self.seen, "a flag came before an earlier one"
        self.seen = flag
        if flag:
            words = self.memory[: self.sends[flag - 1][0]].view("<u4")
            assert (words >= flag).all(), "a flag came before its data"


@settings(max_examples=25, deadline=None)
@given(st.lists(SENDS, min_size=1, max_size=25), st.randoms(use_true_random=False))
def test_data_is_there_before_its_flag_however_both_ways_mix(
    sends: list[tuple[int, str, int]], draw: random.Random
) -> None:
    pair = LentPair(parameters=plain(dma_bytes_per_second=15 * 10**6))
    watcher = Watcher(pair, sends)
    for number, (length, way, steps) in enumerate(sends, 1):
        if way == "letter first":
            pair.sender.letter(0, 0, 16)
        with pair.locked() if way == "locked" else contextlib.nullcontext():
            pair.out.update(struct.pack("<I", number) * (length // 4))
        watcher.look()
        pair.out.set_flag(PAGE, number)
        watcher.look()
        for _ in range(steps):
            pair.rig.step(pair.rig.nics[draw.randrange(2)])
            watcher.look()
    pair.settle()
    watcher.look()
    assert watcher.seen == len(sends)
    pair.close()
