/* The clock that a process reads: CLOCK_MONOTONIC, the time-stamp counter
 * scaled to it, or a virtual one that a test moves.
 *
 * One `struct clock` per run lies in the control segment: the supervisor
 * calibrates it once, every process reads it, and no agent knows its kind.
 */
#ifndef SHRIMPMX_NATIVE_CLOCK_H
#define SHRIMPMX_NATIVE_CLOCK_H

#include <stdint.h>
#include <time.h>

enum clock_kind { CLOCK_KIND_MONOTONIC = 0, CLOCK_KIND_TSC = 1, CLOCK_KIND_VIRTUAL = 2 };

/* A deadline that never comes. */
#define NEVER_NS INT64_MAX

struct clock {               /* offset; writer */
    uint32_t kind;           /*  0  supervisor, before start */
    uint32_t shift;          /*  4  supervisor: ns = ns_base + (ticks * multiplier >> shift) */
    uint64_t multiplier;     /*  8  supervisor */
    uint64_t ticks_base;     /* 16  supervisor */
    int64_t ns_base;         /* 24  supervisor */
    volatile int64_t virtual_ns; /* 32  the test that owns the clock */
    uint8_t unused[24];      /* 40 */
};
_Static_assert(sizeof(struct clock) == 64, "struct clock is one cache line");

static inline int64_t monotonic_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Raw ticks of the cheapest steady counter. Not ordered with other loads. */
static inline uint64_t counter_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();  /* <x86intrin.h> would triple what every module parses */
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

static inline int64_t clock_now_ns(const struct clock *clock) {
    if (clock->kind == CLOCK_KIND_TSC) {
        uint64_t ticks = counter_ticks() - clock->ticks_base;
        return clock->ns_base + (int64_t)(((__uint128_t)ticks * clock->multiplier) >> clock->shift);
    }
    if (clock->kind == CLOCK_KIND_VIRTUAL)
        return clock->virtual_ns;
    return monotonic_now_ns();
}

/* Computing for a while: what an application does, or a slower host takes, between two calls.
 * Async-signal-safe: it only reads the clock.
 */

/* A longer step between two looks at the clock means that the CPU was taken away (ours:
 * a look costs 20 to 60 ns, an interrupt more than a microsecond). */
#define BURN_STEP_NS 1000

/* Uses `delay_ns` of CPU: time during which this process was preempted does not count. */
static inline void burn_ns(const struct clock *clock, int64_t delay_ns) {
    int64_t before_ns = clock_now_ns(clock);
    while (delay_ns > 0) {
        int64_t now_ns = clock_now_ns(clock);
        int64_t step_ns = now_ns - before_ns;
        delay_ns -= step_ns < BURN_STEP_NS ? step_ns : BURN_STEP_NS;
        before_ns = now_ns;
    }
}

#endif
