/* One agent at a time: which goes on is drawn from a seed, before each atomic operation.
 *
 * Each agent is a thread. The one whose turn it is runs; the others sleep until it is theirs. A
 * thread that is none of the agents is left alone. Time is virtual: each point takes some, and when
 * all agents sleep it goes to the first timer.
 *
 * What this finds are wrong orders of steps under sequential consistency, lost wake-ups, and what
 * a death leaves behind; a missing fence it cannot see (tests/support/recorded does).
 */
#ifndef SHRIMPMX_SCHEDULER_H
#define SHRIMPMX_SCHEDULER_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum schedule_policy {
    SCHEDULE_RANDOM, /* any agent, at any point */
    SCHEDULE_PCT,    /* by priority; some points lower that of the running one (Burckhardt 2010) */
};

enum schedule_end {
    SCHEDULE_DONE,     /* all agents have ended */
    SCHEDULE_ASLEEP,   /* all that are left sleep, and nothing will wake them */
    SCHEDULE_TOO_LONG, /* `steps_max` were not enough */
    SCHEDULE_BROKEN,   /* an invariant does not hold: schedule_problem() */
};

enum schedule_kind {
    SCHEDULE_LOAD,
    SCHEDULE_STORE,
    SCHEDULE_CHANGE, /* of a word that is read and written at once */
    SCHEDULE_LOCKED, /* behind a lock that was taken */
    SCHEDULE_UNLOCKED,
    SCHEDULE_WAKE,
    SCHEDULE_SLEEP,
    SCHEDULE_COPY,   /* between the memories of two processes */
    SCHEDULE_KINDS,
};

void schedule_point(enum schedule_kind kind);
void schedule_peek(const volatile uint8_t *address); /* the same, of a load from an event */
void schedule_pause(void);
long schedule_futex(long number, volatile uint32_t *word, int operation, uint32_t value,
                    const struct timespec *timeout, void *unused, int unused_too);
int schedule_lock(pthread_mutex_t *lock);
int schedule_trylock(pthread_mutex_t *lock);
int schedule_unlock(pthread_mutex_t *lock);
int schedule_clock(int clock, struct timespec *now);
int schedule_nap(int clock, int flags, const struct timespec *duration, struct timespec *left);

uint64_t schedule_draw(uint64_t *state); /* the next number of a generator; the state is its own */
int64_t schedule_now(void);

/* For the invariants: of an agent. */
int schedule_is_gone(int agent);
int schedule_is_asleep(int agent);
int schedule_sleeps_on(int agent, const volatile uint32_t *word);
int64_t schedule_until(int agent); /* when a sleeper's timer comes; INT64_MAX: it has none */
int schedule_agent_of(uint32_t thread); /* -1: none, or a dead one */

#endif
