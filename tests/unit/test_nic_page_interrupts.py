"""When SHRIMP's NIC interrupts: asked for, agreed to and enabled; and its polling watchdog."""

from __future__ import annotations

import pytest
from support.vmmc import DMA_NS, LINK_NS, PLAIN_VMMC, VmmcNodes
from support.vmmc_layout import CLOSED, PAGE_BYTES, Page

WAY_NS = LINK_NS + DMA_NS
WATCHDOG_NS = PLAIN_VMMC.watchdog_ns


def ready(*, interrupts: bool = True, cores: int = 1, core: int = 0) -> VmmcNodes:
    nodes = VmmcNodes(cores=cores)
    nodes.open(0, core=core)
    nodes.open(1)
    nodes.export(0, interrupts=interrupts, length=8 * PAGE_BYTES)
    return nodes


def arrive(nodes: VmmcNodes) -> dict[str, int]:
    """Let what is sent arrive, without an irq agent; the NIC's counters."""
    nodes.step(nodes.nics[1])
    nodes.control.set_virtual_ns(nodes.now_ns + LINK_NS)
    nodes.step(nodes.nics[0])
    nodes.control.set_virtual_ns(nodes.now_ns + DMA_NS)
    nodes.step(nodes.nics[0])
    return nodes.nic_counters(0)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("agreed", [False, True])
@pytest.mark.parametrize("enabled", [False, True])
def test_an_update_interrupts_only_if_asked_agreed_and_enabled(
    asked: bool, agreed: bool, enabled: bool
) -> None:
    nodes = ready(interrupts=agreed)
    nodes.pages(0)[0] = Page.BLOCK if enabled else Page.OFF
    nodes.update(b"data", ask=asked)
    counters = arrive(nodes)
    raised = asked and agreed and enabled
    assert bytes(nodes.memory(0)[:4]) == b"data"
    assert counters.get("irq_raised", 0) == raised
    assert counters.get("vmmc_page_interrupts", 0) == raised
    assert counters.get("vmmc_page_disabled", 0) == (asked and agreed and not enabled)
    assert nodes.pages(0)[0] == (Page.FIRED if raised else Page.BLOCK if enabled else Page.OFF)
    assert nodes.process(0).fired == raised
    assert nodes.core(0).pending[0] == raised


def test_only_pages_that_are_written_count() -> None:
    nodes = ready()
    nodes.watch(0, 0, 2)
    nodes.update(b"data", PAGE_BYTES, ask=True)  # page 1
    assert arrive(nodes)["vmmc_page_disabled"] == 1
    nodes.update(b"data", 2 * PAGE_BYTES - 2, ask=True)  # pages 1 and 2
    assert arrive(nodes)["irq_raised"] == 1
    assert list(nodes.pages(0)[:3]) == [Page.BLOCK, Page.OFF, Page.FIRED]


def test_an_update_of_no_data_interrupts_nobody() -> None:
    nodes = ready()
    nodes.watch(0, 0)
    nodes.update(b"", ask=True)
    assert arrive(nodes)["vmmc_updates"] == 1
    assert nodes.pages(0)[0] == Page.BLOCK


def test_a_page_interrupts_once_until_it_is_enabled_again() -> None:
    nodes = ready()
    nodes.watch(0, 0)
    for _ in range(3):
        nodes.update(b"data", ask=True)
    counters = arrive(nodes)
    assert (counters["irq_raised"], counters["vmmc_page_disabled"]) == (1, 2)


def test_interrupts_that_the_handler_has_not_taken_become_one() -> None:
    nodes = ready()
    nodes.watch(0, 0, 1)
    nodes.update(b"data", ask=True)
    arrive(nodes)
    nodes.update(b"data", PAGE_BYTES, ask=True)
    counters = arrive(nodes)
    assert (counters["irq_raised"], counters["vmmc_page_interrupts"]) == (1, 2)
    assert nodes.nodes[0].interrupt_counts() == [[1]]


def test_an_interrupt_goes_to_the_core_of_its_process() -> None:
    nodes = ready(cores=2, core=1)
    nodes.watch(0, 0)
    nodes.update(b"data", ask=True)
    arrive(nodes)
    assert (nodes.core(0, 0).pending[0], nodes.core(0, 1).pending[0]) == (0, 1)
    assert nodes.core(0, 1).raised_ns == WAY_NS
    assert nodes.nodes[0].interrupt_counts() == [[0], [1]]


def test_an_owner_that_names_no_core_is_interrupted_on_core_0() -> None:
    nodes = ready(cores=2, core=2)
    nodes.watch(0, 0)
    nodes.update(b"data", ask=True)
    arrive(nodes)
    assert nodes.core(0, 0).pending[0] == 1


