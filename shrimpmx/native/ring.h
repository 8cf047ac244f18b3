/* Single-producer single-consumer ring of fixed-size slots in shared memory.
 *
 * `head` is the next slot the producer fills, `tail` the next the consumer
 * reads; both run freely through 2^32 and are masked on use. Each has a cache line to
 * itself, and so has what only one side uses: a consumer that polls `head` must not
 * take the line on which the producer counts the slots it fills (that costs a
 * cache miss a slot: 71 ns instead of 10).
 *
 * Whoever maps the ring may overwrite its indices. A producer then finds no free slot, or a
 * consumer no filled one: neither passes more slots than there are.
 *
 * An empty ring that reuses slots begins again at its first one; it comes round only while it
 * does not empty. For two sides of which one acts at a time: a ring of a simulation.
 */
#ifndef SHRIMPMX_NATIVE_RING_H
#define SHRIMPMX_NATIVE_RING_H

#include <stdint.h>
#include <string.h>

#include "native/atomics.h"

struct ring {                      /* offset; writer */
    volatile uint32_t head;        /*   0  producer: slots published so far */
    uint8_t unused0[60];           /*   4 */
    volatile uint32_t tail;        /*  64  consumer: slots handed back */
    uint8_t unused1[60];           /*  68 */
    uint32_t reserved;             /* 128  producer: slots filled, not all published */
    uint32_t tail_seen;            /* 132  producer: last tail it read */
    uint8_t unused2[56];           /* 136 */
    uint32_t head_seen;            /* 192  consumer: last head it read */
    uint8_t unused3[60];           /* 196 */
    uint32_t entries;              /* 256  creator: power of two */
    uint32_t slot_bytes;           /* 260  creator: multiple of 64 */
    uint64_t slots_offset;         /* 264  creator: from the ring's own address */
    uint32_t reuses_slots;         /* 272  creator */
    uint32_t first;                /* 276  producer: the index that has the first slot */
    uint8_t unused4[40];           /* 280 */
};
#define RING_HEADER_BYTES 320
_Static_assert(sizeof(struct ring) == RING_HEADER_BYTES, "a ring header is five cache lines");

static inline void ring_initialise(struct ring *ring, uint32_t entries, uint32_t slot_bytes,
                                   uint64_t slots_offset) {
    memset(ring, 0, sizeof *ring);
    ring->entries = entries;
    ring->slot_bytes = slot_bytes;
    ring->slots_offset = slots_offset;
}
/* The slot of a free-running index. */
static inline void *ring_slot(struct ring *ring, uint32_t index) {
    return (char *)ring + ring->slots_offset +
           (uint64_t)((index - ring->first) & (ring->entries - 1)) * ring->slot_bytes;
}

/* -- producer ---------------------------------------------------------- */

/* How many slots may be filled at ring_slot(ring, ring->reserved + i). Looks at the
 * consumer's line only when fewer than `wanted` are known to be free. */
static inline uint32_t ring_free(struct ring *ring, uint32_t wanted) {
    uint32_t free_slots = ring->entries - (ring->reserved - ring->tail_seen);
    if (free_slots < wanted || free_slots > ring->entries) {
        ring->tail_seen = load_acquire_u32(&ring->tail); /* R2: pairs with R2' */
        free_slots = ring->entries - (ring->reserved - ring->tail_seen);
        if (free_slots > ring->entries)
            return 0;
    }
    return free_slots;
}
/* The slot to fill next. Call only with ring_free(ring, 1) > 0. */
static inline void *ring_next(struct ring *ring) {
    if (ring->reuses_slots && ring->reserved == ring->tail)
        ring->first = ring->reserved;
    return ring_slot(ring, ring->reserved);
}
/* The slot from ring_next() is filled; not yet visible to the consumer. */
static inline void ring_fill(struct ring *ring) { ring->reserved++; }
/* All filled slots become visible. */
static inline void ring_publish(struct ring *ring) {
    if (ring->head != ring->reserved)
        store_release_u32(&ring->head, ring->reserved); /* R1: publishes; pairs with R1' */
}

/* -- consumer ---------------------------------------------------------- */

/* How many slots can be read at ring_slot(ring, position + i), for a consumer that hands slots
 * back later than it reads them; looks at the producer's line only when fewer than `wanted` are
 * known. */
static inline uint32_t ring_available_from(struct ring *ring, uint32_t position,
                                           uint32_t wanted) {
    uint32_t available = ring->head_seen - position;
    if (available < wanted || available > ring->entries) {
        ring->head_seen = load_acquire_u32(&ring->head); /* R1': pairs with R1 */
        available = ring->head_seen - position;
        if (available > ring->entries)
            return 0;
    }
    return available;
}
/* How many slots can be read at ring_slot(ring, ring->tail + i); looks at the producer's
 * line only when fewer than `wanted` are known. */
static inline uint32_t ring_available(struct ring *ring, uint32_t wanted) {
    return ring_available_from(ring, ring->tail, wanted);
}
/* Hands `count` slots back to the producer. */
static inline void ring_consume(struct ring *ring, uint32_t count) {
    store_release_u32(&ring->tail, ring->tail + count); /* R2': pairs with R2 */
}
/* Published and not handed back, as any third party may see it. */
static inline uint32_t ring_depth(struct ring *ring) {
    return load_acquire_u32(&ring->head) - load_acquire_u32(&ring->tail);
}

#endif
