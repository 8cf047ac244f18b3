"""A process's sockets, and how it waits for them."""

from weakref import WeakValueDictionary

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.vmmc cimport VMMC_PAGE_BYTES
from shrimpmx.sockets.connections cimport Connections
from shrimpmx.sockets.slots cimport SLOTS, SLOT_FREE
from shrimpmx.wait.waiter cimport (
    WAIT_READY, WAIT_STOPPED, WAIT_TIMED_OUT, WaitResult, ready_function,
)

cdef enum:
    WORDS_PER_PAGE = VMMC_PAGE_BYTES // 4
    WORD_PAGES = 2 * SLOTS // WORDS_PER_PAGE

# What any_ready() looks at.
cdef struct AwaitedList:
    void *network
    const Awaited *sockets
    uint32_t count


cdef bint any_listed(AwaitedList *awaited) noexcept nogil:
    cdef uint32_t index
    for index in range(awaited.count):
        if (<Network>awaited.network).is_ready_c(&awaited.sockets[index]):
            return True
    return False


cdef bint any_ready(void *context) noexcept nogil:
    # First what the words announce: while data comes there is no need to read mail.
    if any_listed(<AwaitedList *>context):
        return True
    (<Network>(<AwaitedList *>context).network).drain_c()
    return any_listed(<AwaitedList *>context)


cdef class Waitable:
    """What can be waited for beside sockets."""

    cdef bint any_c(self) noexcept nogil:
        return False


cdef class Network(Connections):
    """The sockets of `process`, an open VmmcProcess; close() it before the process.

    A process has one Network. One thread of the operating system may use it, that which opened the
    process; user-level threads wait by `wait_hook`. The process's own calls that wait, map() and
    wait(), keep all its threads waiting.
    """

    def __init__(self, process):
        self.streams = WeakValueDictionary()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Close every socket; peers read the end of the stream."""
        for stream in list(self.streams.values()):
            stream.close()

    @property
    def node(self) -> int:
        """The number of its node."""
        return self.process.node.header.index

    @property
    def nodes_count(self) -> int:
        return self.process.node.header.nodes_count

    def now_ns(self) -> int:
        """The run's clock, ns."""
        return self.now_c()

    def slots_in_use(self) -> int:
        """Slots that no other socket can have yet: of open sockets, and of those whose peer
        has not closed."""
        cdef uint32_t index
        self.collect_c()
        return sum(1 for index in range(self.used) if self.slots[index].state != SLOT_FREE)

    def wait_any(self, waits, deadline_ns=None) -> list:
        """Wait until any of `waits` is ready; the indices of those that are, ascending.

        `waits`: (stream or socket, want_read, want_write) each. `deadline_ns`: on the run's
        clock, 0 to look only, None for ever; past it the list is empty. A user-level thread lets
        others run meanwhile. AbortedError if the run is being stopped.
        """
        cdef int64_t deadline = NEVER_NS if deadline_ns is None else deadline_ns
        if self.wait_hook is None:
            return self.wait_in_process(waits, deadline)
        # Of what a thread is woken for another one may have made use before it runs.
        while not (found := self.wait_in_process(waits, 0)) and deadline != 0:
            if not self.wait_hook(waits, deadline):
                break
        return found

    def wait_in_process(self, waits, int64_t deadline) -> list:
        """The same for a scheduler of user-level threads; nothing else runs meanwhile.

        A Waitable may take the place of a stream. `deadline`: NEVER_NS waits for ever.
        """
        cdef uint32_t count = len(waits), index
        cdef WaitResult result = WAIT_READY
        cdef Awaited *sockets = <Awaited *>calloc(max(count, 1), sizeof(Awaited))
        if sockets == NULL:
            raise MemoryError
        try:
            for index, (one, reading, writing) in enumerate(waits):
                if isinstance(one, Waitable):
                    sockets[index].other = <void *>one
                    continue
                stream = getattr(one, "stream", one)
                sockets[index].closed = stream.closed
                sockets[index].slot = stream.number
                sockets[index].reading = reading
                sockets[index].writing = writing
            with nogil:
                if deadline == 0:
                    self.drain_c()
                else:
                    result = self.wait_sockets_c(sockets, count, deadline)
            if result == WAIT_STOPPED:
                raise self.process.host.ended("the run is being stopped")
            return [index for index in range(count) if self.is_ready_c(&sockets[index])]
        finally:
            free(sockets)

    cdef bint watch_words_c(self) noexcept nogil:
        cdef uint32_t *places[WORD_PAGES]
        cdef uint32_t page, pages = (self.used + WORDS_PER_PAGE - 1) // WORDS_PER_PAGE
        cdef bint watched
        for page in range(pages):
            places[2 * page] = &self.arrivals[page * WORDS_PER_PAGE]
            places[2 * page + 1] = &self.credits[page * WORDS_PER_PAGE]
        self.watched = pages * WORDS_PER_PAGE
        watched = self.process.watch_c(places, 2 * pages)
        self.watch_list = self.process.pages.lists
        return watched

    cdef bint is_ready_c(self, const Awaited *awaited) noexcept nogil:
        if awaited.other != NULL:
            return (<Waitable>awaited.other).any_c()
        return (awaited.closed or awaited.reading and self.readable_c(awaited.slot)
                or awaited.writing and self.writable_c(awaited.slot))

    cdef WaitResult wait_sockets_c(self, const Awaited *sockets, uint32_t count,
                                   int64_t deadline_ns) noexcept nogil:
        cdef AwaitedList awaited
        awaited.network = <void *>self
        awaited.sockets = sockets
        awaited.count = count
        return self.wait_ready_c(any_ready, &awaited, deadline_ns)

    cdef WaitResult wait_ready_c(self, ready_function ready, void *context,
                                 int64_t deadline_ns) noexcept nogil:
        cdef WaitResult result
        cdef int64_t until_ns
        while True:
            # The process's map() and wait() watch what they wait for.
            if self.used > self.watched or self.watch_list != self.process.pages.lists:
                self.watch_words_c()
            if self.unanswered:
                self.unanswered = self.any_unanswered_c()
            until_ns = deadline_ns
            if self.unanswered and self.tick_ns < deadline_ns:
                until_ns = self.tick_ns
            result = self.process.wait_c(ready, context, until_ns)
            if result != WAIT_TIMED_OUT or until_ns == deadline_ns:
                return result
            self.tick_c()
