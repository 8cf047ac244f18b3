/* The user-level notification of the strategy `notify`: a signal and its handler.
 *
 * In C, because the handler may run between any two instructions of the process,
 * of the interpreter too: it may touch nothing but lock-free counters. A
 * Python-level handler would only run when the interpreter next looks, which a
 * compiled wait loop does not let it do.
 *
 * Real-time signals queue, so that each notification runs the handler once, as in
 * the waiting paper (section 3.1). On an emulated host whose handlers take longer, each run
 * burns the difference.
 */
#ifndef SHRIMPMX_NATIVE_NOTIFY_H
#define SHRIMPMX_NATIVE_NOTIFY_H

#include <signal.h>
#include <stdint.h>

#include "native/clock.h"
#include "native/futex.h"

struct notify_state {
    uint64_t runs;            /* handler: how often it ran in this process */
    int signal;               /* installer: 0 if not installed */
    struct sigaction before;  /* installer: what to restore */
    /* waiter: the slot on which its threads sleep, or NULL. A sleeper needs no change of the
     * signal mask: one system call for a wait instead of three. */
    struct wait_slot *slot;
    int64_t cost_ns;          /* waiter: CPU time that each run burns, 0 for none */
};

static inline void notify_handler_add(struct notify_state *state) {
    static const struct clock monotonic = {.kind = CLOCK_KIND_MONOTONIC};
    struct wait_slot *slot = __atomic_load_n(&state->slot, __ATOMIC_RELAXED);
    int64_t cost_ns = __atomic_load_n(&state->cost_ns, __ATOMIC_RELAXED);
    if (cost_ns > 0)
        burn_ns(&monotonic, cost_ns); /* the same signal stays blocked meanwhile, and queues */
    __atomic_fetch_add(&state->runs, 1, __ATOMIC_RELAXED);
    if (slot)
        wait_slot_rouse(slot); /* the kernel may run the handler on a thread that does not sleep */
}

static inline uint64_t notify_load(const struct notify_state *state) {
    return __atomic_load_n(&state->runs, __ATOMIC_RELAXED);
}

/* SA_RESTART: system calls other than the waits go on as if nothing had come. */
static inline int notify_set_handler(struct notify_state *state, int number,
                                     void (*handler)(int)) {
    struct sigaction action = {0};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, &state->before) != 0)
        return -1;
    state->signal = number;
    return 0;
}

static inline int notify_restore_handler(struct notify_state *state) {
    int number = state->signal;
    state->signal = 0;
    return number == 0 ? 0 : sigaction(number, &state->before, NULL);
}

#endif
