"""Frames whose DMA is under way, held on their links until it is over.

For NICs that have no rx ring: what a frame says is done when its bytes would be in host memory.
Frames pass the DMA engine one after another at its rate; the latency that follows is pipelined.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc

from shrimpmx.link.ends cimport Ingress, incoming_frame
from shrimpmx.link.rate cimport rate_line, rate_line_initialise, rate_line_pass
from shrimpmx.native.clock cimport NEVER_NS


cdef enum:
    # Further frames wait on their link (ours). A power of two.
    HELD_MAX = 1024


cdef struct held_frame:
    incoming_frame arrived       # its `frame` is NULL if it was a bad one
    int64_t due_ns               # when it is in memory


cdef struct held_frames:
    held_frame *frames           # HELD_MAX of them; free() is the owner's
    uint32_t first               # free-running
    uint32_t count
    int64_t due_ns               # when the first one's DMA is over; NEVER_NS: there is none
    int64_t latency_ns
    rate_line line


cdef inline bint held_initialise(held_frames *held, int64_t latency_ns,
                                 uint64_t bytes_per_second) noexcept nogil:
    """False if there is no memory."""
    held.frames = <held_frame *>calloc(HELD_MAX, sizeof(held_frame))
    held.first = held.count = 0
    held.due_ns = NEVER_NS
    held.latency_ns = latency_ns
    rate_line_initialise(&held.line, bytes_per_second, 1)
    return held.frames != NULL


cdef inline bint held_has_room(const held_frames *held) noexcept nogil:
    return held.count < HELD_MAX


cdef inline void held_add(held_frames *held, const incoming_frame *arrived,
                          int64_t arrival_ns) noexcept nogil:
    """Begin a frame's DMA; only with room."""
    cdef held_frame *last = &held.frames[(held.first + held.count) & (HELD_MAX - 1)]
    last.arrived = arrived[0]
    last.due_ns = held.latency_ns + rate_line_pass(
        &held.line, arrival_ns, arrived.length if arrived.frame != NULL else 0)
    if held.count == 0:
        held.due_ns = last.due_ns
    held.count += 1


cdef inline held_frame *held_first(held_frames *held) noexcept nogil:
    return &held.frames[held.first & (HELD_MAX - 1)]


cdef inline void held_finish(held_frames *held, Ingress ingress) noexcept nogil:
    """The first frame is dealt with: its room may go back to its sender."""
    ingress.finish(held_first(held).arrived.source)
    held.first += 1
    held.count -= 1
    held.due_ns = held_first(held).due_ns if held.count != 0 else NEVER_NS
