"""Where the frames of each endpoint have gone, and where they go from now on.

Accelerated receive flow steering (aRFS; Linux, scaling.rst): the receive handlers wish an
endpoint's frames in the queue of the core that its process runs on. The NIC grants it when no frame
for that endpoint is left in the old queue, whether on its way to host memory or there. So two
cores never have frames of one endpoint to handle, and none overtakes another (as receive flow
steering goes by a backlog's tail).
"""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.native.atomics cimport (
    compare_exchange_u32, load_acquire_u32, load_relaxed_u32, store_relaxed_u32,
)
from shrimpmx.shared.layout cimport (
    COUNTER_flow_moves, COUNTER_rx_queue_changes, node_flow, node_handled, node_rx_ring,
    steering_flow,
)
from shrimpmx.shared.node cimport Node


cdef class FlowTable:
    """The flows of `node`; counts for agent `agent`, its NIC."""

    def __init__(self, Node node not None, uint32_t agent):
        self.header = node.header
        self.counters = <uint64_t *>node.control.agent(agent).counters

    cdef void follow(self, uint32_t endpoint) noexcept nogil:
        """Grant a wish, if there is one and it may be granted now. Call for each frame, before its
        queue is chosen."""
        cdef steering_flow *flow = node_flow(self.header, endpoint)
        cdef uint32_t wanted = load_relaxed_u32(&flow.wanted)
        if wanted == 0:
            return
        if wanted <= self.header.vectors_count and wanted - 1 != flow.queue:
            if self.frames_left(endpoint):
                return
            store_relaxed_u32(&flow.queue, wanted - 1)
            self.counters[COUNTER_flow_moves] += 1
        # Only the wish that was read is cleared: one that a handler stores meanwhile stays, for the
        # next frame. A handler that sees it cleared sees the queue.
        compare_exchange_u32(&flow.wanted, wanted, 0)

    cdef bint frames_left(self, uint32_t endpoint) noexcept nogil:
        """Whether frames of `endpoint` are still in the queue that its last one went to."""
        cdef uint32_t queue, left
        if self.went[endpoint] == 0:
            return False
        queue = self.went[endpoint] - 1
        left = self.behind[endpoint] - load_acquire_u32(node_handled(self.header, queue))
        # Indices run freely: a frame so long ago that they have gone round is not in the ring.
        return 0 < left <= node_rx_ring(self.header, queue).entries

    cdef void passed(self, uint32_t endpoint, uint32_t queue, uint32_t index) noexcept nogil:
        """A frame of `endpoint` went into `queue`, whose rx ring it fills up to `index`."""
        if self.went[endpoint] != queue + 1:
            self.counters[COUNTER_rx_queue_changes] += self.went[endpoint] != 0
            self.went[endpoint] = <uint8_t>(queue + 1)
        self.behind[endpoint] = index
