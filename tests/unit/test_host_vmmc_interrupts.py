"""The interrupt handler's hook of the waiting paper's section 4, under the virtual clock."""

from __future__ import annotations

import pytest
from support.memory import assert_counts
from support.nic import Nodes
from support.vmmc import ARMED_NOTIFY, DMA_NS, LINK_NS, VmmcNodes
from support.vmmc_layout import PAGE_BYTES, WATCHED_MAX, Page

from shrimpmx.errors import InputError
from shrimpmx.host.interrupts import VmmcInterruptAgent

WAY_NS = LINK_NS + DMA_NS


def ready(endpoints: int = 1, interrupt_time_ns: int = 0) -> VmmcNodes:
    nodes = VmmcNodes(
        endpoints=endpoints, heap_bytes=64 * PAGE_BYTES, interrupt_time_ns=interrupt_time_ns
    )
    for endpoint in range(endpoints):
        nodes.open(0, endpoint)
        nodes.export(0, endpoint, length=64 * PAGE_BYTES)
    nodes.open(1)
    return nodes


def test_the_wake_disables_all_pages_that_the_waiter_watches() -> None:
    nodes = ready()
    nodes.watch(0, *range(WATCHED_MAX - 1), -1)
    assert list(nodes.pages(0)).count(Page.BLOCK) == WATCHED_MAX
    nodes.update(b"data", 7 * PAGE_BYTES, ask=True)
    nodes.advance(WAY_NS)
    assert list(nodes.pages(0)) == [Page.OFF] * 65
    slot = nodes.slot(0)
    assert (slot.wakes, slot.armed, slot.word) == (1, 0, 1)
    assert_counts(nodes.irq_counters(0), {"interrupts": 1, "vmmc_wakes": 1})


def test_updates_of_many_watched_pages_wake_once() -> None:
    nodes = ready()
    nodes.watch(0, 0, 1, 2, 3)
    for page in range(4):
        nodes.update(b"data", page * PAGE_BYTES, ask=True)
        nodes.advance(10)
    nodes.advance(WAY_NS)
    assert nodes.slot(0).wakes == 1
    assert_counts(nodes.irq_counters(0), {"interrupts": 1, "vmmc_wakes": 1})
    assert nodes.nic_counters(0)["vmmc_page_disabled"] == 3
    assert list(nodes.pages(0)[:4]) == [Page.OFF] * 4


def test_pages_of_other_meaning_and_of_others_stay_enabled() -> None:
    nodes = ready(endpoints=2)
    nodes.watch(0, 5, endpoint=1)
    nodes.watch(0, 0, 1, 2)
    words = nodes.pages(0)
    words[1], words[2], words[3] = Page.NOTIFY, Page.WATCHDOG, Page.BLOCK  # 3: not watched
    nodes.update(b"data", ask=True)
    nodes.advance(WAY_NS)
    assert list(words[:4]) == [Page.OFF, Page.NOTIFY, Page.WATCHDOG, Page.BLOCK]
    assert nodes.pages(0, 1)[5] == Page.BLOCK
    assert nodes.slot(0, 1).wakes == 0


def test_a_waiter_that_has_gone_is_not_woken() -> None:
    """It found its data by itself, after the NIC had raised and before the handler ran."""
    nodes = ready()
    nodes.watch(0, 0)
    nodes.update(b"data", ask=True)
    nodes.slot(0).armed = 0
    nodes.advance(WAY_NS)
    assert nodes.slot(0).wakes == 0
    assert_counts(nodes.irq_counters(0), {"interrupts": 1, "vmmc_unclaimed": 1})
    assert nodes.pages(0)[0] == Page.OFF


def test_an_interrupt_whose_reason_was_served_before_is_unclaimed() -> None:
    nodes = ready()
    nodes.core(0).pending[0] = 1
    nodes.advance(0)
    assert_counts(nodes.irq_counters(0), {"interrupts": 1, "vmmc_unclaimed": 1})


def test_each_notification_is_one_signal() -> None:
    nodes = ready()
    nodes.pages(0)[0] = Page.NOTIFY
    nodes.slot(0).armed = ARMED_NOTIFY
    for _ in range(5):
        nodes.update(b"data", ask=True)
    nodes.advance(WAY_NS)
    slot = nodes.slot(0)
    assert (slot.notifications, slot.wakes, slot.armed) == (5, 0, ARMED_NOTIFY)
    counters = nodes.irq_counters(0)
    assert (counters["vmmc_notifications"], counters["interrupts"]) == (5, 1)
    assert nodes.process(0).notifications == 0
    assert nodes.pages(0)[0] == Page.NOTIFY


def test_a_wait_that_follows_is_woken_again() -> None:
    nodes = ready()
    for turn in range(1, 4):
        nodes.watch(0, 0, 1)
        nodes.update(b"data", PAGE_BYTES * (turn % 2), ask=True)
        nodes.advance(WAY_NS)
        assert nodes.slot(0).wakes == turn
        assert list(nodes.pages(0)[:2]) == [Page.OFF] * 2


def test_an_interrupt_takes_its_time_from_when_it_was_raised() -> None:
    nodes = ready(interrupt_time_ns=1000)
    nodes.watch(0, 0)
    nodes.update(b"data", ask=True)
    nodes.advance(WAY_NS + 999)
    assert nodes.slot(0).wakes == 0
    assert nodes.pages(0)[0] == Page.FIRED
    nodes.advance(1)
    assert nodes.slot(0).wakes == 1


def test_interrupts_taken_together_take_their_times_together() -> None:
    nodes = ready(endpoints=3, interrupt_time_ns=1000)
    for endpoint in range(3):
        nodes.watch(0, 0, endpoint=endpoint)
        nodes.update(b"data", ask=True, endpoint=endpoint)
    nodes.advance(WAY_NS + 2999)
    assert [nodes.slot(0, endpoint).wakes for endpoint in range(3)] == [0, 0, 0]
    nodes.advance(1)
    assert [nodes.slot(0, endpoint).wakes for endpoint in range(3)] == [1, 1, 1]


def test_an_interrupt_during_another_waits_but_does_not_delay_it() -> None:
    nodes = ready(endpoints=2, interrupt_time_ns=1000)
    for endpoint in range(2):
        nodes.watch(0, 0, endpoint=endpoint)
    nodes.update(b"data", ask=True)
    nodes.advance(500)
    nodes.update(b"data", ask=True, endpoint=1)  # raised at 650, the first one at 150
    nodes.advance(650)
    assert [nodes.slot(0, endpoint).wakes for endpoint in range(2)] == [1, 0]
    nodes.advance(499)
    assert nodes.slot(0, 1).wakes == 0
    nodes.advance(1)
    assert nodes.slot(0, 1).wakes == 1


@pytest.mark.parametrize("field", ["runner", "watched_count", "watched"])
def test_what_an_owner_may_have_garbled_harms_nobody(field: str) -> None:
    nodes = ready()
    nodes.watch(0, 0)
    process = nodes.process(0)
    if field == "runner":
        process.runner = 1000
    elif field == "watched_count":
        process.watched_count = 2**32 - 1
    else:
        process.watched[0] = 2**31
    nodes.update(b"data", ask=True)
    nodes.advance(WAY_NS)
    assert nodes.irq_counters(0)["interrupts"] == 1
    assert nodes.slot(0).wakes == (field != "runner")


def test_a_node_without_vmmc_memory_is_refused() -> None:
    nodes = Nodes(1)
    with pytest.raises(InputError, match="not laid out for a vmmc NIC"):
        VmmcInterruptAgent(nodes[0], 0, 1)
