"""Refusals: what a receive handler answers to a packet that no endpoint takes."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.host.transmit cimport TransmitPort

# Tell the sender's library (a message, connect, rndv or notify was refused) or its driver (a pull
# request was). `refused`: that packet's header, of type `ptype`, mark removed; `nack_type`: enum
# wire_nack. Counted in `counters`; false if there is no room to send.
cdef bint send_nack_lib(TransmitPort *port, uint64_t *counters, const uint8_t *refused,
                        int ptype, uint32_t peer, uint32_t nack_type) noexcept nogil
cdef bint send_nack_mcp(TransmitPort *port, uint64_t *counters, const uint8_t *refused,
                        uint32_t peer, uint32_t nack_type) noexcept nogil
