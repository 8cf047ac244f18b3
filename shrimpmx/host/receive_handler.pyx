"""The driver's receive handler: from a frame to an event in an endpoint's ring.

What Open-MX does in the bottom half (its `omx_recv.c`): check the frame, find its
endpoint, copy the data into the receive queue, post an event; answer pull requests and carry
pulls on. A frame is untrusted: whatever cannot be believed is dropped, and each reason has its
counter.

Packets come in bursts for one endpoint, so its lock is held from one frame to the next
until another endpoint's turn or the end of the batch: no lock operation per packet.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from shrimpmx.costs.meter cimport cost_meter, pay
from shrimpmx.costs.rows cimport COST_wake_call_ns, COST_wake_here_call_ns
from shrimpmx.host.endpoint cimport (
    TransmitPort, endpoint_lock_take, event_writer_commit, event_writer_open_unexpected,
    event_writer_prefetch, event_writer_prepare, event_writer_recvq_offset, transmit_commit,
    transmit_doorbell, transmit_open, transmit_prepare,
)
from shrimpmx.host.event_fill cimport fill_packet
from shrimpmx.host.ledger cimport flow_follow, ledger_endpoint, ledger_event, ledger_lock
from shrimpmx.host.packet_counters cimport (
    answer_other, fault_counter, other_packet, packet_session, type_counter,
)
from shrimpmx.host.pull cimport (
    answer_from_backlog, answer_pull_request, pull_nack, pull_reply, pulls_tick, reply_has_room,
)
from shrimpmx.host.pull_backlog cimport (
    PULL_BACKLOG_BLOCKS, backlog_empty, backlog_first, block_request,
)
from shrimpmx.host.raw cimport host_packet
from shrimpmx.native.atomics cimport load_acquire_u32, load_relaxed_u32, prefetch_read
from shrimpmx.native.futex cimport WAIT_SLOT_NOTIFY, wait_slot, wait_slot_wake
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.native.ring cimport ring, ring_publish, ring_slot
from shrimpmx.native.trace cimport (
    TRACE_drop, TRACE_event, TRACE_rank_wake, capture_drop, trace_record,
)
from shrimpmx.shared.layout cimport (
    AGENT_IRQ, ENDPOINT_OPEN, STEERING_ARFS, COUNTER_drop_bad_endpoint, COUNTER_drop_bad_peer_addr,
    COUNTER_drop_bad_peer_index, COUNTER_drop_bad_session, COUNTER_drop_nack_mcp_bad_magic_endpoint,
    COUNTER_drop_pull_reply_bad_magic_endpoint, COUNTER_rank_notifications, COUNTER_rank_wakes,
    COUNTER_recv_host_query, COUNTER_recv_host_reply, COUNTER_recv_nack_mcp, COUNTER_recv_packets,
    COUNTER_recv_pull_reply, COUNTER_recv_pull_request, COUNTER_recv_raw, COUNTER_send_nack_lib,
    COUNTER_send_nack_mcp, COUNTER_send_nomem_nack_lib, COUNTER_send_nomem_nack_mcp,
    COUNTER_unexp_eventq_full, endpoint_descriptor, event, frame_slot, node_core_tx_ring,
    node_endpoint,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.check cimport FRAME_BAD_ETHERTYPE, frame_check
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.wire cimport (
    NACK_BAD_ENDPOINT, NACK_BAD_SESSION, NACK_ENDPOINT_CLOSED, NACK_NONE, PTYPE_CONNECT,
    PTYPE_HOST_REPLY, PTYPE_MEDIUM_FRAG, PTYPE_NACK_LIB, PTYPE_NACK_MCP, PTYPE_NOTIFY,
    PTYPE_PULL_REPLY, PTYPE_PULL_REQUEST, PTYPE_SMALL, PTYPE_TRUC, WIRE_HEAD_BYTES, WIRE_MARK,
    WIRE_NO_PEER, WIRE_PULL_MAGIC, be16, be32, wire_head, wire_medium, wire_message, wire_nack_lib,
    wire_nack_mcp, wire_notify, wire_pull_reply, wire_pull_request, wire_pull_request_compatible,
)

from shrimpmx.errors import InputError
from shrimpmx.shared.host import host_of


# -- Refusals: what a receive handler answers to a packet that no endpoint takes.
#
# A nack is never marked, and is never the answer to a nack or a library acknowledgement: two
# hosts could go on for ever.

cdef inline void *prepare(TransmitPort *port, uint32_t peer, size_t size_bytes) noexcept nogil:
    """A refusal's header, all zero, in a frame to `peer`; NULL if there is no room to send."""
    cdef uint8_t *answer = transmit_prepare(port, peer)
    if answer == NULL:
        return NULL
    return memset(answer + WIRE_HEAD_BYTES, 0, size_bytes)


