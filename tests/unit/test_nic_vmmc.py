"""SHRIMP's NIC under the virtual clock: updates into memory, and what is dropped."""

from __future__ import annotations

import random
import struct

import pytest
from support.memory import assert_counts, make_control
from support.vmmc import DMA_NS, LINK_NS, PLAIN_VMMC, VmmcNodes
from support.vmmc_layout import CLOSED, PAGE_BYTES, UPDATE, vmmc_frame

from shrimpmx.cluster.engine.trace_text import trace_text
from shrimpmx.errors import InputError
from shrimpmx.link.rings import ring_links
from shrimpmx.native.segment import Segment
from shrimpmx.native.trace import Trace
from shrimpmx.nic.vmmc import VmmcFirmware
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import put_frame
from shrimpmx.shared.private import private_node

WAY_NS = LINK_NS + DMA_NS
MAX_DATA = 1500 - 36


def ready(**parameters: object) -> VmmcNodes:
    """Two open processes; node 0's exports its first two pages."""
    nodes = VmmcNodes(parameters=PLAIN_VMMC.model_copy(update=parameters))
    nodes.open(0)
    nodes.open(1)
    nodes.export(0)
    return nodes


def drops(nodes: VmmcNodes, node: int = 0) -> dict[str, int]:
    return {name: n for name, n in nodes.nic_counters(node).items() if name.startswith("drop_")}


def test_an_update_lands_exactly_where_it_says() -> None:
    nodes = ready()
    memory = nodes.memory(0)
    data = random.Random(1).randbytes(MAX_DATA)
    wanted = bytearray(len(memory))
    nodes.export(0, index=3, offset=3 * PAGE_BYTES, length=5000, generation=9)
    nodes.update(data, 77)
    nodes.update(data[:1], 4999, index=3, generation=9)
    nodes.advance(WAY_NS)
    wanted[77 : 77 + MAX_DATA] = data
    wanted[3 * PAGE_BYTES + 4999] = data[0]
    assert bytes(memory) == bytes(wanted)
    assert_counts(
        nodes.nic_counters(0),
        {
            "rx_packets": 2,
            "rx_bytes": 1500 + 60,
            "vmmc_updates": 2,
            "vmmc_update_bytes": MAX_DATA + 1,
        },
    )


@pytest.mark.parametrize(("offset", "length"), [(4, 4), (6, 4), (8, 8), (12, 8), (1, 3), (0, 1)])
def test_words_of_any_size_and_place_are_deposited_whole(offset: int, length: int) -> None:
    nodes = ready()
    data = bytes(range(1, length + 1))
    nodes.update(data, offset)
    nodes.advance(WAY_NS)
    assert bytes(nodes.memory(0)[:20]) == bytes(offset) + data + bytes(20 - offset - length)


def test_an_update_may_straddle_two_pages() -> None:
    nodes = ready()
    nodes.update(b"abcdef", PAGE_BYTES - 3)
    nodes.advance(WAY_NS)
    assert bytes(nodes.memory(0)[PAGE_BYTES - 3 : PAGE_BYTES + 3]) == b"abcdef"


def test_data_is_there_when_its_dma_is_over_and_not_before() -> None:
    nodes = ready(dma_bytes_per_second=10**9)
    nodes.update(b"x")
    nodes.update(b"y", 1)
    nodes.advance(LINK_NS + 60 + DMA_NS - 1)  # frames of 60 bytes: 60 ns each in the engine
    assert bytes(nodes.memory(0)[:2]) == b"\0\0"
    nodes.advance(1)
    assert bytes(nodes.memory(0)[:2]) == b"x\0"
    nodes.advance(59)
    assert bytes(nodes.memory(0)[:2]) == b"x\0"
    nodes.advance(1)
    assert bytes(nodes.memory(0)[:2]) == b"xy"


