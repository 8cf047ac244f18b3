"""Frames in the rings of a node, as Python bytes: for tests and for looking into a run.

put_frame and take_frames act as the ring's producer or consumer, so no other process may at that
time; peek_frames only looks.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.ring cimport (
    ring, ring_available, ring_consume, ring_fill, ring_free, ring_next, ring_publish, ring_slot,
)
from shrimpmx.shared.layout cimport (
    frame_slot, node_core_tx_ring, node_endpoint_tx_ring, node_link_ring, node_rx_ring,
)
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError


cdef ring *_find(Node node, str which, uint32_t index) except NULL:
    if which == "rx" and index < node.header.vectors_count:
        return node_rx_ring(node.header, index)
    if which == "link" and index < node.header.links_count:
        return node_link_ring(node.header, index)
    if which == "core_tx" and index < node.header.cores_count:
        return node_core_tx_ring(node.header, index)
    if which == "endpoint_tx" and index < node.header.endpoints_count:
        return node_endpoint_tx_ring(node.header, index)
    raise InputError(f"node {node.header.index} has no ring {which!r} {index}; rings are rx, "
                     "link, core_tx and endpoint_tx")


def put_frame(Node node not None, str which, uint32_t index, bytes frame not None,
              int64_t time_ns=0, length=None):
    """Append one frame to a ring and publish it; False if the ring is full.

    Args:
        which: "rx", "link", "core_tx" or "endpoint_tx".
        index: vector, source node, core or endpoint.
        time_ns: time in the slot; see `struct frame_slot`.
        length: length in the slot, if it is to be another than the frame's.
    """
    cdef ring *frames = _find(node, which, index)
    cdef frame_slot *slot
    if <uint32_t>len(frame) > frames.slot_bytes - sizeof(frame_slot):
        raise InputError(f"a frame of {len(frame)} bytes is too long for ring {which}")
    if ring_free(frames, 1) == 0:
        return False
    slot = <frame_slot *>ring_next(frames)
    memcpy(slot.frame, <const uint8_t *>frame, len(frame))
    slot.length = <uint16_t>(len(frame) if length is None else length)
    slot.time_ns = time_ns
    ring_fill(frames)
    ring_publish(frames)
    return True


def peek_frames(Node node not None, str which, uint32_t index=0):
    """The published frames of a ring, which stay there: [(time_ns, bytes), ...].

    Any process may look. If the ring is in use the consumer moves on meanwhile, so that a frame
    may be read while its slot is filled anew; lengths are kept within the slot.
    """
    cdef ring *frames = _find(node, which, index)
    cdef uint32_t tail = load_acquire_u32(&frames.tail)
    cdef uint32_t count = load_acquire_u32(&frames.head) - tail
    cdef uint32_t room = frames.slot_bytes - sizeof(frame_slot)
    cdef uint32_t i
    cdef frame_slot *slot
    seen = []
    for i in range(min(count, frames.entries)):
        slot = <frame_slot *>ring_slot(frames, tail + i)
        seen.append((slot.time_ns, (<const char *>slot.frame)[:min(slot.length, room)]))
    return seen


def take_frames(Node node not None, str which, uint32_t index=0, limit=None):
    """Take the published frames off a ring: [(time_ns, bytes), ...], at most `limit`."""
    cdef ring *frames = _find(node, which, index)
    cdef uint32_t available = ring_available(frames, frames.entries)
    cdef uint32_t count = available if limit is None else min(available, limit)
    cdef uint32_t i
    cdef frame_slot *slot
    taken = []
    for i in range(count):
        slot = <frame_slot *>ring_slot(frames, frames.tail + i)
        taken.append((slot.time_ns, (<const char *>slot.frame)[:slot.length]))
    ring_consume(frames, count)
    return taken
