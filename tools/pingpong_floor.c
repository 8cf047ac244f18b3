/* The least that the two-node ping-pong of `shrimpmx bench` can cost on this machine: 0-byte
 * messages between ranks that spin, through the same rings, processes, wake-ups and emulated times.
 *
 *   cc -O2 -std=gnu11 -pthread -I shrimpmx -o pingpong_floor tools/pingpong_floor.c
 *   ./pingpong_floor ROUND_TRIPS [FIRST_CPU SECOND_CPU]
 *
 * Placed as on two CPUs: node 0's handler and rank on the first, node 1's on the second, and both
 * NICs in one process on the first, at a higher real-time priority than the handlers. A rank fills
 * a slot of its tx ring and wakes the NICs. They copy the frame into a link ring and from there
 * into the other node's rx ring, spin until link (500 ns) and DMA (500 ns) are over, and wake its
 * handler. The handler posts an event, which the rank finds.
 *
 * Not there: the library, checks, policies, counters, and all but one frame at a time.
 *
 * Prints half of the median round trip, us.
 */
#include "floor.h"

enum { ENTRIES = 64, FRAME_BYTES = 60, TIMES_NS = 1000 };

struct node {
    struct line line;
    struct ring *tx, *link, *rx;
    struct event *events;
    uint8_t *recvq;
};

struct shared {
    struct wait_slot nic;
    struct node nodes[2];
    _Alignas(64) volatile uint32_t stop;
    volatile double half_us;
};

static void move_frame(struct ring *from, struct ring *to) {
    const struct frame_slot *taken = ring_slot(from, from->tail);
    struct frame_slot *slot = ring_next(to);
    slot->length = taken->length;
    memcpy(slot->frame, taken->frame, taken->length);
    ring_fill(to);
    ring_consume(from, 1);
}

static void run_nics(struct shared *shared) {
    while (!load_acquire_u32(&shared->stop)) {
        uint32_t seen = wait_slot_arm(&shared->nic), done = 0;
        for (int source = 0; source < 2; source++) {
            struct node *node = &shared->nodes[source], *other = &shared->nodes[!source];
            if (ring_available(node->tx, 1) == 0 || ring_free(other->link, 1) == 0 ||
                ring_free(other->rx, 1) == 0)
                continue;
            int64_t due_ns = now_ns() + TIMES_NS;
            wait_slot_disarm(&shared->nic);
            move_frame(node->tx, other->link);
            ring_publish(other->link);
            ring_available(other->link, 1);
            move_frame(other->link, other->rx);
            while (now_ns() < due_ns)
                cpu_pause();
            ring_publish(other->rx);
            line_raise(&other->line);
            done++;
        }
        if (done == 0)
            wait_slot_sleep(&shared->nic, seen, 100000000);
    }
}

static int compare(const void *one, const void *other) {
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return (left > right) - (left < right);
}

static void exchange(struct shared *shared, int me, uint32_t trips) {
    struct node *node = &shared->nodes[me];
    struct event_reader reader;
    int64_t *times_ns = shared_memory(trips * sizeof *times_ns), start_ns;
    event_reader_open(&reader, node->events, &node->line.released, ENTRIES, EVENT_RING_LOCK_FREE,
                      0);
    for (uint32_t trip = 0; trip < trips; trip++) {
        start_ns = now_ns();
        for (int half = 0; half < 2; half++) {
            if (half == me) { /* my turn to send */
                struct frame_slot *slot;
                while (ring_free(node->tx, 1) == 0)
                    cpu_pause();
                slot = ring_next(node->tx);
                memset(slot->frame, 0, FRAME_BYTES);
                slot->length = FRAME_BYTES;
                ring_fill(node->tx);
                ring_publish(node->tx);
                wait_slot_wake(&shared->nic);
                continue;
            }
            while (!event_reader_peek(&reader)) {}
            event_reader_consume(&reader);
        }
        times_ns[trip] = now_ns() - start_ns;
    }
    qsort(times_ns, trips, sizeof *times_ns, compare);
    if (me == 0)
        shared->half_us = times_ns[trips / 2] / 2e3;
}

int main(int count, char **words) {
    if (count < 2 || atoi(words[1]) < 10) {
        fprintf(stderr, "usage: %s ROUND_TRIPS [FIRST_CPU SECOND_CPU]\n", words[0]);
        return 2;
    }
    uint32_t trips = (uint32_t)atoi(words[1]);
    int cpus[2] = {count > 3 ? atoi(words[2]) : 0, count > 3 ? atoi(words[3]) : 1};
    struct shared *shared = shared_memory(sizeof *shared);
    pid_t ranks[2];
    for (int index = 0; index < 2; index++) {
        struct node *node = &shared->nodes[index];
        node->tx = frame_ring(ENTRIES);
        node->link = frame_ring(ENTRIES);
        node->rx = frame_ring(ENTRIES);
        node->events = shared_memory(ENTRIES * sizeof *node->events);
        node->recvq = shared_memory((size_t)ENTRIES * RECVQ_SLOT_BYTES);
        event_ring_reset(node->events, ENTRIES, 0);
    }
    for (int index = 0; index < 2; index++) {
        struct node *node = &shared->nodes[index];
        if (fork_on(cpus[index], 50) == 0) {
            handle_interrupts(&node->line, node->rx, node->events, node->recvq, ENTRIES, 0);
            _exit(0);
        }
    }
    if (fork_on(cpus[0], 80) == 0) {
        run_nics(shared);
        _exit(0);
    }
    for (int index = 0; index < 2; index++)
        if ((ranks[index] = fork_on(cpus[index], 0)) == 0) {
            exchange(shared, index, trips);
            _exit(0);
        }
    for (int index = 0; index < 2; index++)
        waitpid(ranks[index], NULL, 0);
    store_release_u32(&shared->stop, 1);
    store_release_u32(&shared->nodes[0].line.stop, 1);
    store_release_u32(&shared->nodes[1].line.stop, 1);
    while (wait(NULL) > 0) {}
    printf("%.2f\n", shared->half_us);
    return shared->half_us > 0 ? 0 : 1;
}
