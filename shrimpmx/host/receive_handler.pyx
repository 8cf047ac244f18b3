"""The driver's receive handler: from a frame to an event in an endpoint's ring.

What Open-MX does in the bottom half (its `omx_recv.c`): check the frame, find its
endpoint, copy the data into the receive queue, post an event. A frame is untrusted:
whatever cannot be believed is dropped, and each reason has its counter.

Packets come in bursts for one endpoint, so its lock is held from one frame to the next
until another endpoint's turn or the end of the batch: no lock operation per packet.
"""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from shrimpmx.host.event_fill cimport (
    fill_connect,
    fill_liback,
    fill_medium,
    fill_nack,
    fill_small,
    fill_tiny,
)
from shrimpmx.host.event_ring cimport (
    event_writer_commit,
    event_writer_open_unexpected,
    event_writer_prefetch,
    event_writer_prepare,
    event_writer_recvq_offset,
    event_writer_repair,
)
from shrimpmx.host.transmit cimport (
    transmit_commit,
    transmit_doorbell,
    transmit_open,
    transmit_prepare,
)
from shrimpmx.native.atomics cimport load_acquire_u32, load_relaxed_u32
from shrimpmx.native.futex cimport WAIT_SLOT_NOTIFY, wait_slot, wait_slot_wake
from shrimpmx.native.lock cimport (
    SHARED_LOCK_BROKEN,
    SHARED_LOCK_REPAIR,
    shared_lock_give,
    shared_lock_take,
)
from shrimpmx.native.trace cimport TRACE_drop, TRACE_event, TRACE_rank_wake, trace_record
from shrimpmx.shared.layout cimport (
    AGENT_IRQ,
    COUNTER_drop_bad_datalen,
    COUNTER_drop_bad_endpoint,
    COUNTER_drop_bad_ethertype,
    COUNTER_drop_bad_header_datalen,
    COUNTER_drop_bad_magic,
    COUNTER_drop_bad_peer_addr,
    COUNTER_drop_bad_peer_index,
    COUNTER_drop_bad_session,
    COUNTER_drop_bad_skblen,
    COUNTER_drop_invalid_type,
    COUNTER_drop_nosys_type,
    COUNTER_drop_unknown_type,
    COUNTER_rank_notifications,
    COUNTER_rank_wakes,
    COUNTER_recv_connect,
    COUNTER_recv_liback,
    COUNTER_recv_medium_frag,
    COUNTER_recv_nack_lib,
    COUNTER_recv_packets,
    COUNTER_recv_small,
    COUNTER_recv_tiny,
    COUNTER_send_nack_lib,
    COUNTER_send_nomem_nack,
    COUNTER_unexp_eventq_full,
    ENDPOINT_OPEN,
    endpoint_descriptor,
    event,
    node_core_tx_ring,
    node_endpoint,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.check cimport (
    FRAME_BAD_DATALEN,
    FRAME_BAD_ETHERTYPE,
    FRAME_BAD_HEADER_DATALEN,
    FRAME_BAD_MAGIC,
    FRAME_BAD_SKBLEN,
    FRAME_INVALID_TYPE,
    FRAME_NOSYS_TYPE,
    frame_check,
)
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.wire cimport (
    NACK_BAD_ENDPOINT,
    NACK_BAD_SESSION,
    NACK_ENDPOINT_CLOSED,
    NACK_NONE,
    PTYPE_CONNECT,
    PTYPE_MEDIUM_FRAG,
    PTYPE_NACK_LIB,
    PTYPE_SMALL,
    PTYPE_TINY,
    PTYPE_TRUC,
    WIRE_HEAD_BYTES,
    WIRE_MARK,
    WIRE_NO_PEER,
    be16,
    be32,
    wire_head,
    wire_message,
    wire_nack_lib,
    wire_truc,
)

from shrimpmx.errors import InputError


cdef uint32_t fault_counter(int fault) noexcept nogil:
    """The drop counter of a frame_fault."""
    if fault == FRAME_BAD_HEADER_DATALEN:
        return COUNTER_drop_bad_header_datalen
    if fault == FRAME_BAD_DATALEN:
        return COUNTER_drop_bad_datalen
    if fault == FRAME_BAD_SKBLEN:
        return COUNTER_drop_bad_skblen
    if fault == FRAME_BAD_ETHERTYPE:
        return COUNTER_drop_bad_ethertype
    if fault == FRAME_INVALID_TYPE:
        return COUNTER_drop_invalid_type
    if fault == FRAME_NOSYS_TYPE:
        return COUNTER_drop_nosys_type
    if fault == FRAME_BAD_MAGIC:
        return COUNTER_drop_bad_magic
    return COUNTER_drop_unknown_type


cdef inline uint32_t packet_session(const uint8_t *header, int ptype) noexcept nogil:
    """The session in a packet that has one, network byte order as on the wire."""
    if ptype == PTYPE_TRUC:
        return (<const wire_truc *>header).session
    return (<const wire_message *>header).session


cdef inline uint32_t type_counter(int ptype) noexcept nogil:
    if ptype == PTYPE_SMALL:
        return COUNTER_recv_small
    if ptype == PTYPE_TINY:
        return COUNTER_recv_tiny
    if ptype == PTYPE_MEDIUM_FRAG:
        return COUNTER_recv_medium_frag
    if ptype == PTYPE_TRUC:
        return COUNTER_recv_liback
    return COUNTER_recv_connect if ptype == PTYPE_CONNECT else COUNTER_recv_nack_lib


cdef class ReceiveHandler:
    """The receive handler of one core of `node`; its counters go to agent record `agent`."""

    def __init__(self, Node node not None, uint32_t core, uint32_t agent):
        if core >= node.header.cores_count:
            raise InputError(
                f"node {node.header.index} has no core {core}; its cores are 0 to "
                f"{node.header.cores_count - 1}"
            )
        self.node = node
        self.core = core
        self.header = node.header
        self.counters = <uint64_t *>node.control._checked_agent(agent).counters
        self.locked = -1
        transmit_open(&self.port, node, node_core_tx_ring(node.header, core))

    def handle_frame(self, bytes frame not None, bint finish=True) -> None:
        """Handle one frame, for tests and tools; `finish`: as a batch of its own.

        Without `finish` the endpoint's lock stays taken, as in the middle of a batch.
        """
        cdef uint8_t[16384] memory
        cdef uint32_t length = <uint32_t>min(len(frame), <Py_ssize_t>sizeof(memory))
        memset(memory, 0, sizeof(memory))
        memcpy(memory, <const uint8_t *>frame, length)
        with nogil:
            self.handle(memory, length)
            if finish:
                self.finish_batch()

    cdef void handle(self, const uint8_t *frame, uint32_t length) noexcept nogil:
        cdef int fault = frame_check(frame, length, self.header.mtu_bytes)
        cdef int ptype
        self.counters[COUNTER_recv_packets] += 1
        if fault != 0:
            self._drop(fault_counter(fault))
            return
        ptype = frame[WIRE_HEAD_BYTES] & ~WIRE_MARK
        if PTYPE_TRUC <= ptype <= PTYPE_MEDIUM_FRAG or ptype == PTYPE_NACK_LIB:
            self._handle_endpoint_frame(frame, ptype)
        else:
            self._drop(COUNTER_drop_nosys_type)

    cdef void _handle_endpoint_frame(self, const uint8_t *frame, int ptype) noexcept nogil:
        cdef const uint8_t *header = frame + WIRE_HEAD_BYTES
        cdef uint32_t peer = 0
        cdef uint32_t endpoint
        cdef int refused
        if not self._check_peer(frame, ptype, &peer):
            return
        if ptype == PTYPE_NACK_LIB:
            endpoint = (<const wire_nack_lib *>header).dst_endpoint
        else:
            endpoint = header[1]
        refused = NACK_NONE if <int32_t>endpoint == self.locked else self._enter(endpoint)
        if refused == NACK_NONE and ptype != PTYPE_CONNECT and ptype != PTYPE_NACK_LIB:
            if packet_session(header, ptype) != self.session:
                refused = NACK_BAD_SESSION
        if refused != NACK_NONE:
            self._drop(COUNTER_drop_bad_session if refused == NACK_BAD_SESSION
                       else COUNTER_drop_bad_endpoint)
            # Never an answer to a nack or a library ack: two hosts could go on for ever.
            if ptype != PTYPE_NACK_LIB and ptype != PTYPE_TRUC:
                self._nack(frame, peer, refused)
            return
        self._post(frame, ptype, peer)

    cdef void _drop(self, uint32_t counter) noexcept nogil:
        self.counters[counter] += 1
        trace_record(self.trace, self.now_ns, TRACE_drop, counter, AGENT_IRQ)

    cdef void _post(self, const uint8_t *frame, int ptype, uint32_t peer) noexcept nogil:
        """Posts the event of a packet to the locked endpoint."""
        cdef const uint8_t *header = frame + WIRE_HEAD_BYTES
        cdef uint32_t offset
        cdef uint8_t type
        cdef event *e = event_writer_prepare(&self.writer)
        if e == NULL:
            self._drop(COUNTER_unexp_eventq_full)
            return
        e.peer_index = <uint16_t>peer
        e.src_endpoint = header[2]
        offset = event_writer_recvq_offset(&self.writer)
        if ptype == PTYPE_SMALL:
            type = fill_small(e, header, self.writer.recvq, offset)
        elif ptype == PTYPE_TINY:
            type = fill_tiny(e, header)
        elif ptype == PTYPE_MEDIUM_FRAG:
            type = fill_medium(e, header, self.writer.recvq, offset)
        elif ptype == PTYPE_TRUC:
            type = fill_liback(e, header)
        elif ptype == PTYPE_CONNECT:
            type = fill_connect(e, header)
        else:
            e.src_endpoint = (<const wire_nack_lib *>header).src_endpoint
            type = fill_nack(e, header)
        event_writer_commit(&self.writer, e, type)
        # What comes next is most often like what came now.
        event_writer_prefetch(&self.writer, ptype == PTYPE_SMALL or ptype == PTYPE_MEDIUM_FRAG)
        self.filled = True
        self.counters[type_counter(ptype)] += 1
        trace_packet(self.trace, self.now_ns, TRACE_event, frame, <uint64_t>self.locked)

    cdef bint _check_peer(self, const uint8_t *frame, int ptype, uint32_t *peer) noexcept nogil:
        """Finds the sender: by the head's index, whose address must be the frame's source."""
        cdef const wire_head *head = <const wire_head *>frame
        cdef uint32_t index = be16(head.dst_src_peer_index)
        cdef uint32_t by_address = (<uint32_t>head.source[4] << 8) | head.source[5]
        cdef bint is_node = memcmp(head.source, self.port.head + 6, 4) == 0
        if index == WIRE_NO_PEER and ptype == PTYPE_CONNECT:
            index = by_address
            is_node = is_node and index < self.header.nodes_count
        elif index >= self.header.nodes_count:
            self._drop(COUNTER_drop_bad_peer_index)
            return False
        if not is_node or by_address != index:
            self._drop(COUNTER_drop_bad_peer_addr)
            return False
        peer[0] = index
        return True

    cdef int _enter(self, uint32_t endpoint) noexcept nogil:
        """Locks an endpoint, leaving the last one; NACK_NONE or why it takes no packets."""
        cdef endpoint_descriptor *descriptor
        cdef int taken
        if endpoint >= self.header.endpoints_count:
            return NACK_BAD_ENDPOINT
        self._leave()
        descriptor = node_endpoint(self.header, endpoint)
        if load_acquire_u32(&descriptor.state) != ENDPOINT_OPEN:
            return NACK_ENDPOINT_CLOSED
        taken = shared_lock_take(&descriptor.lock)
        if taken == SHARED_LOCK_BROKEN:
            return NACK_ENDPOINT_CLOSED
        if descriptor.state != ENDPOINT_OPEN:  # closed while we waited for the lock
            shared_lock_give(&descriptor.lock)
            return NACK_ENDPOINT_CLOSED
        event_writer_open_unexpected(&self.writer, self.header, descriptor)
        if taken == SHARED_LOCK_REPAIR:
            event_writer_repair(&self.writer)
        # The ledger of claim MQ-6: who touched the endpoint last, and how often that changed.
        if descriptor.last_core != self.core + 1:
            if descriptor.last_core != 0:
                descriptor.handovers += 1
            descriptor.last_core = self.core + 1
        self.descriptor = descriptor
        self.session = be32(descriptor.session_id)
        self.filled = False
        self.locked = <int32_t>endpoint
        return NACK_NONE

    cdef void _leave(self) noexcept nogil:
        """Gives the lock back; notes whom to wake."""
        cdef uint32_t runner, index
        if self.locked < 0:
            return
        runner = self.descriptor.runner
        self.locked = -1
        shared_lock_give(&self.descriptor.lock)
        if not self.filled or runner >= self.node.control.header.runners_count:
            return
        for index in range(self.wakes_count):
            if self.wakes[index] == runner:
                return
        self.wakes[self.wakes_count] = runner
        self.wakes_count += 1

    cdef void _nack(self, const uint8_t *frame, uint32_t peer, uint32_t nack_type) noexcept nogil:
        """Tells the sender's library that its packet was refused."""
        cdef const wire_message *refused = <const wire_message *>(frame + WIRE_HEAD_BYTES)
        cdef uint8_t *answer = transmit_prepare(&self.port, peer)
        cdef wire_nack_lib *nack
        if answer == NULL:
            self.counters[COUNTER_send_nomem_nack] += 1
            return
        nack = <wire_nack_lib *>(answer + WIRE_HEAD_BYTES)
        memset(nack, 0, sizeof(wire_nack_lib))
        nack.ptype = PTYPE_NACK_LIB
        nack.src_endpoint = refused.dst_endpoint
        nack.nack_type = <uint8_t>nack_type
        nack.dst_endpoint = refused.src_endpoint
        nack.dst_src_peer_index = be16(<uint16_t>self.header.index)
        # At the same place in connect, tiny, small and medium headers.
        nack.lib_seqnum = refused.lib_seqnum
        transmit_commit(&self.port, WIRE_HEAD_BYTES + sizeof(wire_nack_lib))
        self.nacks_waiting = True
        self.counters[COUNTER_send_nack_lib] += 1

    cdef void finish_batch(self) noexcept nogil:
        cdef uint32_t index
        cdef wait_slot *slot
        cdef bint notified
        self._leave()
        if self.nacks_waiting:
            self.nacks_waiting = False
            transmit_doorbell(&self.port)
        for index in range(self.wakes_count):
            slot = self.node.control.slot(self.wakes[index])
            notified = load_relaxed_u32(&slot.armed) == WAIT_SLOT_NOTIFY
            if wait_slot_wake(slot):
                self.counters[COUNTER_rank_notifications if notified
                              else COUNTER_rank_wakes] += 1
                trace_record(self.trace, self.now_ns, TRACE_rank_wake, self.wakes[index],
                             notified)
        self.wakes_count = 0
