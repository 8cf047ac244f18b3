/* The least that the receive path of `shrimpmx bench` can cost on this machine: 128-byte messages
 * through the same rings, with the same copies and interrupts, to receives that match them.
 *
 *   cc -O2 -std=gnu11 -pthread -I shrimpmx -o receive_floor tools/receive_floor.c
 *   ./receive_floor stream|timeout MESSAGES [FIRST_CPU SECOND_CPU]
 *
 * First CPU, one process. It builds frames in a link ring, 64 at a time and up to 2048 ahead of the
 * acknowledged ones; copies each into the rx ring; and interrupts at the end of a burst (stream) or
 * 75 us after the first unreported frame (timeout), if the handler has given the token back.
 * Second CPU. The handler, a process of real-time priority, copies frames into events and receive
 * queue slots. The rank, which blocks, takes the events in order of their numbers, matches each
 * with the oldest of 256 posted receives, copies its data there, and acknowledges each pass by a
 * frame. Its application takes the messages in order, checks them, and posts the receives again.
 *
 * Not there: checks of frames, several peers, losses, fragments, receives that are not the first to
 * match, the endpoint's lock, counters, times of DMA and link, policies behind virtual methods.
 *
 * Prints messages per second, of all but the first tenth, and the CPU time of handler and rank per
 * message, ns, which other users of the CPUs change least.
 */
#include "floor.h"

enum { ENTRIES = 4096, WINDOW = 2048, BUFFERS = 256, DATA_BYTES = 128, STEP_FRAMES = 64 };
#define FRAME_BYTES (HEADER_BYTES + DATA_BYTES)
#define DELAY_NS 75000

enum { ACK_FRAME_BYTES = 60, ACK_RING_ENTRIES = 256 };

struct shared {
    struct line line;
    struct ring *link, *rx, *acks;
    struct event *events;
    uint8_t *recvq;
    volatile double rate, handler_ns, rank_ns;
};

struct receive {
    struct receive *next, *previous; /* posted, oldest first */
    uint64_t match, mask;
    uint8_t *data;
    uint32_t length, done;
};

static void generate_and_deliver(struct shared *shared, uint32_t count, int stream) {
    struct line *line = &shared->line;
    struct ring *link = shared->link, *rx = shared->rx, *acks = shared->acks;
    uint8_t frame[FRAME_BYTES] = {0};
    uint32_t sent = 0, acknowledged = 0, wish = 0;
    int wished = 0;
    int64_t due_ns = INT64_MAX;
    while (!load_relaxed_u32(&line->stop)) {
        int64_t now = now_ns();
        uint32_t room, fresh = ring_available(acks, 1);
        if (fresh > 0) {
            const struct frame_slot *last = ring_slot(acks, acks->tail + fresh - 1);
            memcpy(&acknowledged, last->frame + HEADER_BYTES, sizeof acknowledged);
            ring_consume(acks, fresh);
        }
        room = WINDOW - (sent - acknowledged);
        room = room < STEP_FRAMES ? room : STEP_FRAMES;
        room = room < count - sent ? room : count - sent;
        for (; room > 0 && ring_free(link, 1) > 0; room--, sent++) {
            struct frame_slot *slot = ring_next(link);
            memcpy(slot->frame, frame, FRAME_BYTES);
            memcpy(slot->frame + 20, &sent, sizeof sent); /* the number of the message */
            memcpy(slot->frame + HEADER_BYTES, &sent, sizeof sent);
            slot->length = FRAME_BYTES;
            slot->time_ns = now;
            ring_fill(link);
        }
        ring_publish(link);
        fresh = ring_available(link, STEP_FRAMES);
        for (uint32_t index = 0; index < fresh; index++) {
            const struct frame_slot *from = ring_slot(link, link->tail + index);
            struct frame_slot *to = ring_next(rx);
            char *ahead = ring_slot(rx, rx->reserved + 4);
            if (ring_free(rx, 1) == 0)
                abort(); /* it has more entries than the window */
            prefetch_write(ahead);
            prefetch_write(ahead + 64);
            prefetch_write(ahead + 128);
            to->length = from->length;
            to->time_ns = now;
            memcpy(to->frame, from->frame, from->length);
            ring_fill(rx);
        }
        ring_consume(link, fresh);
        ring_publish(rx);
        if (fresh != 0 && due_ns == INT64_MAX)
            due_ns = now + DELAY_NS;
        if (stream ? fresh != 0 : now >= due_ns) {
            due_ns = INT64_MAX;
            wish = rx->reserved;
            wished = 1;
        }
        if (wished)
            wished = (int32_t)(load_acquire_u32(&rx->tail) - wish) < 0 && !line_raise(line);
    }
}

static void post(struct receive *posted, struct receive *receive) {
    receive->done = 0;
    receive->next = posted;
    receive->previous = posted->previous;
    posted->previous->next = receive;
    posted->previous = receive;
}

