/* Memory regions: the parts of a rank's memory that handlers may read or write.
 *
 * A large message's sender registers its data, the receiver its buffer. The table lies in
 * the node's segment, and is changed by the rank under its endpoint's lock; handlers hold
 * that lock while they copy, so that a region never goes away under a copy. Copies without
 * the lock, those of the dma agent and of local pullers, are counted instead.
 */
#ifndef SHRIMPMX_HOST_REGIONS_H
#define SHRIMPMX_HOST_REGIONS_H

#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "host/event_ring.h"
#include "native/atomics.h"
#include "native/clock.h"
#include "native/lock.h"
#include "shared/layout.h"

enum region_kind {
    REGION_FREE = 0,
    REGION_HEAP = 1,    /* in the node's heap segment, which every process maps */
    REGION_PROCESS = 2, /* elsewhere in the rank's process */
    REGION_LOST = 3,    /* free, but for a copy that has not ended within the patience */
};

struct memory_region {             /* offset; writer: the rank, under the endpoint's lock */
    uint32_t kind;                 /*  0  enum region_kind */
    uint32_t use;                  /*  4  counts the uses of this id; its low byte travels */
    uint64_t place;                /*  8  heap: from the segment's start; process: an address */
    uint64_t length;               /* 16 */
    volatile uint32_t copies;      /* 24  dma agents and local pullers, which copy without the
                                    *     lock: each adds itself under it, and leaves without */
    uint32_t search_from;          /* 28  in region 0: where the search for a free one begins */
    uint32_t unreadable;           /* 32  1: its rank has been told so; any process, under the
                                    *     endpoint's lock */
    uint8_t unused[28];            /* 36 */
};
_Static_assert(sizeof(struct memory_region) == MEMORY_REGION_BYTES, "memory region");

static inline struct memory_region *endpoint_region(struct node_header *node,
                                                    struct endpoint_descriptor *endpoint,
                                                    uint32_t id) {
    return NODE_PART(node, struct memory_region, endpoint->regions_offset) + id;
}
static inline int region_is_used(const struct memory_region *region) {
    return region->kind == REGION_HEAP || region->kind == REGION_PROCESS;
}
/* Whether `length` bytes at `offset` lie in a region that is in use. */
static inline int region_holds(const struct memory_region *region, uint64_t offset,
                               uint64_t length) {
    return region_is_used(region) && offset <= region->length &&
           length <= region->length - offset;
}
/* Forgets all regions: the rank when it opens its endpoint, under the lock. Uses count on. */
static inline void endpoint_regions_reset(struct node_header *node,
                                          struct endpoint_descriptor *endpoint) {
    for (uint32_t id = 0; id < ENDPOINT_REGIONS; id++)
        if (endpoint_region(node, endpoint, id)->kind != REGION_LOST &&
            endpoint_region(node, endpoint, id)->kind != REGION_FREE) /* its page stays untouched */
            endpoint_region(node, endpoint, id)->kind = REGION_FREE;
}
static inline int64_t region_clock_ns(void) { return monotonic_now_ns(); }
/* A copy begins that will be done without the lock: by its holder now. */
static inline void region_copy_begin(struct memory_region *region) {
    fetch_add_u32(&region->copies, 1); /* G1: before the lock is given back */
}
/* It is done: its copier, without the lock. */
static inline void region_copy_end(struct memory_region *region) {
    fetch_add_u32(&region->copies, (uint32_t)-1); /* G2: after the copy; pairs with G2' */
}
/* Whether all of such a copy came from the region: its copier, before the copy's end, without the
 * lock. One that was stopped for longer than the patience below has read what came after it. */
static inline int region_copy_holds(struct node_header *node, struct endpoint_descriptor *endpoint,
                                    const struct memory_region *region) {
    acquire_fence(); /* G3: the data before this look; the lock's holder frees, then writes anew */
    if (!endpoint_lock_take(node, endpoint))
        return 0;
    int used = region_is_used(region); /* still, not again: a counted copy keeps the id */
    shared_lock_give(&endpoint->lock);
    return used;
}
/* Whether the id can be used (again): with the lock. */
static inline int region_is_free(const struct memory_region *region) {
    return !region_is_used(region) && load_acquire_u32(&region->copies) == 0; /* G2': with G2 */
}
/* How long the end of a region waits for such copies: far longer than any takes. A copier that
 * was killed never ends its copy; the region is lost then, and not waited for again. */
#define COPIES_PATIENCE_NS 1000000000ll

/* Waits until no copy is under way in a region that was freed, or until `end_ns` of
 * CLOCK_MONOTONIC; without the lock. */
static inline void region_await_copies(struct node_header *node,
                                       struct endpoint_descriptor *endpoint,
                                       struct memory_region *region, int64_t end_ns) {
    if (region->kind == REGION_LOST || node->copies_are_timed)
        return; /* a timed copy that has not begun is refused */
    while (load_acquire_u32(&region->copies) != 0) { /* G2': the last look pairs with G2 */
        if (region_clock_ns() < end_ns) {
            sched_yield();
            continue;
        }
        if (!endpoint_lock_take(node, endpoint))
            return;
        if (!region_is_used(region) && !region_is_free(region))
            region->kind = REGION_LOST;
        shared_lock_give(&endpoint->lock);
        return;
    }
}
/* The same for all regions of `endpoint`, together within one patience. */
static inline void endpoint_await_copies(struct node_header *node,
                                         struct endpoint_descriptor *endpoint) {
    int64_t end_ns = region_clock_ns() + COPIES_PATIENCE_NS;
    for (uint32_t id = 0; id < ENDPOINT_REGIONS; id++)
        region_await_copies(node, endpoint, endpoint_region(node, endpoint, id), end_ns);
}

#endif
