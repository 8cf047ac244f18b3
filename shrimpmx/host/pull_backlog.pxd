"""Blocks of pulled regions whose replies wait for room in the tx ring, oldest first.

What the kernel's queue in front of a NIC is to Open-MX: several pulls ask for more frames at
once than a tx ring holds, and a reply that is dropped costs its puller a whole timeout.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport node_header

cdef enum:
    # Four blocks each of 256 pulls: as many as an endpoint's regions can have in flight (ours).
    PULL_BACKLOG_BLOCKS = 1024

cdef struct block_request:       # what a pull request asks for, whatever its format
    uint32_t rdma_id, rdma_seqnum, rdma_offset
    uint32_t total_length
    uint32_t first_frame_offset, length, frame_index
    uint32_t handle, magic       # as on the wire
    uint64_t message_offset      # of its first byte
    uint32_t peer, endpoint, session

cdef struct pull_backlog:        # of one core's handler
    uint32_t head, tail          # free-running
    block_request *blocks        # PULL_BACKLOG_BLOCKS, touched as they are used


cdef inline bint backlog_empty(const pull_backlog *backlog) noexcept nogil:
    return backlog.head == backlog.tail


cdef inline block_request *backlog_first(pull_backlog *backlog) noexcept nogil:
    return &backlog.blocks[backlog.tail % PULL_BACKLOG_BLOCKS]


cdef inline bint backlog_append(pull_backlog *backlog, const block_request *block) noexcept nogil:
    """False if it is full."""
    if backlog.head - backlog.tail == PULL_BACKLOG_BLOCKS:
        return False
    backlog.blocks[backlog.head % PULL_BACKLOG_BLOCKS] = block[0]
    backlog.head += 1
    return True


# -- How often an agent that runs a receive handler looks at the timers of pulls.

# A quarter of their resend delay, at least the other.
cdef enum:
    TICKS_PER_RESEND_DELAY = 4
    TICK_MIN_NS = 1_000_000


cdef inline int64_t pull_tick_ns(const node_header *node) noexcept nogil:
    return max(node.pull_resend_delay_ns // TICKS_PER_RESEND_DELAY, <int64_t>TICK_MIN_NS)
