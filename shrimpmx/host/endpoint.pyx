"""The driver as a rank sees it: event rings, receive queue, send commands; the shared path.

The endpoint's descriptor and rings lie in the node's segment. Receive handlers
write them; this class is the rank's end. Open-MX has the same commands as ioctls
(its `omx_io.h`); here the rank writes the frame itself and rings the NIC's doorbell.
"""

import os

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from shrimpmx.host.event_fill cimport fill_packet
from shrimpmx.host.pull cimport endpoint_pulls_reset
from shrimpmx.host.raw cimport node_raw_queue
from shrimpmx.host.regions cimport endpoint_await_copies, endpoint_regions_reset
from shrimpmx.host.send_commands cimport (
    Envelope, put_connect, put_liback, put_medium, put_message, put_notify, put_rndv,
)
from shrimpmx.host.token cimport tokens_of_dead
from shrimpmx.native.atomics cimport (
    compare_exchange_u32, load_acquire_u32, load_relaxed_u32, store_relaxed_u32, store_release_u32,
)
from shrimpmx.native.copy cimport copy_bytes
from shrimpmx.native.copy_short cimport copy_short
from shrimpmx.native.futex cimport WAIT_SLOT_NOTIFY, wait_slot, wait_slot_wake
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.native.ring cimport ring, ring_fill, ring_free, ring_next, ring_publish
from shrimpmx.shared.layout cimport (
    ENDPOINT_CLOSED, ENDPOINT_OPEN, EVENT_CONNECT_REPLY, EVENT_CONNECT_REQUEST, EVENT_LIBACK,
    EVENT_MEDIUM_FRAG, EVENT_NACK_LIB, EVENT_NOTIFY, EVENT_PULL_DONE, EVENT_RING_LOCK_FREE,
    EVENT_RING_RESET, EVENT_RNDV, EVENT_SMALL, EVENT_TINY, EVENT_UNREADABLE,
    COUNTER_rank_notifications, COUNTER_rank_wakes, COUNTER_send_connect_reply,
    COUNTER_send_connect_request, COUNTER_send_liback, COUNTER_send_mediumsq_frag,
    COUNTER_send_mediumva_frag, COUNTER_send_no_tx_slot, COUNTER_send_notify, COUNTER_send_rndv,
    COUNTER_send_small, COUNTER_send_tiny, COUNTER_shared_connect_reply,
    COUNTER_shared_connect_request, COUNTER_shared_eventq_full, COUNTER_shared_liback,
    COUNTER_shared_medium_frag, COUNTER_shared_nack_lib, COUNTER_shared_notify, COUNTER_shared_rndv,
    COUNTER_shared_small, COUNTER_shared_tiny, control_header, control_runner, endpoint_descriptor,
    event, event_connect, frame_slot, node_address, node_endpoint, node_endpoint_tx_ring,
    node_header, node_mark,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport (
    NACK_BAD_ENDPOINT, NACK_BAD_SESSION, NACK_ENDPOINT_CLOSED, PTYPE_CONNECT, PTYPE_MEDIUM_FRAG,
    PTYPE_SMALL, PTYPE_TINY, PTYPE_TRUC, WIRE_ETHERTYPE, WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES,
    WIRE_MARK, be16, wire_connect, wire_head, wire_medium, wire_message, wire_notify, wire_rndv,
    wire_truc,
)

from shrimpmx.errors import InputError, MxError


# -- The driver's send side: frames into a tx ring, then the NIC's doorbell.
#
# A frame is written in place, in the slot that the NIC reads; several may be
# committed before one doorbell makes them visible together.

cdef void transmit_open(TransmitPort *port, Node node, ring *tx) noexcept:
    cdef wire_head *head = <wire_head *>port.head
    port.node = node.header
    port.tx = tx
    port.doorbell = node.control.slot(node.header.nic_runner)
    port.slot = NULL
    port.now_ns = 0
    node_address(0, head.destination)
    node_address(node.header.index, head.source)
    head.ethertype = be16(WIRE_ETHERTYPE)
    # Peer indices are node indices, so every receiver knows this node by the same one.
    head.dst_src_peer_index = be16(<uint16_t>node.header.index)


cdef uint8_t *transmit_prepare(TransmitPort *port, uint32_t peer_index) noexcept nogil:
    if ring_free(port.tx, 1) == 0:
        return NULL
    cdef frame_slot *slot = <frame_slot *>ring_next(port.tx)
    port.slot = slot
    memcpy(slot.frame, port.head, WIRE_HEAD_BYTES)
    slot.frame[4] = <uint8_t>(peer_index >> 8)
    slot.frame[5] = <uint8_t>peer_index
    return slot.frame


cdef void transmit_commit(TransmitPort *port, uint32_t length) noexcept nogil:
    cdef frame_slot *slot = port.slot
    if length < WIRE_FRAME_MIN_BYTES:
        memset(slot.frame + length, 0, WIRE_FRAME_MIN_BYTES - length)
        length = WIRE_FRAME_MIN_BYTES
    slot.length = <uint16_t>length
    slot.time_ns = port.now_ns
    ring_fill(port.tx)


cdef void transmit_doorbell(TransmitPort *port) noexcept nogil:
    ring_publish(port.tx)
    wait_slot_wake(port.doorbell)


# -- Event rings as Python sees them: for tests, and to look at a ring by hand.

_NAMES = {
    EVENT_CONNECT_REQUEST: "connect_request",
    EVENT_CONNECT_REPLY: "connect_reply",
    EVENT_TINY: "tiny",
    EVENT_SMALL: "small",
    EVENT_MEDIUM_FRAG: "medium_frag",
    EVENT_LIBACK: "liback",
    EVENT_NACK_LIB: "nack_lib",
    EVENT_RNDV: "rndv",
    EVENT_NOTIFY: "notify",
    EVENT_PULL_DONE: "pull_done",
    EVENT_UNREADABLE: "unreadable",
}
RING_KINDS = {"lock-free": EVENT_RING_LOCK_FREE, "reset": EVENT_RING_RESET}


cdef dict event_fields(const event *e, const uint8_t *recvq):
    """The fields of an event by name; `data` is copied out of the event or the recvq."""
    fields = {
        "type": _NAMES.get(e.type, e.type),
        "peer_index": e.peer_index,
        "src_endpoint": e.src_endpoint,
        "seqnum": e.seqnum,
    }
    if e.type in (EVENT_TINY, EVENT_SMALL, EVENT_MEDIUM_FRAG, EVENT_RNDV, EVENT_NOTIFY):
        fields["piggyack"] = e.piggyack
        fields["match_info"] = e.match_info
    if e.type == EVENT_TINY:
        fields["data"] = e.tiny.data[:e.tiny.length]
    elif e.type == EVENT_SMALL:
        fields["recvq_offset"] = e.small.recvq_offset
        fields["data"] = (recvq + e.small.recvq_offset)[:e.small.length]
    elif e.type == EVENT_MEDIUM_FRAG:
        fields["recvq_offset"] = e.medium.recvq_offset
        fields["message_length"] = e.medium.message_length
        fields["frag_seqnum"] = e.medium.frag_seqnum
        fields["data"] = (recvq + e.medium.recvq_offset)[:e.medium.frag_length]
    elif e.type == EVENT_LIBACK:
        fields.update(session_id=e.liback.session_id, acknum=e.liback.acknum,
                      lib_seqnum=e.liback.lib_seqnum, send_seq=e.liback.send_seq,
                      resent=e.liback.resent)
    elif e.type in (EVENT_CONNECT_REQUEST, EVENT_CONNECT_REPLY):
        fields.update(src_session_id=e.connect.src_session_id,
                      key_or_session=e.connect.key_or_session,
                      target_recv_seqnum_start=e.connect.target_recv_seqnum_start,
                      connect_seqnum=e.connect.connect_seqnum, status=e.connect.status)
    elif e.type == EVENT_NACK_LIB:
        fields.update(lib_seqnum=e.nack.lib_seqnum, nack_type=e.nack.nack_type)
    elif e.type == EVENT_RNDV:
        fields.update(message_length=e.rndv.message_length, rdma_id=e.rndv.rdma_id,
                      rdma_seqnum=e.rndv.rdma_seqnum, rdma_offset=e.rndv.rdma_offset)
    elif e.type == EVENT_NOTIFY:
        fields.update(transferred=e.notify.transferred, rdma_id=e.notify.rdma_id,
                      rdma_seqnum=e.notify.rdma_seqnum)
    elif e.type == EVENT_PULL_DONE:
        fields.update(cookie=e.pull_done.cookie, transferred=e.pull_done.transferred,
                      status=e.pull_done.status)
    elif e.type == EVENT_UNREADABLE:
        fields.update(rdma_id=e.unreadable.rdma_id, rdma_seqnum=e.unreadable.rdma_seqnum)
    return fields


cdef class EventRing:
    """Both ends of an event ring in private memory, without a recvq.

    `kind`: "lock-free" or "reset"; `start`: free-running index of the first event.
    """

    cdef event *events
    cdef event_writer writer
    cdef event_reader reader
    cdef uint32_t next_shared
    cdef uint32_t released

    def __cinit__(self, uint32_t entries, kind="lock-free", uint32_t start=0):
        if entries < 4 or entries & (entries - 1):
            raise ValueError(f"an event ring has a power of two of entries, not {entries}")
        self.events = <event *>calloc(entries, sizeof(event))
        if self.events == NULL:
            raise MemoryError
        self.next_shared = self.released = start
        event_ring_reset(self.events, entries, start)
        event_reader_open(&self.reader, self.events, &self.released, entries,
                          RING_KINDS[kind], start)
        self.reopen()

    def __dealloc__(self):
        free(self.events)

    def reopen(self) -> None:
        """Begin to write anew, as the next handler that takes the lock does."""
        event_writer_open(&self.writer, self.events, NULL, &self.next_shared, &self.released,
                          self.reader.entries, self.reader.kind, 0)

    def put(self, uint64_t match_info) -> bool:
        """Post an event; False if the ring is full."""
        cdef event *e = event_writer_prepare(&self.writer)
        if e == NULL:
            return False
        e.match_info = match_info
        event_writer_commit(&self.writer, e, EVENT_TINY)
        return True

    def die_after_publishing(self, uint64_t match_info) -> None:
        """Post an event, and lose the count of it: what a kill at the worst moment leaves."""
        cdef uint32_t next_shared = self.next_shared
        self.put(match_info)
        self.next_shared = next_shared

    def repair(self) -> None:
        """Begin to write anew after such a death."""
        self.reopen()
        event_writer_repair(&self.writer)

    def get(self) -> int | None:
        """The next event's match_info, which is consumed; None if there is none."""
        cdef event *e = event_reader_peek(&self.reader)
        if e == NULL:
            return None
        match_info = e.match_info
        event_reader_consume(&self.reader)
        return match_info

    @property
    def next_id(self):
        """Id that the next event will carry."""
        return self.writer.id

    @property
    def reader_id(self):
        """Id that the reader waits for."""
        return self.reader.id

    @property
    def indices(self):
        """(next to write, next to read, released): free-running."""
        return self.next_shared, self.reader.index, self.released


# -- Events straight into the rings of the other ranks of the node (Open-MX: omx_shared.c).
#
# A message between two ranks of a node needs no frame, no NIC and no interrupt: the sender
# does what the receive handler would do, under the same lock. Sender and receiver then share
# one line per event: the lock, its counts and the sender's copy of the ring's state stay in
# the sender's cache.

cdef void local_open(LocalPort *port, Node node) noexcept:
    port.node = node.header
    port.control = node.control.header


cdef inline uint32_t event_counter(int type) noexcept nogil:
    if type == EVENT_TINY:
        return COUNTER_shared_tiny
    if type == EVENT_SMALL:
        return COUNTER_shared_small
    if type == EVENT_MEDIUM_FRAG:
        return COUNTER_shared_medium_frag
    if type == EVENT_LIBACK:
        return COUNTER_shared_liback
    if type == EVENT_RNDV:
        return COUNTER_shared_rndv
    if type == EVENT_NOTIFY:
        return COUNTER_shared_notify
    return (COUNTER_shared_connect_request if type == EVENT_CONNECT_REQUEST
            else COUNTER_shared_connect_reply)


cdef int local_post(const LocalPort *port, uint64_t *counters, const uint8_t *header,
                    uint32_t session, const uint8_t *data) noexcept nogil:
    cdef int ptype = header[0] & ~WIRE_MARK
    cdef endpoint_descriptor *descriptor
    cdef int entered = enter_session(port, counters, ptype, header[1], session, &descriptor)
    cdef event_writer writer
    cdef event *e
    cdef uint8_t type = 0
    if entered <= 0:
        return 1 if ptype == PTYPE_TRUC else entered
    e = begin_event(port, counters, descriptor, &writer)
    if e != NULL:
        type = fill_packet(e, ptype, header, data, writer.recvq,
                           event_writer_recvq_offset(&writer), &port.node.geometry)
        event_writer_commit(&writer, e, type)
        if port.goes_on:
            event_writer_prefetch(&writer, ptype == PTYPE_SMALL or ptype == PTYPE_MEDIUM_FRAG)
        counters[event_counter(type)] += 1
    return leave_session(port, counters, descriptor, e != NULL)


cdef int local_post_message(const LocalPort *port, uint64_t *counters, uint32_t source,
                            uint8_t ptype, const Envelope *envelope, const void *data,
                            uint32_t length) noexcept nogil:
    """The same of a message, PTYPE_TINY or PTYPE_SMALL, by endpoint `source`: without a header."""
    cdef bint is_tiny = ptype == PTYPE_TINY
    cdef endpoint_descriptor *descriptor
    cdef int entered = enter_session(port, counters, ptype, envelope.dst_endpoint,
                                     envelope.session, &descriptor)
    cdef event_writer writer
    cdef event *e
    if entered <= 0:
        return entered
    e = begin_event(port, counters, descriptor, &writer)
    if e != NULL:
        e.src_endpoint = <uint8_t>source
        e.seqnum = envelope.seqnum
        e.piggyack = envelope.piggyack
        e.match_info = envelope.match
        if is_tiny:
            e.tiny.checksum = 0
            e.tiny.length = <uint8_t>length
            copy_short(e.tiny.data, data, length)
        else:
            e.small.recvq_offset = event_writer_recvq_offset(&writer)
            e.small.length = <uint16_t>length
            e.small.checksum = 0
            copy_short(writer.recvq + e.small.recvq_offset, data, length)
        event_writer_commit(&writer, e, EVENT_TINY if is_tiny else EVENT_SMALL)
        if port.goes_on:
            event_writer_prefetch(&writer, not is_tiny)
        counters[COUNTER_shared_tiny if is_tiny else COUNTER_shared_small] += 1
    return leave_session(port, counters, descriptor, e != NULL)


cdef inline int enter_session(const LocalPort *port, uint64_t *counters, int ptype,
                              uint32_t endpoint, uint32_t session,
                              endpoint_descriptor **descriptor) noexcept nogil:
    """Takes the lock of a target that accepts the packet: 1, or -n as local_post()."""
    cdef int entered = local_enter(port.node, endpoint)
    if entered < 0:
        return refuse(counters, ptype, entered)
    descriptor[0] = node_endpoint(port.node, endpoint)
    if ptype != PTYPE_CONNECT and descriptor[0].session_id != session:
        shared_lock_give(&descriptor[0].lock)
        return refuse(counters, ptype, -NACK_BAD_SESSION)
    return 1


cdef inline event *begin_event(const LocalPort *port, uint64_t *counters,
                               endpoint_descriptor *descriptor,
                               event_writer *writer) noexcept nogil:
    """The event to fill in the unexpected ring of a target whose lock is held; NULL: it is full."""
    cdef event *e
    event_writer_open_unexpected(writer, port.node, descriptor)
    e = event_writer_prepare(writer)
    if e == NULL:
        counters[COUNTER_shared_eventq_full] += 1
    else:
        e.peer_index = <uint16_t>port.node.index
    return e


cdef inline bint leave_session(const LocalPort *port, uint64_t *counters,
                               endpoint_descriptor *descriptor, bint posted) noexcept nogil:
    """Gives the lock back; wakes the target if an event was `posted`."""
    cdef uint32_t runner = descriptor.runner
    shared_lock_give(&descriptor.lock)
    if posted:
        local_wake(port.control, counters, runner)
    return posted


cdef inline int refuse(uint64_t *counters, int ptype, int refused) noexcept nogil:
    """As the receive handler answers: a nack to everything but a library acknowledgement."""
    if ptype != PTYPE_TRUC:
        counters[COUNTER_shared_nack_lib] += 1
    return refused


cdef void local_wake(control_header *control, uint64_t *counters,
                     uint32_t runner) noexcept nogil:
    cdef wait_slot *slot
    cdef bint notified
    if runner >= control.runners_count:
        return
    slot = &control_runner(control, runner).slot
    notified = load_relaxed_u32(&slot.armed) == WAIT_SLOT_NOTIFY
    if wait_slot_wake(slot):
        counters[COUNTER_rank_notifications if notified else COUNTER_rank_wakes] += 1


cdef int local_enter(node_header *node, uint32_t endpoint) noexcept nogil:
    cdef endpoint_descriptor *descriptor
    if endpoint >= node.endpoints_count:
        return -NACK_BAD_ENDPOINT
    descriptor = node_endpoint(node, endpoint)
    if load_acquire_u32(&descriptor.state) != ENDPOINT_OPEN:
        return -NACK_ENDPOINT_CLOSED
    if not endpoint_lock_take(node, descriptor):
        return -NACK_ENDPOINT_CLOSED
    if descriptor.state != ENDPOINT_OPEN:  # closed while we waited for the lock
        shared_lock_give(&descriptor.lock)
        return -NACK_ENDPOINT_CLOSED
    return 0


cdef enum:
    SMALL_PACKET_BYTES = 152      # header and data of the longest small packet

# A packet to a rank of the own node: no other one is longer, but for a fragment's data.
cdef union LocalPacket:
    wire_message message
    uint8_t[SMALL_PACKET_BYTES] packet


cdef void _close(node_header *node, endpoint_descriptor *descriptor) noexcept nogil:
    """With its lock, which is given back."""
    store_release_u32(&descriptor.state, ENDPOINT_CLOSED)
    endpoint_regions_reset(node, descriptor)
    endpoint_pulls_reset(node, descriptor)
    shared_lock_give(&descriptor.lock)


def close_dead(Node node not None, uint32_t endpoint) -> bool:
    """Close an endpoint whose process has died; False if its lock is held: try again later.

    Waits for nothing: the holder of the lock may be stopped, and copies into the dead process's
    memory may still be under way, so its pid must stay its own while agents live. If the process
    was polling an rx ring, the irq agents are told to go on. All sleepers are woken: the dead one
    may have left work for them, and died before it woke them. IndexError if there is no such
    endpoint.
    """
    cdef endpoint_descriptor *descriptor
    cdef bint closed
    if endpoint >= node.header.endpoints_count:
        raise IndexError(f"no endpoint {endpoint}; there are {node.header.endpoints_count}")
    descriptor = node_endpoint(node.header, endpoint)
    with nogil:
        tokens_of_dead(node, descriptor.runner)
        # It may have had the raw endpoint open, too.
        compare_exchange_u32(&node_raw_queue(node.header).owner, descriptor.pid, 0)
        closed = endpoint_lock_try(node.header, descriptor)
        if closed:
            _close(node.header, descriptor)
    node.control.rouse_all()
    return closed


cdef class DriverEndpoint:
    """One endpoint of a node, as its owning rank uses it.

    `index`: its number on the node; `runner`: the rank's process, which handlers wake;
    `agent`: the record whose counters count what is sent (None: counted privately); `shared`:
    messages to ranks of the own node go by shared memory.
    """

    def __init__(self, Node node not None, uint32_t index, uint32_t runner, agent=None,
                 bint shared=False):
        if index >= node.header.endpoints_count:
            raise InputError(
                f"node {node.header.index} has no endpoint {index}; its endpoints are 0 to "
                f"{node.header.endpoints_count - 1}"
            )
        if runner >= node.control.header.runners_count:
            raise InputError(f"there is no process {runner} to wake for endpoint {index}")
        self.node = node
        self.index = index
        self.runner = runner
        self.shared = shared
        self.descriptor = node_endpoint(node.header, index)
        self.source.node = node.header
        self.source.endpoint = index
        self.counters = self.own_counters
        if agent is not None:
            self.counters = <uint64_t *>node.control.agent(agent).counters
        transmit_open(&self.port, node, node_endpoint_tx_ring(node.header, index))
        local_open(&self.local, node)
        self.recvq_start = <uint8_t *>node.header + self.descriptor.recvq_offset
        self._open_readers(0)

    def open(self, session=None, uint32_t start_index=0) -> int:
        """Open the endpoint with empty rings and return its session id.

        `session`: 1 to 2**32 - 1, drawn at random when None; `start_index`: the free-running
        index of the first event, for tests of its wrap. MxError("busy") if it is open.
        """
        if session is None:
            session = int.from_bytes(os.urandom(4), "little") or 1
        cdef uint32_t number = session
        cdef uint32_t pid = os.getpid()
        cdef int result
        with nogil:
            result = self._open(number, start_index, pid)
        if result < 0:
            raise MxError(
                f"endpoint {self.index} of node {self.node.header.index} is open already "
                f"(by process {self.descriptor.runner}); close it or choose another",
                "busy",
            )
        return number

    def close(self) -> None:
        """Close the endpoint; packets for it are refused from now on. Harmless if closed.

        Its pulls and regions are gone afterwards, and no agent copies from or to its memory.
        """
        with nogil:
            if endpoint_lock_take(self.node.header, self.descriptor):
                _close(self.node.header, self.descriptor)
                endpoint_await_copies(self.node.header, self.descriptor)

    @property
    def is_open(self):
        """Whether handlers accept packets for this endpoint."""
        return load_acquire_u32(&self.descriptor.state) == ENDPOINT_OPEN

    @property
    def session(self):
        """Session id of the current or last opening."""
        return self.descriptor.session_id

    @property
    def process_core(self):
        """The core that its process runs on, for the ledger and for steering; None: not told."""
        cdef uint32_t core = load_relaxed_u32(&self.descriptor.process_core)
        return core - 1 if core else None

    @process_core.setter
    def process_core(self, core):
        store_relaxed_u32(&self.descriptor.process_core, 0 if core is None else core + 1)

    cdef int _open(self, uint32_t session, uint32_t start, uint32_t pid) noexcept nogil:
        cdef endpoint_descriptor *descriptor = self.descriptor
        if not endpoint_lock_take(self.node.header, descriptor):
            return -1
        if descriptor.state == ENDPOINT_OPEN:
            shared_lock_give(&descriptor.lock)
            return -1
        self._open_readers(start)
        event_ring_reset(self.unexpected.events, descriptor.entries, start)
        event_ring_reset(self.expected.events, descriptor.entries, start)
        descriptor.unexpected_next = descriptor.unexpected_released = start
        descriptor.recvq_first = descriptor.recvq_read = 0
        descriptor.expected_next = descriptor.expected_released = start
        endpoint_regions_reset(self.node.header, descriptor)
        endpoint_pulls_reset(self.node.header, descriptor)
        descriptor.session_id = session
        descriptor.runner = self.runner
        descriptor.pid = pid
        store_relaxed_u32(&descriptor.process_core, 0)
        store_release_u32(&descriptor.state, ENDPOINT_OPEN)
        shared_lock_give(&descriptor.lock)
        return 0

    cdef void _open_readers(self, uint32_t start) noexcept nogil:
        cdef endpoint_descriptor *descriptor = self.descriptor
        cdef uint8_t *segment = <uint8_t *>self.node.header
        event_reader_open(
            &self.unexpected, <event *>(segment + descriptor.unexpected_offset),
            &descriptor.unexpected_released, descriptor.entries, descriptor.ring_kind, start,
        )
        event_reader_open(
            &self.expected, <event *>(segment + descriptor.expected_offset),
            &descriptor.expected_released, descriptor.entries, descriptor.ring_kind, start,
        )

    # -- events -------------------------------------------------------

    def discard(self, uint32_t limit) -> int:
        """Consume up to `limit` unexpected events unread; returns how many there were."""
        cdef uint32_t count = 0
        with nogil:
            while count < limit and self.next_unexpected() != NULL:
                self.consume_unexpected()
                count += 1
        return count

    def take_event(self) -> dict | None:
        """The fields of the next event, which is consumed, unexpected ring first; or None."""
        cdef event *found = self.next_unexpected()
        if found != NULL:
            fields = event_fields(found, self.recvq_start)
            self.consume_unexpected()
            return fields
        found = self.next_expected()
        if found == NULL:
            return None
        fields = event_fields(found, self.recvq_start)
        self.consume_expected()
        return fields

    # -- send commands ------------------------------------------------

    def command(self, kind, peer, dst_endpoint, *, session=0, seqnum=0, piggyack=0, match=0,
                bytes data=b"", message_length=0, frag_seqnum=0, from_copy=False, session_id=0,
                acknum=0, send_seq=0, resent=0, rdma_id=0, rdma_seqnum=0,
                rdma_offset=0, transferred=0) -> int:
        """One send command by name, doorbell included; for tests and tools.

        `kind`: "tiny", "small", "medium_frag", "rndv", "notify" or "liback". Returns 1 (sent),
        0 (no room) or -n, n the nack type by which a local endpoint refused; the library calls
        the compiled commands.
        """
        cdef int sent
        cdef const uint8_t *start = data
        cdef Envelope envelope
        envelope.peer, envelope.dst_endpoint, envelope.session = peer, dst_endpoint, session
        envelope.seqnum, envelope.piggyack, envelope.match = seqnum, piggyack, match
        if kind == "liback":
            sent = self.send_liback(&envelope, session_id, acknum, send_seq, resent)
        elif kind == "rndv":
            sent = self.send_rndv(&envelope, message_length, rdma_id, rdma_seqnum, rdma_offset)
        elif kind == "notify":
            sent = self.send_notify(&envelope, transferred, rdma_id, rdma_seqnum)
        elif kind == "medium_frag":
            sent = self.send_medium_frag(&envelope, message_length, frag_seqnum, start, len(data),
                                         from_copy)
        elif kind not in ("tiny", "small"):
            raise ValueError(f"no send command {kind!r}")
        elif len(data) > <Py_ssize_t>(SMALL_PACKET_BYTES - sizeof(wire_message)):
            raise InputError(f"{len(data)} bytes do not fit a packet of type {kind}")
        else:
            sent = self.send_message(PTYPE_TINY if kind == "tiny" else PTYPE_SMALL, &envelope,
                                     start, len(data))
        self.doorbell()
        return sent

    def command_connect(self, peer, dst_endpoint, *, seqnum=0, src_session_id=0,
                        key_or_session=0, target_recv_seqnum_start=1, connect_seqnum=0,
                        status=0, is_reply=False) -> int:
        """The connect command, doorbell included; see command()."""
        cdef event_connect fields
        cdef Envelope envelope
        envelope.peer, envelope.dst_endpoint, envelope.session = peer, dst_endpoint, 0
        envelope.seqnum, envelope.piggyack, envelope.match = seqnum, 0, 0
        fields.src_session_id = src_session_id
        fields.key_or_session = key_or_session
        fields.target_recv_seqnum_start = target_recv_seqnum_start
        fields.connect_seqnum = connect_seqnum
        fields.status = status
        cdef int sent = self.send_connect(&envelope, &fields, is_reply)
        self.doorbell()
        return sent

    cdef int send_message(self, uint8_t ptype, const Envelope *envelope, const void *data,
                          uint32_t length) noexcept nogil:
        cdef wire_message *header
        if self.sends_locally(envelope.peer):
            return local_post_message(local_port(self), self.counters, self.source.endpoint, ptype,
                                      envelope, data, length)
        header = <wire_message *>header_place(self, envelope, NULL)
        if header == NULL:
            return 0
        put_message(header, ptype | node_mark(self.source.node, ptype), &self.source, envelope,
                    length)
        copy_bytes(<uint8_t *>header + sizeof(wire_message), data, length)
        return hand_over(self, envelope, header, sizeof(wire_message) + length, NULL, 0,
                         COUNTER_send_tiny if ptype == PTYPE_TINY else COUNTER_send_small)

    cdef int send_medium_frag(self, const Envelope *envelope, uint32_t message_length,
                              uint32_t frag_seqnum, const void *data, uint32_t frag_length,
                              bint from_copy) noexcept nogil:
        cdef LocalPacket room
        cdef wire_medium *header = <wire_medium *>header_place(self, envelope, &room)
        if header == NULL:
            return 0
        put_medium(header, &self.source, envelope, message_length, frag_seqnum, frag_length)
        return hand_over(self, envelope, header, sizeof(wire_medium), data, frag_length,
                         COUNTER_send_mediumsq_frag if from_copy else COUNTER_send_mediumva_frag)

    cdef int send_rndv(self, const Envelope *envelope, uint32_t message_length, uint8_t rdma_id,
                       uint8_t rdma_seqnum, uint16_t rdma_offset) noexcept nogil:
        cdef LocalPacket room
        cdef wire_rndv *header = <wire_rndv *>header_place(self, envelope, &room)
        if header == NULL:
            return 0
        put_rndv(header, &self.source, envelope, message_length, rdma_id, rdma_seqnum, rdma_offset)
        return hand_over(self, envelope, header, sizeof(wire_rndv), NULL, 0, COUNTER_send_rndv)

    cdef int send_notify(self, const Envelope *envelope, uint32_t transferred, uint8_t rdma_id,
                         uint8_t rdma_seqnum) noexcept nogil:
        cdef LocalPacket room
        cdef wire_notify *header = <wire_notify *>header_place(self, envelope, &room)
        if header == NULL:
            return 0
        put_notify(header, &self.source, envelope, transferred, rdma_id, rdma_seqnum)
        return hand_over(self, envelope, header, sizeof(wire_notify), NULL, 0, COUNTER_send_notify)

    cdef int send_liback(self, const Envelope *envelope, uint32_t session_id, uint32_t acknum,
                         uint16_t send_seq, uint8_t resent) noexcept nogil:
        cdef LocalPacket room
        cdef wire_truc *header = <wire_truc *>header_place(self, envelope, &room)
        if header == NULL:
            return 0
        put_liback(header, &self.source, envelope, session_id, acknum, send_seq, resent)
        return hand_over(self, envelope, header, sizeof(wire_truc), NULL, 0, COUNTER_send_liback)

    cdef int send_connect(self, const Envelope *envelope, const event_connect *data,
                          bint is_reply) noexcept nogil:
        cdef LocalPacket room
        cdef wire_connect *header = <wire_connect *>header_place(self, envelope, &room)
        if header == NULL:
            return 0
        put_connect(header, &self.source, envelope, data, is_reply)
        return hand_over(self, envelope, header, sizeof(wire_connect), NULL, 0,
                         COUNTER_send_connect_reply if is_reply
                         else COUNTER_send_connect_request)


# The two ways of a packet: a frame of the tx ring, or the event ring of a local target.

cdef inline const LocalPort *local_port(DriverEndpoint self) noexcept nogil:
    """The way of one more packet to the own node."""
    cdef uint32_t taken = self.events_taken()
    self.local.goes_on = taken == self.local.taken
    self.local.taken = taken
    return &self.local


cdef inline void *header_place(DriverEndpoint self, const Envelope *envelope,
                               LocalPacket *room) noexcept nogil:
    """Where the header of the next packet goes: into `room` if its target is local. NULL: full."""
    cdef uint8_t *frame
    if self.sends_locally(envelope.peer):
        return room
    frame = transmit_prepare(&self.port, envelope.peer)
    if frame == NULL:
        self.counters[COUNTER_send_no_tx_slot] += 1
        return NULL
    return frame + WIRE_HEAD_BYTES


cdef inline int hand_over(DriverEndpoint self, const Envelope *envelope, void *header,
                          uint32_t bytes_count, const void *data, uint32_t length,
                          uint32_t counter) noexcept nogil:
    """The packet of which `bytes_count` bytes lie at `header` is complete with `data`."""
    if self.sends_locally(envelope.peer):
        return local_post(local_port(self), self.counters, <uint8_t *>header, envelope.session,
                          <const uint8_t *>data)
    copy_bytes(<uint8_t *>header + bytes_count, data, length)
    transmit_commit(&self.port, WIRE_HEAD_BYTES + bytes_count + length)
    self.frames_waiting = True
    self.counters[counter] += 1
    return 1
