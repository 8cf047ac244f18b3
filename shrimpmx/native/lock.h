/* A lock that lies in shared memory, as that of an endpoint descriptor.
 *
 * A handler runs at real-time priority on the core of the process that it
 * interrupts. A spin lock held by that process would never be given back, so the
 * lock is a mutex with priority inheritance; and any holder can be killed at any
 * instruction, so it is robust: the next one to lock is told and repairs. It checks errors:
 * a thread that takes it twice is told, instead of waiting for itself.
 */
#ifndef SHRIMPMX_NATIVE_LOCK_H
#define SHRIMPMX_NATIVE_LOCK_H

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native/atomics.h"

enum shared_lock_result {
    SHARED_LOCK_TAKEN = 0,
    SHARED_LOCK_REPAIR = 1, /* taken; its last holder died with it: repair what it guards */
    SHARED_LOCK_BROKEN = 2, /* not taken: never initialised, held by this very thread, or by
                             * none that exists, since a stray write has hit it */
};

/* Returns 0 or an errno. Kernels without priority inheritance get a plain robust mutex:
 * everything works, only the rank may be kept waiting longer. */
static inline int shared_lock_initialise(pthread_mutex_t *lock) {
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error)
        return error;
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    error = pthread_mutex_init(lock, &attributes);
    if (error) {
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
        error = pthread_mutex_init(lock, &attributes);
    }
    pthread_mutexattr_destroy(&attributes);
    return error;
}

static inline enum shared_lock_result shared_lock_result_of(pthread_mutex_t *lock, int error) {
    if (error == 0)
        return SHARED_LOCK_TAKEN;
    if (error != EOWNERDEAD)
        return SHARED_LOCK_BROKEN;
    pthread_mutex_consistent(lock);
    return SHARED_LOCK_REPAIR;
}
/* Whether the word that kernel and C library share, which begins a mutex with priority
 * inheritance, names a holder that does not exist. The kernel marks the word before a holder's
 * number is free again, so that none of its own doing is meant; to wait for it would abort. */
static inline int shared_lock_holder_is_none(const pthread_mutex_t *lock) {
    const volatile uint32_t *word = (const volatile uint32_t *)lock;
    uint32_t seen = load_acquire_u32(word);
    uint32_t holder = seen & FUTEX_TID_MASK;
    return holder != 0 && !(seen & FUTEX_OWNER_DIED) && syscall(SYS_tkill, holder, 0) != 0 &&
           errno == ESRCH && load_acquire_u32(word) == seen;
}
static inline enum shared_lock_result shared_lock_take(pthread_mutex_t *lock) {
    int error = pthread_mutex_trylock(lock); /* as quick as to lock, and waits for nothing yet */
    if (error == EBUSY && !shared_lock_holder_is_none(lock))
        error = pthread_mutex_lock(lock);
    return shared_lock_result_of(lock, error);
}
/* The same without waiting: BROKEN if it is taken, too. */
static inline enum shared_lock_result shared_lock_try(pthread_mutex_t *lock) {
    return shared_lock_result_of(lock, pthread_mutex_trylock(lock));
}
static inline void shared_lock_give(pthread_mutex_t *lock) { pthread_mutex_unlock(lock); }

#endif
