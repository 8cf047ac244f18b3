"""A flow of another protocol's packets, evenly spaced or in a closed loop.

What TCP/IP stands for in the coalescing paper (VI): packets that carry no mark and of which the NIC
knows nothing. As an open loop its rate holds: what the link could not take in time is sent later.
As a closed loop, like TCP's, it has a window of packets that were not answered yet, and its rate
follows from how long an answer takes. An answer stands for all packets before. What is lost is not
sent again.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from shrimpmx.shared.layout cimport node_address
from shrimpmx.wire.other_packet cimport (
    OTHER_ANSWERED_PROTOCOL, OTHER_ETHERTYPE, OTHER_HEAD_BYTES, OTHER_PROTOCOL,
    OTHER_VERSION_LENGTH, other_checksum, wire_other,
)
from shrimpmx.wire.wire cimport WIRE_FRAME_MIN_BYTES, be16, be32

from shrimpmx.errors import InputError

cdef enum:
    TIME_TO_LIVE = 64            # RFC 1700
    DO_NOT_FRAGMENT = 0x4000     # and so the identification may be 0 (RFC 6864)


cdef class OtherFlow:
    """Packets of `frame_bytes`, the Ethernet head included, `rate` of them per second; or, with a
    `window`, so many of them unanswered.
    """

    def __init__(self, double rate, uint32_t frame_bytes, uint32_t window=0):
        if window == 0 and not 0 < rate <= 1e9:
            raise InputError(
                f"a flow has more than 0 and up to 1e9 packets per second, not {rate:g}"
            )
        if not WIRE_FRAME_MIN_BYTES <= frame_bytes <= sizeof(self.frame):
            raise InputError(
                f"a frame of another protocol has {WIRE_FRAME_MIN_BYTES} to {sizeof(self.frame)} "
                f"bytes, not {frame_bytes}"
            )
        self.interval_ns = 0 if window else 1e9 / rate
        self.window = window
        self.frame_bytes = frame_bytes

    cdef void start(self, int64_t now_ns, uint32_t source, uint32_t destination,
                    int64_t patience_ns) noexcept nogil:
        cdef wire_other *packet = <wire_other *>self.frame
        memset(self.frame, 0, sizeof(self.frame))
        node_address(destination, packet.destination)
        node_address(source, packet.source)
        packet.ethertype = be16(OTHER_ETHERTYPE)
        packet.version_length = OTHER_VERSION_LENGTH
        packet.total_length = be16(<uint16_t>(self.frame_bytes - OTHER_HEAD_BYTES))
        packet.fragment = be16(DO_NOT_FRAGMENT)
        packet.time_to_live = TIME_TO_LIVE
        packet.protocol = OTHER_ANSWERED_PROTOCOL if self.window else OTHER_PROTOCOL
        node_ip_address(source, packet.source_address)
        node_ip_address(destination, packet.destination_address)
        packet.checksum = other_checksum(self.frame + OTHER_HEAD_BYTES)
        self.number = self.answered = 0
        self.started_ns = self.next_ns = now_ns
        self.patience_ns = patience_ns

    cdef void build(self, uint8_t *place, int64_t now_ns) noexcept nogil:
        memcpy(place, self.frame, self.frame_bytes)
        (<wire_other *>place).number = be32(<uint32_t>self.number)
        self.number += 1
        if self.window == 0:
            self.next_ns = self.started_ns + <int64_t>(self.number * self.interval_ns)
        elif self.number - self.answered >= self.window:
            self.next_ns = now_ns + self.patience_ns

    cdef void answer(self, uint32_t number, int64_t now_ns) noexcept nogil:
        cdef uint64_t count = <uint32_t>(number + 1 - <uint32_t>self.answered)
        if self.window == 0 or count == 0 or count > self.number - self.answered:
            return                    # of one that was never sent, or overtaken
        self.answered += count
        if self.number - self.answered < self.window:
            self.next_ns = now_ns


cdef void node_ip_address(uint32_t index, uint8_t *address) noexcept nogil:
    """10.0.x.y, with the node's index in its last bytes."""
    address[0] = 10
    address[1] = 0
    address[2] = <uint8_t>(index >> 8)
    address[3] = <uint8_t>index