def test_endpoints_beyond_64_have_a_bit_of_their_own() -> None:
    nodes = VmmcNodes(endpoints=70, heap_bytes=PAGE_BYTES)
    nodes.open(0, 69)
    nodes.export(0, 69, length=100)
    nodes.watch(0, 0, endpoint=69)
    nodes.update(b"data", ask=True, endpoint=69)
    arrive(nodes)
    assert list(nodes.core(0).pending) == [0, 1 << 5, 0, 0]
    nodes.step(*nodes.handlers)
    assert nodes.slot(0, 69).wakes == 1


@pytest.mark.parametrize("length", [4, PAGE_BYTES // 4])
def test_each_update_of_a_notifying_page_is_one_notification(length: int) -> None:
    nodes = ready()
    nodes.pages(0)[0] = nodes.pages(0)[1] = Page.NOTIFY
    for _ in range(3):
        nodes.update(bytes(length), PAGE_BYTES - 2, ask=True)  # touches both
    assert arrive(nodes)["irq_raised"] == 1
    assert nodes.process(0).notifications == 3
    assert nodes.process(0).fired == 0
    assert nodes.pages(0)[0] == Page.NOTIFY


def test_a_letter_always_asks_for_an_interrupt() -> None:
    nodes = ready()
    nodes.letter()
    assert arrive(nodes)["vmmc_page_disabled"] == 1
    nodes.watch(0, -1)
    nodes.letter()
    assert arrive(nodes)["irq_raised"] == 1
    assert nodes.pages(0)[-1] == Page.FIRED
    assert len(nodes.take_letters(0, 0)) == 2


# -- the polling watchdog ----------------------------------------------------------


def watched() -> VmmcNodes:
    """A process with a watchdog page, to which data has just come that asks for an interrupt."""
    nodes = ready()
    nodes.watch(0, 0, word=Page.WATCHDOG)
    nodes.update(b"data", ask=True)
    assert "irq_raised" not in arrive(nodes)
    return nodes


def test_data_that_is_not_polled_in_time_interrupts() -> None:
    nodes = watched()
    assert nodes.nics[0].due_ns == nodes.now_ns + WATCHDOG_NS
    nodes.advance(WATCHDOG_NS - 1)
    assert nodes.slot(0).wakes == 0
    nodes.advance(1)
    assert nodes.slot(0).wakes == 1
    counters = nodes.nic_counters(0)
    assert (counters["irq_raised"], counters["irq_raised_timeout"]) == (1, 1)
    assert nodes.pages(0)[0] == Page.WATCHDOG
    assert nodes.nics[0].due_ns is None


def test_data_that_is_polled_in_time_does_not() -> None:
    nodes = watched()
    nodes.advance(WATCHDOG_NS - 1)
    nodes.process(0).polled += 1
    nodes.advance(1)
    counters = nodes.nic_counters(0)
    assert counters["vmmc_watchdog_polled"] == 1
    assert "irq_raised" not in counters
    assert nodes.nics[0].due_ns is None


def test_later_data_does_not_put_the_watchdog_off() -> None:
    nodes = watched()
    nodes.advance(WATCHDOG_NS - WAY_NS)
    nodes.update(b"more", ask=True)
    nodes.advance(WAY_NS)
    assert nodes.slot(0).wakes == 1


def test_data_after_a_poll_has_a_watchdog_of_its_own() -> None:
    """Were the poll before it taken for one of this data, its interrupt would never come."""
    nodes = watched()
    nodes.process(0).polled += 1
    nodes.advance(WATCHDOG_NS // 2)
    nodes.update(b"more", ask=True)
    nodes.advance(WAY_NS)
    start_ns = nodes.now_ns
    assert nodes.nic_counters(0)["vmmc_watchdog_polled"] == 1
    assert nodes.nics[0].due_ns == start_ns + WATCHDOG_NS
    nodes.advance(WATCHDOG_NS)
    assert nodes.slot(0).wakes == 1


def test_watchdogs_of_several_processes_run_side_by_side() -> None:
    nodes = VmmcNodes(endpoints=3)
    for endpoint in range(3):
        nodes.open(0, endpoint)
        nodes.export(0, endpoint)
        nodes.watch(0, 0, endpoint=endpoint, word=Page.WATCHDOG)
        nodes.update(b"data", ask=True, endpoint=endpoint)
        nodes.advance(1000)
    nodes.process(0, 1).polled += 1
    nodes.advance(2 * WATCHDOG_NS)
    assert [nodes.slot(0, endpoint).wakes for endpoint in range(3)] == [1, 0, 1]


def test_the_watchdog_of_a_process_that_closed_is_silent() -> None:
    nodes = watched()
    nodes.process(0).state = CLOSED
    nodes.advance(WATCHDOG_NS)
    assert "irq_raised" not in nodes.nic_counters(0)
