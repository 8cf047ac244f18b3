/* The least that the receive path of `shrimpmx bench` can cost on this machine: 128-byte messages
 * through the same rings, with the same copies and interrupts, and nothing else.
 *
 *   cc -O2 -std=gnu11 -pthread -I shrimpmx -o receive_floor tools/receive_floor.c
 *   ./receive_floor stream|timeout MESSAGES [FIRST_CPU SECOND_CPU]
 *
 * First CPU, one process: builds frames in a link ring, 64 at a time and up to 2048 ahead of the
 * acknowledged ones; copies each into the rx ring; interrupts at the end of a burst (stream) or 75 us
 * after the first unreported frame (timeout), if the handler has given the token back. Second CPU: the
 * handler, a process of real-time priority, copies frames into events and receive queue slots; the
 * rank, which blocks, copies them into its buffers, checks the numbers and acknowledges them.
 *
 * Not there: checks of frames, sequence numbers, matching, requests, acknowledgement frames, the
 * endpoint's lock, counters, the DMA's and link's times, policies behind virtual methods.
 *
 * Prints messages per second, of all but the first tenth.
 */
#include "floor.h"

enum { ENTRIES = 4096, WINDOW = 2048, BUFFERS = 256, DATA_BYTES = 128, STEP_FRAMES = 64 };
#define FRAME_BYTES (HEADER_BYTES + DATA_BYTES)
#define DELAY_NS 75000

struct shared {
    struct line line;
    _Alignas(64) volatile uint32_t acknowledged;
    volatile double rate;
};

static void generate_and_deliver(struct shared *shared, struct ring *link, struct ring *rx,
                                 uint32_t count, int stream) {
    struct line *line = &shared->line;
    uint8_t frame[FRAME_BYTES] = {0};
    uint32_t sent = 0, wish = 0;
    int wished = 0;
    int64_t due_ns = INT64_MAX;
    while (!load_relaxed_u32(&line->stop)) {
        int64_t now = now_ns();
        uint32_t room = WINDOW - (sent - load_acquire_u32(&shared->acknowledged)), fresh;
        room = room < STEP_FRAMES ? room : STEP_FRAMES;
        room = room < count - sent ? room : count - sent;
        for (; room > 0 && ring_free(link, 1) > 0; room--, sent++) {
            struct frame_slot *slot = ring_next(link);
            memcpy(slot->frame, frame, FRAME_BYTES);
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

static void receive(struct shared *shared, struct event *events, uint8_t *recvq, uint32_t count) {
    static uint8_t buffers[BUFFERS][DATA_BYTES];
    struct line *line = &shared->line;
    struct event_reader reader;
    uint32_t number = 0;
    int64_t start_ns = 0;
    event_reader_open(&reader, events, &line->released, ENTRIES, EVENT_RING_LOCK_FREE, 0);
    while (number < count) {
        const struct event *event = NULL;
        uint32_t taken = 0, seen;
        for (; taken < BUDGET && number < count && (event = event_reader_peek(&reader));
             taken++, number++) {
            uint8_t *buffer = buffers[number % BUFFERS];
            memcpy(buffer, recvq + event->small.recvq_offset, event->small.length);
            event_reader_consume(&reader);
            if (memcmp(buffer, &number, sizeof number) != 0)
                abort();
            if (number == count / 10)
                start_ns = now_ns();
        }
        if (taken > 0) {
            store_release_u32(&shared->acknowledged, number);
            continue;
        }
        seen = wait_slot_arm(&line->rank);
        if (event_reader_peek(&reader))
            wait_slot_disarm(&line->rank);
        else
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
    struct ring *link = frame_ring(ENTRIES), *rx = frame_ring(ENTRIES);
    struct event *events = shared_memory(ENTRIES * sizeof *events);
    uint8_t *recvq = shared_memory((size_t)ENTRIES * RECVQ_SLOT_BYTES);
    event_ring_reset(events, ENTRIES, 0);
    if (fork_on(second, 50) == 0) {
        handle_interrupts(&shared->line, rx, events, recvq, ENTRIES, DATA_BYTES);
        _exit(0);
    }
    if (fork_on(first, 0) == 0) {
        generate_and_deliver(shared, link, rx, messages, stream);
        _exit(0);
    }
    pid_t rank = fork_on(second, 0);
    if (rank == 0) {
        receive(shared, events, recvq, messages);
        _exit(0);
    }
    waitpid(rank, NULL, 0);
    store_release_u32(&shared->line.stop, 1);
    while (wait(NULL) > 0) {}
    printf("%.0f\n", shared->rate);
    return shared->rate > 0 ? 0 : 1;
}
