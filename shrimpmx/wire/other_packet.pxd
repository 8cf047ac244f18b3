"""A packet of another protocol that shares the link with MXoE: IPv4 as far as a NIC looks.

An Ethernet head, an IPv4 header without options (RFC 791), a number, and padding. The IPv4
protocol number is one of those for experiments (RFC 3692). Fields are big-endian, as in wire.h.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from shrimpmx.wire.wire cimport be16


cdef enum:
    OTHER_ETHERTYPE = 0x0800     # IPv4
    OTHER_VERSION_LENGTH = 0x45  # version 4, a header of five words
    OTHER_PROTOCOL = 253         # for experiments
    OTHER_HEAD_BYTES = 14        # what Ethernet puts before it
    OTHER_TOTAL_MIN_BYTES = 24   # header and number


cdef packed struct wire_other:   # offset
    uint8_t destination[6]       # 0
    uint8_t source[6]            # 6
    uint16_t ethertype           # 12
    uint8_t version_length       # 14
    uint8_t service              # 15
    uint16_t total_length        # 16  header, number and data
    uint16_t identification      # 18
    uint16_t fragment            # 20
    uint8_t time_to_live         # 22
    uint8_t protocol             # 23
    uint16_t checksum            # 24  of the IPv4 header
    uint8_t source_address[4]    # 26
    uint8_t destination_address[4]   # 30
    uint32_t number              # 34  counts the flow's packets


cdef inline bint is_other_packet(const uint8_t *frame, uint32_t length) noexcept nogil:
    """Whether a frame of at least 60 bytes is such a packet, all of which is there."""
    cdef const wire_other *packet = <const wire_other *>frame
    cdef uint32_t total = be16(packet.total_length)
    return (packet.ethertype == be16(OTHER_ETHERTYPE)
            and packet.version_length == OTHER_VERSION_LENGTH
            and packet.protocol == OTHER_PROTOCOL
            and OTHER_TOTAL_MIN_BYTES <= total <= length - OTHER_HEAD_BYTES)
