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

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "native/burn.h"

struct notify_state {
    uint64_t runs;            /* handler: how often it ran in this process */
    int signal;               /* installer: 0 if not installed */
    struct sigaction before;  /* installer: what to restore */
    /* waiter: a futex word that each run increments too, or NULL. A sleeper on it needs no
     * change of the signal mask: one system call for a wait instead of three. */
    volatile uint32_t *word;
    int64_t cost_ns;          /* waiter: CPU time that each run burns, 0 for none */
};

static inline void notify_handler_add(struct notify_state *state) {
    static const struct clock monotonic = {.kind = CLOCK_KIND_MONOTONIC};
    volatile uint32_t *word = __atomic_load_n(&state->word, __ATOMIC_RELAXED);
    int64_t cost_ns = __atomic_load_n(&state->cost_ns, __ATOMIC_RELAXED);
    if (cost_ns > 0)
        burn_ns(&monotonic, cost_ns); /* the same signal stays blocked meanwhile, and queues */
    __atomic_fetch_add(&state->runs, 1, __ATOMIC_RELAXED);
    if (word)
        __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
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

/* Blocks or lets in the notification for the calling thread. */
static inline void notify_mask(const struct notify_state *state, int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, state->signal);
    pthread_sigmask(how, &set, NULL);
}

/* Sleeps with the notification let in; the caller has it blocked and has looked at its
 * data since. ppoll swaps the mask and sleeps in one step: a signal that came after the
 * look ends the sleep at once. Returns 1 after a signal, 0 at the timeout. */
static inline int notify_sleep(const struct notify_state *state, int64_t timeout_ns) {
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    sigdelset(&mask, state->signal);
    return ppoll(NULL, 0, timeout_ns < 0 ? NULL : &timeout, &mask) != 0;
}

#endif
