/* Copy offload, the handlers' side: work for the dma agent, in a ring per vector.
 *
 * The data of a copy stays in its rx ring slot, so that slot is the NIC's again only after the
 * copy. Slots go back in order: while the dma agent has work from a vector it hands them back,
 * and the handler only tells it how far; else the handler does so itself. Both sides so take
 * turns at the rx ring's tail, and never at once.
 *
 * The handler that has the vector's token is the producer; all fields pass with the token.
 */
#ifndef SHRIMPMX_HOST_COPY_QUEUE_H
#define SHRIMPMX_HOST_COPY_QUEUE_H

#include <stdint.h>

#include "native/atomics.h"
#include "native/ring.h"
#include "shared/layout.h"

struct copy_queue {                  /* of the vector that is being polled */
    struct ring *copies;             /* of struct copy_descriptor */
    struct ring *rx;
    struct copy_descriptor *last;    /* this batch's last one, not published; NULL: none */
    uint32_t frame;                  /* rx ring index of the frame in hand */
    uint32_t handed_over;            /* 1: the dma agent got work since it was last woken */
};

/* Before a poll of `vector`, with its token, on a node that has a dma agent. */
static inline void copy_queue_open(struct copy_queue *queue, struct node_header *node,
                                   uint32_t vector) {
    queue->copies = node_copy_ring(node, vector);
    queue->rx = node_rx_ring(node, vector);
    queue->last = 0;
}
/* The next descriptor to fill, which releases the frame in hand; NULL: the ring is full. The
 * agent hands up to 32 slots of the rx ring back just before as many descriptors, so for a moment
 * there can be so many frames more than descriptors; Node.create() wants rx rings of twice that. */
static inline struct copy_descriptor *copy_queue_add(struct copy_queue *queue) {
    if (ring_free(queue->copies, 1) == 0)
        return 0;
    queue->last = (struct copy_descriptor *)ring_next(queue->copies);
    queue->last->length = 0;
    queue->last->release_to = queue->frame + 1;
    ring_fill(queue->copies);
    return queue->last;
}
/* The frames up to rx ring index `position` are handled: their slots go back to the NIC, now or
 * behind the copies. Returns 0 if the ring of copies was full: the next batch's end sees to it. */
static inline int copy_queue_end_batch(struct copy_queue *queue, uint32_t position) {
    if (queue->last == 0 && load_acquire_u32(&queue->copies->tail) == queue->copies->head) {
        /* D1': no copy is outstanding; pairs with D1, so the tail is ours. */
        store_release_u32(&queue->rx->tail, position); /* R2': pairs with R2, the NIC's */
        return 1;
    }
    if (queue->last == 0 && copy_queue_add(queue) == 0)
        return 0;
    queue->last->release_to = position;
    queue->last = 0;
    ring_publish(queue->copies); /* the frames' slots and the counts of copies before it */
    queue->handed_over = 1;
    return 1;
}

#endif
