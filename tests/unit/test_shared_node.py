"""The control and node segments: layout, records, tables and their limits."""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Callable, Iterator

import pytest
from support import memory
from support.tree import PACKAGE

from shrimpmx.errors import InputError
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared import sizes
from shrimpmx.shared.control import Control, counter_names
from shrimpmx.shared.geometry import NodeLayout, slot_stride
from shrimpmx.shared.host import host_of
from shrimpmx.shared.node import Node
from shrimpmx.shared.private import private_node


def make_control(clock: str = "virtual") -> Control:
    runners = ["nic", "node0.irq0", "rank0"]
    agents = [("node0.nic", "nic", 0), ("node0.irq0", "irq", 1), ("rank0", "rank", 2)]
    return memory.make_control(runners, agents, clock=clock)


def make_node(control: Control, **changes: object) -> Node:
    settings = {"core_runners": [1], "core_agents": [1], **changes}
    return private_node(control, NodeLayout(**settings))  # type: ignore[arg-type]


def test_control_names_its_processes_and_agents() -> None:
    control = make_control()
    assert [control.runner_info(i)["name"] for i in range(3)] == ["nic", "node0.irq0", "rank0"]
    assert control.agent_info(2) == {"name": "rank0", "kind": "rank", "runner": 2}
    assert set(control.agent_counters(0)) == set(counter_names("nic"))
    assert not any(control.agent_counters(0).values())
    with pytest.raises(IndexError, match="no agent 3"):
        control.agent_counters(3)


def test_virtual_clock_moves_only_when_told() -> None:
    control = make_control()
    assert control.now_ns() == 0
    control.set_virtual_ns(12_345)
    assert control.now_ns() == control.now_ns() == 12_345
    with pytest.raises(ValueError, match="virtual"):
        make_control("monotonic").set_virtual_ns(1)


def test_stop_and_start_words() -> None:
    control = make_control()
    assert control.stop_state() == "no"
    host = host_of(control)
    assert not host.wait_started(0)
    control.start()
    assert host.wait_started(0)
    control.set_stop("abort")
    assert control.stop_state() == "abort"


def test_a_second_view_sees_what_the_first_wrote() -> None:
    control = make_control()
    control.set_runner_state(1, "ready")
    control.set_placement(1, 3, 50)
    other = Control.attach(control.segment)
    info = other.runner_info(1)
    assert (info["state"], info["cpu"], info["realtime"]) == ("ready", 3, 50)


@pytest.mark.parametrize("size", [1, 64, 65, 1516, 9016])
def test_slot_stride_is_an_odd_number_of_lines(size: int) -> None:
    stride = slot_stride(size)
    assert stride >= size
    assert stride % 64 == 0
    assert stride // 64 % 2 == 1


def test_parts_of_a_node_do_not_overlap() -> None:
    layout = NodeLayout(
        cores=3, rx_queues=2, endpoints=4, core_runners=[0] * 3, core_agents=[0] * 3, nodes_count=2,
        steering="rps",
    ).place()  # fmt: skip
    starts = sorted(
        (
            layout.cores_offset,
            layout.vectors_offset,
            layout.endpoints_offset,
            layout.core_tx_rings_offset,
            layout.endpoint_tx_rings_offset,
            layout.link_rings_offset,
            layout.rx_rings_offset,
            layout.event_rings_offset,
            layout.flows_offset,
            layout.backlogs_offset,
            layout.size_bytes,
        )
    )
    assert starts[0] >= 192
    assert len(set(starts)) == len(starts)
    assert layout.event_rings_offset + 4 * layout.event_stride <= layout.size_bytes
    assert layout.flows_offset + 256 * 8 <= layout.backlogs_offset
    assert layout.backlogs_offset + 3 * layout.backlog_stride <= layout.size_bytes
    assert layout.rx_rings_offset + 2 * layout.rx_stride <= layout.event_rings_offset


def test_a_node_starts_empty() -> None:
    node = make_node(make_control())
    assert node.interrupt_counts() == [[0]]
    assert not any(node.ring_depths().values())
    assert node.endpoint_handovers(0) == 0
    with pytest.raises(IndexError, match="no endpoint 1"):
        node.endpoint_handovers(1)


