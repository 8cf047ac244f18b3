"""Forks: a child's arrays are copies of its parent's, as those in ordinary memory are.

The heap is shared memory, which a fork does not copy. So the child takes a copy of what is used of
it, in private memory at the same addresses, while its parent waits. This holds for forks that
Python knows of (`os.fork`, multiprocessing), not for those of C.
"""

import os
from threading import local
from weakref import WeakSet

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy
from posix.mman cimport (
    MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap,
)

from shrimpmx.shared.heap cimport Heap

cdef extern from *:
    """
    #include <sys/mman.h>
    /* Private memory takes the place of what lies at `to`. */
    static int move_pages(void *from, void *to, size_t length) {
        return mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED;
    }
    """
    bint move_pages(void *copy, void *to, size_t length) noexcept nogil

_heaps = WeakSet()
_fork = local()  # heaps, and the two ends of a pipe: what a fork of this thread is about


def keep_apart(Heap heap not None):
    """From now on a fork's child has a copy of this heap."""
    _heaps.add(heap)


cdef int become_private(Heap heap) except -1:
    cdef uint8_t *copy
    cdef uint64_t place
    copy = <uint8_t *>mmap(NULL, heap.size_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    if <void *>copy == MAP_FAILED:
        raise MemoryError("no address space for a forked child's copy of its arrays")
    place = heap.next_used(0)
    while place < heap.size_bytes:
        memcpy(copy + place, heap.start + place, heap.length_of(heap.start + place))
        place = heap.next_used(place + 1)
    if move_pages(copy, heap.start, heap.size_bytes):
        munmap(copy, heap.size_bytes)
        raise MemoryError("no room for a forked child's copy of its arrays")
    return 0


def _before():
    cdef Heap heap
    # One that was copied already is ordinary memory, which the fork copies.
    _fork.heaps = [heap for heap in _heaps if not heap.inherited()]
    if _fork.heaps:
        _fork.reader, _fork.writer = os.pipe()
    for heap in _fork.heaps:
        heap.lock()


def _in_parent():
    _let_go()
    if _fork.heaps:
        os.close(_fork.writer)
        os.read(_fork.reader, 1)  # until the child has its copy, or has ended
        os.close(_fork.reader)
        _fork.heaps = []


def _in_child():
    _let_go()
    for heap in _fork.heaps:
        become_private(heap)
    if _fork.heaps:
        os.write(_fork.writer, b"1")
        os.close(_fork.writer)
        os.close(_fork.reader)
        _fork.heaps = []


cdef int _let_go() except -1:
    cdef Heap heap
    for heap in _fork.heaps:
        heap.unlock()
    return 0


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
