"""A packet of another protocol that shares the link with MXoE: IPv4 as far as a NIC looks.

An Ethernet head, an IPv4 header without options (RFC 791), a number, and padding. The IPv4
protocol number is one of the two for experiments (RFC 3692); it says whether the receiver answers
each packet by one of the same number. Fields are big-endian, as in wire.h.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.wire.wire cimport be16, be32


cdef enum:
    OTHER_ETHERTYPE = 0x0800     # IPv4
    OTHER_VERSION_LENGTH = 0x45  # version 4, a header of five words
    OTHER_PROTOCOL = 253         # for experiments
    OTHER_ANSWERED_PROTOCOL = 254
    OTHER_HEAD_BYTES = 14        # what Ethernet puts before it
    OTHER_TOTAL_MIN_BYTES = 24   # header and number
    OTHER_HEADER_WORDS = 10


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
            and packet.protocol in (OTHER_PROTOCOL, OTHER_ANSWERED_PROTOCOL)
            and OTHER_TOTAL_MIN_BYTES <= total <= length - OTHER_HEAD_BYTES)


cdef inline bint other_is_answered(const uint8_t *frame) noexcept nogil:
    return (<const wire_other *>frame).protocol == OTHER_ANSWERED_PROTOCOL


cdef inline uint32_t other_number(const uint8_t *frame) noexcept nogil:
    return be32((<const wire_other *>frame).number)


cdef inline void other_answer(uint8_t *answer, const uint8_t *frame) noexcept nogil:
    """Fill all of an answer to a packet but the destination's Ethernet address, 38 bytes. It asks
    for no answer itself: two hosts could go on for ever.
    """
    cdef const wire_other *packet = <const wire_other *>frame
    cdef wire_other *made = <wire_other *>answer
    memcpy(&made.ethertype, &packet.ethertype, sizeof(wire_other) - 12)
    memcpy(made.source, packet.destination, 6)
    memcpy(made.source_address, packet.destination_address, 4)
    memcpy(made.destination_address, packet.source_address, 4)
    made.total_length = be16(OTHER_TOTAL_MIN_BYTES)
    made.protocol = OTHER_PROTOCOL
    made.checksum = 0
    made.checksum = other_checksum(answer + OTHER_HEAD_BYTES)


cdef inline uint16_t other_checksum(const uint8_t *header) noexcept nogil:
    """The checksum of an IPv4 header in which that field is 0, as it is sent (RFC 791)."""
    cdef uint32_t total = 0
    cdef uint32_t word
    for word in range(<uint32_t>OTHER_HEADER_WORDS):
        total += <uint32_t>header[2 * word] << 8 | header[2 * word + 1]
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return be16(<uint16_t>~total)
