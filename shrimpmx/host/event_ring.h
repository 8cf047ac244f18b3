/* Event rings between the driver and a rank: 64-byte events, written by receive
 * handlers under the endpoint's lock, read by the rank without one.
 *
 * Two kinds (enum event_ring_kind). In both, the driver fills an event but for its
 * last two bytes, type and id, and publishes it by storing these.
 *
 * LOCK_FREE (Open-MX 1.3.901 on): the reader knows the id that its next event will
 * carry and never writes the ring; it hands slots back in batches of entries / 4.
 * Ids run from 1 to 255 and start again. Since entries % 255 != 0, no slot carries the
 * same id in two laps that follow each other. An id is counted on from that of the
 * event before, not computed from the free-running index: 2^32 % 255 is 1, so with 256
 * or 65536 entries index % 255 would repeat where the index wraps.
 *
 * RESET (both papers): the reader waits for a type other than NONE and puts NONE back.
 * Both sides write the same line, which travels between their cores twice per event.
 *
 * A writer that is killed at any instruction leaves at most one event published that
 * is not counted; event_writer_repair() counts it.
 */
#ifndef SHRIMPMX_HOST_EVENT_RING_H
#define SHRIMPMX_HOST_EVENT_RING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "host/pull.h"
#include "native/atomics.h"
#include "native/lock.h"
#include "shared/layout.h"

_Static_assert(offsetof(struct event, type) % 2 == 0 &&
                   offsetof(struct event, id) == offsetof(struct event, type) + 1,
               "type and id are published by one store");

static inline uint8_t event_id_after(uint8_t id) { return id == 255 ? 1 : (uint8_t)(id + 1); }
static inline uint8_t event_id_before(uint8_t id) { return id == 1 ? 255 : (uint8_t)(id - 1); }

/* Makes both sides start at `start` with no event: the owner of the rings, while no
 * handler writes. The last event before `start` is given the id to count on from. */
static inline void event_ring_reset(struct event *events, uint32_t entries, uint32_t start) {
    memset(events, 0, (size_t)entries * sizeof *events);
    events[(start - 1) & (entries - 1)].id = event_id_before(event_id(start));
}

/* -- writer: a receive handler that holds the endpoint's lock ------------ */

struct event_writer {          /* private to the handler, valid while it holds the lock */
    struct event *events;
    uint8_t *recvq;            /* a slot for each event; NULL in the expected ring */
    volatile uint32_t *next_shared;     /* the descriptor's own count */
    volatile uint32_t *released_shared; /* the reader's */
    uint32_t entries, kind, slot_bytes;
    uint32_t next;             /* free-running index of the next event */
    uint32_t recvq_first;      /* that of the event which has the first slot of the recvq */
    uint32_t released_seen;    /* last value of *released_shared */
    uint8_t id;                /* of the next event */
};

static inline void event_writer_open(struct event_writer *writer, struct event *events,
                                     uint8_t *recvq, volatile uint32_t *next_shared,
                                     volatile uint32_t *released_shared, uint32_t entries,
                                     uint32_t kind, uint32_t slot_bytes) {
    uint32_t next = *next_shared;
    *writer = (struct event_writer){
        .events = events, .recvq = recvq, .next_shared = next_shared,
        .released_shared = released_shared, .entries = entries, .kind = kind,
        .slot_bytes = slot_bytes, .next = next,
        .released_seen = load_acquire_u32(released_shared), /* E2': pairs with E2 */
        .id = event_id_after(events[(next - 1) & (entries - 1)].id),
    };
}
/* The unexpected ring of `endpoint`, whose lock the caller holds. */
static inline void event_writer_open_unexpected(struct event_writer *writer,
                                                struct node_header *node,
                                                struct endpoint_descriptor *endpoint) {
    event_writer_open(writer, NODE_PART(node, struct event, endpoint->unexpected_offset),
                      NODE_PART(node, uint8_t, endpoint->recvq_offset),
                      &endpoint->unexpected_next, &endpoint->unexpected_released,
                      endpoint->entries, endpoint->ring_kind, endpoint->recvq_slot_bytes);
    if (endpoint->reuses_slots && writer->next == endpoint->recvq_read)
        endpoint->recvq_first = writer->next;
    writer->recvq_first = endpoint->recvq_first;
}
static inline void event_writer_open_expected(struct event_writer *writer,
                                              struct node_header *node,
                                              struct endpoint_descriptor *endpoint) {
    event_writer_open(writer, NODE_PART(node, struct event, endpoint->expected_offset), NULL,
                      &endpoint->expected_next, &endpoint->expected_released,
                      endpoint->entries, endpoint->ring_kind, 0);
}

static inline uint32_t event_writer_position(const struct event_writer *writer) {
    return writer->next & (writer->entries - 1);
}
static inline void event_writer_advance(struct event_writer *writer) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* published before counted: see repair */
    *writer->next_shared = ++writer->next;
    writer->id = event_id_after(writer->id);
}
/* After the death of a holder: counts the event that it published but did not count. */
static inline void event_writer_repair(struct event_writer *writer) {
    if (writer->events[event_writer_position(writer)].id == writer->id)
        event_writer_advance(writer);
}

