"""Waiting of Python callers: for flags, and for letters."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.vmmc.process cimport VmmcProcess
from shrimpmx.wait.strategy cimport WAIT_STOPPED, Strategy, WaitEnvironment, WaitResult


cdef bint news_came(void *context) noexcept nogil:
    cdef News *news = <News *>context
    cdef uint32_t i
    for i in range(news.count):
        # F1: the flag before the data it announces; pairs with the fence V1 of the NIC.
        if load_acquire_u32(news.addresses[i]) != news.seen[i]:
            return True
    return news.mail != NULL and load_acquire_u32(news.mail) != news.mail_seen


cdef int64_t deadline_of(VmmcProcess process, object timeout_ns) except -1:
    if timeout_ns is None:
        return NEVER_NS
    return min(process.host.now_c() + max(timeout_ns, 0), NEVER_NS)


cdef WaitResult wait_for_news(VmmcProcess process, Strategy strategy, News *news,
                              int64_t deadline_ns) except *:
    cdef WaitEnvironment *environment = &process.environment
    cdef WaitResult result
    if process.waiter is not None:
        environment = &process.waiter.environment
    with nogil:
        if strategy is None:
            result = process.wait_c(news_came, news, deadline_ns)
        else:
            result = strategy.wait(environment, news_came, news, deadline_ns)
    if strategy is not None and strategy.failed:
        raise strategy.failure
    if result == WAIT_STOPPED:
        raise process.host.ended(f"the run was stopped while endpoint {process.index} waited")
    return result
