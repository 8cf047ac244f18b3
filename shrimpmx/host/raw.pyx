"""Raw packets: data between the daemons of two hosts, outside of any MX endpoint.

Open-MX's raw endpoint (index 255), which its peer discovery daemon uses. A node has one;
packets for it wait in the node's raw queue. Asking a peer for its name is part of it, as
the daemon does.
"""

from os import getpid

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport ESRCH, errno
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset

from shrimpmx.host.endpoint cimport (
    TransmitPort, transmit_commit, transmit_doorbell, transmit_open, transmit_prepare,
)
from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport wait_slot_arm, wait_slot_disarm, wait_slot_rouse, wait_slot_wake
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport (
    STOP_NO, COUNTER_drop_nosys_type, COUNTER_drop_raw_queue_full, COUNTER_drop_raw_too_large,
    COUNTER_rank_wakes, COUNTER_recv_host_query, COUNTER_recv_host_reply, COUNTER_recv_raw,
    COUNTER_send_host_query, COUNTER_send_host_reply, COUNTER_send_no_tx_slot,
    COUNTER_send_nomem_host_reply, COUNTER_send_raw, node_endpoint_tx_ring, node_header,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport (
    PTYPE_HOST_QUERY, PTYPE_HOST_REPLY, PTYPE_RAW, WIRE_HEAD_BYTES, WIRE_HOST_MAGIC,
    WIRE_HOST_NAME_MAX_BYTES, be16, be32, wire_host_query, wire_host_reply, wire_raw,
)

from shrimpmx.errors import InputError, MxError
from shrimpmx.shared.host import host_of


cdef extern from "signal.h" nogil:
    int kill(int pid, int signal)


def rouse_reader(Node node not None) -> None:
    """Wake the process that waits for the node's raw packets, so that it sees a stop."""
    wait_slot_rouse(&node_raw_queue(node.header).reader)


cdef class RawEndpoint:
    """The raw endpoint of `node`, open for one process at a time.

    Its frames leave by the tx ring of MX endpoint `endpoint`, which has one producer: only
    the thread that uses that endpoint may use this one. `agent`: the record whose counters
    count what is sent; `host`: how time passes (None: as the kernel has it).
    """

    def __init__(self, Node node not None, uint32_t endpoint, uint32_t agent, Host host=None):
        if endpoint >= node.header.endpoints_count:
            raise InputError(
                f"node {node.header.index} has no endpoint {endpoint}; its endpoints are 0 to "
                f"{node.header.endpoints_count - 1}"
            )
        self.node = node
        self.host = host_of(node.control) if host is None else host
        self.counters = <uint64_t *>node.control._checked_agent(agent).counters
        transmit_open(&self.port, node, node_endpoint_tx_ring(node.header, endpoint))

    def open(self) -> None:
        """Take the node's raw packets from now on. MxError("busy") if another process does."""
        cdef c_raw_queue *queue = node_raw_queue(self.node.header)
        cdef uint32_t pid = getpid()
        cdef uint32_t before = queue.owner
        # Its last owner may have died without closing it.
        if before != 0 and not (kill(<int>before, 0) != 0 and errno == ESRCH):
            before = 0
        cdef uint32_t other = raw_open(queue, pid, before)
        if other != 0:
            raise MxError(
                f"the raw endpoint of node {self.node.header.index} is open already "
                f"(by process {other}); a node has one",
                "busy",
            )
        self.owner = pid

    def close(self) -> None:
        """Refuse raw packets from now on; what waits is lost. Harmless if closed."""
        if self.owner != 0:
            raw_close(node_raw_queue(self.node.header), self.owner)
            self.owner = 0

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *exception):
        self.close()

    @property
    def is_open(self):
        """Whether this object takes the node's raw packets."""
        return self.owner != 0 and node_raw_queue(self.node.header).owner == self.owner

    def send(self, uint32_t node, bytes data not None) -> bool:
        """Send at most 1024 bytes to `node`, unreliably; False if the tx ring is full."""
        cdef uint32_t length = <uint32_t>len(data)
        cdef wire_raw *raw
        cdef uint32_t room = self.node.header.geometry.mtu_bytes - WIRE_HEAD_BYTES
        self._check_node(node)
        if len(data) > RAW_DATA_MAX_BYTES or len(data) + sizeof(wire_raw) > room:
            raise InputError(
                f"a raw packet holds at most {RAW_DATA_MAX_BYTES} bytes, not {len(data)}"
            )
        cdef uint8_t *frame = self._prepare(node)
        if frame == NULL:
            return False
        raw = <wire_raw *>(frame + WIRE_HEAD_BYTES)
        memset(raw, 0, sizeof(wire_raw))
        raw.ptype = PTYPE_RAW
        raw.length = be16(<uint16_t>length)
        memcpy(<uint8_t *>raw + sizeof(wire_raw), <const uint8_t *>data, length)
        transmit_commit(&self.port, WIRE_HEAD_BYTES + sizeof(wire_raw) + length)
        transmit_doorbell(&self.port)
        self.counters[COUNTER_send_raw] += 1
        return True

    def receive(self, int64_t timeout_ns=0):
        """The oldest packet as (node, data), or None if none came within `timeout_ns`.

        0: does not wait; negative: waits for ever. MxError("not_initialized") if not open;
        AbortedError if the run is stopped meanwhile.
        """
        cdef uint8_t[RAW_DATA_MAX_BYTES] data
        cdef uint32_t peer = 0, seen
        cdef c_raw_queue *queue = node_raw_queue(self.node.header)
        cdef int64_t until_ns = NEVER_NS if timeout_ns < 0 else self.host.now_c() + timeout_ns
        cdef int length
        if not self.is_open:
            raise MxError("the raw endpoint is not open; open() comes first", "not_initialized")
        while True:
            seen = wait_slot_arm(&queue.reader)
            length = raw_take(queue, data, &peer)
            if length >= 0 or self.host.now_c() >= until_ns:
                wait_slot_disarm(&queue.reader)
                return (peer, data[:length]) if length >= 0 else None
            if load_acquire_u32(&self.node.control.header.stop) != STOP_NO:
                wait_slot_disarm(&queue.reader)
                raise self.host.ended("the run was stopped while the raw endpoint waited")
            with nogil:
                self.host.block(<uint32_t *><void *>&queue.reader.word, seen, until_ns)
                wait_slot_disarm(&queue.reader)
            self.host.check()
            PyErr_CheckSignals()

    def query(self, uint32_t node) -> bool:
        """Ask `node` for its name, which peer_name() knows once the answer is there.

        Unreliable as any packet: ask again if no answer comes (Open-MX: every 5 s). False if
        the tx ring is full.
        """
        self._check_node(node)
        cdef uint8_t *frame = self._prepare(node)
        if frame == NULL:
            return False
        transmit_commit(&self.port, host_query_fill(frame, node))
        transmit_doorbell(&self.port)
        self.counters[COUNTER_send_host_query] += 1
        return True

    def peer_name(self, uint32_t node):
        """The name that `node` gave, or None while it has not answered."""
        cdef uint8_t[WIRE_HOST_NAME_MAX_BYTES] name
        self._check_node(node)
        cdef uint32_t length = raw_name_of_peer(self.node.header, node, name)
        return name[:length].decode("utf-8", "replace") if length else None

    def _check_node(self, node):
        if node >= self.node.header.nodes_count:
            raise InputError(
                f"there is no node {node}; the nodes are 0 to {self.node.header.nodes_count - 1}"
            )

    cdef uint8_t *_prepare(self, uint32_t peer) noexcept nogil:
        cdef uint8_t *frame = transmit_prepare(&self.port, peer)
        if frame == NULL:
            self.counters[COUNTER_send_no_tx_slot] += 1
        return frame


