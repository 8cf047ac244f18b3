/* A node's raw queue and its table of peer names: what the daemon of a host needs.
 *
 * Raw packets (Open-MX: endpoint 255) belong to no MX endpoint. Any receive handler of the
 * node puts them into one queue, which one raw endpoint empties. Both lie at
 * node_header.raw_offset, the names behind the queue; the lock guards both.
 */
#ifndef SHRIMPMX_HOST_RAW_H
#define SHRIMPMX_HOST_RAW_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "native/atomics.h"
#include "native/futex.h"
#include "native/lock.h"
#include "shared/layout.h"

#define RAW_DATA_MAX_BYTES 1024 /* ours: an identity and a name fit many times */
#define RAW_SLOTS 32            /* ours: what a daemon may leave unread */

struct raw_packet {            /* offset; writer: a handler, under the lock */
    uint16_t length;           /*  0  bytes of `data` */
    uint16_t peer;             /*  2  node that sent it */
    uint8_t unused[4];         /*  4 */
    uint8_t data[RAW_DATA_MAX_BYTES]; /* 8 */
    uint8_t unused1[56];       /* 1032 */
};
_Static_assert(sizeof(struct raw_packet) == 1088, "raw packet");

struct raw_queue {             /* offset; writer */
    pthread_mutex_t lock;      /*   0  initialised by the supervisor; robust */
    uint8_t unused0[64 - sizeof(pthread_mutex_t)];
    volatile uint32_t owner;   /*  64  raw endpoint, under `lock`: its pid, 0: closed */
    volatile uint32_t head;    /*  68  handlers, under `lock`: packets put, free-running */
    volatile uint32_t tail;    /*  72  raw endpoint, under `lock`: packets taken */
    uint8_t unused1[52];       /*  76 */
    struct wait_slot reader;   /* 128  the raw endpoint arms, handlers wake */
    struct raw_packet packets[RAW_SLOTS]; /* 192 */
};
_Static_assert(offsetof(struct raw_queue, owner) == 64, "the lock fits its line");
_Static_assert(offsetof(struct raw_queue, packets) == 192, "raw queue");
_Static_assert(sizeof(struct raw_queue) <= RAW_QUEUE_BYTES, "the raw queue fits");

struct peer_name {             /* offset; writer: a handler, under the queue's lock */
    uint32_t length;           /*  0  bytes of `name`; 0: not known */
    uint8_t name[WIRE_HOST_NAME_MAX_BYTES]; /* 4 */
    uint8_t unused[12];        /* 84 */
};
_Static_assert(sizeof(struct peer_name) == PEER_NAME_BYTES, "peer name");

/* What became of a raw packet. */
enum raw_result { RAW_KEPT = 0, RAW_TOO_LARGE = 1, RAW_FULL = 2, RAW_CLOSED = 3 };

static inline struct raw_queue *raw_queue(struct node_header *node) {
    return NODE_PART(node, struct raw_queue, node->raw_offset);
}
static inline struct peer_name *raw_peer_name(struct node_header *node, uint32_t peer) {
    return NODE_PART(node, struct peer_name, node->raw_offset + RAW_QUEUE_BYTES) + peer;
}

/* A handler's: queues `length` bytes from `peer`; then wake the reader. */
static inline enum raw_result raw_put(struct raw_queue *queue, uint32_t peer,
                                      const uint8_t *data, uint32_t length) {
    enum raw_result result = RAW_KEPT;
    struct raw_packet *packet;
    if (load_relaxed_u32(&queue->owner) == 0)
        return RAW_CLOSED; /* the usual case without a daemon; no lock for it */
    if (length > RAW_DATA_MAX_BYTES)
        return RAW_TOO_LARGE;
    /* A holder that died leaves nothing to repair: `head` moves last. */
    if (shared_lock_take(&queue->lock) == SHARED_LOCK_BROKEN)
        return RAW_CLOSED;
    if (queue->owner == 0) {
        result = RAW_CLOSED;
    } else if (queue->head - queue->tail >= RAW_SLOTS) {
        result = RAW_FULL;
    } else {
        packet = &queue->packets[queue->head % RAW_SLOTS];
        packet->length = (uint16_t)length;
        packet->peer = (uint16_t)peer;
        memcpy(packet->data, data, length);
        store_release_u32(&queue->head, queue->head + 1); /* Q1: pairs with Q1' */
    }
    shared_lock_give(&queue->lock);
    return result;
}

/* The raw endpoint's: copies out the oldest packet. Its length, or -1 if there is none. */
static inline int raw_take(struct raw_queue *queue, uint8_t *data, uint32_t *peer) {
    int length = -1;
    const struct raw_packet *packet;
    if (load_acquire_u32(&queue->head) == queue->tail) /* Q1': only a look, for the sleeper */
        return -1;
    if (shared_lock_take(&queue->lock) == SHARED_LOCK_BROKEN)
        return -1;
    if (queue->head != queue->tail) {
        packet = &queue->packets[queue->tail % RAW_SLOTS];
        length = packet->length;
        *peer = packet->peer;
        memcpy(data, packet->data, packet->length);
        queue->tail++;
    }
    shared_lock_give(&queue->lock);
    return length;
}

/* Opens the queue, empty, for process `owner`, if `before` (0, or a dead process) has it
 * now. Returns 0, or the pid of the process that has it. */
static inline uint32_t raw_open(struct raw_queue *queue, uint32_t owner, uint32_t before) {
    uint32_t found = before;
    if (shared_lock_take(&queue->lock) == SHARED_LOCK_BROKEN)
        return before ? before : owner;
    if (queue->owner == before || queue->owner == 0) {
        queue->tail = queue->head;
        wait_slot_disarm(&queue->reader);
        store_relaxed_u32(&queue->owner, owner);
        found = 0;
    } else {
        found = queue->owner;
    }
    shared_lock_give(&queue->lock);
    return found;
}
static inline void raw_close(struct raw_queue *queue, uint32_t owner) {
    if (shared_lock_take(&queue->lock) == SHARED_LOCK_BROKEN)
        return;
    if (queue->owner == owner)
        store_relaxed_u32(&queue->owner, 0);
    shared_lock_give(&queue->lock);
}

/* A handler's: enters the name of `peer`. */
static inline void raw_name_peer(struct node_header *node, uint32_t peer, const uint8_t *name,
                                 uint32_t length) {
    struct peer_name *entry = raw_peer_name(node, peer);
    struct raw_queue *queue = raw_queue(node);
    if (shared_lock_take(&queue->lock) == SHARED_LOCK_BROKEN)
        return;
    /* A holder that dies leaves no half name: between these stores, of which the compiler moves
     * none past another, the name is not known. */
    store_relaxed_u32(&entry->length, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(entry->name, name, length);
    store_release_u32(&entry->length, length); /* with the lock: no partner but the fence above */
    shared_lock_give(&queue->lock);
}
/* For any process: copies out the name of `peer`, 80 bytes; returns its length, 0: not known. */
static inline uint32_t raw_name_of_peer(struct node_header *node, uint32_t peer, uint8_t *name) {
    const struct peer_name *entry = raw_peer_name(node, peer);
    struct raw_queue *queue = raw_queue(node);
    uint32_t length;
    if (shared_lock_take(&queue->lock) == SHARED_LOCK_BROKEN)
        return 0;
    length = entry->length;
    memcpy(name, entry->name, WIRE_HOST_NAME_MAX_BYTES);
    shared_lock_give(&queue->lock);
    return length;
}

#endif
