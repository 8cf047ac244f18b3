"""The driver's send side: frames into a tx ring, then the NIC's doorbell."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring
from shrimpmx.shared.layout cimport frame_slot, node_header
from shrimpmx.shared.node cimport Node

# One producer's way to its NIC. Only the ring's one producer may use it.
cdef struct TransmitPort:
    node_header *node
    ring *tx
    wait_slot *doorbell      # of the NIC's process
    frame_slot *slot         # being filled, between prepare and commit
    int64_t now_ns           # what committed frames carry as their hand-over time
    uint8_t head[16]         # of every frame but for the destination's last two bytes

# Binds `port` to a tx ring of `node`: node_core_tx_ring() or node_endpoint_tx_ring().
cdef void transmit_open(TransmitPort *port, Node node, ring *tx) noexcept
# The start of a frame with its 16-byte head filled, or NULL when the ring is full.
cdef uint8_t *transmit_prepare(TransmitPort *port, uint32_t peer_index) noexcept nogil
# The prepared frame has `length` bytes; pads it to 60. Not yet visible to the NIC.
cdef void transmit_commit(TransmitPort *port, uint32_t length) noexcept nogil
# All committed frames become visible and the NIC is woken if it sleeps; once per batch.
cdef void transmit_doorbell(TransmitPort *port) noexcept nogil