def test_interrupts_table_has_a_column_per_core_and_a_row_per_vector() -> None:
    node = make_node(make_control(), rx_queues=2)
    header, first, second = node.interrupts_table().splitlines()
    assert header.split() == ["CPU0"]
    assert first.split() == ["0:", "0", "shrimpmx-edge", "node0-rx-0"]
    assert second.split()[-1] == "node0-rx-1"


@pytest.mark.parametrize("name", ["cores", "rx_queues", "endpoints", "nodes_count"])
def test_layout_refuses_numbers_out_of_range(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be from 1"):
        NodeLayout(**{name: 0}).place()  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"{name} must be from 1"):
        NodeLayout(**{name: 5000}).place()  # type: ignore[arg-type]


def test_a_node_has_a_vector_per_queue_and_a_backlog_per_core_with_rps() -> None:
    layout = NodeLayout.from_parameters(
        NicParameters(rx_queues=2, steering="arfs"), HostParameters(cores=2, irq_binding="1/0"),
        index=0, nodes_count=1, core_runners=[1, 1], core_agents=[1, 1],
    )  # fmt: skip
    assert (layout.rx_queues, layout.steering, layout.affinities) == (2, "arfs", ((1,), (0,)))
    node = private_node(make_control(), layout)
    assert node.vectors_count == 2
    assert [node.affinity(vector) for vector in (0, 1)] == [(1,), (0,)]
    assert "backlog" not in {name for name, _ in node.ring_depths()}
    steered = make_node(make_control(), cores=1, steering="rps")
    assert steered.ring_depths()["backlog", 0] == 0


def test_an_affinity_can_be_changed_and_nothing_else_is_accepted() -> None:
    node = make_node(make_control(), cores=3, core_runners=[1] * 3, core_agents=[1] * 3)
    assert node.affinity_table() == "0: 0-2"
    assert node.affinity_changes == 0
    node.set_affinity(0, "0,2")
    assert node.affinity(0) == (0, 2)
    for bad in ("", "3", "0-", "x"):
        with pytest.raises(InputError):
            node.set_affinity(0, bad)
    assert node.affinity_table() == "0: 0,2"
    node.set_affinity(0, "2,0")
    assert node.affinity_changes == 1, "only what sends interrupts elsewhere is a change"
    node.set_affinity(0, "0-2")
    assert node.affinity_changes == 2, "also one that is taken back"
    with pytest.raises(IndexError, match="no vector 1"):
        node.set_affinity(1, "0")


def test_layout_takes_its_numbers_from_the_parameters() -> None:
    layout = NodeLayout.from_parameters(
        NicParameters(mtu=9000), HostParameters(cores=2), index=1, nodes_count=2, endpoints=3
    )
    assert (layout.mtu, layout.cores, layout.index, layout.endpoints) == (9000, 2, 1, 3)
    with pytest.raises(TypeError, match="colour"):
        NodeLayout.from_parameters(
            NicParameters(), HostParameters(), index=0, nodes_count=1, colour=1
        )


def test_a_view_keeps_the_memory_when_its_segment_is_closed() -> None:
    control = make_control()
    node = make_node(control)
    control.set_virtual_ns(7)
    node.segment.close()
    control.segment.close()
    assert control.now_ns() == 7
    assert node.interrupt_counts() == [[0]]


# -- The parameters of a node: layout.h declares them, layout.pxd, geometry.py and node.pyx follow.

FIELD = re.compile(r"^    (\w+|struct \w+) (\w+)(?:\[\w+\])?; */\* *(\d+) ", re.M)
BYTES = {"uint32_t": 4, "uint64_t": 8, "int64_t": 8}
# What NodeLayout calls otherwise.
CALLED = {
    "cores_count": "cores",
    "vectors_count": "rx_queues",
    "endpoints_count": "endpoints",
    "pull_resends_max": "resends_max",
    "steering": "steering_kind",
}
# Written while the node is in use, or of its heap, which this one has not.
LATER = {"affinity_changes", "copies_are_timed", "heap_bytes"}


def header_fields() -> Iterator[tuple[str, str, int]]:
    """(type, name, offset) of each field in use of struct node_header."""
    text = (PACKAGE / "shared/layout.h").read_text()
    struct = text.partition("struct node_header {")[2].partition("\n};")[0]
    for kind, name, offset in FIELD.findall(struct):
        if not name.startswith("unused"):
            yield kind.removeprefix("struct "), name, int(offset)