def test_a_flag_never_comes_before_its_data() -> None:
    nodes = ready(dma_bytes_per_second=10**8)
    data = bytes(range(1, 201)) * 7
    nodes.update(data)
    nodes.update(struct.pack("<I", 1), PAGE_BYTES)
    flag_ns = None
    while flag_ns is None:
        nodes.advance(10)
        if nodes.memory(0)[PAGE_BYTES]:
            flag_ns = nodes.now_ns
            assert bytes(nodes.memory(0)[: len(data)]) == data
    assert flag_ns > LINK_NS + DMA_NS + 14_000


def test_updates_of_one_sender_are_deposited_in_order() -> None:
    nodes = ready()
    for value in range(1, 101):
        nodes.update(bytes([value]), 5)
        if value % 10 == 0:
            nodes.advance(7)  # steps that take some
    nodes.advance(WAY_NS)
    assert nodes.memory(0)[5] == 100
    assert nodes.nic_counters(0)["vmmc_updates"] == 100


def test_more_packets_than_the_engine_holds_wait_on_their_link() -> None:
    """4096 on their way into an engine with room for 1024 of them; all come, in order."""
    parameters = PLAIN_VMMC.model_copy(update={"dma_latency_ns": 10**4})
    nodes = VmmcNodes(parameters=parameters, link_ring_entries=4096, tx_ring_entries=4096)
    nodes.open(0)
    nodes.export(0)
    for value in range(4096):
        nodes.update(struct.pack("<I", value + 1), 4 * (value % 2))
    nodes.advance(5 * 10**6)
    assert nodes.nic_counters(0)["vmmc_updates"] == 4096
    assert struct.unpack("<II", bytes(nodes.memory(0)[:8])) == (4095, 4096)
    assert nodes.nodes[0].ring_depths()["link", 1] == 0


def test_a_node_updates_its_own_memory_over_its_link() -> None:
    nodes = VmmcNodes(nodes=1, endpoints=2)
    nodes.open(0, 0)
    nodes.open(0, 1)
    nodes.export(0, 1)
    nodes.update(b"self", 3, source=0, endpoint=1, src_endpoint=0)
    nodes.advance(WAY_NS)
    assert bytes(nodes.memory(0, 1)[3:7]) == b"self"


def test_depositing_is_odd_only_while_a_step_writes() -> None:
    nodes = ready()
    assert nodes.depositing(0) == 0
    nodes.update(b"x")
    nodes.update(b"y")
    nodes.advance(WAY_NS)
    assert nodes.depositing(0) == 2  # once for both
    nodes.advance(WAY_NS)
    assert nodes.depositing(0) == 2


# -- drops -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "fields"),
    [
        ("no_process", {"endpoint": 1}),
        ("no_process", {"endpoint": 254}),
        ("no_process", {"endpoint": 255}),
        ("not_exported", {"index": 1}),
        ("not_exported", {"index": 4095}),
        ("not_exported", {"index": 4096}),
        ("not_exported", {"index": 65535}),
        ("not_exported", {"generation": 0}),
        ("not_exported", {"generation": 2}),
        ("out_of_range", {"offset": 8189}),
        ("out_of_range", {"offset": 8193}),
        ("out_of_range", {"offset": 2**64 - 1}),
        ("out_of_range", {"offset": 2**64 - 4}),
        ("out_of_range", {"offset": 2**63}),
        ("bad_frame", {"length": 25}),
        ("bad_frame", {"length": 65535}),
    ],
)
def test_what_does_not_fit_an_export_is_dropped_and_counted(
    reason: str, fields: dict[str, int]
) -> None:
    nodes, fields = ready(), dict(fields)
    offset = fields.pop("offset", 8188)
    nodes.update(b"data", offset, ask=False, **fields)
    nodes.advance(WAY_NS)
    assert drops(nodes) == {f"drop_vmmc_{reason}": 1}
    assert not any(nodes.memory(0))
    nodes.update(b"data", 8188)  # the last bytes of the export are good
    nodes.advance(WAY_NS)
    assert bytes(nodes.memory(0)[8188:8192]) == b"data"
    assert drops(nodes) == {f"drop_vmmc_{reason}": 1}


