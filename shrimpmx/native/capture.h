/* The frames that pass the ends of links, with their bytes: one ring of the last ones per end, in
 * a capture segment.
 *
 * A ring that is full overwrites its oldest frames. Each ring has one writer at a time: the NIC
 * at that end, or what acts for it. Whoever drops a frame later, such as the receive handler, notes
 * that at the frame. Frames are read when the run is over.
 */
#ifndef SHRIMPMX_NATIVE_CAPTURE_H
#define SHRIMPMX_NATIVE_CAPTURE_H

#include <stdint.h>
#include <string.h>

#include "native/atomics.h"

enum capture_flag {
    CAPTURE_RECEIVED = 1,    /* else the end has sent it */
    CAPTURE_BAD_FCS = 2,     /* its frame check sequence does not fit */
    CAPTURE_LOST = 4,        /* faults of the link that it was sent by */
    CAPTURE_CORRUPTED = 8,
    CAPTURE_DUPLICATED = 16,
    CAPTURE_HELD = 32,
};

struct captured_frame {        /* offset; writer: the end, if no other is named */
    int64_t time_ns;           /*  0  the run's clock */
    uint32_t length;           /*  8  bytes on the link */
    uint32_t kept;             /* 12  the first of them, in `bytes` */
    uint32_t number;           /* 16  of the frame at this end, from 1, free-running */
    uint32_t flags;            /* 20  enum capture_flag */
    volatile uint32_t dropped; /* 24  who drops it: agent kind << 16 | its counter + 1; 0: none */
    uint32_t unused;           /* 28 */
    uint8_t bytes[];           /* 32 */
};
_Static_assert(sizeof(struct captured_frame) == 32, "captured frame");

struct capture_ring {          /* offset; writer */
    volatile uint64_t next;    /*  0  the end: frames written since the start */
    uint32_t frames;           /*  8  creator: power of two */
    uint32_t snap_bytes;       /* 12  creator: kept of each frame, at most */
    uint64_t stride;           /* 16  creator: from frame to frame, bytes */
    uint8_t unused[40];        /* 24 */
    uint8_t slots[];           /* 64 */
};
_Static_assert(sizeof(struct capture_ring) == 64, "capture ring header");

struct capture_header {        /* offset; writer: creator */
    uint8_t segment[64];       /*  0  struct segment_header of shared/layout.h */
    uint32_t ends_count;       /* 64 */
    uint32_t frames;           /* 68  of each ring */
    uint32_t snap_bytes;       /* 72 */
    uint32_t unused;           /* 76 */
    uint64_t stride;           /* 80  from ring to ring, bytes; the first at 128 */
    uint8_t unused2[40];       /* 88 */
};
_Static_assert(sizeof(struct capture_header) == 128, "capture header");

static inline struct capture_ring *capture_ring_at(struct capture_header *capture, uint32_t end) {
    return (struct capture_ring *)((char *)(capture + 1) + end * capture->stride);
}

static inline struct captured_frame *capture_frame_at(struct capture_ring *ring, uint64_t index) {
    return (struct captured_frame *)(ring->slots + (index & (ring->frames - 1)) * ring->stride);
}

/* Keeps a frame; returns its number. Cold: code that does not capture pays for the caller's compare
 * with NULL only. */
__attribute__((noinline, cold)) static uint32_t capture_write(struct capture_ring *ring,
                                                              int64_t time_ns, uint32_t flags,
                                                              const uint8_t *frame,
                                                              uint32_t length) {
    uint64_t next = ring->next;
    struct captured_frame *slot = capture_frame_at(ring, next);
    slot->time_ns = time_ns;
    slot->length = length;
    slot->kept = length < ring->snap_bytes ? length : ring->snap_bytes;
    slot->number = (uint32_t)(next + 1);
    slot->flags = flags;
    slot->dropped = 0;
    memcpy(slot->bytes, frame, slot->kept);
    store_release_u64(&ring->next, next + 1); /* C1: the frame is whole; pairs with C1' */
    return slot->number;
}

/* The frame of that number; NULL if a newer one has replaced it. */
static inline struct captured_frame *capture_find(struct capture_ring *ring, uint32_t number) {
    struct captured_frame *slot = capture_frame_at(ring, (uint64_t)number - 1);
    return slot->number == number ? slot : 0;
}

/* Notes that a fault of the link has come to the frame of that number. */
static inline void capture_fault(struct capture_ring *ring, uint32_t number, uint32_t flag) {
    struct captured_frame *slot = capture_find(ring, number);
    if (slot != 0)
        slot->flags |= flag;
}

/* Notes who drops the frame of that number; nothing when capturing is off (`ring` is NULL). */
static inline void capture_drop(struct capture_ring *ring, uint32_t number, uint32_t kind,
                                uint32_t counter) {
    struct captured_frame *slot = ring != 0 ? capture_find(ring, number) : 0;
    if (slot != 0)
        slot->dropped = kind << 16 | (counter + 1);
}

#endif
