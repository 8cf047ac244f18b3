"""What a segment says of its parts is believed only if these lie in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.memory import (
    AGENTS_OFFSET_AT,
    RUNNERS_OFFSET_AT,
    AgentRow,
    make_control,
    word32,
    word64,
)

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AgentError, SegmentError
from shrimpmx.native.segment import SEGMENT_CAPTURE, SEGMENT_TRACE, RunIdentity, Segment
from shrimpmx.native.trace import Capture, Trace
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node
from shrimpmx.shared.private import private_node

WILD = [1 << 31, 1 << 40, (1 << 64) - 64]
# Of struct control_header, agent_record, node_header, and parts of a node in shared/layout.h.
RUNNERS_COUNT_AT, AGENTS_COUNT_AT, KIND_AT, RUNNER_AT, RUNNER_NAME_AT = 136, 140, 32, 36, 80
OFFSETS_AT = {
    "cores": 104,
    "vectors": 112,
    "endpoints": 120,
    "core_tx_rings": 128,
    "core_tx_stride": 136,
    "endpoint_tx_rings": 144,
    "endpoint_tx_stride": 152,
    "link_rings": 160,
    "link_stride": 168,
    "raw": 184,
    "flows": 272,
    "backlogs": 280,
    "backlog_stride": 288,
}
RX_RING_AT = 16
COUNTS_AT = {"nodes": 68, "cores": 72, "vectors": 76, "endpoints": 80}
ENDPOINT_AT = {
    "unexpected": 24,
    "expected": 32,
    "recvq": 40,
    "tx_ring": 48,
    "regions": 56,
    "pulls": 136,
}
ENDPOINT_ENTRIES_AT = 16
RING_ENTRIES_AT, RING_SLOTS_AT = 256, 264
VMMC_AT, VMMC_PARTS_AT, VMMC_TABLES_AT = 256, (64, 72, 80), (32, 40, 48, 56)


@pytest.fixture
def control() -> Control:
    agents: list[AgentRow] = [("nic", "nic", 0), ("irq0", "irq", 1), ("rank0", "rank", 2)]
    return make_control(["nic", "irq0", "rank0"], agents)


def node_of(control: Control, **changes: Any) -> Node:
    return private_node(control, NodeLayout(core_runners=[1], core_agents=[1], **changes))


def damaged(attach: Callable[..., object], *segments: object) -> None:
    with pytest.raises(SegmentError):
        attach(*segments)


def test_what_is_sound_is_attached(control: Control) -> None:
    assert Control.attach(control.segment).agents_count == 3
    for changes in ({}, {"steering": "rps"}, {"vmmc": True, "heap_bytes": 1 << 16}):
        node = node_of(control, **changes)
        assert Node.attach(node.segment, control, node.heap_segment).index == 0


@pytest.mark.parametrize("at", [RUNNERS_COUNT_AT, AGENTS_COUNT_AT])
def test_counts_of_a_control_segment(control: Control, at: int) -> None:
    for count in (4, 1 << 16, (1 << 32) - 1):
        word32(control.segment, at).value = count
        damaged(Control.attach, control.segment)


def test_agents_of_no_kind_or_process(control: Control) -> None:
    first = word64(control.segment, AGENTS_OFFSET_AT).value
    for at, value in ((KIND_AT, 6), (RUNNER_AT, 3)):
        word = word32(control.segment, first + at)
        before, word.value = word.value, value
        damaged(Control.attach, control.segment)
        word.value = before
    assert Control.attach(control.segment).agents_count == 3


def test_offsets_and_counts_of_a_node(control: Control) -> None:
    node = node_of(control, steering="rps")
    words = [(word64, at) for at in OFFSETS_AT.values()]
    words += [(word32, at) for at in COUNTS_AT.values()]
    words += [
        (word64, word64(node.segment, OFFSETS_AT[part]).value + at)
        for part, places in (("vectors", {"rx_ring": RX_RING_AT}), ("endpoints", ENDPOINT_AT))
        for at in places.values()
    ]
    rings = [
        word64(node.segment, OFFSETS_AT[f"{part}_rings"]).value for part in ("core_tx", "link")
    ]
    words += [(word32, ring + RING_ENTRIES_AT) for ring in rings]
    words += [(word64, ring + RING_SLOTS_AT) for ring in rings]
    for kind, at in words:
        word = kind(node.segment, at)
        before = word.value
        for value in WILD:
            word.value = value
            damaged(Node.attach, node.segment, control)
        word.value = before
    assert Node.attach(node.segment, control).index == 0


@pytest.mark.parametrize("vmmc", [False, True])
@pytest.mark.parametrize("entries", [0, 3, 1000])
def test_an_event_ring_has_a_power_of_two_of_entries(
    control: Control, entries: int, vmmc: bool
) -> None:
    node = node_of(control, vmmc=vmmc)
    endpoint = word64(node.segment, OFFSETS_AT["endpoints"]).value
    word32(node.segment, endpoint + ENDPOINT_ENTRIES_AT).value = entries
    damaged(Node.attach, node.segment, control)


def test_a_control_segment_whose_agents_are_written_just_now(control: Control) -> None:
    word32(control.segment, AGENTS_COUNT_AT).value = 0
    assert Control.attach(control.segment).runners_count == 3


def test_tables_of_vmmc(control: Control) -> None:
    node = node_of(control, vmmc=True)
    vmmc = word64(node.segment, VMMC_AT).value
    process = word64(node.segment, vmmc + VMMC_PARTS_AT[0]).value
    places = [VMMC_AT, *(vmmc + at for at in VMMC_PARTS_AT)]
    for at in (*places, *(process + at for at in VMMC_TABLES_AT)):
        word = word64(node.segment, at)
        before, word.value = word.value, 1 << 40
        damaged(Node.attach, node.segment, control)
        word.value = before
    assert Node.attach(node.segment, control).has_vmmc


def test_heaps_that_are_longer_than_their_segment(control: Control) -> None:
    node = node_of(control, heap_bytes=1 << 16)
    heap = Segment.anonymous(1 << 16, 4)  # lacks its first page
    damaged(Node.attach, node.segment, control, heap)


@pytest.mark.parametrize(
    ("at", "value"), [(64, 3), (64, 1 << 31), (68, 0), (68, 3), (68, 1 << 31), (72, 1 << 40)]
)
def test_rings_of_a_trace(at: int, value: int) -> None:
    segment = Segment.anonymous(Trace.size_bytes(2, 64), SEGMENT_TRACE)
    Trace.create(segment, 2, 64)
    word32(segment, at).value = value & 0xFFFFFFFF
    if at == 72:
        word64(segment, at).value = value
    damaged(Trace.attach, segment)


@pytest.mark.parametrize(
    ("at", "value"), [(64, 3), (64, 1 << 31), (68, 0), (68, 3), (72, 64), (80, 0), (80, 1 << 40)]
)
def test_rings_of_a_capture(at: int, value: int) -> None:
    segment = Segment.anonymous(Capture.size_bytes(2, 1 << 16, 1500), SEGMENT_CAPTURE)
    Capture.create(segment, 2, 1 << 16, 1500)
    assert Capture.attach(segment).written(1) == 0
    if at == 80:
        word64(segment, at).value = value
    else:
        word32(segment, at).value = value
    damaged(Capture.attach, segment)


@pytest.mark.parametrize(("at", "value"), [(8, 2), (12, 3000), (16, 64)])
def test_a_ring_of_a_capture_that_is_none(at: int, value: int) -> None:
    segment = Segment.anonymous(Capture.size_bytes(2, 1 << 16, 1500), SEGMENT_CAPTURE)
    Capture.create(segment, 2, 1 << 16, 1500)
    word32(segment, 128 + at).value = value
    damaged(Capture.attach, segment)


@pytest.mark.parametrize("wild", [1, 1 << 31, (1 << 32) - 64])
@pytest.mark.parametrize("what", ["runners", "agents", "runner's name", "agent's name", "kind"])
def test_a_run_whose_records_a_rank_overwrote_has_no_result(
    what: str, wild: int, tmp_path: Path
) -> None:
    spec = ClusterSpec(ranks=(RankSpec(0, "idle"), RankSpec(1, "idle")))
    placement = place(spec, Topology.from_synthetic("core:4 pu:1"))
    memory = RunMemory(spec, placement, RunIdentity.of_this_process(), tmp_path)
    segment = memory.control.segment
    runner = word64(segment, RUNNERS_OFFSET_AT).value
    agent = word64(segment, AGENTS_OFFSET_AT).value
    places = {
        "runners": RUNNERS_COUNT_AT,
        "agents": AGENTS_COUNT_AT,
        "runner's name": runner + RUNNER_NAME_AT,
        "agent's name": agent,
        "kind": agent + KIND_AT,
    }
    try:
        memory.check_records()
        word = word32(segment, places[what])
        word.value ^= wild
        with pytest.raises(AgentError, match="the run's memory is damaged"):
            memory.check_records()
        word.value ^= wild
        memory.check_records()
    finally:
        memory.close()
