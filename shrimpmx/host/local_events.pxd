"""Events straight into the rings of the other ranks of the node."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport control_header, node_header
from shrimpmx.shared.node cimport Node

# One rank's way to the other ranks of its node.
cdef struct LocalPort:
    node_header *node
    control_header *control

# Binds `port` to the ranks of `node`.
cdef void local_open(LocalPort *port, Node node) noexcept
# Posts the event of a packet to its target, an endpoint of this node. `header`: as
# send_commands.pxd writes it; `session`: the packet's, in host byte order, not looked at in a
# connect; `data`: a medium fragment's; `counters`: the sending rank's. Returns 1; 0 if the
# target's ring is full; -n, n an enum wire_nack, if the target refuses.
cdef int local_post(const LocalPort *port, uint64_t *counters, const uint8_t *header,
                    uint32_t session, const uint8_t *data) noexcept nogil
# Takes the lock of an open endpoint and repairs what a dead holder left; 0, or -n as local_post().
cdef int local_enter(node_header *node, uint32_t endpoint) noexcept nogil
# The rank that sleeps in process `runner` looks at its rings again.
cdef void local_wake(control_header *control, uint64_t *counters, uint32_t runner) noexcept nogil