def test_an_unknown_packet_and_another_protocols_are_bad_frames() -> None:
    nodes = ready()
    good = vmmc_frame(UPDATE, 0, 1, generation=1, data=b"data")
    nodes.send(vmmc_frame(0, 0, 1))
    nodes.send(vmmc_frame(4, 0, 1))
    nodes.send(good[:12] + b"\x86\xdf" + good[14:])
    # As short a frame as the link takes: no room for the header.
    assert put_frame(nodes.nodes[0], "link", 1, good[:35], nodes.now_ns)
    nodes.advance(WAY_NS)
    assert drops(nodes) == {"drop_vmmc_bad_frame": 4}
    assert not any(nodes.memory(0))


def test_a_frame_that_the_link_damaged_is_dropped_in_its_turn() -> None:
    nodes = ready()
    nodes.update(b"a")
    assert put_frame(nodes.nodes[0], "link", 1, b"x" * 60, 0, length=5)
    nodes.advance(WAY_NS)
    assert nodes.nic_counters(0)["rx_bad_frame"] == 1
    assert nodes.memory(0)[0] == ord("a")
    assert nodes.nodes[0].ring_depths()["link", 1] == 0


def test_an_export_for_another_node_is_not_written() -> None:
    nodes = VmmcNodes(nodes=3)
    nodes.open(0)
    nodes.export(0, allowed=2)
    nodes.update(b"one", source=1)
    nodes.update(b"two", source=2)
    nodes.advance(WAY_NS)
    assert bytes(nodes.memory(0)[:3]) == b"two"
    assert drops(nodes) == {"drop_vmmc_not_exported": 1}


@pytest.mark.parametrize(
    ("offset", "length"), [(1 << 16, 1), (0, (1 << 16) + 1), (2**64 - 8, 16), (8, 2**64 - 8)]
)
def test_an_export_beyond_its_owners_memory_is_not_written(offset: int, length: int) -> None:
    nodes = ready()
    nodes.export(0, offset=offset, length=length)
    nodes.update(b"x")
    nodes.advance(WAY_NS)
    assert drops(nodes) == {"drop_vmmc_out_of_range": 1}


def test_an_owner_whose_memory_is_not_in_the_heap_gets_nothing() -> None:
    nodes = ready()
    process = nodes.process(0)
    for part, size in ((2**63, 1 << 16), (0, 2**63), (2**64 - 4096, 1 << 16)):
        process.heap_offset, process.heap_bytes = part, size
        nodes.update(b"x")
        nodes.advance(WAY_NS)
    assert drops(nodes) == {"drop_vmmc_out_of_range": 3}


def test_a_closed_process_gets_nothing() -> None:
    nodes = ready()
    nodes.process(0).state = CLOSED
    nodes.update(b"x")
    nodes.advance(WAY_NS)
    assert drops(nodes) == {"drop_vmmc_no_process": 1}
    assert nodes.memory(0)[0] == 0


def test_what_is_in_flight_when_an_export_is_withdrawn_is_dropped() -> None:
    nodes = ready()
    nodes.update(b"before")
    nodes.advance(WAY_NS)
    nodes.update(b"after.")
    nodes.advance(WAY_NS - 1)
    nodes.export_entry(0).generation = 0
    nodes.advance(10)
    assert bytes(nodes.memory(0)[:6]) == b"before"
    assert drops(nodes) == {"drop_vmmc_not_exported": 1}


def test_an_index_exported_anew_is_not_written_by_those_who_mapped_the_old_one() -> None:
    nodes = ready()
    nodes.update(b"old", generation=1)
    nodes.export(0, generation=2, offset=PAGE_BYTES, length=100)
    nodes.update(b"new", generation=2)
    nodes.advance(WAY_NS)
    assert bytes(nodes.memory(0)[:3]) == b"\0\0\0"
    assert bytes(nodes.memory(0)[PAGE_BYTES : PAGE_BYTES + 3]) == b"new"
    assert drops(nodes) == {"drop_vmmc_not_exported": 1}


