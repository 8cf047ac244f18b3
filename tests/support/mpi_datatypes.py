"""Random datatypes, each beside a slow reference: its type map (MPI 3.1, 4.1), entry by entry.

Run as a program: a world of one compares sizes, bounds, contents and data of many of them.
"""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shrimpmx.mpi.library import library_path

mpi = ctypes.CDLL(str(library_path()))
Aint = ctypes.c_ssize_t
SELF, BYTE = 0x44000001, 0x4C00010D
BASIC = {BYTE: 1, 0x4C000203: 2, 0x4C000405: 4, 0x4C00080B: 8}
ORDER_C, ORDER_FORTRAN = 56, 57
BLOCK, CYCLIC, NONE, DEFAULT = 121, 122, 123, -49767
ENTRIES_MAX = 300
MARGIN = 1 << 16


@dataclass(frozen=True)
class Map:
    """Displacement and bytes of each entry, and bounds, which may have been set."""

    entries: tuple[tuple[int, int], ...]
    lower: int
    upper: int
    marked: bool = False
    alignment: int = 1

    @property
    def extent(self) -> int:
        return self.upper - self.lower

    @property
    def size(self) -> int:
        return sum(length for _, length in self.entries)


def joined(copies: list[tuple[int, Map]]) -> Map:
    """Copies of maps at their displacements."""
    entries = tuple((place + at, length) for place, one in copies for at, length in one.entries)
    marked = any(one.marked for _, one in copies)
    bounds = [(place, one) for place, one in copies if one.marked == marked]
    if not bounds:
        return Map((), 0, 0)
    lower = min(place + one.lower for place, one in bounds)
    upper = max(place + one.upper for place, one in bounds)
    alignment = max(one.alignment for _, one in copies)
    if not marked:
        upper += -(upper - lower) % alignment
    return Map(entries, lower, upper, marked, alignment)


def block(place: int, length: int, one: Map) -> list[tuple[int, Map]]:
    return [(place + index * one.extent, one) for index in range(length)]


@dataclass
class Made:
    """A datatype by its handle, and its map."""

    handle: int
    map: Map


def make(name: str, *arguments: Any) -> int:
    """The handle of a committed datatype."""
    handle = ctypes.c_int()
    assert mpi[f"MPI_Type_{name}"](*arguments, ctypes.byref(handle)) == 0, (name, arguments)
    assert mpi.MPI_Type_commit(ctypes.byref(handle)) == 0
    return handle.value


def ints(values: list[int]) -> Any:
    return (ctypes.c_int * len(values))(*values)


def aints(values: list[int]) -> Any:
    return (Aint * len(values))(*values)


small = st.integers(0, 3)
places = st.integers(-6, 12)


@st.composite
def regular(draw: Any, old: Made) -> Made:
    count, length, stride = draw(small), draw(small), draw(places)
    kind = draw(st.sampled_from(["contiguous", "vector", "create_hvector"]))
    one = old.map
    if kind == "contiguous":
        return Made(make(kind, count, old.handle), joined(block(0, count, one)))
    step = stride * one.extent if kind == "vector" else stride
    copies = [each for turn in range(count) for each in block(turn * step, length, one)]
    given_stride = stride if kind == "vector" else Aint(stride)
    return Made(make(kind, count, length, given_stride, old.handle), joined(copies))


@st.composite
def with_places(draw: Any, old: Made) -> Made:
    count, length = draw(small), draw(small)
    at = [draw(places) for _ in range(count)]
    lengths = [draw(small) for _ in range(count)]
    one = old.map
    kind = draw(
        st.sampled_from(
            ["indexed", "create_hindexed", "create_indexed_block", "create_hindexed_block"]
        )
    )
    is_bytes, is_block = "_h" in kind, "block" in kind
    listed = aints(at) if is_bytes else ints(at)
    copies = [
        each
        for place, some in zip(at, lengths, strict=True)
        for each in block(
            place if is_bytes else place * one.extent, length if is_block else some, one
        )
    ]
    head = [count, length] if is_block else [count, ints(lengths)]
    return Made(make(kind, *head, listed, old.handle), joined(copies))


