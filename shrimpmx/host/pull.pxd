"""The pull engine: fetching a large message block by block, answering requests; see pull.h."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.endpoint cimport DriverEndpoint, TransmitPort
from shrimpmx.native.ring cimport ring_free
from shrimpmx.shared.layout cimport endpoint_descriptor, node_header
from shrimpmx.shared.node cimport Node

# -- The blocks of a pull that are in flight: requested, completed, requested again.

# Requests blocks until four are in flight or all are requested.
cdef void pull_append_blocks(DriverContext *context, pull_handle *handle) noexcept nogil
# Forgets the first block and those behind it that are complete.
cdef void pull_drop_complete(pull_handle *handle) noexcept nogil
# Block `done` is complete before an earlier one: asks again for those, once a timeout period.
cdef void pull_ask_again_early(DriverContext *context, pull_handle *handle,
                               uint32_t done) noexcept nogil
# Nothing has come for the resend delay: asks again for every block that is incomplete.
cdef void pull_ask_again_late(DriverContext *context, pull_handle *handle) noexcept nogil


cdef extern from "host/pull.h" nogil:
    enum:
        PULL_BLOCKS_IN_FLIGHT
        PULL_LINES
        PULL_INDEX_BITS
    enum:
        PULL_FREE
        PULL_ACTIVE
        PULL_ENDED
        PULL_TELLING
    cdef struct pull_block:
        uint32_t frame_index
        uint32_t frames
        uint32_t length
        uint32_t asked_again
        uint64_t missing
    cdef struct pull_handle:
        uint32_t state
        uint32_t generation
        uint32_t peer
        uint32_t dst_endpoint
        uint32_t session
        uint32_t total_length
        uint32_t rdma_id
        uint32_t rdma_seqnum
        uint32_t remote_offset
        uint32_t skip
        uint32_t region
        uint32_t region_use
        uint64_t cookie
        int64_t resend_ns
        int64_t abort_ns
        uint32_t received
        uint32_t next_frame
        uint32_t blocks_count
        uint32_t copies
        uint32_t status
        uint32_t last_core
        uint64_t handovers
        pull_block blocks[4]
        uint32_t telling_index
    pull_handle *endpoint_pull(node_header *node, endpoint_descriptor *endpoint,
                               uint32_t index) noexcept
    uint32_t pull_next_generation(uint32_t generation) noexcept
    uint32_t pull_wire_handle(uint32_t index, uint32_t generation) noexcept
    pull_handle *pull_find(node_header *node, endpoint_descriptor *endpoint,
                           uint32_t wire_handle) noexcept
    void endpoint_pulls_reset(node_header *node, endpoint_descriptor *endpoint) noexcept
    uint64_t pull_frame_start(uint32_t frame, uint32_t frame_bytes, uint32_t skip) noexcept
    uint32_t pull_frame_length(uint32_t frame, uint32_t frame_bytes, uint32_t skip,
                               uint32_t total) noexcept

# Starts to pull `length` bytes of remote region (rdma_id, rdma_seqnum) from `remote_offset` into
# the local `region`; called by the rank at `now_ns`. 1: started; 0: no free handle, or no room for
# the first requests: try again later; -n: the pulled endpoint, of this node, refuses, or there is
# no such `region` (n: enum wire_nack).
# It ends with EVENT_PULL_DONE {cookie, transferred, status} in the expected ring.
cdef int pull_start(DriverEndpoint driver, int64_t now_ns, uint32_t peer, uint32_t dst_endpoint,
                    uint32_t session, uint32_t length, uint8_t rdma_id, uint8_t rdma_seqnum,
                    uint32_t remote_offset, uint32_t region, uint64_t cookie) noexcept nogil

# The handlers' part; the endpoint is locked, see DriverContext.
# A pull reply or a nack-mcp from `peer`: 0, or the drop counter that says why not.
cdef uint32_t pull_reply(DriverContext *context, Node node, const uint8_t *header,
                         uint32_t peer) noexcept nogil
cdef uint32_t pull_nack(DriverContext *context, const uint8_t *header,
                        uint32_t peer) noexcept nogil
# The dma agent has done `count` copies for a pull, `length` bytes in all; `failed`: why it could
# not, an enum pull_status, or PULL_OK.
cdef void pull_copies_done(DriverContext *context, uint32_t wire_handle, uint32_t count,
                           uint32_t length, uint32_t failed) noexcept nogil
# What is due by the clock: requests sent again, pulls given up, events that found no room.
cdef void pulls_tick(DriverContext *context) noexcept nogil


# -- The pulled side: a receive handler answers pull requests without the rank.

cdef inline bint reply_has_room(TransmitPort *port) noexcept nogil:
    """Whether a reply may take a slot of the core's tx ring.

    Replies leave an eighth of it (ours) to the handler's own pull requests, nacks and host
    replies: those do not wait in a backlog, and a request that is not sent is sent again only
    after a whole timeout.
    """
    cdef uint32_t kept = port.tx.entries >> 3
    return ring_free(port.tx, kept + 1) > kept


# Answers a pull request for the locked endpoint with the replies of its block; 0, or the drop
# counter that says why not. A bad region is nacked, a bad offset or length is not answered.
cdef uint32_t answer_pull_request(DriverContext *context, Node node, const uint8_t *header,
                                  uint32_t peer) noexcept nogil
# Goes on with the first block of the backlog, whose endpoint is locked; false if some of it is
# left: the tx ring is full again, or one reply was paid for.
cdef bint answer_from_backlog(DriverContext *context, Node node) noexcept nogil