cdef bint send_nack_lib(TransmitPort *port, uint64_t *counters, const uint8_t *refused,
                        int ptype, uint32_t peer, uint32_t nack_type) noexcept nogil:
    # Endpoints, and but for notify the sequence number, are at the same place in all headers.
    cdef const wire_message *message = <const wire_message *>refused
    cdef wire_nack_lib *nack = <wire_nack_lib *>prepare(port, peer, sizeof(wire_nack_lib))
    if nack == NULL:
        counters[COUNTER_send_nomem_nack_lib] += 1
        return False
    nack.ptype = PTYPE_NACK_LIB
    nack.src_endpoint = message.dst_endpoint
    nack.nack_type = <uint8_t>nack_type
    nack.dst_endpoint = message.src_endpoint
    nack.dst_src_peer_index = be16(<uint16_t>port.node.index)
    if ptype == PTYPE_NOTIFY:
        nack.lib_seqnum = (<const wire_notify *>refused).lib_seqnum
    else:
        nack.lib_seqnum = message.lib_seqnum
    transmit_commit(port, WIRE_HEAD_BYTES + sizeof(wire_nack_lib))
    counters[COUNTER_send_nack_lib] += 1
    return True


cdef bint send_nack_mcp(TransmitPort *port, uint64_t *counters, const uint8_t *refused,
                        uint32_t peer, uint32_t nack_type) noexcept nogil:
    cdef const wire_pull_request *native = <const wire_pull_request *>refused
    cdef const wire_pull_request_compatible *compatible = (
        <const wire_pull_request_compatible *>refused
    )
    cdef wire_nack_mcp *nack = <wire_nack_mcp *>prepare(port, peer, sizeof(wire_nack_mcp))
    if nack == NULL:
        counters[COUNTER_send_nomem_nack_mcp] += 1
        return False
    nack.ptype = PTYPE_NACK_MCP
    nack.src_endpoint = native.dst_endpoint
    nack.nack_type = <uint8_t>nack_type
    if port.node.geometry.compatible:
        nack.src_pull_handle = compatible.src_pull_handle
        nack.src_magic = compatible.src_magic
    else:
        nack.src_pull_handle = native.src_pull_handle
        nack.src_magic = native.src_magic
    transmit_commit(port, WIRE_HEAD_BYTES + sizeof(wire_nack_mcp))
    counters[COUNTER_send_nack_mcp] += 1
    return True