@st.composite
def structs(draw: Any, old: Made) -> Made:
    basic = [
        Made(handle, Map(((0, size),), 0, size, False, size)) for handle, size in BASIC.items()
    ]
    members = draw(st.lists(st.sampled_from([old, *basic]), max_size=3))
    lengths = [draw(small) for _ in members]
    at = [draw(st.integers(-20, 60)) for _ in members]
    copies = [
        each
        for place, length, member in zip(at, lengths, members, strict=True)
        for each in block(place, length, member.map)
    ]
    handles = ints([member.handle for member in members])
    return Made(
        make("create_struct", len(members), ints(lengths), aints(at), handles), joined(copies)
    )


@st.composite
def bounds(draw: Any, old: Made) -> Made:
    if draw(st.booleans()):
        return Made(make("dup", old.handle), old.map)
    lower, extent = draw(places), draw(st.integers(0, 40))
    one = Map(old.map.entries, lower, lower + extent, True, old.map.alignment)
    return Made(make("create_resized", old.handle, Aint(lower), Aint(extent)), one)


def grid(indices: list[list[int]], sizes: list[int], order: int, one: Map) -> Map:
    """Elements of an array, whose bounds are those of all of it."""
    strides, step = [0] * len(sizes), 1
    fastest_first = range(len(sizes)) if order == ORDER_FORTRAN else reversed(range(len(sizes)))
    for dimension in fastest_first:
        strides[dimension] = step
        step *= sizes[dimension]
    slowest_first = sorted(range(len(sizes)), reverse=order == ORDER_FORTRAN)
    chosen = itertools.product(*(indices[each] for each in slowest_first))
    copies = [
        (
            sum(index * strides[each] for index, each in zip(some, slowest_first, strict=True))
            * one.extent,
            one,
        )
        for some in chosen
    ]
    entries = joined(copies).entries
    return Map(entries, 0, step * one.extent, True, one.alignment)


@st.composite
def subarrays(draw: Any, old: Made) -> Made:
    order = draw(st.sampled_from([ORDER_C, ORDER_FORTRAN]))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    lengths = [draw(st.integers(1, size)) for size in sizes]
    starts = [
        draw(st.integers(0, size - length)) for size, length in zip(sizes, lengths, strict=True)
    ]
    indices = [
        list(range(start, start + length)) for start, length in zip(starts, lengths, strict=True)
    ]
    lists = ints(sizes), ints(lengths), ints(starts)
    handle = make("create_subarray", len(sizes), *lists, order, old.handle)
    return Made(handle, grid(indices, sizes, order, old.map))


