"""The ranks' heap: a model, full memory, forks, and numpy's arrays in it."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import random
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support import memory
from support.forked import in_child

from shrimpmx.errors import MachineError
from shrimpmx.native.segment import RunIdentity, Segment
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.node import Node
from shrimpmx.shared.private import private_node

MIB = 1 << 20
BLOCK_BYTES = 256
PAGE_BYTES = mmap.PAGESIZE
CHUNK_BYTES = 65536
CLAIMS_AT = 1024  # in the segment
NOBODY = 65534


def make_node(heap_bytes: int = MIB, endpoints: int = 1, segment: Segment | None = None) -> Node:
    layout = NodeLayout(heap_bytes=heap_bytes, endpoints=endpoints)
    control = memory.make_control(["host"], [("node0.irq0", "irq", 0)])
    if segment is None:
        return private_node(control, layout)
    return Node.create(Segment.anonymous(Node.size_bytes(layout), 2), control, layout, segment)


@pytest.fixture
def heap() -> Heap:
    return Heap(make_node(), 0)


@pytest.fixture
def shared() -> Iterator[Segment]:
    """A sparse segment with a name, as a run has it."""
    layout = NodeLayout(heap_bytes=MIB)
    identity = RunIdentity.of_this_process()
    segment = Segment.create(identity, "heap0", layout.heap_segment_bytes, 4, reserve=False)
    yield segment
    segment.unlink()
    segment.close()


def block_bytes(size_bytes: int) -> int:
    return max(BLOCK_BYTES, 1 << (size_bytes - 1).bit_length()) if size_bytes else BLOCK_BYTES


def free_bytes(heap: Heap) -> int:
    return sum(size * count for size, count in heap.free_blocks().items())


def address_of(array: NDArray[np.generic]) -> int:
    return int(array.__array_interface__["data"][0])


# -- blocks ------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), heap_bytes=st.integers(MIB, MIB + 300_000))
def test_blocks_never_overlap_and_all_comes_back(seed: int, heap_bytes: int) -> None:
    rng = random.Random(seed)
    heap = Heap(make_node(heap_bytes), 0)
    whole = heap.free_blocks()
    out: dict[int, tuple[int, int]] = {}  # address: size asked for, its fill
    for step in range(150):
        if out and rng.random() < 0.45:
            address = rng.choice(list(out))
            size, fill = out.pop(address)
            assert ctypes.string_at(address, size) == bytes([fill]) * size
            heap.give_block(address)
        else:
            size = int(2 ** rng.uniform(0, 18))
            address = heap.take_block(size)
            if not address:
                assert max(heap.free_blocks(), default=0) < block_bytes(size)
                continue
            assert address % (PAGE_BYTES if size > PAGE_BYTES // 2 else 64) == 0
            assert address not in out
            ctypes.memset(address, step, size)
            out[address] = (size, step)
        used = sum(block_bytes(size) for size, _ in out.values())
        assert (heap.used_bytes, heap.blocks) == (used, len(out))
        assert free_bytes(heap) + used == heap.size_bytes
    for address, (size, fill) in out.items():
        assert ctypes.string_at(address, size) == bytes([fill]) * size
        heap.give_block(address)
    assert heap.free_blocks() == whole
    assert heap.errors == 0


def test_a_full_heap_refuses_and_recovers(heap: Heap) -> None:
    blocks = []
    while address := heap.take_block(100_000):
        blocks.append(address)
    assert (len(blocks), heap.refused, heap.used_bytes) == (8, 1, MIB)
    with pytest.raises(MemoryError, match=r"1048576 of 1048576 bytes are used; mx\.heap_bytes"):
        heap.allocate(1)
    heap.give_block(blocks.pop(3))
    assert heap.take_block(131_072)
    assert heap.take_block(1) == 0
    assert heap.peak_bytes == MIB


def test_the_whole_heap_is_one_block_and_no_more(heap: Heap) -> None:
    assert heap.take_block(MIB + 1) == heap.take_block(1 << 63) == 0
    address = heap.take_block(MIB)
    ctypes.memset(address, 7, MIB)
    heap.give_block(address)
    assert heap.free_blocks() == {MIB: 1}


def test_what_was_given_last_is_taken_first(heap: Heap) -> None:
    blocks = [heap.take_block(BLOCK_BYTES) for _ in range(8)]
    heap.give_block(blocks[2])
    heap.give_block(blocks[6])
    assert [heap.take_block(1), heap.take_block(1)] == [blocks[6], blocks[2]]


def test_wrong_addresses_are_counted_and_change_nothing(heap: Heap) -> None:
    address = heap.take_block(1000)
    other = heap.take_block(1000)
    before = heap.free_blocks()
    foreign = ctypes.create_string_buffer(64)
    for wrong in (address + 256, address + 1, ctypes.addressof(foreign), 0, address + 2 * MIB):
        heap.give_block(wrong)
    assert (heap.errors, heap.free_blocks(), heap.blocks) == (5, before, 2)
    heap.give_block(address)
    heap.give_block(address)
    assert (heap.errors, heap.blocks) == (6, 1)
    heap.give_block(other)
    assert heap.free_blocks() == {MIB: 1}


def test_a_view_keeps_its_block(heap: Heap) -> None:
    view = heap.allocate(1000)
    assert (view.nbytes, view.readonly, heap.used_bytes) == (1000, False, 1024)
    part = view[10:20]
    del view
    part[:] = bytes(10)
    assert heap.holds(part)
    assert heap.blocks == 1
    del part
    assert (heap.blocks, heap.errors) == (0, 0)


def test_no_bytes_are_a_block_too(heap: Heap) -> None:
    assert heap.allocate(0).nbytes == 0
    assert heap.take_block(0) != heap.take_block(0) != 0


def test_threads_share_it() -> None:
    heap = Heap(make_node(16 * MIB), 0)
    wrong: list[int] = []

    def work(number: int) -> None:
        rng = random.Random(number)
        mine: list[int] = []
        for _ in range(3000):
            if mine and rng.random() < 0.5:
                address = mine.pop(rng.randrange(len(mine)))
                wrong.extend([number] * (ctypes.c_uint8.from_address(address).value != number))
                heap.give_block(address)
            else:
                mine.append(heap.take_block(rng.randint(1, 4000)))
                ctypes.memset(mine[-1], number, 256)
        for address in mine:
            heap.give_block(address)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (wrong, heap.errors, heap.free_blocks()) == ([], 0, {16 * MIB: 1})


# -- pages -------------------------------------------------------------------


def resident_bytes(segment: Segment) -> int:
    return os.stat(f"/dev/shm/{segment.name}").st_blocks * 512


def test_only_what_is_asked_for_takes_memory(shared: Segment) -> None:
    heap = Heap(make_node(segment=shared), 0)
    assert resident_bytes(shared) == PAGE_BYTES
    address = heap.take_block(MIB // 2 + 1)  # a block of the whole heap
    assert resident_bytes(shared) == PAGE_BYTES + MIB // 2 + CHUNK_BYTES
    heap.give_block(address)
    heap.take_block(CHUNK_BYTES)
    assert resident_bytes(shared) == PAGE_BYTES + MIB // 2 + CHUNK_BYTES


@pytest.mark.parametrize("touch", [False, True], ids=["populate", "touch"])
def test_where_there_are_no_pages_there_is_no_block(touch: bool, shared: Segment) -> None:
    # Beyond the end of the file a page cannot be had, just as in a full /dev/shm.
    heap = Heap(make_node(segment=shared), 0, touch=touch)
    kept = heap.take_block(CHUNK_BYTES)
    ctypes.memset(kept, 1, CHUNK_BYTES)
    os.truncate(f"/dev/shm/{shared.name}", PAGE_BYTES + 2 * CHUNK_BYTES)
    assert heap.take_block(CHUNK_BYTES * 4) == 0
    assert (heap.starved, heap.refused, heap.used_bytes) == (1, 0, CHUNK_BYTES)
    with pytest.raises(MemoryError, match="are used and /dev/shm is full"):
        heap.allocate(MIB // 2)
    with heap.use_for_numpy():
        array = np.ones(MIB // 2, np.uint8)
    assert (heap.holds(array), heap.outside, array.sum()) == (False, 1, MIB // 2)
    other = heap.take_block(CHUNK_BYTES)
    ctypes.memset(other, 2, CHUNK_BYTES)
    assert ctypes.string_at(kept, CHUNK_BYTES) == b"\1" * CHUNK_BYTES
    os.truncate(f"/dev/shm/{shared.name}", shared.size_bytes)
    assert heap.take_block(MIB // 2)


def test_touching_leaves_what_is_there(shared: Segment) -> None:
    node = make_node(segment=shared)
    first = Heap(node, 0)
    address = first.take_block(CHUNK_BYTES)
    ctypes.memset(address, 9, CHUNK_BYTES)
    del first
    again = Heap(node, 0, touch=True)
    assert again.take_block(CHUNK_BYTES) == address
    assert ctypes.string_at(address, CHUNK_BYTES) == b"\11" * CHUNK_BYTES


# -- processes ---------------------------------------------------------------


def test_a_process_has_one_heap_per_node() -> None:
    one, other = make_node(endpoints=2), make_node(endpoints=2)
    heap = Heap.of_process(one, 1)
    assert Heap.of_process(one, 0) is heap
    assert heap.endpoint == 1
    assert Heap.of_process(other, 0) is not heap
    del heap
    assert Heap.of_process(one, 0).endpoint == 0


def test_a_part_has_one_owner() -> None:
    node = make_node(endpoints=2)
    first, second = Heap(node, 1), Heap(node, 1)
    assert (first.endpoint, second.endpoint) == (1, 0)
    with pytest.raises(MachineError, match="all 2 heaps of node 0 are in use"):
        Heap(node, 0)
    del first
    assert Heap(node, 0).endpoint == 1


def test_a_part_of_another_users_process_is_not_taken(shared: Segment) -> None:
    node = make_node(segment=shared)
    memory.word32(shared, CLAIMS_AT).value = 1  # root's, which none but root may signal

    def is_refused() -> bool:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        try:
            Heap(node, 0)
        except MachineError:
            return True
        return False

    assert in_child(is_refused)


def test_parts_do_not_overlap() -> None:
    node = make_node(heap_bytes=MIB + 1000, endpoints=2)
    heaps = [Heap(node, 0), Heap(node, 1)]
    whole = [heap.allocate(MIB - MIB // 2) for heap in heaps]
    for number, view in enumerate(whole):
        view[:] = bytes([number + 1]) * len(view)
    assert [set(view) for view in whole] == [{1}, {2}]
    assert [heaps[0].holds(view) for view in whole] == [True, False]


def test_a_forked_child_takes_and_gives_nothing_of_its_parents() -> None:
    node = make_node(endpoints=2)
    heap = Heap.of_process(node, 0)
    with heap.use_for_numpy():
        kept = np.full(1000, 7)

        def work() -> bool:
            nonlocal kept
            refused = heap.take_block(1) == 0 and not heap.holds(np.full(1000, 8))
            own = Heap.of_process(node, 0)
            taken = own.endpoint == 1 and own is not heap
            inside = own.allocate(5000)
            inside[:] = bytes(5000)
            readable = int(kept.sum()) == 7000 and np.append(kept, 1).size == 1001
            del kept
            return refused and taken and readable and own.blocks == 1

        assert in_child(work)
    assert (kept.sum(), heap.blocks, heap.errors) == (7000, 1, 0)
    assert not in_child(lambda: heap.take_block(64) != 0)
    # The dead child's part can be had again.
    assert in_child(lambda: Heap.of_process(node, 1).endpoint == 1)


def test_a_node_without_heaps_says_so() -> None:
    with pytest.raises(MachineError, match="node 0 has no heaps for its ranks"):
        Heap(make_node(heap_bytes=0), 0)
    with pytest.raises(IndexError, match="no endpoint 1; there are 1"):
        Heap(make_node(), 1)


# -- numpy -------------------------------------------------------------------


def test_numpy_arrays_lie_in_it(heap: Heap) -> None:
    outside = np.arange(10)
    with heap.use_for_numpy():
        arrays = [
            np.arange(1000),
            np.zeros((30, 40), np.complex128),
            np.empty(0),
            np.array(3.5),
            np.random.default_rng(1).random((100, 100)).T.copy(),
            np.array(["heap", "memory"]),
        ]
        for array in arrays:
            assert heap.holds(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    assert heap.outside == 0
    view = arrays[0].reshape(10, 100)[3:5].view(np.float32)
    assert heap.holds(view)
    assert not heap.holds(outside)
    assert not heap.holds(np.arange(10))
    blocks = heap.blocks
    arrays.clear()
    del array
    assert heap.blocks < blocks
    assert int(view.view(np.int64)[0, 0]) == 300
    del view
    assert (heap.blocks, heap.errors) == (0, 0)


def test_zeros_are_zeros_where_something_lay_before(heap: Heap) -> None:
    with heap.use_for_numpy():
        dirty = np.full(200_000, 255, np.uint8)
        address = address_of(dirty)
        del dirty
        clean = np.zeros(200_000, np.uint8)
    assert address_of(clean) == address
    assert not clean.any()


def test_arrays_are_resized_where_they_lie_if_their_block_allows(heap: Heap) -> None:
    with heap.use_for_numpy():
        array = np.arange(600, dtype=np.uint8)
        address = address_of(array)
        array.resize(1024, refcheck=False)
        assert address_of(array) == address
        array.resize(1025, refcheck=False)
        assert address_of(array) != address
        assert heap.used_bytes == 2048
        address = address_of(array)
        array.resize(700, refcheck=False)
        assert (address_of(array), heap.used_bytes) == (address, 2048)
        array.resize(100, refcheck=False)
        assert heap.used_bytes == 256
        array.resize(2 * MIB, refcheck=False)
    assert (heap.outside, heap.blocks, heap.errors) == (1, 0, 0)
    assert array[:100].tolist() == list(range(100))
    array.resize(50, refcheck=False)
    assert array.tolist() == list(range(50))


def test_growing_in_place_takes_the_pages_it_needs(shared: Segment) -> None:
    heap = Heap(make_node(segment=shared), 0)
    with heap.use_for_numpy():
        array = np.ones(MIB // 2 + 1, np.uint8)
        before = resident_bytes(shared)
        array.resize(MIB, refcheck=False)
    assert resident_bytes(shared) == before + MIB // 2 - CHUNK_BYTES
    array[:] = 1
    assert heap.holds(array)


def test_what_has_no_room_lies_elsewhere(heap: Heap) -> None:
    with heap.use_for_numpy():
        arrays = [np.full(100_000, number, np.uint8) for number in range(12)]
        zeros = np.zeros(100_000, np.uint8)
    assert [heap.holds(array) for array in arrays] == [True] * 8 + [False] * 4
    assert (zeros.any(), heap.holds(zeros)) == (False, False)
    assert heap.outside >= 5  # and small ones that numpy made on the way
    random.Random(3).shuffle(arrays)
    while arrays:
        array = arrays.pop()
        assert len(set(array.tolist())) == 1
    del array
    assert (heap.free_blocks(), heap.errors) == ({MIB: 1}, 0)


def test_contexts_nest_and_end() -> None:
    one, other = Heap(make_node(), 0), Heap(make_node(), 0)
    context = one.use_for_numpy()
    with context, other.use_for_numpy():
        with context:
            assert one.holds(np.arange(10))
        assert other.holds(np.arange(10))
    array = np.arange(10)
    assert not one.holds(array)
    assert not other.holds(array)


def test_an_array_keeps_the_memory_that_it_lies_in() -> None:
    node = make_node()
    segment = node.heap_segment
    assert segment is not None
    with Heap(node, 0).use_for_numpy() as heap:
        array = np.arange(1000)
    del node, heap
    segment.close()
    gc.collect()
    assert int(array.sum()) == 499_500
    array[:] = 1
    assert int(array.sum()) == 1000