# -- Packets for the host itself and not for an endpoint: host query, host reply, raw.
#
# How a host learns the names of its peers (Open-MX's `omx_peer.c`): the receive handler
# answers a query without any process. A node's name is "node" and its number. Raw packets
# are kept for the node's raw endpoint.

cdef uint32_t host_packet(TransmitPort *port, uint64_t *counters, const uint8_t *frame, int ptype,
                          uint32_t peer) noexcept nogil:
    cdef const wire_host_reply *reply
    if ptype == PTYPE_HOST_QUERY:
        answer_query(port, counters, frame, peer)
        return COUNTER_recv_host_query
    if ptype == PTYPE_HOST_REPLY:
        reply = <const wire_host_reply *>(frame + WIRE_HEAD_BYTES)
        raw_name_peer(port.node, peer, <const uint8_t *>reply + sizeof(wire_host_reply),
                      reply.length)
        return COUNTER_recv_host_reply
    return take_raw(port.node, counters, frame, peer)


cdef void answer_query(TransmitPort *port, uint64_t *counters, const uint8_t *frame,
                       uint32_t peer) noexcept nogil:
    cdef const wire_host_query *query = <const wire_host_query *>(frame + WIRE_HEAD_BYTES)
    cdef uint8_t *answer = transmit_prepare(port, peer)
    cdef wire_host_reply *reply
    if answer == NULL:
        counters[COUNTER_send_nomem_host_reply] += 1
        return
    reply = <wire_host_reply *>(answer + WIRE_HEAD_BYTES)
    memset(reply, 0, sizeof(wire_host_reply))
    reply.ptype = PTYPE_HOST_REPLY
    reply.src_dst_peer_index = query.src_dst_peer_index
    reply.magic = be32(WIRE_HOST_MAGIC)
    reply.length = <uint8_t>snprintf(<char *>reply + sizeof(wire_host_reply),
                                     WIRE_HOST_NAME_MAX_BYTES, "node%u", port.node.index)
    transmit_commit(port, WIRE_HEAD_BYTES + sizeof(wire_host_reply) + reply.length)
    counters[COUNTER_send_host_reply] += 1


cdef uint32_t take_raw(node_header *node, uint64_t *counters, const uint8_t *frame,
                       uint32_t peer) noexcept nogil:
    cdef const wire_raw *raw = <const wire_raw *>(frame + WIRE_HEAD_BYTES)
    cdef c_raw_queue *queue = node_raw_queue(node)
    cdef int result = raw_put(queue, peer, <const uint8_t *>raw + sizeof(wire_raw),
                              be16(raw.length))
    if result == RAW_KEPT:
        counters[COUNTER_rank_wakes] += wait_slot_wake(&queue.reader)
        return COUNTER_recv_raw
    if result == RAW_FULL:
        return COUNTER_drop_raw_queue_full
    if result == RAW_TOO_LARGE:
        return COUNTER_drop_raw_too_large
    return COUNTER_drop_nosys_type  # no process of this node takes raw packets


cdef uint32_t host_query_fill(uint8_t *frame, uint32_t peer) noexcept nogil:
    cdef wire_host_query *query = <wire_host_query *>(frame + WIRE_HEAD_BYTES)
    memset(query, 0, sizeof(wire_host_query))
    query.ptype = PTYPE_HOST_QUERY
    query.src_dst_peer_index = be16(<uint16_t>peer)
    query.magic = be32(WIRE_HOST_MAGIC)
    return WIRE_HEAD_BYTES + sizeof(wire_host_query)
