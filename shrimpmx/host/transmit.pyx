"""The driver's send side: frames into a tx ring, then the NIC's doorbell.

A frame is written in place, in the slot that the NIC reads; several may be
committed before one doorbell makes them visible together.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.native.ring cimport ring, ring_fill, ring_free, ring_next, ring_publish
from shrimpmx.shared.layout cimport frame_slot, node_address
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport (
    WIRE_ETHERTYPE, WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, be16, wire_head,
)


cdef void transmit_open(TransmitPort *port, Node node, ring *tx) noexcept:
    cdef wire_head *head = <wire_head *>port.head
    port.node = node.header
    port.tx = tx
    port.doorbell = node.control.slot(node.header.nic_runner)
    port.slot = NULL
    port.now_ns = 0
    node_address(0, head.destination)
    node_address(node.header.index, head.source)
    head.ethertype = be16(WIRE_ETHERTYPE)
    # Peer indices are node indices, so every receiver knows this node by the same one.
    head.dst_src_peer_index = be16(<uint16_t>node.header.index)


cdef uint8_t *transmit_prepare(TransmitPort *port, uint32_t peer_index) noexcept nogil:
    if ring_free(port.tx, 1) == 0:
        return NULL
    cdef frame_slot *slot = <frame_slot *>ring_next(port.tx)
    port.slot = slot
    memcpy(slot.frame, port.head, WIRE_HEAD_BYTES)
    slot.frame[4] = <uint8_t>(peer_index >> 8)
    slot.frame[5] = <uint8_t>peer_index
    return slot.frame


cdef void transmit_commit(TransmitPort *port, uint32_t length) noexcept nogil:
    cdef frame_slot *slot = port.slot
    if length < WIRE_FRAME_MIN_BYTES:
        memset(slot.frame + length, 0, WIRE_FRAME_MIN_BYTES - length)
        length = WIRE_FRAME_MIN_BYTES
    slot.length = <uint16_t>length
    slot.time_ns = port.now_ns
    ring_fill(port.tx)


cdef void transmit_doorbell(TransmitPort *port) noexcept nogil:
    ring_publish(port.tx)
    wait_slot_wake(port.doorbell)
