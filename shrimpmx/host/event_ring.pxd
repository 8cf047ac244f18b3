"""Event rings between the driver and a rank; see event_ring.h."""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.shared.layout cimport endpoint_descriptor, event, node_header

cdef extern from "host/event_ring.h" nogil:
    cdef struct event_writer:
        event *events
        uint8_t *recvq
        uint32_t entries, kind, slot_bytes
        uint32_t next
        uint32_t released_seen
        uint8_t id
    cdef struct event_reader:
        event *events
        uint32_t entries, kind
        uint32_t index
        uint32_t released
        uint8_t id
    void event_ring_reset(event *events, uint32_t entries, uint32_t start) noexcept
    void event_writer_open(event_writer *writer, event *events, uint8_t *recvq,
                           uint32_t *next_shared, uint32_t *released_shared, uint32_t entries,
                           uint32_t kind, uint32_t slot_bytes) noexcept
    void event_writer_open_unexpected(event_writer *writer, node_header *node,
                                      endpoint_descriptor *endpoint) noexcept
    void event_writer_open_expected(event_writer *writer, node_header *node,
                                    endpoint_descriptor *endpoint) noexcept
    void event_writer_repair(event_writer *writer) noexcept
    bint endpoint_lock_take(node_header *node, endpoint_descriptor *endpoint) noexcept
    bint endpoint_lock_try(node_header *node, endpoint_descriptor *endpoint) noexcept
    event *event_writer_prepare(event_writer *writer) noexcept
    uint32_t event_writer_recvq_offset(const event_writer *writer) noexcept
    void event_writer_commit(event_writer *writer, event *e, uint8_t type) noexcept
    void event_writer_prefetch(const event_writer *writer, bint with_data) noexcept
    void event_reader_open(event_reader *reader, event *events, uint32_t *released_shared,
                           uint32_t entries, uint32_t kind, uint32_t start) noexcept
    event *event_reader_peek(const event_reader *reader) noexcept
    void event_reader_consume(event_reader *reader) noexcept

# The fields of an event by name, for Python.
cdef dict event_fields(const event *e, const uint8_t *recvq)
