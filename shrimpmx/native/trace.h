/* The binary trace: one ring of the last records per agent, in a trace segment.
 *
 * A flight recorder: a ring that is full overwrites its oldest records. Each ring
 * has one writer at a time, so recording takes two stores, none locked. Readers may
 * come at any time, also after the writer has died.
 */
#ifndef SHRIMPMX_NATIVE_TRACE_H
#define SHRIMPMX_NATIVE_TRACE_H

#include <stdint.h>
#include <string.h>

#include "native/atomics.h"

/* What happened: X(name, meaning of a, meaning of b). A packet is packed by wire/packet_word.pxd, a
 * message by message_word() below; cluster/trace_text.py says all this in words. */
#define TRACE_KINDS(X)                             \
    X(note, "value", "value")                      \
    X(tx_frame, "packet", "bytes")                 \
    X(rx_frame, "packet", "bytes")                 \
    X(dma_complete, "packet", "bytes, queue << 32") \
    X(drop, "counter", "agent kind")               \
    X(irq_wished, "vector", "cause")               \
    X(irq_raised, "vector", "cause")               \
    X(irq_held_back, "vector", "cause")            \
    X(irq_absorbed, "vector", "cause")             \
    X(irq_deferred, "vector", "DMAs pending")      \
    X(irq_timer, "vector", "ns left; 0: stopped")  \
    X(interrupt, "vectors", "core")                \
    X(poll_begin, "vector", "budget")              \
    X(poll_end, "vector", "frames")                \
    X(event, "packet", "endpoint")                 \
    X(rank_wake, "process", "notified")            \
    X(isend, "message", "bytes")                   \
    X(isend_throttled, "message", "bytes")         \
    X(resend, "message", "bytes")                  \
    X(acked, "message", "bytes")                   \
    X(ack_sent, "message", "acknum")               \
    X(unexpected, "message", "bytes")              \
    X(received, "message", "bytes")                \
    X(rndv_matched, "message", "bytes")            \
    X(pull_start, "pull", "bytes")                 \
    X(pull_request, "first frame", "bytes")        \
    X(pull_again, "first frame", "after timeout")  \
    X(block_done, "first frame", "pull")           \
    X(pull_done, "status", "bytes")                \
    X(notified, "message", "bytes")                \
    X(wait_begin, "endpoint", "0")                 \
    X(wait_end, "result", "sleeps")                \
    X(sleep_begin, "0", "0")                       \
    X(sleep_end, "0", "0")

#define TRACE_ENUM(name, a, b) TRACE_##name,
enum trace_kind { TRACE_KINDS(TRACE_ENUM) TRACE_KINDS_COUNT };

struct trace_entry {      /* offset; writer: the ring's agent */
    int64_t time_ns;      /*  0  the run's clock */
    uint32_t agent;       /*  8  index of the agent's record */
    uint32_t kind;        /* 12  enum trace_kind */
    uint64_t a;           /* 16 */
    uint64_t b;           /* 24 */
};
_Static_assert(sizeof(struct trace_entry) == 32, "two trace entries per cache line");

struct trace_ring {            /* offset; writer */
    volatile uint64_t next;    /*  0  the agent: entries written since the start */
    uint32_t agent;            /*  8  creator */
    uint32_t entries;          /* 12  creator: power of two */
    uint8_t unused[48];        /* 16 */
    struct trace_entry slots[]; /* 64 */
};
_Static_assert(sizeof(struct trace_ring) == 64, "trace ring header");

struct trace_header {          /* offset; writer: creator */
    uint8_t segment[64];       /*  0  struct segment_header of shared/layout.h */
    uint32_t rings_count;      /* 64 */
    uint32_t entries;          /* 68  of each ring */
    uint64_t stride;           /* 72  from ring to ring, bytes; the first at 128 */
    uint8_t unused[48];        /* 80 */
};
_Static_assert(sizeof(struct trace_header) == 128, "trace header");

static inline struct trace_ring *trace_ring_at(struct trace_header *trace, uint32_t index) {
    return (struct trace_ring *)((char *)(trace + 1) + index * trace->stride);
}

/* Out of line and cold: the code that fetches what is to be recorded then stands apart too, and a
 * loop that does not trace pays a compare and a branch. */
__attribute__((noinline, cold)) static void trace_write(struct trace_ring *ring, int64_t time_ns,
                                                        uint32_t kind, uint64_t a, uint64_t b) {
    uint64_t next = ring->next;
    struct trace_entry *entry = &ring->slots[next & (ring->entries - 1)];
    release_fence(); /* T2: the last count before what this entry overwrites; pairs with T2' */
    entry->time_ns = time_ns;
    entry->agent = ring->agent;
    entry->kind = kind;
    entry->a = a;
    entry->b = b;
    store_release_u64(&ring->next, next + 1); /* T1: the entry is whole; pairs with T1' */
}

/* Records one thing that happened; nothing when tracing is off (`ring` is NULL). */
static inline void trace_record(struct trace_ring *ring, int64_t time_ns, uint32_t kind,
                                uint64_t a, uint64_t b) {
    if (__builtin_expect(ring != 0, 0))
        trace_write(ring, time_ns, kind, a, b);
}

/* After reading: the first record that no writer has touched meanwhile, nor is writing over. */
static inline uint64_t trace_whole_from(const struct trace_ring *ring) {
    acquire_fence(); /* T2': the entries before this look at the count; pairs with T2 */
    uint64_t being_written = load_relaxed_u64(&ring->next) + 1;
    return being_written > ring->entries ? being_written - ring->entries : 0;
}

/* One message among those to or from an endpoint of a node. */
static inline uint64_t message_word(uint32_t node, uint32_t endpoint, uint32_t seqnum) {
    return (uint64_t)node << 32 | (endpoint & 0xffff) << 16 | (seqnum & 0xffff);
}

static inline const char *trace_kind_text(uint32_t kind, uint32_t which) {
#define TRACE_NAME(name, a, b) {#name, a, b},
    static const char *const texts[][3] = {TRACE_KINDS(TRACE_NAME)};
#undef TRACE_NAME
    return kind < TRACE_KINDS_COUNT ? texts[kind][which] : 0;
}

/* The frames that pass the ends of links, with their bytes: one ring of the last ones per end, in
 * a capture segment.
 *
 * A ring that is full overwrites its oldest frames. Each ring has one writer at a time: the NIC
 * at that end, or what acts for it. Whoever drops a frame later, such as the receive handler, notes
 * that at the frame. Frames are read when the run is over.
 */

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
