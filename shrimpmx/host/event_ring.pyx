"""Event rings as Python sees them: for tests, and to look at a ring by hand."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.shared.layout cimport (
    EVENT_CONNECT_REPLY, EVENT_CONNECT_REQUEST, EVENT_LIBACK, EVENT_MEDIUM_FRAG, EVENT_NACK_LIB,
    EVENT_NOTIFY, EVENT_PULL_DONE, EVENT_RING_LOCK_FREE, EVENT_RING_RESET, EVENT_RNDV, EVENT_SMALL,
    EVENT_TINY, EVENT_UNREADABLE, event,
)

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
