"""How the library reaches a buffer: in the heap, in the process, or through a bounce buffer."""

from __future__ import annotations

import pytest
from support.virtual_cluster import HEAP_BYTES, VirtualCluster

from shrimpmx.errors import MachineError
from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.mx import library as library_module
from shrimpmx.mx.library import Library, reach_buffer
from shrimpmx.native.copy import process_memory_permitted
from shrimpmx.settings.mx import MxParameters
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.host import host_of
from shrimpmx.shared.node import Node

PERMITTED = process_memory_permitted()
DIRECT, BOUNCED = ("heap", False, False, True), ("heap", True, True, True)


def library_of(node: Node, memory: str) -> Library:
    parameters = MxParameters.model_validate({"memory": memory})
    driver = DriverEndpoint(node, 0, 1)
    return Library(node, driver, parameters, 0, 1, host_of(node.control))


@pytest.fixture
def node() -> Node:
    return VirtualCluster(1).nodes[0]


@pytest.fixture
def no_process_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "process_memory_permitted", lambda: False)


@pytest.mark.parametrize(
    ("memory", "inside", "outside"),
    [
        ("auto", DIRECT, ("process", False, False, False)),
        ("heap", DIRECT, BOUNCED),
        ("process-vm", ("process", False, False, True), ("process", False, False, False)),
        ("bounce", BOUNCED, BOUNCED),
    ],
)
def test_each_way_takes_what_it_is_called_after(
    memory: str, inside: tuple[object, ...], outside: tuple[object, ...], node: Node
) -> None:
    if not PERMITTED and memory in ("auto", "process-vm"):
        pytest.skip("this system does not let processes copy from each other")
    library = library_of(node, memory)
    heap = Heap.of_process(node, 0)
    assert reach_buffer(library, heap.allocate(50_000)) == inside
    assert reach_buffer(library, bytearray(50_000)) == outside
    assert (heap.blocks, heap.errors) == (0, 0)


def test_auto_bounces_messages_to_other_nodes_and_leaves_room(node: Node) -> None:
    if not PERMITTED:
        pytest.skip("this system does not let processes copy from each other")
    library, heap = library_of(node, "auto"), Heap.of_process(node, 0)
    process = ("process", False, False, False)
    assert reach_buffer(library, bytearray(50_000), away=True) == BOUNCED
    assert reach_buffer(library, heap.allocate(50_000), away=True) == DIRECT
    assert reach_buffer(library, bytearray(HEAP_BYTES // 8), away=True) == BOUNCED
    assert reach_buffer(library, bytearray(HEAP_BYTES // 8 + 1), away=True) == process
    kept = [heap.allocate(HEAP_BYTES // 4) for _ in range(3)]
    assert reach_buffer(library, bytearray(50_000), away=True) == process
    del kept
    assert reach_buffer(library_of(node, "process-vm"), bytearray(50_000), away=True) == process


@pytest.mark.usefixtures("no_process_memory")
def test_auto_bounces_where_the_system_forbids_the_rest(node: Node) -> None:
    library = library_of(node, "auto")
    assert reach_buffer(library, bytearray(50_000)) == BOUNCED
    with pytest.raises(MachineError, match="set memory=auto, which takes a bounce buffer instead"):
        library_of(node, "process-vm")


def test_without_room_it_says_whether_to_try_again(node: Node) -> None:
    library = library_of(node, "bounce")
    heap = Heap.of_process(node, 0)
    full = heap.allocate(HEAP_BYTES)
    assert reach_buffer(library, bytearray(1000)) == "later"
    del full
    assert reach_buffer(library, bytearray(1000)) == BOUNCED
    assert reach_buffer(library, bytearray(HEAP_BYTES // 2)) == BOUNCED
    assert reach_buffer(library, bytearray(HEAP_BYTES // 2 + 1)) == "never"


@pytest.mark.usefixtures("no_process_memory")
def test_a_node_without_heaps_reaches_nothing() -> None:
    node = VirtualCluster(1, heap_bytes=0).nodes[0]
    for memory in ("auto", "heap", "bounce"):
        assert reach_buffer(library_of(node, memory), bytearray(1000)) == "never"


def test_endpoints_of_one_process_share_a_heap() -> None:
    node = VirtualCluster(1, endpoints=2).nodes[0]
    libraries = [library_of(node, "heap") for _ in range(2)]
    view = Heap.of_process(node, 0).allocate(1000)
    assert [reach_buffer(library, view) for library in libraries] == [DIRECT, DIRECT]
