"""Packets for the host itself and not for an endpoint: host query, host reply, raw."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.host.transmit cimport TransmitPort

# A receive handler's: acts on a checked packet of `peer` of one of the three types. Commits
# the answer to a query on `port`, without doorbell, and counts it. Returns the counter of
# what became of the packet: COUNTER_recv_* or COUNTER_drop_*.
cdef uint32_t host_packet(TransmitPort *port, uint64_t *counters, const uint8_t *frame, int ptype,
                          uint32_t peer) noexcept nogil
# Writes a query for `peer` behind the head of `frame`; returns the frame's length.
cdef uint32_t host_query_fill(uint8_t *frame, uint32_t peer) noexcept nogil
