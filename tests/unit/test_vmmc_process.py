"""A process of VMMC: exports, mappings, updates, flags and letters, with NICs stepped by hand."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support.vmmc import VmmcNodes
from support.vmmc_layout import Page

from shrimpmx.errors import AbortedError, InputError, VmmcError
from shrimpmx.native import notify
from shrimpmx.shared.host import VirtualHost
from shrimpmx.vmmc.buffers import Export, Import
from shrimpmx.vmmc.process import VmmcProcess, close_dead
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

PAGE = 4096
CLOSED = 0
GONE, BOUNCED = 3, 2


class Pair:
    """A process on each of two nodes, both with a buffer that the other one has mapped.

    `world`: called when one that has no waiter waits.
    """

    def __init__(
        self,
        length: int = 2 * PAGE,
        waiter: str | None = None,
        world: Callable[[], object] | None = None,
        **rig: object,
    ) -> None:
        self.rig = VmmcNodes(**{"heap_bytes": 1 << 22, **rig})  # type: ignore[arg-type]
        self.world = world
        self.waiter = None
        if waiter is not None:
            strategy = make_strategy(waiter, 0)
            self.waiter = Waiter(self.rig.control, self.rig.rank_runner(0), strategy)
        self.near = self.process(0, waiter=self.waiter)
        self.far = self.process(1)
        self.buffer, self.there = self.near.export(length), self.far.export(length)
        self.out, self.back = self.map(self.near, 1), self.map(self.far, 0)

    def process(self, node: int, waiter: Waiter | None = None) -> VmmcProcess:
        runner, agent = self.rig.rank_runner(node), self.rig.rank_agent(node)
        host = VirtualHost(self.rig.control, self.go_on) if self.world is not None else None
        process = VmmcProcess(
            self.rig.nodes[node], 0, runner, waiter=waiter, agent=agent, host=host
        )
        process.open()
        return process

    def go_on(self, until_ns: int | None) -> None:
        assert self.world is not None
        self.world()

    def map(self, process: VmmcProcess, node: int, index: int = 0) -> Import:
        request = process.map_start(node, 0, index)
        self.settle()
        mapped = request.test()
        assert mapped is not None
        return mapped

    def settle(self) -> None:
        """Let everything that is under way arrive."""
        self.rig.advance(1_000_000)

    def counters(self, node: int) -> dict[str, int]:
        return self.rig.control.agent_counters(self.rig.rank_agent(node))

    def wishes(self) -> int:
        """Interrupts that were asked for at node 0, where all pages are disabled."""
        return self.rig.nic_counters(0).get("vmmc_page_disabled", 0)

    def words(self, buffer: Export) -> list[int]:
        """The words of the pages of a buffer of node 0."""
        heap = self.rig.nodes[0].heap_segment
        assert heap is not None
        start = buffer.memory.ctypes.data - heap.address - self.rig.process(0).heap_offset
        pages = range(start // PAGE, (start + buffer.length - 1) // PAGE + 1)
        return [self.rig.pages(0)[page] for page in pages]

    def close(self) -> None:
        if self.waiter is not None:
            self.waiter.end()
        self.near.close()
        self.far.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


# -- updates ----------------------------------------------------------------------------


def test_an_update_is_split_and_asks_for_one_interrupt(pair: Pair) -> None:
    data = np.arange(4000, dtype=np.uint32).astype(np.uint8)
    before = pair.wishes()
    pair.back.update(data, offset=100, interrupt=True)
    pair.settle()
    assert pair.buffer.memory[100:4100].tolist() == data.tolist()
    assert not pair.buffer.memory[:100].any()
    assert not pair.buffer.memory[4100:].any()
    counters = pair.counters(1)
    assert (counters["sent_updates"], counters["sent_update_bytes"]) == (3, 4000)
    assert pair.wishes() == before + 1


def test_an_update_without_the_wish_asks_for_no_interrupt(pair: Pair) -> None:
    before = pair.wishes()
    pair.back.update(b"abc")
    pair.settle()
    assert bytes(pair.buffer.memory[:3]) == b"abc"
    assert pair.wishes() == before


@pytest.mark.parametrize(("offset", "length"), [(2 * PAGE, 1), (2 * PAGE - 1, 2), (1 << 63, 1)])
def test_past_the_end_nothing_is_sent(pair: Pair, offset: int, length: int) -> None:
    with pytest.raises(VmmcError, match="past the end") as caught:
        pair.back.update(bytes(length), offset=offset)
    assert caught.value.status == "out-of-range"
    assert pair.counters(1)["sent_updates"] == 0


def test_a_full_tx_ring_holds_the_sender_until_the_nic_has_made_room() -> None:
    pair = Pair(length=1 << 20, world=lambda: pair.rig.advance(10_000))
    data = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    pair.back.update(data)
    pair.settle()
    assert pair.counters(1)["sent_update_waits"] > 0
    assert np.array_equal(pair.buffer.memory, data)
    pair.close()


def test_a_stop_ends_the_wait_for_room() -> None:
    pair = Pair(length=1 << 20, world=lambda: None)
    pair.rig.control.set_stop("abort")
    with pytest.raises(AbortedError, match="during an update"):
        pair.back.update(bytes(1 << 20))
    pair.close()


def test_a_wait_for_room_that_nothing_makes_raises() -> None:
    pair = Pair(length=1 << 20)
    with pytest.raises(InputError, match="virtual clock"):
        pair.back.update(bytes(1 << 20))
    pair.close()


# -- exports and mappings -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "status"), [(7, "not-exported"), (1, "not-allowed")], ids=["nothing", "others"]
)
def test_a_mapping_is_refused(pair: Pair, index: int, status: str) -> None:
    pair.near.export(PAGE, allowed_node=0)
    request = pair.far.map_start(0, 0, index)
    pair.settle()
    with pytest.raises(VmmcError) as caught:
        request.test()
    assert caught.value.status == status


def test_nothing_is_mapped_of_a_process_that_is_closed(pair: Pair) -> None:
    pair.near.close()
    pair.settle()
    request = pair.far.map_start(0, 0, 0)
    pair.settle()
    with pytest.raises(VmmcError, match="no open process") as caught:
        request.test()
    assert caught.value.status == "no-process"


def test_an_answer_that_does_not_come_is_a_timeout_and_later_nobodys(pair: Pair) -> None:
    with pytest.raises(VmmcError, match="did not answer") as caught:
        pair.far.map(0, 0, 0, timeout_ns=0)
    assert caught.value.status == "timeout"
    pair.settle()
    assert pair.far.take_letter() is None


def test_a_request_that_is_given_up_takes_no_import(pair: Pair) -> None:
    before = pair.counters(1)["imports"]
    late, answered = (pair.far.map_start(0, 0, 0) for _ in range(2))
    late.cancel()
    pair.settle()
    mapped = answered.test()
    assert mapped is not None
    assert pair.counters(1)["imports"] == before + 1
    answered.cancel()
    assert pair.map(pair.far, 0).index == mapped.index
    for request in (late, answered):
        with pytest.raises(VmmcError, match="has been given up") as caught:
            request.test()
        assert caught.value.status == "cancelled"


def test_addresses_that_there_are_not_are_refused(pair: Pair) -> None:
    with pytest.raises(InputError, match="nodes are 0 to 1"):
        pair.far.map(2, 0, 0)
    with pytest.raises(InputError, match="no node 2"):
        pair.far.export(PAGE, allowed_node=2)
    with pytest.raises(InputError, match="0 bytes"):
        pair.far.export(0)
    with pytest.raises(VmmcError) as caught:
        pair.far.export(1 << 40)
    assert caught.value.status == "no-memory"


def test_a_withdrawn_buffer_takes_no_update_of_its_old_mappings(pair: Pair) -> None:
    generations = {pair.buffer.generation}
    old = pair.buffer
    for _ in range(20):
        old.withdraw()
        buffer = pair.near.export(2 * PAGE)
        assert buffer.index == 0
        generations.add(buffer.generation)
        old = buffer
    assert len(generations) == 21
    assert 0 not in generations
    pair.back.update(b"late")
    pair.settle()
    assert pair.rig.nic_counters(0)["drop_vmmc_not_exported"] == 1
    assert not old.memory.any()


def test_withdrawing_waits_for_the_deposit_under_way() -> None:
    left = 20

    def nic() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            word.value += 1

    pair = Pair(world=nic)
    word = pair.rig._word(0, pair.rig.layouts[0].vmmc_offset)
    word.value += 1
    pair.buffer.withdraw()
    assert left == 0, "withdrawn while the NIC was writing"
    pair.world = lambda: pair.rig.advance(100)
    pair.close()


def test_a_stop_ends_the_wait_for_a_deposit(pair: Pair) -> None:
    pair.rig._word(0, pair.rig.layouts[0].vmmc_offset).value += 1
    pair.rig.control.set_stop("abort")
    pair.buffer.withdraw()


# -- flags and the gate ----------------------------------------------------------------------


def test_waiting_gives_the_flags_that_changed_once(pair: Pair) -> None:
    flags = [pair.buffer.flag(offset) for offset in (0, 4, PAGE)]
    assert pair.near.wait(flags, timeout_ns=0) == []
    pair.back.set_flag(4, 7)
    pair.back.set_flag(PAGE, 8)
    pair.settle()
    assert pair.near.wait(flags, timeout_ns=0) == flags[1:]
    assert [flag.seen for flag in flags] == [0, 7, 8]
    assert pair.near.wait(flags, timeout_ns=0) == []
    with pytest.raises(InputError, match="virtual clock"):
        pair.near.wait(flags)


def test_a_flag_that_was_set_before_anybody_looked_has_changed(pair: Pair) -> None:
    pair.back.set_flag(8, 3)
    pair.settle()
    flag = pair.buffer.flag(8)
    assert (flag.value, flag.seen) == (3, 0)
    assert flag.changed()
    assert pair.near.wait([flag], timeout_ns=0) == [flag]
    assert (flag.update(), flag.changed()) == (3, False)


def test_flags_that_cannot_be_are_refused(pair: Pair) -> None:
    for offset in (2, 2 * PAGE, 2 * PAGE - 3):
        with pytest.raises(InputError, match="multiple of 4"):
            pair.buffer.flag(offset)
    with pytest.raises(InputError, match="multiple of 4"):
        pair.back.set_flag(6, 1)
    flag = pair.there.flag(0)
    with pytest.raises(InputError, match="another process"):
        pair.near.wait([flag], timeout_ns=0)
    wide = pair.near.export(60 * PAGE)
    with pytest.raises(InputError, match="more pages"):
        pair.near.wait([wide.flag(page * PAGE) for page in range(60)], timeout_ns=0)
    assert pair.near.wait([wide.flag(page * PAGE) for page in range(59)], timeout_ns=0) == []


def test_a_wait_that_sleeps_enables_what_it_watches_and_no_more() -> None:
    pair = Pair(waiter="block")
    assert pair.waiter is not None
    seen: list[list[int]] = []
    pair.near.wait([pair.buffer.flag(PAGE)], timeout_ns=0)
    mailbox = pair.rig.process(0).pages_count - 1

    def look() -> bool:
        seen.append([*pair.words(pair.buffer), pair.rig.pages(0)[mailbox]])
        return len(seen) == 2

    pair.waiter.wait_until(look)
    assert seen == [[Page.OFF] * 3, [Page.OFF, Page.BLOCK, Page.BLOCK]]
    assert [*pair.words(pair.buffer), pair.rig.pages(0)[mailbox]] == [Page.OFF] * 3
    pair.close()


@pytest.mark.parametrize(("name", "word"), [("notify", Page.NOTIFY), ("watchdog", Page.WATCHDOG)])
def test_standing_strategies_enable_all_that_may_interrupt(name: str, word: int) -> None:
    pair = Pair(waiter=name)
    assert pair.waiter is not None
    pair.rig.control.register_process(pair.rig.rank_runner(0), signal.SIGUSR1)
    mailbox = pair.rig.process(0).pages_count - 1
    quiet = pair.near.export(PAGE, interrupts=False)
    with pair.waiter:
        later = pair.near.export(PAGE)
        for buffer in (pair.buffer, later):
            assert set(pair.words(buffer)) == {word}
        assert pair.words(quiet) == [Page.OFF]
        assert pair.rig.pages(0)[mailbox] == word
        with pytest.raises(InputError, match="would disable its interrupts"):
            pair.near.wait([later.flag(0)], timeout_ns=0, strategy=make_strategy("block"))
        later.withdraw()
        assert pair.words(later) == [Page.OFF]
    assert set(pair.words(pair.buffer)) == {Page.OFF}
    assert pair.rig.pages(0)[mailbox] == Page.OFF
    pair.close()
    notify.remove()


def test_a_wait_that_nothing_would_wake_is_refused() -> None:
    pair = Pair(waiter="block")
    quiet = pair.near.export(PAGE, interrupts=False)
    with pytest.raises(InputError, match="do not interrupt"):
        pair.near.wait([quiet.flag(0)], timeout_ns=0)
    spin = make_strategy("spin")
    assert pair.near.wait([quiet.flag(0)], timeout_ns=0, strategy=spin) == []
    pair.close()


# -- closing, and peers that have gone ----------------------------------------------------------


def test_what_a_peer_sent_comes_before_the_news_that_it_has_gone(pair: Pair) -> None:
    flag = pair.buffer.flag(0)
    pair.back.set_flag(0, 1)
    pair.far.close()
    pair.settle()
    assert pair.near.wait([flag], timeout_ns=0, peers=[pair.out]) == [flag]
    with pytest.raises(VmmcError, match="endpoint 0 of node 1 has gone") as caught:
        pair.near.wait([flag], timeout_ns=0, peers=[pair.out])
    assert caught.value.status == "gone"
    assert pair.out.gone
    with pytest.raises(VmmcError, match="gone") as caught:
        pair.out.update(b"x")
    assert caught.value.status == "gone"
    letter = pair.near.take_letter()
    assert letter is not None
    assert (letter["kind"], letter["node"]) == (GONE, 1)


def test_the_peers_of_a_dead_process_hear_of_it(pair: Pair) -> None:
    assert pair.far.take_port(80)
    close_dead(pair.rig.nodes[1], 0)
    pair.settle()
    assert pair.rig.process(1).state == CLOSED
    with pytest.raises(VmmcError, match="gone"):
        pair.out.update(b"x")
    other = pair.process(1)
    assert other.take_port(80)
    other.close()
    with pytest.raises(IndexError, match="no endpoint 9"):
        close_dead(pair.rig.nodes[1], 9)


def test_an_endpoint_is_opened_once_and_again_when_its_peers_have_been_told(pair: Pair) -> None:
    for _ in range(2):
        with pytest.raises(VmmcError, match="open already") as caught:
            pair.process(1)
        assert caught.value.status == "busy"
        pair.far.close()  # closing, until the NIC has seen it
    pair.settle()
    again = pair.process(1)
    assert again.get_info()["session"] != 0
    again.close()
    with pytest.raises(VmmcError, match="closed"):
        pair.far.export(PAGE)


def test_an_unmapped_import_is_told_apart_from_one_that_has_gone(pair: Pair) -> None:
    pair.out.unmap()
    pair.out.unmap()
    with pytest.raises(VmmcError, match="not mapped any more") as caught:
        pair.out.update(b"x")
    assert caught.value.status == "unmapped"


def test_another_thread_is_refused(pair: Pair) -> None:
    caught: list[BaseException] = []

    def call() -> None:
        try:
            pair.near.export(PAGE)
        except InputError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert "one thread" in str(caught[0])


def test_a_process_that_is_forgotten_closes_with_a_warning() -> None:
    pair = Pair()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pair.far.__del__()  # type: ignore[attr-defined]
    assert "was not closed" in str(said[0].message)
    pair.close()


def test_places_that_there_are_not_are_refused() -> None:
    rig = VmmcNodes()
    for arguments, core, said in [((9, 1), 0, "endpoint 9"), ((0, 99), 0, "process 99")]:
        with pytest.raises(InputError, match=said):
            VmmcProcess(rig.nodes[0], *arguments, core=core)
    with pytest.raises(InputError, match="no core 5"):
        VmmcProcess(rig.nodes[0], 0, 1, core=5)


# -- letters and ports ----------------------------------------------------------------------


def test_letters_keep_their_order_around_a_mapping(pair: Pair) -> None:
    for number in range(3):
        pair.far.letter(0, 0, 20, bytes([number]), tag=number)
    request = pair.near.map_start(1, 0, 0)
    pair.settle()
    pair.far.letter(0, 0, 20, b"\x03", tag=3)
    pair.settle()
    assert request.test() is not None
    taken = [pair.near.take_letter() for _ in range(5)]
    assert [letter and letter["tag"] for letter in taken] == [0, 1, 2, 3, None]
    assert taken[2]
    assert taken[2]["data"] == b"\x02" + bytes(47)


def test_letters_to_a_port_reach_who_has_it(pair: Pair) -> None:
    assert pair.near.take_port(7)
    assert not pair.near.take_port(7)
    pair.far.letter(0, 255, 30, b"hello", port=7, status=9)
    pair.settle()
    letter = pair.near.take_letter()
    assert letter
    assert letter["data"][:5] == b"hello"
    assert letter["status"] == 9
    pair.near.give_port(7)
    pair.far.letter(0, 255, 30, port=7, tag=5)
    pair.settle()
    assert pair.near.take_letter() is None
    back = pair.far.take_letter()
    assert back
    assert (back["kind"], back["tag"]) == (BOUNCED, 5)
    for kind, data in [(3, b""), (300, b""), (16, bytes(49))]:
        with pytest.raises(InputError, match="a letter has"):
            pair.far.letter(0, 0, kind, data)
    with pytest.raises(InputError, match="no endpoint 0 of node 5"):
        pair.far.letter(5, 0, 16)