cdef class ReceiveHandler:
    """The receive handler of one core of `node`; its counters go to agent record `agent`.

    Without a `core` it is a NIC's: the ledger leaves it out, and it sends by core 0's tx ring.
    """

    def __init__(self, Node node not None, core, uint32_t agent):
        if core is not None and core >= node.header.cores_count:
            raise InputError(
                f"node {node.header.index} has no core {core}; its cores are 0 to "
                f"{node.header.cores_count - 1}"
            )
        self.node = node
        self.core = core or 0
        self.header = node.header
        self.locked = -1
        transmit_open(&self.port, node, node_core_tx_ring(node.header, self.core))
        self.context.node = node.header
        self.context.core = 0 if core is None else core + 1
        self.context.port = &self.port
        self.backlog.blocks = <block_request *>malloc(PULL_BACKLOG_BLOCKS * sizeof(block_request))
        if self.backlog.blocks == NULL:
            raise MemoryError
        self.context.backlog = &self.backlog
        self.count_into(<uint64_t *>node.control._checked_agent(agent).counters)

    def __dealloc__(self):
        free(self.backlog.blocks)

    cdef void count_into(self, uint64_t *counters) noexcept:
        self.counters = self.context.counters = counters

    def handle_frame(self, bytes frame not None, bint finish=True) -> None:
        """Handle one frame, for tests and tools; `finish`: as a batch of its own.

        Without `finish` the endpoint's lock stays taken, as in the middle of a batch.
        """
        cdef uint8_t[16384] memory
        cdef uint32_t length = <uint32_t>min(len(frame), <Py_ssize_t>sizeof(memory))
        memset(memory, 0, sizeof(memory))
        memcpy(memory, <const uint8_t *>frame, length)
        self.now_ns = self.frame_time_ns = host_of(self.node.control).now_ns()
        with nogil:
            self.handle(memory, length)
            if finish:
                self.finish_batch()

    def tick_at(self, int64_t now_ns) -> None:
        """What is due at `now_ns` (ns), for tests; the irq agent of core 0 calls it by itself."""
        with nogil:
            self.tick(now_ns)

    cdef void handle(self, const uint8_t *frame, uint32_t length) noexcept nogil:
        cdef int fault = frame_check(frame, length, &self.header.geometry)
        cdef int ptype
        self.counters[COUNTER_recv_packets] += 1
        if fault != 0:
            if fault != FRAME_BAD_ETHERTYPE or not other_packet(
                    self.counters, frame, length, self.now_ns - self.frame_time_ns):
                self._drop(fault_counter(fault, frame))
            elif answer_other(&self.port, frame):
                self.context.frames_committed = True
            return
        ptype = frame[WIRE_HEAD_BYTES] & ~WIRE_MARK
        if ptype == PTYPE_PULL_REPLY or ptype == PTYPE_NACK_MCP:
            self._handle_pull_answer(frame, ptype)
        elif ptype == PTYPE_PULL_REQUEST:
            self._handle_pull_request(frame)
        elif ptype <= PTYPE_HOST_REPLY:
            self._handle_host_frame(frame, ptype)
        else:
            self._handle_event_frame(frame, ptype)

    cdef void handle_slots(self, ring *rx, uint32_t position, uint32_t count) noexcept nogil:
        cdef frame_slot *slot
        cdef frame_slot *ahead
        cdef uint32_t index
        for index in range(count):
            slot = <frame_slot *>ring_slot(rx, position + index)
            ahead = <frame_slot *>ring_slot(rx, position + index + 2)
            prefetch_read(ahead)
            prefetch_read(<char *>ahead + 64)
            prefetch_read(<char *>ahead + 128)
            if self.trace != NULL and slot.time_ns > self.now_ns:
                self.now_ns = slot.time_ns   # it came after the poll began
            self.copies.frame = position + index
            self.frame_time_ns = slot.time_ns
            if self.capture != NULL:
                self.captured = slot.captured
            self.handle(slot.frame, slot.length)

    cdef void _handle_event_frame(self, const uint8_t *frame, int ptype) noexcept nogil:
        """A packet that the library is told of by an event."""
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
                if send_nack_lib(&self.port, self.counters, header, ptype, peer, refused):
                    self.context.frames_committed = True
            return
        self._post(frame, ptype, peer)

    cdef void _handle_pull_request(self, const uint8_t *frame) noexcept nogil:
        cdef const wire_pull_request *request = <const wire_pull_request *>(
            frame + WIRE_HEAD_BYTES
        )
        cdef uint32_t endpoint = request.dst_endpoint
        cdef uint32_t peer = 0
        cdef uint32_t dropped
        cdef int refused
        if not self._check_peer(frame, PTYPE_PULL_REQUEST, &peer):
            return
        refused = NACK_NONE if <int32_t>endpoint == self.locked else self._enter(endpoint)
        if refused == NACK_NONE and request.session != self.session:
            refused = NACK_BAD_SESSION
        if refused != NACK_NONE:
            self._drop(COUNTER_drop_bad_session if refused == NACK_BAD_SESSION
                       else COUNTER_drop_bad_endpoint)
            if send_nack_mcp(&self.port, self.counters, <const uint8_t *>request, peer, refused):
                self.context.frames_committed = True
            return
        dropped = answer_pull_request(&self.context, self.node, <const uint8_t *>request, peer)
        if dropped != 0:
            self._drop(dropped)
            return
        self.counters[COUNTER_recv_pull_request] += 1
        trace_packet(self.trace, self.now_ns, TRACE_event, frame, <uint64_t>self.locked)

    cdef void _handle_pull_answer(self, const uint8_t *frame, int ptype) noexcept nogil:
        """A pull reply or a nack-mcp: its magic names the endpoint that pulls."""
        cdef const uint8_t *header = frame + WIRE_HEAD_BYTES
        cdef bint is_reply = ptype == PTYPE_PULL_REPLY
        cdef uint32_t magic = (<const wire_pull_reply *>header).dst_magic
        cdef uint32_t peer = 0
        cdef uint32_t endpoint, dropped
        if not is_reply:
            magic = (<const wire_nack_mcp *>header).src_magic
        if not self._check_peer(frame, ptype, &peer):
            return
        endpoint = be32(magic) ^ <uint32_t>WIRE_PULL_MAGIC
        if <int32_t>endpoint != self.locked and self._enter(endpoint) != NACK_NONE:
            self._drop(COUNTER_drop_pull_reply_bad_magic_endpoint if is_reply
                       else COUNTER_drop_nack_mcp_bad_magic_endpoint)
            return
        self.context.now_ns = self.now_ns
        if is_reply:
            dropped = pull_reply(&self.context, self.node, header, peer)
        else:
            dropped = pull_nack(&self.context, header, peer)
        if dropped != 0:
            self._drop(dropped)
            return
        self.filled |= self.context.event_posted
        self.context.event_posted = False
        self.counters[COUNTER_recv_pull_reply if is_reply else COUNTER_recv_nack_mcp] += 1
        trace_packet(self.trace, self.now_ns, TRACE_event, frame, <uint64_t>self.locked)

    cdef void tick(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t index
        self.now_ns = self.context.now_ns = now_ns
        for index in range(self.header.endpoints_count):
            # A hint only: a pull that starts now is not due before many a tick.
            if load_relaxed_u32(&node_endpoint(self.header, index).pulls_active) == 0:
                continue
            if self._lock(index) == NACK_NONE:
                pulls_tick(&self.context)
                self.filled |= self.context.event_posted
                self.context.event_posted = False
        self.finish_batch()

    cdef void _handle_host_frame(self, const uint8_t *frame, int ptype) noexcept nogil:
        """Raw packets, and questions and answers about names: for no endpoint."""
        cdef uint32_t peer = 0, counter
        if not self._check_peer(frame, ptype, &peer):
            return
        counter = host_packet(&self.port, self.counters, frame, ptype, peer)
        if COUNTER_recv_raw <= counter <= COUNTER_recv_host_reply:
            self.counters[counter] += 1
        else:
            self._drop(counter)
        self.context.frames_committed |= counter == COUNTER_recv_host_query

    cdef void _drop(self, uint32_t counter) noexcept nogil:
        self.counters[counter] += 1
        trace_record(self.trace, self.now_ns, TRACE_drop, counter, AGENT_IRQ)
        capture_drop(self.capture, self.captured, AGENT_IRQ, counter)

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
        offset = event_writer_recvq_offset(&self.writer)
        type = fill_packet(e, ptype, header, header + sizeof(wire_medium), self.writer.recvq,
                           offset, &self.header.geometry)
        event_writer_commit(&self.writer, e, type)
        ledger_event(&self.context, self.writer.kind)
        # What comes next is most often like what came now.
        event_writer_prefetch(&self.writer, ptype == PTYPE_SMALL or ptype == PTYPE_MEDIUM_FRAG)
        self.filled = True
        self.counters[type_counter(header, ptype)] += 1
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
        """Locks the endpoint of a packet; NACK_NONE or why it takes no packets."""
        cdef int refused = self._lock(endpoint)
        if refused != NACK_NONE:
            return refused
        ledger_endpoint(&self.context)
        if self.header.steering == STEERING_ARFS and self.context.process_core != 0:
            flow_follow(self.header, endpoint, self.context.process_core - 1, self.vector,
                        self.counters)
        return NACK_NONE

    cdef int _lock(self, uint32_t endpoint) noexcept nogil:
        """Locks an endpoint, leaving the last one."""
        cdef endpoint_descriptor *descriptor
        if endpoint >= self.header.endpoints_count:
            return NACK_BAD_ENDPOINT
        self._leave()
        descriptor = node_endpoint(self.header, endpoint)
        if load_acquire_u32(&descriptor.state) != ENDPOINT_OPEN:
            return NACK_ENDPOINT_CLOSED
        if not endpoint_lock_take(self.header, descriptor):
            return NACK_ENDPOINT_CLOSED
        if descriptor.state != ENDPOINT_OPEN:  # closed while we waited for the lock
            shared_lock_give(&descriptor.lock)
            return NACK_ENDPOINT_CLOSED
        event_writer_open_unexpected(&self.writer, self.header, descriptor)
        self.descriptor = self.context.endpoint = descriptor
        self.context.endpoint_index = endpoint
        self.context.trace = self.trace
        ledger_lock(&self.context)
        self.session = be32(descriptor.session_id)
        self.filled = False
        self.locked = <int32_t>endpoint
        return NACK_NONE

    cdef void _leave(self) noexcept nogil:
        """Gives the lock back; notes the rank to wake."""
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

    cdef void _answer_backlog(self) noexcept nogil:
        """Sends pull replies that wait, as far as the tx ring has room; one, if they are paced."""
        cdef block_request *block
        cdef bint answered
        while not backlog_empty(&self.backlog) and reply_has_room(&self.port):
            block = backlog_first(&self.backlog)
            if <int32_t>block.endpoint != self.locked and self._lock(block.endpoint) != NACK_NONE:
                self.backlog.tail += 1  # it was closed
            elif block.session != self.session:
                self.backlog.tail += 1  # and opened again
            else:
                answered = answer_from_backlog(&self.context, self.node)
                self.filled |= self.context.event_posted
                self.context.event_posted = False
                if not answered or self.context.paced:
                    return

    cdef void pace(self) noexcept:
        self.context.paced = True

    cdef void pay_calls(self, cost_meter *meter, uint32_t runner) noexcept:
        self.meter, self.runner = meter, runner

    cdef bint owes_reply(self) noexcept nogil:
        return (self.context.paced and not backlog_empty(&self.backlog)
                and reply_has_room(&self.port))

    cdef void send_reply(self, bint in_poll) noexcept nogil:
        cdef uint32_t blocks = self.backlog.tail
        self._answer_backlog()
        if not self.owes_reply() and not (in_poll and self.whole_polls):
            self.finish_batch()
            return
        self._leave()
        # As without a cost: a block at a time.
        if not self.whole_polls or self.backlog.tail != blocks:
            ring_publish(self.port.tx)

    cdef void finish_frame(self) noexcept nogil:
        if self.whole_polls:
            self._leave()  # others have their turn before the next frame
        else:
            self.finish_batch()

    cdef void _note_call(self, uint32_t runner) noexcept nogil:
        cdef uint32_t cpu
        self.has_called = True
        if self.meter == NULL or self.meter.prices == NULL:
            return
        cpu = self.node.control.runner(self.runner).cpu
        self.calls_ns += pay(
            self.meter, COST_wake_here_call_ns if self.node.control.runner(runner).cpu == cpu
            else COST_wake_call_ns)

    cdef void finish_batch(self) noexcept nogil:
        cdef uint32_t index
        cdef wait_slot *slot
        cdef bint notified
        if not self.context.paced and not backlog_empty(&self.backlog):
            self._answer_backlog()
        self._leave()
        if self.context.frames_committed:
            self.context.frames_committed = False
            transmit_doorbell(&self.port)
            self.has_called = True
        if self.copies.handed_over:
            self.copies.handed_over = 0
            wait_slot_wake(self.node.control.slot(self.header.dma_runner))
        for index in range(self.wakes_count):
            slot = self.node.control.slot(self.wakes[index])
            notified = load_relaxed_u32(&slot.armed) == WAIT_SLOT_NOTIFY
            if wait_slot_wake(slot):
                self._note_call(self.wakes[index])
                self.counters[COUNTER_rank_notifications if notified
                              else COUNTER_rank_wakes] += 1
                trace_record(self.trace, self.now_ns, TRACE_rank_wake, self.wakes[index],
                             notified)
        self.wakes_count = 0
