/* Pull handles: what an endpoint keeps of each large message that it pulls.
 *
 * They lie in the node's segment, since any handler may get the next reply; everything in
 * them is read and written under the endpoint's lock.
 *
 * A message is pulled in frames of `pull_frame_bytes`, aligned in the remote region: the first
 * one is shorter by `skip`, so that all others begin at a multiple of the frame size. Frames
 * are counted from 0 through the whole message; each request asks for a block of them.
 */
#ifndef SHRIMPMX_HOST_PULL_H
#define SHRIMPMX_HOST_PULL_H

#include <stdint.h>

#include "shared/layout.h"

#define PULL_BLOCKS_IN_FLIGHT 4 /* Open-MX */
/* A handle's number on the wire: 22 bits of generation, which tells its uses apart, and 10 bits
 * of index. Generations begin with 0x23 (Open-MX). */
#define PULL_INDEX_BITS 10
#define PULL_FIRST_GENERATION 0x23u
#define PULL_GENERATIONS (1u << (32 - PULL_INDEX_BITS))

enum pull_state {
    PULL_FREE = 0,
    PULL_ACTIVE = 1,  /* asks and receives */
    PULL_ENDED = 2,   /* takes no replies; its event waits for room, or for the dma agent */
    PULL_TELLING = 3, /* its event is being published */
};

struct pull_block {           /* one request in flight */
    uint32_t frame_index;     /* its first frame */
    uint32_t frames;
    uint32_t length;          /* bytes */
    uint32_t asked_again;     /* 1: already re-requested in this timeout period */
    uint64_t missing;         /* bit i: frame_index + i has not come */
};

struct pull_handle {                  /* offset */
    uint32_t state;                   /*   0  enum pull_state */
    uint32_t generation;              /*   4 */
    uint32_t peer;                    /*   8 */
    uint32_t dst_endpoint;            /*  12 */
    uint32_t session;                 /*  16  of the pulled endpoint */
    uint32_t total_length;            /*  20  bytes */
    uint32_t rdma_id;                 /*  24  the remote region */
    uint32_t rdma_seqnum;             /*  28  ... and its use */
    uint32_t remote_offset;           /*  32  where the message begins in it */
    uint32_t skip;                    /*  36  remote_offset modulo the frame size */
    uint32_t region;                  /*  40  where the data goes */
    uint32_t region_use;              /*  44  ... and its use */
    uint64_t cookie;                  /*  48 */
    int64_t resend_ns;                /*  56  without an accepted reply till then, ask again */
    int64_t abort_ns;                 /*  64  given up then */
    uint32_t received;                /*  72  bytes stored */
    uint32_t next_frame;              /*  76  first frame of the next block to request */
    uint32_t blocks_count;            /*  80  in flight, in order of their frames */
    uint32_t copies;                  /*  84  handed to the dma agent, not done */
    uint32_t status;                  /*  88  how it ended: enum pull_status or enum wire_nack */
    uint32_t last_core;               /*  92  core that touched it last, + 1; 0: none yet */
    uint64_t handovers;               /*  96  times it was another core than before, all uses */
    struct pull_block blocks[PULL_BLOCKS_IN_FLIGHT]; /* 104 */
    uint32_t telling_index;           /* 200  of its event in the expected ring, while TELLING */
    uint8_t unused[PULL_HANDLE_BYTES - 108 - 24 * PULL_BLOCKS_IN_FLIGHT];
};
_Static_assert(sizeof(struct pull_block) == 24, "pull block");
_Static_assert(sizeof(struct pull_handle) == PULL_HANDLE_BYTES, "pull handle");
/* Cache lines of a handle that a reply writes: from its time to the first block. */
#define PULL_LINES                                                                                 \
    ((offsetof(struct pull_handle, blocks) + sizeof(struct pull_block) - 1) / CACHE_LINE_BYTES -   \
     offsetof(struct pull_handle, resend_ns) / CACHE_LINE_BYTES + 1)
_Static_assert(ENDPOINT_PULLS == 1 << PULL_INDEX_BITS, "an index fits its bits");

static inline struct pull_handle *endpoint_pull(struct node_header *node,
                                                struct endpoint_descriptor *endpoint,
                                                uint32_t index) {
    return NODE_PART(node, struct pull_handle, endpoint->pulls_offset) + index;
}
static inline uint32_t pull_next_generation(uint32_t generation) {
    return generation + 1 < PULL_GENERATIONS && generation != 0 ? generation + 1
                                                                : PULL_FIRST_GENERATION;
}
static inline uint32_t pull_wire_handle(uint32_t index, uint32_t generation) {
    return generation << PULL_INDEX_BITS | index;
}
/* The active pull of a number from the wire, or NULL. */
static inline struct pull_handle *pull_find(struct node_header *node,
                                            struct endpoint_descriptor *endpoint,
                                            uint32_t wire_handle) {
    struct pull_handle *handle =
        endpoint_pull(node, endpoint, wire_handle & (ENDPOINT_PULLS - 1));
    return handle->state == PULL_ACTIVE && handle->generation == wire_handle >> PULL_INDEX_BITS
               ? handle
               : 0;
}
/* Ends all pulls without a word: the rank when it opens its endpoint, under the lock. Where none is
 * active it touches none of their pages, which are most of what an idle node has. */
static inline void endpoint_pulls_reset(struct node_header *node,
                                        struct endpoint_descriptor *endpoint) {
    if (endpoint->pulls_active == 0)
        return;
    for (uint32_t index = 0; index < ENDPOINT_PULLS; index++)
        endpoint_pull(node, endpoint, index)->state = PULL_FREE;
    endpoint->pulls_active = 0;
}

/* After the death of a process that held the lock of `endpoint`, maybe in the middle of a pull:
 * whatever it was about to write is not believed. Every active pull begins again, under a new
 * number, so that replies on their way are not taken for its own; the next tick asks. An event
 * that was published is not published twice: for after the repair of the event rings. */
static inline void endpoint_pulls_repair(struct node_header *node,
                                         struct endpoint_descriptor *endpoint) {
    uint32_t active = 0;
    for (uint32_t index = 0; index < ENDPOINT_PULLS; index++) {
        struct pull_handle *handle = endpoint_pull(node, endpoint, index);
        if (handle->state == PULL_ACTIVE) {
            handle->generation = pull_next_generation(handle->generation);
            handle->received = handle->next_frame = handle->blocks_count = handle->copies = 0;
            handle->resend_ns = 0;
        } else if (handle->state == PULL_TELLING) {
            handle->state = endpoint->expected_next == handle->telling_index ? PULL_ENDED
                                                                             : PULL_FREE;
        }
        active += handle->state != PULL_FREE;
    }
    endpoint->pulls_active = active;
}

/* Where a frame begins in the message, bytes. */
static inline uint64_t pull_frame_start(uint32_t frame, uint32_t frame_bytes, uint32_t skip) {
    return frame == 0 ? 0 : (uint64_t)frame * frame_bytes - skip;
}
/* How long it is in a message of `total` bytes. */
static inline uint32_t pull_frame_length(uint32_t frame, uint32_t frame_bytes, uint32_t skip,
                                         uint32_t total) {
    uint64_t start = pull_frame_start(frame, frame_bytes, skip);
    uint64_t end = pull_frame_start(frame + 1, frame_bytes, skip);
    return (uint32_t)((end < total ? end : total) - start);
}

#endif
