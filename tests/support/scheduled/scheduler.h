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
};

enum schedule_kind {
    SCHEDULE_LOAD,
    SCHEDULE_STORE,
    SCHEDULE_CHANGE, /* of a word that is read and written at once */
    SCHEDULE_SYSTEM, /* a call of the kernel: a sleep, a wake-up, a lock */
    SCHEDULE_KINDS,
};

void schedule_point(enum schedule_kind kind);
void schedule_pause(void);
long schedule_futex(long number, volatile uint32_t *word, int operation, uint32_t value,
                    const struct timespec *timeout, void *unused, int unused_too);
int schedule_lock(pthread_mutex_t *lock);
int schedule_clock(int clock, struct timespec *now);

#endif
