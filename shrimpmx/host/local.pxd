"""Large messages between ranks of one node: one copy from region to region."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport DriverEndpoint

# Copies `length` bytes of region (rdma_id, rdma_seqnum) of the node's endpoint `dst_endpoint`,
# from `remote_offset` on, into the own region `region`, an id that there is, and posts
# EVENT_PULL_DONE into the own expected ring. Returns 1; 0 if that ring is full: try again later;
# -n, n an enum wire_nack.
cdef int local_pull(DriverEndpoint driver, uint32_t dst_endpoint, uint32_t session,
                    uint32_t length, uint8_t rdma_id, uint8_t rdma_seqnum,
                    uint32_t remote_offset, uint32_t region, uint64_t cookie) noexcept nogil