@dataclass
class Part:
    """How a dimension of a distributed array is dealt out: by groups, in turn."""

    size: int
    processes: int
    how: int
    argument: int

    def indices(self, place: int) -> list[int]:
        """Those of the process at a place."""
        group = {BLOCK: -(-self.size // self.processes), CYCLIC: 1, NONE: self.size}[self.how]
        if self.argument != DEFAULT and self.how != NONE:
            group = self.argument
        return [each for each in range(self.size) if each // group % self.processes == place]


@st.composite
def dimensions(draw: Any) -> Part:
    size, how = draw(st.integers(1, 4)), draw(st.sampled_from([BLOCK, CYCLIC, NONE]))
    processes = 1 if how == NONE else draw(st.integers(1, 3))
    argument = draw(st.sampled_from([DEFAULT, 1, 2]))
    if how == BLOCK and argument * processes < size:
        argument = DEFAULT
    return Part(size, processes, how, argument)


@st.composite
def distributed_arrays(draw: Any, old: Made) -> Made:
    order = draw(st.sampled_from([ORDER_C, ORDER_FORTRAN]))
    parts = draw(st.lists(dimensions(), min_size=1, max_size=3))
    # Processes are numbered with the last dimension fastest.
    all_places = list(itertools.product(*(range(part.processes) for part in parts)))
    rank = draw(st.integers(0, len(all_places) - 1))
    indices = [part.indices(place) for part, place in zip(parts, all_places[rank], strict=True)]
    sizes = [part.size for part in parts]
    lists = (
        ints(sizes),
        ints([part.how for part in parts]),
        ints([part.argument for part in parts]),
        ints([part.processes for part in parts]),
    )
    handle = make("create_darray", len(all_places), rank, len(parts), *lists, order, old.handle)
    return Made(handle, grid(indices, sizes, order, old.map))


@st.composite
def datatypes(draw: Any) -> Made:
    handle = draw(st.sampled_from(sorted(BASIC)))
    size = BASIC[handle]
    made = Made(handle, Map(((0, size),), 0, size, False, size))
    for _ in range(draw(st.integers(1, 3))):
        maker = draw(
            st.sampled_from([regular, with_places, structs, bounds, subarrays, distributed_arrays])
        )
        larger = draw(maker(made))
        if len(larger.map.entries) > ENTRIES_MAX:
            break
        made = larger
    return made


def two(function: str, handle: int) -> tuple[int, int]:
    lower, extent = Aint(), Aint()
    assert mpi[function](handle, ctypes.byref(lower), ctypes.byref(extent)) == 0
    return lower.value, extent.value


def places_of(one: Map, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Every byte of `count` elements, in their order."""
    element = [at + byte for at, length in one.entries for byte in range(length)]
    turns = np.arange(count)[:, None] * one.extent
    return (turns + np.array(element, np.int64)).ravel()


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(datatypes(), st.integers(0, 3), st.floats(0, 1))
def compare(made: Made, count: int, part: float) -> None:
    """Sizes and bounds, packed data, and those of a message that fills a part of it."""
    one, handle = made.map, made.handle
    size = ctypes.c_longlong()
    assert mpi.MPI_Type_size_x(handle, ctypes.byref(size)) == 0
    assert size.value == one.size
    assert two("MPI_Type_get_extent", handle) == (one.lower, one.extent)
    if one.entries:
        low = min(at for at, _ in one.entries)
        true = low, max(at + length for at, length in one.entries) - low
        assert two("MPI_Type_get_true_extent", handle) == true
    where = places_of(one, count) + MARGIN
    assert not where.size or 0 <= where.min() <= where.max() < 2 * MARGIN
    memory = np.resize(np.arange(251, dtype=np.uint8), 2 * MARGIN)
    start = ctypes.c_void_p(memory.ctypes.data + MARGIN)
    packed, position = np.empty(where.size + 1, np.uint8), ctypes.c_int(0)
    arguments = (start, count, handle, ctypes.c_void_p(packed.ctypes.data), where.size)
    assert mpi.MPI_Pack(*arguments, ctypes.byref(position), SELF) == 0
    assert position.value == where.size
    assert (packed[:-1] == memory[where]).all()
    length = int(part * where.size)
    sent, expected = packed ^ 0xFF, memory.copy()
    for at, byte in zip(where[:length], sent[:length], strict=True):
        expected[at] = byte  # entries may overlap: the last one counts
    status = (ctypes.c_int * 5)()
    bytes_of_sent = (ctypes.c_void_p(sent.ctypes.data), length, BYTE, 0, 1)
    arguments = (*bytes_of_sent, start, count, handle, 0, 1, SELF, status)
    assert mpi.MPI_Sendrecv(*arguments) == 0
    assert (memory == expected).all()
    assert status[0] == length
    if handle not in BASIC:
        assert mpi.MPI_Type_free(ctypes.byref(ctypes.c_int(handle))) == 0


if __name__ == "__main__":
    assert mpi.MPI_Init(None, None) == 0
    compare()
    print("as in the reference")
    assert mpi.MPI_Finalize() == 0
