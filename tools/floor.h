/* What the floors share: processes on CPUs, memory that they share, the clock. */
#ifndef SHRIMPMX_TOOLS_FLOOR_H
#define SHRIMPMX_TOOLS_FLOOR_H

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/event_ring.h"
#include "native/futex.h"
#include "native/ring.h"

/* As the emulator has them at its defaults: MTU 1500. */
#define FRAME_SLOT_BYTES 1536
#define RECVQ_SLOT_BYTES 1536
#define HEADER_BYTES 40          /* of a tiny or small message's frame, before its data */
#define BUDGET 64                /* frames of a poll, events of a rank's pass */

static inline int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Of this process since it was forked. */
static inline double cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static inline void *shared_memory(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static inline struct ring *frame_ring(uint32_t entries) {
    struct ring *ring = shared_memory(RING_HEADER_BYTES + (size_t)entries * FRAME_SLOT_BYTES);
    ring_initialise(ring, entries, FRAME_SLOT_BYTES, RING_HEADER_BYTES);
    return ring;
}

/* A process on `cpu`, at real-time `priority` where that is permitted (0: normal), which dies with
 * this one. Returns 0 in the child. */
static inline pid_t fork_on(int cpu, int priority) {
    pid_t pid = fork();
    if (pid == 0) {
        struct sched_param parameters = {.sched_priority = priority};
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        sched_setaffinity(0, sizeof cpus, &cpus);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (priority > 0)
            sched_setscheduler(0, SCHED_FIFO, &parameters);
    }
    return pid;
}

/* An interrupt line: the claim token and the wake-up of the handler that serves it. */
struct line {
    _Alignas(64) volatile uint32_t token; /* 1: the handler has it */
    _Alignas(64) volatile uint32_t pending;
    _Alignas(64) struct wait_slot handler;
    struct wait_slot rank;
    _Alignas(64) volatile uint32_t next; /* of the event ring */
    _Alignas(64) volatile uint32_t released;
    _Alignas(64) volatile uint32_t stop;
};

static inline int line_raise(struct line *line) {
    full_fence(); /* frames before the look at the token; pairs with the handler's */
    if (load_relaxed_u32(&line->token) != 0 || !compare_exchange_u32(&line->token, 0, 1))
        return 0;
    store_release_u32(&line->pending, 1);
    wait_slot_wake(&line->handler);
    return 1;
}

/* The handler's process: sleeps until it is interrupted, polls `rx`, posts an event for each frame
 * to `events` and copies `data_bytes` of it, and wakes the rank. */
static inline void handle_interrupts(struct line *line, struct ring *rx, struct event *events,
                                     uint8_t *recvq, uint32_t entries, uint32_t data_bytes) {
    struct event_writer writer;
    uint32_t polled, count, seen;
    while (!load_acquire_u32(&line->stop)) {
        seen = wait_slot_arm(&line->handler);
        if (load_relaxed_u32(&line->pending) == 0) {
            wait_slot_sleep(&line->handler, seen, 100000000);
            continue;
        }
        wait_slot_disarm(&line->handler);
        if (exchange_u32(&line->pending, 0) == 0)
            continue;
        do {
            event_writer_open(&writer, events, recvq, &line->next, &line->released, entries,
                              EVENT_RING_LOCK_FREE, RECVQ_SLOT_BYTES);
            for (polled = 0; polled < BUDGET; polled += count) {
                count = ring_available(rx, 16);
                count = count < 16 ? count : 16;
                if (count == 0)
                    break;
                for (uint32_t index = 0; index < count; index++) {
                    const struct frame_slot *slot = ring_slot(rx, rx->tail + index);
                    const char *ahead = ring_slot(rx, rx->tail + index + 2);
                    struct event *event = event_writer_prepare(&writer);
                    const uint8_t *data = slot->frame + HEADER_BYTES;
                    uint32_t offset = event_writer_recvq_offset(&writer);
                    prefetch_read(ahead);
                    prefetch_read(ahead + 64);
                    prefetch_read(ahead + 128);
                    memcpy(event, slot->frame + 16, 16); /* what the header tells the library */
                    event->small.recvq_offset = offset;
                    event->small.length = slot->length - HEADER_BYTES;
                    for (uint32_t done = 0; done < data_bytes; done += 64)
                        memcpy(recvq + offset + done, data + done, 64);
                    event_writer_commit(&writer, event, EVENT_SMALL);
                    event_writer_prefetch(&writer, data_bytes > 0);
                }
                ring_consume(rx, count);
            }
            wait_slot_wake(&line->rank);
            if (polled == BUDGET)
                continue;
            store_release_u32(&line->token, 0);
            full_fence();
        } while (polled == BUDGET ||
                 (ring_depth(rx) != 0 && compare_exchange_u32(&line->token, 0, 1)));
    }
}

#endif
