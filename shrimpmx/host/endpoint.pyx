"""The driver as a rank sees it: event rings, receive queue, send commands.

The endpoint's descriptor and rings lie in the node's segment. Receive handlers
write them; this class is the rank's end. Open-MX has the same commands as ioctls
(its `omx_io.h`); here the rank writes the frame itself and rings the NIC's doorbell.
"""

import os

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from shrimpmx.errors import InputError, MxError
from shrimpmx.host.event_ring cimport (
    event_fields,
    event_reader_consume,
    event_reader_open,
    event_reader_peek,
    event_ring_reset,
)
from shrimpmx.host.transmit cimport (
    transmit_commit,
    transmit_doorbell,
    transmit_open,
    transmit_prepare,
)
from shrimpmx.native.atomics cimport load_acquire_u32, store_release_u32
from shrimpmx.native.lock cimport SHARED_LOCK_BROKEN, shared_lock_give, shared_lock_take
from shrimpmx.shared.layout cimport (
    COUNTER_send_connect,
    COUNTER_send_liback,
    COUNTER_send_medium_frag,
    COUNTER_send_no_tx_slot,
    COUNTER_send_small,
    COUNTER_send_tiny,
    ENDPOINT_CLOSED,
    ENDPOINT_OPEN,
    EVENT_IGNORE,
    endpoint_descriptor,
    event,
    event_connect,
    node_endpoint,
    node_endpoint_tx_ring,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.check cimport CONNECT_DATA_BYTES, TRUC_DATA_BYTES
from shrimpmx.wire.wire cimport (
    PTYPE_CONNECT,
    PTYPE_MEDIUM_FRAG,
    PTYPE_SMALL,
    PTYPE_TINY,
    PTYPE_TRUC,
    WIRE_HEAD_BYTES,
    WIRE_MARK,
    WIRE_TRUC_ACK,
    be16,
    be32,
    wire_connect,
    wire_medium,
    wire_message,
    wire_truc,
)


cdef class DriverEndpoint:
    """One endpoint of a node, as its owning rank uses it.

    `index`: its number on the node; `runner`: the rank's process, which handlers wake;
    `agent`: the record whose counters count what is sent (None: counted privately).
    """

    def __init__(self, Node node not None, uint32_t index, uint32_t runner, agent=None):
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
        self.descriptor = node_endpoint(node.header, index)
        self.counters = self.own_counters
        if agent is not None:
            self.counters = <uint64_t *>node.control.agent(agent).counters
        transmit_open(&self.port, node, node_endpoint_tx_ring(node.header, index))
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
        cdef int result
        with nogil:
            result = self._open(number, start_index)
        if result < 0:
            raise MxError(
                f"endpoint {self.index} of node {self.node.header.index} is open already "
                f"(by process {self.descriptor.runner}); close it or choose another",
                "busy",
            )
        return number

    def close(self) -> None:
        """Close the endpoint; packets for it are refused from now on. Harmless if closed."""
        cdef endpoint_descriptor *descriptor = self.descriptor
        with nogil:
            if shared_lock_take(&descriptor.lock) != SHARED_LOCK_BROKEN:
                store_release_u32(&descriptor.state, ENDPOINT_CLOSED)
                shared_lock_give(&descriptor.lock)

    @property
    def is_open(self):
        """Whether handlers accept packets for this endpoint."""
        return load_acquire_u32(&self.descriptor.state) == ENDPOINT_OPEN

    @property
    def session(self):
        """Session id of the current or last opening."""
        return self.descriptor.session_id

    cdef int _open(self, uint32_t session, uint32_t start) noexcept nogil:
        cdef endpoint_descriptor *descriptor = self.descriptor
        if shared_lock_take(&descriptor.lock) == SHARED_LOCK_BROKEN:
            return -1
        if descriptor.state == ENDPOINT_OPEN:
            shared_lock_give(&descriptor.lock)
            return -1
        self._open_readers(start)
        event_ring_reset(self.unexpected.events, descriptor.entries, start)
        event_ring_reset(self.expected.events, descriptor.entries, start)
        descriptor.unexpected_next = descriptor.unexpected_released = start
        descriptor.expected_next = descriptor.expected_released = start
        descriptor.session_id = session
        descriptor.runner = self.runner
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

    cdef event *next_unexpected(self) noexcept nogil:
        cdef event *found = event_reader_peek(&self.unexpected)
        while found != NULL and found.type == EVENT_IGNORE:
            event_reader_consume(&self.unexpected)
            found = event_reader_peek(&self.unexpected)
        return found

    cdef void consume_unexpected(self) noexcept nogil:
        event_reader_consume(&self.unexpected)

    cdef event *next_expected(self) noexcept nogil:
        return event_reader_peek(&self.expected)

    cdef void consume_expected(self) noexcept nogil:
        event_reader_consume(&self.expected)

    cdef bint has_event(self) noexcept nogil:
        return (event_reader_peek(&self.unexpected) != NULL
                or event_reader_peek(&self.expected) != NULL)

    cdef const uint8_t *recvq(self, uint32_t offset) noexcept nogil:
        return self.recvq_start + offset

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
                bytes data=b"", message_length=0, frag_seqnum=0, is_last=True,
                session_id=0, acknum=0, send_seq=0, resent=0) -> bool:
        """One send command by name ("tiny", "small", "medium_frag", "liback"), doorbell included.

        False if the tx ring is full. For tests and tools; the library calls the compiled ones.
        """
        cdef int sent
        cdef const uint8_t *start = data
        if kind == "liback":
            sent = self.send_liback(peer, dst_endpoint, session, seqnum, session_id, acknum,
                                    send_seq, resent)
        elif kind == "medium_frag":
            sent = self.send_medium_frag(peer, dst_endpoint, session, seqnum, piggyack, match,
                                         message_length, frag_seqnum, start, len(data), is_last)
        elif kind == "small":
            sent = self.send_small(peer, dst_endpoint, session, seqnum, piggyack, match, start,
                                   len(data))
        elif kind == "tiny":
            sent = self.send_tiny(peer, dst_endpoint, session, seqnum, piggyack, match, start,
                                  len(data))
        else:
            raise ValueError(f"no send command {kind!r}")
        self.doorbell()
        return sent != 0

    def command_connect(self, peer, dst_endpoint, *, seqnum=0, src_session_id=0,
                        key_or_session=0, target_recv_seqnum_start=1, connect_seqnum=0,
                        status=0, is_reply=False) -> bool:
        """The connect command, doorbell included; see command()."""
        cdef event_connect fields
        fields.src_session_id = src_session_id
        fields.key_or_session = key_or_session
        fields.target_recv_seqnum_start = target_recv_seqnum_start
        fields.connect_seqnum = connect_seqnum
        fields.status = status
        cdef int sent = self.send_connect(peer, dst_endpoint, seqnum, &fields, is_reply)
        self.doorbell()
        return sent != 0

    cdef uint8_t *_prepare(self, uint32_t peer) noexcept nogil:
        cdef uint8_t *frame = transmit_prepare(&self.port, peer)
        if frame == NULL:
            self.counters[COUNTER_send_no_tx_slot] += 1
            return NULL
        return frame + WIRE_HEAD_BYTES

    cdef int send_connect(self, uint32_t peer, uint32_t dst_endpoint, uint32_t lib_seqnum,
                          const event_connect *data, bint is_reply) noexcept nogil:
        cdef wire_connect *header = <wire_connect *>self._prepare(peer)
        if header == NULL:
            return 0
        memset(header, 0, sizeof(wire_connect))
        header.ptype = PTYPE_CONNECT
        header.dst_endpoint = <uint8_t>dst_endpoint
        header.src_endpoint = <uint8_t>self.index
        header.length = CONNECT_DATA_BYTES
        header.lib_seqnum = be16(<uint16_t>lib_seqnum)
        header.src_dst_peer_index = be16(<uint16_t>peer)
        header.src_session_id = be32(data.src_session_id)
        header.key_or_session = be32(data.key_or_session)
        header.target_recv_seqnum_start = be16(data.target_recv_seqnum_start)
        header.is_reply = is_reply
        header.connect_seqnum = data.connect_seqnum
        header.status = data.status if is_reply else 0
        transmit_commit(&self.port, WIRE_HEAD_BYTES + sizeof(wire_connect))
        self.counters[COUNTER_send_connect] += 1
        return 1

    cdef int _send_message(self, uint8_t ptype, uint32_t peer, uint32_t dst_endpoint,
                           uint32_t session, uint32_t seqnum, uint32_t piggyack, uint64_t match,
                           const void *data, uint32_t length) noexcept nogil:
        cdef wire_message *header = <wire_message *>self._prepare(peer)
        if header == NULL:
            return 0
        header.ptype = ptype | WIRE_MARK
        header.dst_endpoint = <uint8_t>dst_endpoint
        header.src_endpoint = <uint8_t>self.index
        header.src_generation = 0
        header.length = be16(<uint16_t>length)
        header.checksum = 0
        header.lib_seqnum = be16(<uint16_t>seqnum)
        header.lib_piggyack = be16(<uint16_t>piggyack)
        header.match_a = be32(<uint32_t>(match >> 32))
        header.match_b = be32(<uint32_t>match)
        header.session = be32(session)
        memcpy(<uint8_t *>header + sizeof(wire_message), data, length)
        transmit_commit(&self.port, WIRE_HEAD_BYTES + sizeof(wire_message) + length)
        return 1

    cdef int send_tiny(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                       uint32_t seqnum, uint32_t piggyack, uint64_t match,
                       const void *data, uint32_t length) noexcept nogil:
        cdef int sent = self._send_message(PTYPE_TINY, peer, dst_endpoint, session, seqnum,
                                           piggyack, match, data, length)
        self.counters[COUNTER_send_tiny] += sent
        return sent

    cdef int send_small(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                        uint32_t seqnum, uint32_t piggyack, uint64_t match,
                        const void *data, uint32_t length) noexcept nogil:
        cdef int sent = self._send_message(PTYPE_SMALL, peer, dst_endpoint, session, seqnum,
                                           piggyack, match, data, length)
        self.counters[COUNTER_send_small] += sent
        return sent

    cdef int send_medium_frag(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                              uint32_t seqnum, uint32_t piggyack, uint64_t match,
                              uint32_t message_length, uint32_t frag_seqnum,
                              const void *data, uint32_t frag_length,
                              bint is_last) noexcept nogil:
        cdef wire_medium *header = <wire_medium *>self._prepare(peer)
        if header == NULL:
            return 0
        # Only the last fragment is latency-sensitive (coalescing paper, III-B).
        memset(header, 0, sizeof(wire_medium))
        header.ptype = PTYPE_MEDIUM_FRAG | (WIRE_MARK if is_last else 0)
        header.dst_endpoint = <uint8_t>dst_endpoint
        header.src_endpoint = <uint8_t>self.index
        header.length = be16(<uint16_t>message_length)
        header.lib_seqnum = be16(<uint16_t>seqnum)
        header.lib_piggyack = be16(<uint16_t>piggyack)
        header.match_a = be32(<uint32_t>(match >> 32))
        header.match_b = be32(<uint32_t>match)
        header.session = be32(session)
        header.frag_length = be16(<uint16_t>frag_length)
        header.frag_seqnum = <uint8_t>frag_seqnum
        memcpy(<uint8_t *>header + sizeof(wire_medium), data, frag_length)
        transmit_commit(&self.port, WIRE_HEAD_BYTES + sizeof(wire_medium) + frag_length)
        self.counters[COUNTER_send_medium_frag] += 1
        return 1

    cdef int send_liback(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                         uint32_t lib_seqnum, uint32_t session_id, uint32_t acknum,
                         uint32_t send_seq, uint32_t resent) noexcept nogil:
        cdef wire_truc *header = <wire_truc *>self._prepare(peer)
        if header == NULL:
            return 0
        memset(header, 0, sizeof(wire_truc))
        header.ptype = PTYPE_TRUC
        header.dst_endpoint = <uint8_t>dst_endpoint
        header.src_endpoint = <uint8_t>self.index
        header.length = TRUC_DATA_BYTES
        header.session = be32(session)
        header.type = WIRE_TRUC_ACK
        header.lib_seqnum = be16(<uint16_t>lib_seqnum)
        header.session_id = be32(session_id)
        header.acknum = be32(acknum)
        header.send_seq = be16(<uint16_t>send_seq)
        header.resent = <uint8_t>resent
        transmit_commit(&self.port, WIRE_HEAD_BYTES + sizeof(wire_truc))
        self.counters[COUNTER_send_liback] += 1
        return 1

    cdef void doorbell(self) noexcept nogil:
        transmit_doorbell(&self.port)
