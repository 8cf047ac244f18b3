"""Waiting for any of a set of flags (waiting paper, 2.2 and section 4)."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.vmmc.buffers cimport Flag, Import
from shrimpmx.vmmc.process cimport News, VmmcProcess, deadline_of, wait_for_news
from shrimpmx.wait.strategy cimport WAIT_TIMED_OUT, Strategy, WaitResult

from shrimpmx.errors import InputError, VmmcError


cdef int check_strategy(VmmcProcess process, Strategy strategy, list flags) except -1:
    """A wait that sleeps is woken only where updates interrupt."""
    cdef Strategy used = strategy
    if strategy is None and process.waiter is not None:
        used = process.waiter.strategy
    if used is None:
        return 0
    if process.waiter is not None:
        process.waiter.admit(used)
    elif used.stands:
        raise InputError(f"{used.name} has to be the strategy of the process's waiter")
    if not used.sleeps:
        return 0
    for flag in flags:
        if not (<Flag>flag).export.interrupts:
            raise InputError(
                f"updates of export {(<Flag>flag).export.index} do not interrupt, so that nothing "
                f"would wake a wait by {used.name}; choose spin or sched")
    return 0


cdef list changed_of(list flags):
    """The flags that differ from what was seen of them, which is what they are from now on."""
    changed = [flag for flag in flags if (<Flag>flag).changed()]
    for flag in changed:
        (<Flag>flag).update()
    return changed


def wait_for_flags(VmmcProcess process not None, flags, timeout_ns, Strategy strategy, peers):
    """See VmmcProcess.wait."""
    cdef list watched = list(flags), named = list(peers)
    cdef uint32_t count = len(watched), i
    cdef News news
    cdef int64_t deadline_ns = deadline_of(process, timeout_ns)
    cdef uint32_t **addresses = <uint32_t **>malloc(max(count, 1) * sizeof(void *))
    cdef uint32_t *seen = <uint32_t *>malloc(max(count, 1) * sizeof(uint32_t))
    try:
        if addresses == NULL or seen == NULL:
            raise MemoryError("no memory for a wait")
        for i in range(count):
            (<Flag>watched[i]).check_of(process)
            addresses[i] = (<Flag>watched[i]).address
            seen[i] = (<Flag>watched[i]).seen
        check_strategy(process, strategy, watched)
        if not process.watch_c(addresses, count):
            raise InputError(f"{count} flags lie on more pages than one wait can watch")
        news.addresses, news.seen, news.count = addresses, seen, count
        news.mail = <const uint32_t *><void *>&process.mailbox.letters.head if named else NULL
        return wait_until_changed(process, strategy, &news, watched, named, deadline_ns)
    finally:
        free(addresses)
        free(seen)


cdef int look_at_peers(VmmcProcess process, list peers, News *news) except -1:
    """Whether one of them has gone, by what the mailbox says; its letters are seen then."""
    if news.mail == NULL:
        return 0
    news.mail_seen = load_acquire_u32(news.mail)
    process.sort_mail()
    return any([(<Import>peer).gone for peer in peers])


cdef list wait_until_changed(VmmcProcess process, Strategy strategy, News *news, list flags,
                             list peers, int64_t deadline_ns):
    cdef WaitResult result = WAIT_TIMED_OUT
    cdef bint gone
    while True:
        gone = look_at_peers(process, peers, news)
        if not gone:
            result = wait_for_news(process, strategy, news, deadline_ns)
        # First: what a peer sent before it went has arrived before the letter that tells so.
        changed = changed_of(flags)
        if changed:
            return changed
        if gone:
            lost = next(peer for peer in peers if (<Import>peer).gone)
            raise VmmcError(f"endpoint {lost.endpoint} of node {lost.node} has gone away", "gone")
        if result == WAIT_TIMED_OUT:
            return []
