"""Which rx queue a frame goes to.

Under `endpoint` and `arfs` a frame of Open-MX goes by the endpoint that it is for, whatever its
type (multiqueue, 3.1), through the node's flow table: endpoint modulo queues, until aRFS changes it
(FlowTable). The paper's firmware takes byte 18 of a frame modulo queues, and byte 32 of a
pull reply, the last one of a magic that is the endpoint under a mask. Marked pull replies have
another type byte, nacks have another endpoint in byte 18, and the mask gives other queues unless
their number divides 128. Here the endpoint itself is found, so that all its packets share a queue,
however many queues there are.

Frames of other protocols go by the hash of receive side scaling (RSS), and so do all frames under
`rss`. It knows IPv4 alone: what it does not know, and what is for no endpoint, goes to queue 0.
Under `rps` all frames do.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.native.atomics cimport (
    compare_exchange_u32, load_acquire_u32, load_relaxed_u32, store_relaxed_u32,
)
from shrimpmx.shared.layout cimport (
    STEERING_RPS, STEERING_RSS, COUNTER_flow_moves, COUNTER_rx_queue_changes, node_flow,
    node_handled, node_rx_ring, steering_flow,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.other_packet cimport OTHER_ETHERTYPE, OTHER_HEAD_BYTES, wire_other
from shrimpmx.wire.wire cimport NO_ENDPOINT, be16, frame_endpoint

from shrimpmx.errors import InputError


# -- The Toeplitz hash of a flow, as receive side scaling has it.
#
# For each bit of the flow that is set, from its first on, the hash takes up (exclusive or) the 32
# bits of the key that begin at that bit's place. So each byte adds something that depends on its
# place and value only, and a table of those makes the hash one look-up a byte.
#
# Source: Microsoft, "RSS hashing functions", with the key of its verification suite, which is the
# default of many drivers.

KEY = bytes.fromhex(
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
)


cdef class Toeplitz:
    """The hash with Microsoft's key, of up to 12 bytes."""

    def __init__(self):
        cdef uint32_t window, place, value, bit
        key = int.from_bytes(KEY, "big")
        for place in range(<uint32_t>TOEPLITZ_BYTES):
            for bit in range(8):
                window = key >> (8 * (len(KEY) - place) - 32 - bit) & 0xFFFFFFFF
                for value in range(256):
                    if value & 0x80 >> bit:
                        self.tables[place][value] ^= window

    cdef uint32_t hash(self, const uint8_t *flow, uint32_t count) noexcept nogil:
        cdef uint32_t found = 0
        cdef uint32_t place
        for place in range(count):
            found ^= self.tables[place][flow[place]]
        return found

    def hash_of(self, bytes flow not None):
        """The hash of addresses and ports, source before destination, in network byte order.

        InputError if `flow` has more than 12 bytes.
        """
        if len(flow) > TOEPLITZ_BYTES:
            raise InputError(
                f"a flow has {TOEPLITZ_BYTES} bytes, IPv4 addresses and ports, not {len(flow)}"
            )
        return self.hash(<const uint8_t *>flow, <uint32_t>len(flow))


# All NICs have its tables in common.
cdef Toeplitz TOEPLITZ = Toeplitz()


# -- Where the frames of each endpoint have gone, and where they go from now on.
#
# Accelerated receive flow steering (aRFS; Linux, scaling.rst): the receive handlers wish an
# endpoint's frames in the queue of the core that its process runs on. The NIC grants it when no
# frame for that endpoint is left in the old queue, whether on its way to host memory or there. So
# two cores never have frames of one endpoint to handle, and none overtakes another (as receive flow
# steering goes by a backlog's tail).

cdef class FlowTable:
    """The flows of `node`; counts for agent `agent`, its NIC."""

    def __init__(self, Node node not None, uint32_t agent):
        self.header = node.header
        self.counters = <uint64_t *>node.control.agent(agent).counters

    cdef void follow(self, uint32_t endpoint) noexcept nogil:
        """Grant a wish, if there is one and it may be granted now. Call for each frame, before its
        queue is chosen."""
        cdef steering_flow *flow = node_flow(self.header, endpoint)
        cdef uint32_t wanted = load_relaxed_u32(&flow.wanted)
        if wanted == 0:
            return
        if wanted <= self.header.vectors_count and wanted - 1 != flow.queue:
            if self.frames_left(endpoint):
                return
            store_relaxed_u32(&flow.queue, wanted - 1)
            self.counters[COUNTER_flow_moves] += 1
        # Only the wish that was read is cleared: one that a handler stores meanwhile stays, for the
        # next frame. A handler that sees it cleared sees the queue.
        compare_exchange_u32(&flow.wanted, wanted, 0)

    cdef bint frames_left(self, uint32_t endpoint) noexcept nogil:
        """Whether frames of `endpoint` are still in the queue that its last one went to."""
        cdef uint32_t queue, left
        if self.went[endpoint] == 0:
            return False
        queue = self.went[endpoint] - 1
        left = self.behind[endpoint] - load_acquire_u32(node_handled(self.header, queue))
        # Indices run freely: a frame so long ago that they have gone round is not in the ring.
        return 0 < left <= node_rx_ring(self.header, queue).entries

    cdef void passed(self, uint32_t endpoint, uint32_t queue, uint32_t index) noexcept nogil:
        """A frame of `endpoint` went into `queue`, whose rx ring it fills up to `index`."""
        if self.went[endpoint] != queue + 1:
            self.counters[COUNTER_rx_queue_changes] += self.went[endpoint] != 0
            self.went[endpoint] = <uint8_t>(queue + 1)
        self.behind[endpoint] = index


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
        self.toeplitz = TOEPLITZ
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