def hostile_frame(draw: random.Random) -> bytes:
    """A packet each of whose fields may be anything, though mostly it is right; some noise."""

    def field(good: int, *bad: int) -> int:
        return good if draw.random() < 0.85 else draw.choice(bad)

    top = 2**64 - 1
    frame = bytearray(
        vmmc_frame(
            field(UPDATE, 0, 2, 3, 3, draw.randrange(256)),
            0,
            1,
            endpoint=field(draw.randrange(2), 2, 254, 255),
            src_endpoint=draw.randrange(256),
            flags=draw.randrange(4),
            index=field(draw.choice((0, 2)), 1, 4095, 4096, 65535),
            generation=field(1, 0, 2, 16, draw.randrange(2**32)),
            offset=field(draw.randrange(100), 4096, top, top - 50, draw.randrange(top)),
            data=b"\xee" * draw.choice((0, 1, 4, 8, 12, 48, 49, 100, 1464)),
        )
    )
    if draw.random() < 0.2:
        for _ in range(draw.randint(1, 6)):
            frame[draw.randrange(12, len(frame))] = draw.randrange(256)
    if draw.random() < 0.1:
        del frame[draw.randrange(17, len(frame)) :]
    return bytes(frame)


@pytest.mark.parametrize("seed", range(4))
def test_hostile_frames_write_nothing_outside_exports(seed: int) -> None:
    draw = random.Random(seed)
    nodes = VmmcNodes(endpoints=2)
    for endpoint in range(2):
        nodes.open(0, endpoint)
        nodes.export(0, endpoint, offset=PAGE_BYTES, length=100)
        nodes.export(0, endpoint, index=2, offset=3 * PAGE_BYTES, length=PAGE_BYTES)
        nodes.watch(0, 1, 3, endpoint=endpoint)
    nodes.take_port(0, 0)
    nodes.take_port(0, 4095, 77)  # a port of a process that cannot be
    heap = nodes.nodes[0].heap_segment
    assert heap is not None
    before = bytes(heap.view())
    for _ in range(1500):
        assert put_frame(nodes.nodes[0], "link", 1, hostile_frame(draw), nodes.now_ns)
        nodes.advance(DMA_NS)
    counters = nodes.nic_counters(0)
    assert counters["rx_packets"] + counters.get("rx_bad_frame", 0) == 1500
    assert all(
        counters[f"drop_vmmc_{reason}"]
        for reason in ("bad_frame", "no_process", "not_exported", "out_of_range")
    )
    assert counters["vmmc_updates"] > 100
    after = bytearray(heap.view())
    for endpoint in range(2):
        start = PAGE_BYTES + endpoint * (1 << 16)  # the heap begins one page into its segment
        for first, size in ((PAGE_BYTES, 100), (3 * PAGE_BYTES, PAGE_BYTES)):
            assert any(after[start + first : start + first + size])
            after[start + first : start + first + size] = bytes(size)
    assert bytes(after) == before


# -- the rest ----------------------------------------------------------------------


def test_a_trace_of_vmmc_packets_reads_as_text() -> None:
    nodes = ready()
    trace = Trace.create(Segment.anonymous(Trace.size_bytes(8, 64), 3), 8, 64)
    for index, agent in enumerate(nodes.agents):
        agent.use_trace(trace, index)
    nodes.watch(0, 0)
    nodes.update(b"data", ask=True)
    nodes.letter(b"hello")
    nodes.advance(WAY_NS)
    told = trace_text(trace.records())
    for words in (
        "frame sent: update for endpoint 0, 4 bytes of data, 1>0, 60 bytes",
        "frame arrived: letter for endpoint 0, 5 bytes of data, 1>0, 60 bytes",
        "DMA complete: update for endpoint 0, 4 bytes of data, 1>0, 60 bytes",
        "interrupt raised, vector 0: packet",
        "interrupt taken on core 0, vector 0",
        "process 1 woken",
    ):
        assert words in told


def test_a_node_without_vmmc_memory_is_refused() -> None:
    node = private_node(make_control(["nic"], [("nic", "nic", 0)]), NodeLayout())
    with pytest.raises(InputError, match="not laid out for a vmmc NIC"):
        VmmcFirmware(node, *ring_links([node], 0, PLAIN_VMMC), PLAIN_VMMC)