def test_the_header_of_a_node_has_the_same_fields_in_c_and_in_cython() -> None:
    text = (PACKAGE / "shared/layout.pxd").read_text()
    struct = text.partition("    cdef struct node_header:\n")[2].partition("    cdef struct")[0]
    assert sorted(line.split() for line in struct.splitlines()) == sorted(
        [kind, name] for kind, name, _ in header_fields()
    )


def test_each_field_of_the_header_is_that_of_the_layout() -> None:
    layout = NodeLayout(
        index=3, nodes_count=5, endpoints=6, nic_runner=2, nic_agent=11, dma_runner=1, dma_agent=12,
        core_runners=[1, 1], core_agents=[1, 1], cores=2, rx_queues=4, vmmc=True, busy_poll=2,
        marks=("rndv",), mark_early=7, rx_ring_entries=128, tx_ring_entries=64, steering="rps",
        link_ring_entries=128, event_ring_entries=16, rps_cpus="1", pull_resend_delay_ns=77_000,
        resends_max=9, copy_message_bytes=4321, copy_frame_bytes=123,
    )  # fmt: skip
    node = private_node(make_control(), layout)
    header = bytes(node.segment.view()[:384])
    fields = [each for each in header_fields() if each[0] in BYTES and each[1] not in LATER]
    assert {"copy_frame_bytes", "rps_cores", "vmmc_offset"} <= {name for _, name, _ in fields}
    for kind, name, offset in fields:
        expected = getattr(layout, CALLED.get(name, name))
        if name == "rps_cores":
            expected = sum(1 << core for core in expected)
        found = int.from_bytes(header[offset : offset + BYTES[kind]], "little")
        assert found == expected != 0, name


def resident_bytes(shared: Node | Control) -> int:
    """What of a node's segment, or of a run's, has pages."""
    segment = shared.segment
    pages = ctypes.create_string_buffer(-(-segment.size_bytes // mmap.PAGESIZE))
    place = ctypes.c_void_p(segment.address), ctypes.c_size_t(segment.size_bytes)
    assert ctypes.CDLL(None).mincore(*place, pages) == 0
    return sum(page & 1 for page in pages.raw) * mmap.PAGESIZE


@pytest.mark.parametrize(
    ("populate", "is_rank", "tx_rings"),
    [
        (lambda node: node.populate(), False, 6),
        (lambda node: node.populate_rank(0, sends_frames=True), True, 1),
        (lambda node: node.populate_rank(3, sends_frames=True), True, 1),
        (lambda node: node.populate_rank(2, sends_frames=False), True, 0),
        (lambda node: node.populate_handler(0), False, 1),
        (lambda node: node.populate_handler(1), False, 1),
    ],
    ids=["all", "rank 0", "rank 3", "rank 2, no frames", "handler 0", "handler 1"],
)
def test_each_process_has_pages_of_what_it_touches(
    populate: Callable[[Node], None], is_rank: bool, tx_rings: int
) -> None:
    cores = {"cores": 2, "core_runners": [1, 1], "core_agents": [1, 1]}
    layout = NodeLayout(endpoints=4, **cores).place()  # type: ignore[arg-type]
    node = make_node(make_control(), endpoints=4, **cores)
    at_first = resident_bytes(node)
    populate(node)
    others = layout.core_tx_stride * (6 - tx_rings) + layout.link_stride
    expected = layout.size_bytes - others
    if is_rank:
        own = layout.event_stride + sizes.MEMORY_REGION_BYTES * sizes.ENDPOINT_REGIONS
        own += sizes.PULL_HANDLE_BYTES * sizes.ENDPOINT_PULLS
        expected = layout.core_tx_rings_offset + layout.core_tx_stride * tx_rings + own
    # What was written at first lies in pages of its own, too.
    assert expected <= resident_bytes(node) <= expected + at_first + 8 * mmap.PAGESIZE


def test_no_process_has_pages_of_contexts_that_none_uses() -> None:
    control = make_control()
    control.populate()
    tables = 131072 * 12  # section.h: a pointer and a count for each set of contexts
    rest = control.segment.size_bytes - tables
    assert rest - mmap.PAGESIZE <= resident_bytes(control) <= rest + 2 * mmap.PAGESIZE
