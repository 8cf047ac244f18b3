"""Firmware and a slow handler at random: no packet is forgotten, no interrupt doubled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.nic import Handler, Nodes, frame, make_firmware, run

from shrimpmx.settings.strategies import COALESCING_NAMES
from shrimpmx.shared.node import put_frame

DELAY_NS = 5_000

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(0, 300), st.booleans()),
        st.tuples(st.just("step"), st.integers(0, 400) | st.just(3 * DELAY_NS), st.none()),
        st.tuples(st.just("sleep"), st.none(), st.none()),
        st.tuples(st.just("handler"), st.integers(1, 4), st.none()),
    ),
    max_size=120,
)


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
@settings(max_examples=60)
@given(actions=ACTIONS)
def test_any_interleaving_reports_every_packet(
    coalescing: str, resets: bool, actions: list[tuple[str, int | None, bool | None]]
) -> None:
    nodes = Nodes(rx_ring_entries=256)
    nic = make_firmware(
        nodes,
        coalescing=coalescing,
        rx_usecs=DELAY_NS // 1000,
        mark_resets_timer=resets or coalescing == "watchdog",
        dma_bytes_per_second=10**9,
    )
    handler = Handler(nodes)
    now_ns, arrival_ns, count, found_empty = 0, 0, 0, False
    for action, number, marked in actions:
        if action == "arrive":
            assert number is not None
            arrival_ns = max(arrival_ns, now_ns) + number
            put_frame(nodes[0], "link", 1, frame(count, marked=bool(marked)), arrival_ns)
            count += 1
        elif action == "step":
            assert number is not None
            now_ns += number
            nic.step_at(now_ns)
        elif action == "sleep" and nic.due_ns is not None:
            now_ns = max(now_ns, nic.due_ns)
            nic.step_at(now_ns)
        elif action == "handler" and handler.see_interrupt():
            # One step of the handler: take some, or end if it found nothing before.
            assert number is not None
            if found_empty:
                handler.end()
                found_empty = False
            else:
                found_empty = handler.poll(number) == 0
    if handler.running:
        while handler.poll():
            pass
        handler.end()
    run([nic], now_ns, now_ns + 10**6, [handler])
    assert [data[40] for _, data in handler.frames] == list(range(count))
    assert nodes.wish() == 0
    assert nodes.token().value == 1
    counters = nodes.counters(0)
    wished, raised = counters.get("irq_wished", 0), counters.get("irq_raised", 0)
    assert wished == raised + counters.get("irq_absorbed", 0)
    assert raised == handler.interrupts
    assert counters.get("irq_held_back", 0) <= wished
    causes = ("packet", "marked", "deferred", "timeout", "frames")
    assert raised == sum(counters.get(f"irq_raised_{cause}", 0) for cause in causes)
    if coalescing == "disabled":
        assert raised <= counters.get("rx_packets", 0)
    assert counters.get("irq_deferred_longest_ns", 0) <= DELAY_NS


@pytest.mark.parametrize("coalescing", ["timeout", "stream", "open-mx"])
def test_under_a_stream_there_are_strictly_fewer_interrupts_than_packets(coalescing: str) -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing=coalescing)
    handler = Handler(nodes)
    for number in range(200):
        put_frame(nodes[0], "link", 1, frame(number), 1000 + 30 * number)
    # Wake-ups and the handler take a while, as on any machine.
    for now_ns in range(1000, 200_000, 500):
        nic.step_at(now_ns)
        if handler.running:
            while handler.poll():
                pass
            handler.end()
        handler.see_interrupt()
    assert len(handler.frames) == 200
    assert 0 < handler.interrupts < 40
    if coalescing == "stream":
        assert nodes.counters(0)["irq_raised_deferred"] == handler.interrupts == 1
