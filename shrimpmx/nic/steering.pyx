"""Which rx queue a frame goes to.

Under `endpoint` and `arfs` a frame of Open-MX goes by the endpoint that it is for, whatever its
type (multiqueue, 3.1), through the node's flow table: endpoint modulo queues, until aRFS changes it
(flow_table.pyx). The paper's firmware takes byte 18 of a frame modulo queues, and byte 32 of a
pull reply, the last one of a magic that is the endpoint under a mask. Marked pull replies have
another type byte, nacks have another endpoint in byte 18, and the mask gives other queues unless
their number divides 128. Here the endpoint itself is found, so that all its packets share a queue,
however many queues there are.

Frames of other protocols go by the hash of receive side scaling (RSS), and so do all frames under
`rss`. It knows IPv4 alone: what it does not know, and what is for no endpoint, goes to queue 0.
Under `rps` all frames do.
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.nic.toeplitz cimport TOEPLITZ_BYTES, Toeplitz
from shrimpmx.shared.layout cimport STEERING_RPS, STEERING_RSS, node_flow
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.frame_endpoint cimport NO_ENDPOINT, frame_endpoint
from shrimpmx.wire.other_packet cimport OTHER_ETHERTYPE, OTHER_HEAD_BYTES, wire_other
from shrimpmx.wire.wire cimport be16

cdef enum:
    PROTOCOL_TCP = 6
    PROTOCOL_UDP = 17
    ADDRESSES_OFFSET = 26        # in the frame: the source's, then the destination's
    ADDRESSES_BYTES = 8
    PORTS_BYTES = 4
    FRAGMENT = 0x3FFF            # more are to come, or an offset: ports may be elsewhere
    HEADER_MIN_BYTES = 20        # of IPv4


cdef uint32_t ipv4_flow(const uint8_t *frame, uint32_t length, uint8_t *flow) noexcept nogil:
    """Put what tells a frame's flow into `flow`, TOEPLITZ_BYTES long; how much of it: 12 bytes
    with ports, 8 without, 0 if the frame is not IPv4."""
    cdef const wire_other *packet = <const wire_other *>frame
    cdef uint32_t header_bytes, ports
    if (length < OTHER_HEAD_BYTES + HEADER_MIN_BYTES or packet.ethertype != be16(OTHER_ETHERTYPE)
            or packet.version_length >> 4 != 4):
        return 0
    header_bytes = 4 * (packet.version_length & 0xF)
    if header_bytes < HEADER_MIN_BYTES:
        return 0
    memcpy(flow, frame + ADDRESSES_OFFSET, ADDRESSES_BYTES)
    if ((packet.protocol != PROTOCOL_TCP and packet.protocol != PROTOCOL_UDP)
            or be16(packet.fragment) & FRAGMENT != 0):
        return ADDRESSES_BYTES
    ports = OTHER_HEAD_BYTES + header_bytes
    if length < ports + PORTS_BYTES:
        return ADDRESSES_BYTES
    memcpy(flow + ADDRESSES_BYTES, frame + ports, PORTS_BYTES)
    return ADDRESSES_BYTES + PORTS_BYTES


cdef class Steering:
    """What sends the frames that come to `node` to its rx queues, as the node's layout says."""

    def __init__(self, Node node not None):
        cdef uint32_t entry
        self.node = node
        self.header = node.header
        self.kind = node.header.steering
        self.queues = 1 if self.kind == STEERING_RPS else node.header.vectors_count
        self.toeplitz = Toeplitz()
        for entry in range(<uint32_t>INDIRECTION_ENTRIES):
            self.indirection[entry] = entry % self.queues

    cdef uint32_t queue(self, int endpoint, const uint8_t *frame,
                        uint32_t length) noexcept nogil:
        if self.queues == 1:
            return 0
        if endpoint != NO_ENDPOINT and self.kind != STEERING_RSS:
            return node_flow(self.header, endpoint).queue
        return self.queue_by_hash(frame, length)

    cdef uint32_t queue_by_hash(self, const uint8_t *frame, uint32_t length) noexcept nogil:
        cdef uint8_t flow[TOEPLITZ_BYTES]
        cdef uint32_t count = ipv4_flow(frame, length, flow)
        if count == 0:
            return 0
        return self.indirection[self.toeplitz.hash(flow, count) % INDIRECTION_ENTRIES]

    def queue_of(self, bytes frame not None):
        """The rx queue that a frame goes to."""
        cdef const uint8_t *data = frame
        cdef uint32_t length = len(frame)
        return self.queue(frame_endpoint(data, length), data, length)


def endpoint_of(bytes frame not None):
    """The endpoint that a frame is for; None if it is for none or is no packet of Open-MX."""
    cdef int endpoint = frame_endpoint(<const uint8_t *>frame, len(frame))
    return None if endpoint == NO_ENDPOINT else endpoint
