"""The driver as a rank sees it: event rings, receive queue, send commands.

The endpoint's descriptor and rings lie in the node's segment. Receive handlers
write them; this class is the rank's end. Open-MX has the same commands as ioctls
(its `omx_io.h`); here the rank writes the frame itself and rings the NIC's doorbell.
"""

import os

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.errors import InputError, MxError
from shrimpmx.host.event_ring cimport (
    endpoint_lock_take, endpoint_lock_try, event_fields, event_reader_open, event_ring_reset,
)
from shrimpmx.host.local_events cimport local_open, local_post
from shrimpmx.host.pull cimport endpoint_pulls_reset
from shrimpmx.host.raw cimport node_raw_queue
from shrimpmx.host.regions cimport endpoint_await_copies, endpoint_regions_reset
from shrimpmx.host.send_commands cimport (
    Envelope, put_connect, put_liback, put_medium, put_message, put_notify, put_rndv,
)
from shrimpmx.host.token cimport tokens_of_dead
from shrimpmx.host.transmit cimport transmit_commit, transmit_open, transmit_prepare
from shrimpmx.native.atomics cimport (
    compare_exchange_u32, load_acquire_u32, load_relaxed_u32, store_relaxed_u32, store_release_u32,
)
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.shared.layout cimport (
    COUNTER_send_connect_reply, COUNTER_send_connect_request, COUNTER_send_liback,
    COUNTER_send_mediumsq_frag, COUNTER_send_mediumva_frag, COUNTER_send_no_tx_slot,
    COUNTER_send_notify, COUNTER_send_rndv, COUNTER_send_small, COUNTER_send_tiny, ENDPOINT_CLOSED,
    ENDPOINT_OPEN, endpoint_descriptor, event, event_connect, node_endpoint, node_endpoint_tx_ring,
    node_header, node_mark,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport (
    PTYPE_SMALL, PTYPE_TINY, WIRE_HEAD_BYTES, wire_connect, wire_medium, wire_message, wire_notify,
    wire_rndv, wire_truc,
)

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
        cdef LocalPacket room
        cdef wire_message *header = <wire_message *>header_place(self, envelope, &room)
        if header == NULL:
            return 0
        put_message(header, ptype | node_mark(self.source.node, ptype), &self.source, envelope,
                    length)
        if length != 0:
            memcpy(<uint8_t *>header + sizeof(wire_message), data, length)
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
        return local_post(&self.local, self.counters, <uint8_t *>header, envelope.session,
                          <const uint8_t *>data)
    if length != 0:
        memcpy(<uint8_t *>header + bytes_count, data, length)
    transmit_commit(&self.port, WIRE_HEAD_BYTES + bytes_count + length)
    self.frames_waiting = True
    self.counters[counter] += 1
    return 1
