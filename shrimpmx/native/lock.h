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
#include <stddef.h>
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

/* -- The quick way to a lock that nobody has.
 *
 * The C library links a robust mutex into a list of its thread's, which the kernel walks when the
 * thread dies. A thread that has one such lock can leave it named in the list's `list_op_pending`
 * instead: the kernel looks at that, too (robust-futex-ABI in Linux's documentation). Lock word and
 * list are the library's, so that both ways meet: a thread that finds the word taken goes to the
 * library, and waits in the kernel. The library notes an owner, the quick way does not: a lock is
 * given back as it was taken.
 */
struct shared_lock_thread {
    struct robust_list_head *list; /* NULL: the quick way is closed */
    uint32_t number;               /* of the thread; 0: not looked at in this process */
};
static _Thread_local struct shared_lock_thread shared_lock_thread;

static inline void shared_lock_forget(void) { shared_lock_thread.number = 0; }

static __attribute__((noinline, cold, unused)) void
shared_lock_look(struct shared_lock_thread *thread) {
    thread->list = NULL;
    thread->number = (uint32_t)syscall(SYS_gettid);
#if defined(__GLIBC__) && !defined(SHARED_LOCK_BY_LIBRARY)
    static uint32_t forks_are_watched;
    uint32_t nobodys = 0;
    size_t bytes;
    if (syscall(SYS_futex, &nobodys, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) != 0 && errno == ENOSYS)
        return; /* priorities are not inherited: another protocol */
    if (exchange_u32(&forks_are_watched, 1) == 0 &&
        pthread_atfork(NULL, NULL, shared_lock_forget) != 0)
        return;
    if (syscall(SYS_get_robust_list, 0, &thread->list, &bytes) != 0)
        thread->list = NULL;
#endif
}
static inline struct shared_lock_thread *shared_lock_this_thread(void) {
    struct shared_lock_thread *thread = &shared_lock_thread;
    if (thread->number == 0)
        shared_lock_look(thread);
    return thread;
}
/* Names a lock to the kernel, or none; the compiler keeps it before what follows. */
static inline void shared_lock_name(struct robust_list_head *list, struct robust_list *entry) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *(struct robust_list *volatile *)&list->list_op_pending = entry;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
static inline int shared_lock_take_quickly(pthread_mutex_t *lock) {
    enum { INHERITS_PRIORITY = 1 };
    const struct shared_lock_thread *thread = shared_lock_this_thread();
    if (thread->list == NULL || thread->list->list_op_pending != NULL)
        return 0;
    shared_lock_name(thread->list,
                     (struct robust_list *)((char *)lock - thread->list->futex_offset +
                                            INHERITS_PRIORITY));
    if (compare_exchange_u32((volatile uint32_t *)lock, 0, thread->number))
        return 1;
    shared_lock_name(thread->list, NULL);
    return 0;
}
static inline void shared_lock_give_quickly(pthread_mutex_t *lock) {
    const struct shared_lock_thread *thread = shared_lock_this_thread();
    if (!compare_exchange_u32((volatile uint32_t *)lock, thread->number, 0))
        syscall(SYS_futex, lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0); /* to one that waits */
    shared_lock_name(thread->list, NULL);
}

/* -- By the library, which uses `list_op_pending` itself: what it named before is named again. */

static __attribute__((noinline, unused)) enum shared_lock_result
shared_lock_take_slowly(pthread_mutex_t *lock, int may_wait) {
    const struct shared_lock_thread *thread = shared_lock_this_thread();
    struct robust_list *named = thread->list == NULL ? NULL : thread->list->list_op_pending;
    int error = pthread_mutex_trylock(lock);
    if (error == EBUSY && may_wait && !shared_lock_holder_is_none(lock))
        error = pthread_mutex_lock(lock);
    if (named != NULL)
        shared_lock_name(thread->list, named);
    return shared_lock_result_of(lock, error);
}
static __attribute__((noinline, unused)) void shared_lock_give_slowly(pthread_mutex_t *lock) {
    const struct shared_lock_thread *thread = shared_lock_this_thread();
    struct robust_list *named = thread->list == NULL ? NULL : thread->list->list_op_pending;
    pthread_mutex_unlock(lock);
    if (named != NULL)
        shared_lock_name(thread->list, named);
}

static inline enum shared_lock_result shared_lock_take(pthread_mutex_t *lock) {
    return shared_lock_take_quickly(lock) ? SHARED_LOCK_TAKEN : shared_lock_take_slowly(lock, 1);
}
/* The same without waiting: BROKEN if it is taken, too. */
static inline enum shared_lock_result shared_lock_try(pthread_mutex_t *lock) {
    return shared_lock_take_quickly(lock) ? SHARED_LOCK_TAKEN : shared_lock_take_slowly(lock, 0);
}
static inline void shared_lock_give(pthread_mutex_t *lock) {
#ifdef __GLIBC__
    if (lock->__data.__owner == 0) {
        shared_lock_give_quickly(lock);
        return;
    }
#endif
    shared_lock_give_slowly(lock);
}

#endif