/* The same for both rings of `endpoint`, whose lock the caller holds. */
static inline void event_rings_repair(struct node_header *node,
                                      struct endpoint_descriptor *endpoint) {
    struct event_writer writer;
    event_writer_open_unexpected(&writer, node, endpoint);
    event_writer_repair(&writer);
    event_writer_open_expected(&writer, node, endpoint);
    event_writer_repair(&writer);
}

/* What the holder of `endpoint`'s lock, just `taken`, does first, since the notice that the last
 * one died is given once. Returns 0 if it was not taken, see SHARED_LOCK_BROKEN. */
static inline int endpoint_lock_taken(struct node_header *node,
                                      struct endpoint_descriptor *endpoint,
                                      enum shared_lock_result taken) {
    if (taken == SHARED_LOCK_REPAIR) {
        event_rings_repair(node, endpoint);
        endpoint_pulls_repair(node, endpoint);
    }
    return taken != SHARED_LOCK_BROKEN;
}
/* Takes the lock of `endpoint`; this and endpoint_lock_try() are the only ways to do so. */
static inline int endpoint_lock_take(struct node_header *node,
                                     struct endpoint_descriptor *endpoint) {
    return endpoint_lock_taken(node, endpoint, shared_lock_take(&endpoint->lock));
}
/* The same without waiting for another holder: 0 then. */
static inline int endpoint_lock_try(struct node_header *node,
                                    struct endpoint_descriptor *endpoint) {
    return endpoint_lock_taken(node, endpoint, shared_lock_try(&endpoint->lock));
}

/* The event to fill next, or NULL when the ring is full. */
static inline struct event *event_writer_prepare(struct event_writer *writer) {
    struct event *event = &writer->events[event_writer_position(writer)];
    if (writer->kind == EVENT_RING_RESET)
        return load_acquire_u8(&event->type) == EVENT_NONE ? event : NULL; /* E3': with E3 */
    if (writer->next - writer->released_seen >= writer->entries) {
        writer->released_seen = load_acquire_u32(writer->released_shared); /* E2': with E2 */
        if (writer->next - writer->released_seen >= writer->entries)
            return NULL;
    }
    return event;
}
/* Where the data of the event being filled goes, bytes from the start of the recvq. */
static inline uint32_t event_writer_recvq_offset(const struct event_writer *writer) {
    return ((writer->next - writer->recvq_first) & (writer->entries - 1)) * writer->slot_bytes;
}
/* The filled event becomes visible to the reader. */
static inline void event_writer_commit(struct event_writer *writer, struct event *event,
                                       uint8_t type) {
    __atomic_store_n((uint16_t *)&event->type, (uint16_t)(type | writer->id << 8),
                     __ATOMIC_RELEASE); /* E1 publishes; pairs with E1' */
    event_writer_advance(writer);
}
/* Fetches the line of an event soon to come; `with_data`: those of the next one's recvq slot, too.
 * The next event's line would be fetched in vain: a waiting reader looks at it, and takes it back.
 */
#define EVENTS_AHEAD 2
static inline void event_writer_prefetch(const struct event_writer *writer, int with_data) {
    prefetch_write(&writer->events[(writer->next + EVENTS_AHEAD) & (writer->entries - 1)]);
    if (with_data) {
        const uint8_t *slot = writer->recvq + event_writer_recvq_offset(writer);
        prefetch_write(slot);
        prefetch_write(slot + 64);
    }
}

/* -- reader: the rank ---------------------------------------------------- */

struct event_reader {          /* private to the rank */
    struct event *events;
    volatile uint32_t *released_shared;
    uint32_t entries, kind;
    uint32_t index;            /* free-running index of the next event */
    uint32_t released;         /* value of *released_shared */
    uint8_t id;                /* that the next event will carry */
};

static inline void event_reader_open(struct event_reader *reader, struct event *events,
                                     volatile uint32_t *released_shared, uint32_t entries,
                                     uint32_t kind, uint32_t start) {
    *reader = (struct event_reader){
        .events = events, .released_shared = released_shared, .entries = entries,
        .kind = kind, .index = start, .released = start, .id = event_id(start),
    };
}
/* The next event, or NULL. It stays the reader's until event_reader_consume(). */
static inline struct event *event_reader_peek(const struct event_reader *reader) {
    struct event *event = &reader->events[reader->index & (reader->entries - 1)];
    if (reader->kind == EVENT_RING_RESET)
        return load_acquire_u8(&event->type) != EVENT_NONE ? event : NULL; /* E1': with E1 */
    return load_acquire_u8(&event->id) == reader->id ? event : NULL;       /* E1': with E1 */
}
static inline void event_reader_consume(struct event_reader *reader) {
    if (reader->kind == EVENT_RING_RESET) {
        struct event *event = &reader->events[reader->index & (reader->entries - 1)];
        store_release_u8(&event->type, EVENT_NONE); /* E3 hands it back; pairs with E3' */
    }
    reader->index++;
    reader->id = event_id_after(reader->id);
    if (reader->index - reader->released >= reader->entries / 4) {
        reader->released = reader->index;
        store_release_u32(reader->released_shared, reader->index); /* E2; pairs with E2' */
    }
}

#endif
