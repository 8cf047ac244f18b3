"""Process-shared, robust, priority-inheriting lock (a pthread_mutex_t); see lock.h."""

cdef extern from "native/lock.h" nogil:
    enum:
        SHARED_LOCK_REPAIR
        SHARED_LOCK_BROKEN
    # `lock` is a pthread_mutex_t *.
    int shared_lock_initialise(void *lock) noexcept
    int shared_lock_take(void *lock) noexcept
    int shared_lock_try(void *lock) noexcept
    void shared_lock_give(void *lock) noexcept