/* The library's part: the message of an event goes to the oldest receive, which must match. */
static void deliver(struct receive *posted, const struct event *event, const uint8_t *recvq,
                    uint32_t expected) {
    struct receive *receive = posted->next;
    uint32_t number;
    memcpy(&number, &event->seqnum, sizeof number);
    if (number != expected || receive == posted ||
        receive->match != (event->match_info & receive->mask))
        abort();
    receive->previous->next = receive->next;
    receive->next->previous = receive->previous;
    receive->length = event->small.length;
    memcpy(receive->data, recvq + event->small.recvq_offset, receive->length);
    receive->done = 1;
}

static void acknowledge(struct ring *acks, uint32_t number) {
    struct frame_slot *slot;
    if (ring_free(acks, 1) == 0)
        abort(); /* it has more entries than the window has passes */
    slot = ring_next(acks);
    memset(slot->frame, 0, ACK_FRAME_BYTES);
    memcpy(slot->frame + HEADER_BYTES, &number, sizeof number);
    slot->length = ACK_FRAME_BYTES;
    ring_fill(acks);
    ring_publish(acks);
}

static void receive_all(struct shared *shared, uint32_t count) {
    static uint8_t buffers[BUFFERS][DATA_BYTES];
    static struct receive receives[BUFFERS];
    struct receive posted = {.next = &posted, .previous = &posted};
    struct line *line = &shared->line;
    struct event_reader reader;
    uint32_t delivered = 0, number = 0, slot = 0, taken, seen;
    int64_t start_ns = 0;
    event_reader_open(&reader, shared->events, &line->released, ENTRIES, EVENT_RING_LOCK_FREE, 0);
    for (uint32_t index = 0; index < BUFFERS; index++) {
        receives[index] = (struct receive){.mask = ~0ull, .data = buffers[index]};
        post(&posted, &receives[index]);
    }
    while (number < count) {
        const struct event *event;
        for (taken = 0; taken < BUDGET && (event = event_reader_peek(&reader)); taken++) {
            deliver(&posted, event, shared->recvq, delivered++);
            event_reader_consume(&reader);
        }
        if (taken > 0)
            acknowledge(shared->acks, delivered);
        for (; receives[slot].done; number++, slot = slot + 1 < BUFFERS ? slot + 1 : 0) {
            if (memcmp(buffers[slot], &number, sizeof number) != 0)
                abort();
            post(&posted, &receives[slot]);
            if (number == count / 10)
                start_ns = now_ns();
        }
        if (taken > 0)
            continue;
        seen = wait_slot_arm(&line->rank);
        if (event_reader_peek(&reader))
            wait_slot_disarm(&line->rank);
        else if (number < count)
            wait_slot_sleep(&line->rank, seen, -1);
    }
    shared->rate = (count - count / 10) * 1e9 / (now_ns() - start_ns);
}

int main(int count, char **words) {
    int stream = count > 1 && strcmp(words[1], "stream") == 0;
    if (count < 3 || atoi(words[2]) < 10 || (!stream && strcmp(words[1], "timeout") != 0)) {
        fprintf(stderr, "usage: %s stream|timeout MESSAGES [FIRST_CPU SECOND_CPU]\n", words[0]);
        return 2;
    }
    uint32_t messages = (uint32_t)atoi(words[2]);
    int first = count > 4 ? atoi(words[3]) : 0, second = count > 4 ? atoi(words[4]) : 1;
    struct shared *shared = shared_memory(sizeof *shared);
    shared->link = frame_ring(ENTRIES);
    shared->rx = frame_ring(ENTRIES);
    shared->acks = frame_ring(ACK_RING_ENTRIES);
    shared->events = shared_memory(ENTRIES * sizeof *shared->events);
    shared->recvq = shared_memory((size_t)ENTRIES * RECVQ_SLOT_BYTES);
    event_ring_reset(shared->events, ENTRIES, 0);
    if (fork_on(second, 50) == 0) {
        handle_interrupts(&shared->line, shared->rx, shared->events, shared->recvq, ENTRIES,
                          DATA_BYTES);
        shared->handler_ns = cpu_ns() / messages;
        _exit(0);
    }
    if (fork_on(first, 0) == 0) {
        generate_and_deliver(shared, messages, stream);
        _exit(0);
    }
    pid_t rank = fork_on(second, 0);
    if (rank == 0) {
        receive_all(shared, messages);
        shared->rank_ns = cpu_ns() / messages;
        _exit(0);
    }
    waitpid(rank, NULL, 0);
    store_release_u32(&shared->line.stop, 1);
    while (wait(NULL) > 0) {}
    printf("%.0f msg/s, handler %.1f ns, rank %.1f ns\n", shared->rate, shared->handler_ns,
           shared->rank_ns);
    return shared->rate > 0 ? 0 : 1;
}
