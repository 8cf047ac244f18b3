/* Sleeping and waking across processes: the futex calls, and the wait slot,
 * which holds the "store, fence, check" pattern in one place.
 *
 * Every process owns one wait slot. A producer that has published something
 * for the process then calls wait_slot_wake(); before it sleeps, the process arms the
 * slot, looks once more, and sleeps only if nothing came:
 *
 *   waker:   publish   ; full fence ; slot armed? -> disarm, bump the word, wake
 *   waiter:  arm slot  ; full fence ; published?  -> disarm and go on, else sleep
 *
 * With both fences at least one side sees the other's store: no wake-up is lost.
 * An armed slot is the papers' enabled interrupt; the waker disarms it, so one
 * sleep costs one wake-up (waiting paper, section 4).
 *
 * An accepted race: a waker that is preempted between disarming and waking keeps the sleeper
 * asleep until it runs again, since other wakers see the slot disarmed. On its core only a
 * handler can preempt it, for a few microseconds; the wake-up is late then, never lost. Letting
 * every waker wake again would cost a system call for each batch of packets.
 */
#ifndef SHRIMPMX_NATIVE_FUTEX_H
#define SHRIMPMX_NATIVE_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "native/atomics.h"

enum wait_slot_state {
    WAIT_SLOT_IDLE = 0,   /* no wake-up is wanted */
    WAIT_SLOT_BLOCK = 1,  /* wake by futex, once; the waker disarms */
    WAIT_SLOT_NOTIFY = 2, /* notify each time, by a signal if there is one; only the
                           * owner disarms */
    WAIT_SLOT_WORD = 3,   /* as BLOCK, of a sleeper that looks at the word: no process of its own */
};

struct wait_slot {             /* offset; writer */
    volatile uint32_t armed;   /*  0  owner arms; wakers disarm BLOCK and WORD */
    volatile uint32_t word;    /*  4  wakers: the futex word, incremented by each wake-up */
    volatile int32_t pid;      /*  8  owner, at start: receiver of notifications */
    volatile uint32_t signal;  /* 12  owner, at start: its signal number; 0: none, the
                                *     owner looks at the count */
    volatile uint64_t wakes;   /* 16  wakers: futex wake-ups sent */
    volatile uint64_t notifications; /* 24  wakers: how many */
    uint8_t unused[32];        /* 32 */
};
_Static_assert(sizeof(struct wait_slot) == 64, "a wait slot is one cache line");

/* Sleeps while *word == seen, at most timeout_ns (negative: for ever).
 * Returns 0 when woken or the word had changed, else an errno: ETIMEDOUT, EINTR. */
static inline int futex_wait(volatile uint32_t *word, uint32_t seen, int64_t timeout_ns) {
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout_ns < 0 ? NULL : &timeout, NULL, 0) == 0)
        return 0;
    return errno == EAGAIN ? 0 : errno;
}

/* Wakes at most `count` sleepers; returns how many woke. */
static inline int futex_wake(volatile uint32_t *word, int count) {
    return (int)syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}

/* Waker's half, after publishing. Returns 1 if a wake-up or notification was sent. */
static inline int wait_slot_wake(struct wait_slot *slot) {
    full_fence(); /* W1: publication before the look at `armed`; pairs with W2 */
    uint32_t armed = load_relaxed_u32(&slot->armed);
    if (armed == WAIT_SLOT_IDLE)
        return 0;
    if (armed == WAIT_SLOT_NOTIFY) {
        fetch_add_u64(&slot->notifications, 1);
        if (slot->signal != 0)
            kill(slot->pid, (int)slot->signal);
        return 1;
    }
    if (!compare_exchange_u32(&slot->armed, armed, WAIT_SLOT_IDLE))
        return 0; /* another waker was first */
    fetch_add_u32(&slot->word, 1);
    fetch_add_u64(&slot->wakes, 1);
    if (armed == WAIT_SLOT_BLOCK)
        futex_wake(&slot->word, 1 << 30); /* threads of the process may share the slot */
    return 1;
}

/* Wakes all sleepers on the slot, armed or not: for what must not be missed though another waker
 * may have died between disarming and waking. A strategy looks again, and sleeps on. */
static inline void wait_slot_rouse(struct wait_slot *slot) {
    fetch_add_u32(&slot->word, 1); /* wakers and handlers add to it at the same time */
    futex_wake(&slot->word, 1 << 30);
}

/* One thread of the process tells the others, which may sleep: no notification of it, which would
 * count as a message's. */
static inline void wait_slot_tell(struct wait_slot *slot) {
    if (load_relaxed_u32(&slot->armed) == WAIT_SLOT_NOTIFY)
        wait_slot_rouse(slot); /* armed for as long as the strategy is in force: no fence */
    else
        wait_slot_wake(slot);
}

/* Waiter's half: arm, then the caller looks once more, then wait_slot_sleep() or
 * wait_slot_disarm(). Returns the word's value to hand to wait_slot_sleep(). */
static inline uint32_t wait_slot_arm(struct wait_slot *slot) {
    uint32_t seen = load_acquire_u32(&slot->word);
    store_relaxed_u32(&slot->armed, WAIT_SLOT_BLOCK);
    full_fence(); /* W2: `armed` before the last look at the data; pairs with W1 */
    return seen;
}
static inline void wait_slot_disarm(struct wait_slot *slot) {
    store_relaxed_u32(&slot->armed, WAIT_SLOT_IDLE);
}
static inline int wait_slot_sleep(struct wait_slot *slot, uint32_t seen, int64_t timeout_ns) {
    int error = futex_wait(&slot->word, seen, timeout_ns);
    wait_slot_disarm(slot);
    return error;
}

#endif
