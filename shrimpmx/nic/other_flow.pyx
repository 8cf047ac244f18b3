"""A flow of another protocol's packets, evenly spaced.

What TCP/IP stands for in the coalescing paper (VI): packets that carry no mark and of which the NIC
knows nothing. The source is an open loop: it never answers, and what the link could not take in
time is sent later, so that the rate holds.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from shrimpmx.shared.layout cimport node_address
from shrimpmx.wire.other_packet cimport (
    OTHER_ETHERTYPE, OTHER_HEAD_BYTES, OTHER_PROTOCOL, OTHER_VERSION_LENGTH, wire_other,
)
from shrimpmx.wire.wire cimport WIRE_FRAME_MIN_BYTES, be16, be32

from shrimpmx.errors import InputError

cdef enum:
    TIME_TO_LIVE = 64            # RFC 1700
    DO_NOT_FRAGMENT = 0x4000     # and so the identification may be 0 (RFC 6864)
    HEADER_WORDS = 10


cdef class OtherFlow:
    """Packets of `frame_bytes`, the Ethernet head included, `rate` of them per second."""

    def __init__(self, double rate, uint32_t frame_bytes):
        if not 0 < rate <= 1e9:
            raise InputError(
                f"a flow has more than 0 and up to 1e9 packets per second, not {rate:g}"
            )
        if not WIRE_FRAME_MIN_BYTES <= frame_bytes <= sizeof(self.frame):
            raise InputError(
                f"a frame of another protocol has {WIRE_FRAME_MIN_BYTES} to {sizeof(self.frame)} "
                f"bytes, not {frame_bytes}"
            )
        self.interval_ns = 1e9 / rate
        self.frame_bytes = frame_bytes

    cdef void start(self, int64_t now_ns, uint32_t source, uint32_t destination) noexcept nogil:
        cdef wire_other *packet = <wire_other *>self.frame
        memset(self.frame, 0, sizeof(self.frame))
        node_address(destination, packet.destination)
        node_address(source, packet.source)
        packet.ethertype = be16(OTHER_ETHERTYPE)
        packet.version_length = OTHER_VERSION_LENGTH
        packet.total_length = be16(<uint16_t>(self.frame_bytes - OTHER_HEAD_BYTES))
        packet.fragment = be16(DO_NOT_FRAGMENT)
        packet.time_to_live = TIME_TO_LIVE
        packet.protocol = OTHER_PROTOCOL
        node_ip_address(source, packet.source_address)
        node_ip_address(destination, packet.destination_address)
        packet.checksum = header_checksum(self.frame + OTHER_HEAD_BYTES)
        self.number = 0
        self.started_ns = self.next_ns = now_ns

    cdef void build(self, uint8_t *place) noexcept nogil:
        memcpy(place, self.frame, self.frame_bytes)
        (<wire_other *>place).number = be32(<uint32_t>self.number)
        self.number += 1
        self.next_ns = self.started_ns + <int64_t>(self.number * self.interval_ns)


cdef void node_ip_address(uint32_t index, uint8_t *address) noexcept nogil:
    """10.0.x.y, with the node's index in its last bytes."""
    address[0] = 10
    address[1] = 0
    address[2] = <uint8_t>(index >> 8)
    address[3] = <uint8_t>index


cdef uint16_t header_checksum(const uint8_t *header) noexcept nogil:
    """The checksum of an IPv4 header in which that field is 0, as it is sent (RFC 791)."""
    cdef uint32_t total = 0
    cdef uint32_t word
    for word in range(<uint32_t>HEADER_WORDS):
        total += <uint32_t>header[2 * word] << 8 | header[2 * word + 1]
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return be16(<uint16_t>~total)
