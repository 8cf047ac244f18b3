"""What all calls of an endpoint stand on: the library, its lock, waiting; progress and closing.

The compiled calls (`*_c`) are for workloads with one thread; the Python calls of the classes
above take the lock (lock.pxd). A Python wait makes a pass, spins for some microseconds with
the GIL held if its strategy spins, then lets lock and GIL go and waits by its strategy.
"""

import warnings

from cpython.exc cimport PyErr_CheckSignals
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices
from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.host.rx_poll cimport BusyPoll
from shrimpmx.mx.handles cimport Request, collect_all, reap_forgotten
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.lock cimport (
    lock_count_wakeup, lock_enter, lock_forgotten, lock_leave, lock_open, lock_sleep, lock_wake_all,
    lock_woken,
)
from shrimpmx.mx.partner cimport ack_flush_all
from shrimpmx.mx.progress cimport library_ready, next_timer_ns, progress, sends_pending
from shrimpmx.mx.recv cimport match_receive
from shrimpmx.mx.request cimport request_release
from shrimpmx.mx.send cimport send_start
from shrimpmx.mx.types cimport REQUEST_DONE, MxPartner, MxRequest, list_empty
from shrimpmx.native.atomics cimport load_acquire_u32, load_relaxed_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.trace cimport TRACE_wait_begin, TRACE_wait_end, Trace, trace_record
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.node cimport Node
from shrimpmx.wait.strategies cimport SpinThen
from shrimpmx.wait.waiter cimport (
    WAIT_READY, WAIT_STOPPED, WAIT_TIMED_OUT, WaitResult, Waiter, ready_function,
)

from shrimpmx.errors import InputError, MxError
from shrimpmx.shared.host import host_of


cdef:
    # How often a Python wait looks for signals such as Ctrl-C, ns.
    int64_t SIGNAL_CHECK_NS = 500_000_000
    # A wait that ends so much later than its time is that of a process that stood still (ours).
    int64_t STANDSTILL_NS = 1_000_000_000
    # How long it spins before it lets the GIL go, ns. Giving the GIL back and taking it again
    # costs 50 ns and more; other threads of the process wait for that long (ours).
    int64_t HELD_SPIN_NS = 20_000

# What a thread sleeps for: the rings, or something that another thread did.
cdef struct News:
    void *library
    const uint32_t *event_index
    uint32_t seen


cdef bint news_ready(void *context) noexcept nogil:
    cdef News *news = <News *>context
    # N2: pairs with N1 in lock.pyx.
    if load_acquire_u32(news.event_index) != news.seen:
        return True
    return library_ready(news.library)


cdef void await_event(Host host, Library library) noexcept nogil:
    """Tell the host whether only an event of this endpoint, or the time, can end the wait that goes
    on: looks for anything else are in vain. No other thread of the process acts meanwhile where
    that matters, on simulated hosts.
    """
    if library.busy_poll is None and list_empty(&library.send.starved):
        host.await_event(library.driver.descriptor, library.driver.index,
                         library.driver.events_taken())
    else:
        host.await_event(NULL, 0, 0)


cdef bint found_done(Library library, void *context) noexcept nogil:
    return (<MxRequest *>context).flags & REQUEST_DONE != 0


cdef int64_t deadline_of(int64_t now_ns, object timeout_ns) except -1:
    cdef int overflow = 0
    cdef int64_t timeout
    if timeout_ns is None:
        return NEVER_NS
    timeout = PyLong_AsLongLongAndOverflow(timeout_ns, &overflow)
    if overflow < 0 or (overflow == 0 and timeout < 0):
        return now_ns
    return NEVER_NS if overflow > 0 or timeout > NEVER_NS - now_ns else now_ns + timeout


cdef class EndpointCore:
    """The state of an endpoint and its compiled calls."""

    def __init__(self, Node node not None, int index, int runner, Waiter waiter=None,
                 parameters=None, key=0, agent=None, session_id=None, first_seqnum=1,
                 BusyPoll busy_poll=None, Host host=None):
        cdef DriverEndpoint driver
        self.node = node
        self.control = node.control
        self.waiter = waiter
        self.index = index
        if parameters is None:
            # Loaded on use: ranks have theirs from the plan.
            from shrimpmx.settings.mx import MxParameters

            parameters = MxParameters()
        if host is None:
            host = (host_of(node.control, Prices(vars(parameters))) if waiter is None
                    else waiter.host)
        self.host = host
        driver = DriverEndpoint(node, index, runner, agent, not parameters.disable_shared)
        self.library = Library(node, driver, parameters, key, first_seqnum, host)
        self.held_spin_ns = HELD_SPIN_NS
        if waiter is not None:
            lock_open(self.library, waiter.environment.slot)
            if isinstance(waiter.strategy, SpinThen):
                self.held_spin_ns = min(self.held_spin_ns, (<SpinThen>waiter.strategy).limit_ns)
            elif waiter.strategy.name != "spin":
                self.held_spin_ns = 0
        if busy_poll is not None:
            self.library.busy_poll = busy_poll
            busy_poll.bind(runner, driver.port.tx, self.library.counters, self.library.lock.slot,
                           host)
        self.library.open(session_id)

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what happens to its messages, in the ring of agent `number`."""
        self.library.trace = trace.checked_ring(number)
        self.library.tracing = trace
        if self.waiter is not None:
            self.waiter.use_trace(trace, number)
        if self.library.busy_poll is not None:
            self.library.busy_poll.use_trace(self.library.trace)

    # -- compiled face ---------------------------------------------------------

    cdef MxRequest *isend_c(self, MxPartner *partner, const void *data, uint32_t length,
                            uint64_t match) noexcept nogil:
        return send_start(self.library, partner, data, length, match, False)

    cdef MxRequest *irecv_c(self, void *data, uint32_t capacity, uint64_t match,
                            uint64_t mask) noexcept nogil:
        return match_receive(self.library, data, capacity, match, mask)

    cdef void doorbell_c(self) noexcept nogil:
        self.library.driver.doorbell()

    cdef void flush_c(self) noexcept nogil:
        ack_flush_all(self.library)
        self.doorbell_c()

    cdef int progress_c(self) noexcept nogil:
        return self.look_once()

    cdef bint test_c(self, MxRequest *request) noexcept nogil:
        if not request.flags & REQUEST_DONE:
            self.look_once()
        return request.flags & REQUEST_DONE != 0

    cdef WaitResult wait_c(self, MxRequest *request, int64_t deadline_ns) noexcept nogil:
        # Open-MX's steps (omx_test.c): progress, test, then wait; and again.
        cdef WaitResult result
        while not request.flags & REQUEST_DONE:
            progress(self.library)
            if request.flags & REQUEST_DONE:
                break
            if self.library.now_ns >= deadline_ns:
                self.stop_looking()
                return WAIT_TIMED_OUT
            result = self.idle_c(deadline_ns)
            if result == WAIT_STOPPED:
                return WAIT_STOPPED
        return WAIT_READY

    cdef void release_c(self, MxRequest *request) noexcept nogil:
        request_release(self.library, request)

    cdef WaitResult idle_c(self, int64_t deadline_ns) noexcept nogil:
        cdef uint64_t blocks = self.wait_begins()
        cdef WaitResult result = self.idle(library_ready, <void *>self.library,
                                           min(deadline_ns, next_timer_ns(self.library)))
        self.wait_ended(result, blocks)
        return result

    cdef WaitResult idle(self, ready_function ready, void *context,
                         int64_t until_ns) noexcept nogil:
        cdef WaitResult result
        await_event(self.host, self.library)
        result = self.wait_or_spin(ready, context, until_ns)
        self.host.await_event(NULL, 0, 0)
        return result

    cdef WaitResult wait_or_spin(self, ready_function ready, void *context,
                                 int64_t until_ns) noexcept nogil:
        cdef uint32_t turns = 0
        if self.waiter is not None:
            return self.waiter.wait(ready, context, until_ns)
        while not ready(context):
            if not self.host.pause(until_ns):
                return WAIT_STOPPED
            turns += 1
            if turns % 16 == 0:
                if load_relaxed_u32(&self.control.header.stop) != 0:
                    return WAIT_STOPPED
                if self.host.now_c() >= until_ns:
                    return WAIT_TIMED_OUT
        return WAIT_READY

    cdef uint64_t wait_begins(self) noexcept nogil:
        if self.waiter is None or self.library.trace == NULL:
            return 0
        trace_record(self.library.trace, self.host.now_c(), TRACE_wait_begin, self.index, 0)
        return self.waiter.environment.account.blocks

    cdef void wait_ended(self, WaitResult result, uint64_t blocks) noexcept nogil:
        if self.waiter is not None and self.library.trace != NULL:
            trace_record(self.library.trace, self.host.now_c(), TRACE_wait_end,
                         <uint64_t>(result + 1), self.waiter.environment.account.blocks - blocks)

    # -- under the lock --------------------------------------------------------

    cdef int take_lock(self) except -1:
        # Only in its handler does a thread see its own number here. The lock is not asked first,
        # so that calls without a handler pay for one comparison.
        if self.library.handler_thread == 0:
            return lock_enter(self.library)
        try:
            return lock_enter(self.library)
        except MxError as error:
            refused = error
        self.fail(str(refused), refused.status)
        return 0

    cdef int enter(self) except -1:
        self.take_lock()
        if not self.library.opened:
            lock_leave(self.library)
            self.check_open()
        if self.host.metered:
            self.host.call_begins()
        return 0

    cdef int check_open(self) except -1:
        if not self.library.opened:
            self.fail(f"endpoint {self.index} of node {self.node.index} is closed",
                      "endpoint-closed")
        return 0

    cdef int leave(self) except -1:
        if self.host.metered:
            self.host.call_ends()
        lock_leave(self.library)
        if lock_forgotten(self.library):
            reap_forgotten(self.library)
        return self.host.check() if self.host.failed else 0

    cdef int make_pass(self) noexcept nogil:
        return 0 if self.library.progression_disabled else self.look_once()

    cdef int look_once(self) noexcept nogil:
        """A pass of a caller that does something else if it finds nothing."""
        cdef int taken = progress(self.library)
        if taken == 0:
            self.stop_looking()
            if self.host.metered:
                self.host.looked_in_vain()
        return taken

    cdef void stop_looking(self) noexcept nogil:
        if self.library.busy_poll is not None and not self.library.busy_poll.found:
            self.library.busy_poll.resume()

    cdef int fail(self, str message, str code) except -1:
        if self.error_handler is not None:
            self.error_handler(message, code)
        raise MxError(message, code)

    cdef int wait_for(self, found_function found, void *context, object timeout_ns) except -1:
        cdef Library library = self.library
        cdef int64_t deadline_ns = NEVER_NS
        cdef uint32_t wakeups = library.lock.wakeups
        if library.progression_disabled:
            self.refuse_wait()
        progress(library)
        if found(library, context):
            return 1
        if timeout_ns is not None:
            deadline_ns = deadline_of(library.now_ns, timeout_ns)
            if library.now_ns >= deadline_ns:
                self.stop_looking()
                return 0
        if self.held_spin_ns > 0 and library.lock.waiting == 0:
            if self.spin_held(found, context, deadline_ns):
                return 1
        return self.wait_released(found, context, deadline_ns, wakeups)

    cdef bint spin_held(self, found_function found, void *context,
                        int64_t deadline_ns) noexcept nogil:
        """Spins with the lock held, too short a time to give it back for."""
        cdef bint done
        await_event(self.host, self.library)
        done = self.spin(found, context, deadline_ns)
        self.host.await_event(NULL, 0, 0)
        return done

    cdef bint spin(self, found_function found, void *context,
                   int64_t deadline_ns) noexcept nogil:
        cdef int64_t start_ns = self.library.now_ns
        cdef int64_t until_ns = min(deadline_ns, start_ns + self.held_spin_ns)
        cdef uint32_t turns = 0
        cdef uint64_t blocks = self.wait_begins()
        while True:
            if library_ready(<void *>self.library):
                self.wait_ended(WAIT_READY, blocks)
                progress(self.library)
                await_event(self.host, self.library)
                if found(self.library, context):
                    if self.waiter is not None:
                        self.waiter.environment.account.waits += 1
                        self.waiter.environment.account.while_spinning += 1
                        self.waiter.environment.account.spin_ns += self.library.now_ns - start_ns
                    return True
                if self.library.now_ns >= until_ns:
                    return False
                self.wait_begins()
            turns += 1
            if (not self.host.pause(until_ns)
                    or (turns % 16 == 0 and self.host.now_c() >= until_ns)):
                self.wait_ended(WAIT_TIMED_OUT, blocks)
                return False

    cdef int wait_released(self, found_function found, void *context, int64_t deadline_ns,
                           uint32_t wakeups) except -1:
        cdef Library library = self.library
        cdef WaitResult result
        cdef int64_t began_ns, until_ns
        if self.waiter is not None:
            self.waiter.enter()
        try:
            while True:
                began_ns, until_ns = self.host.now_c(), deadline_ns
                if not self.host.runs_python:
                    until_ns = min(deadline_ns, began_ns + SIGNAL_CHECK_NS)
                # Other code of this thread goes on meanwhile, where threads may ask for the GIL.
                if self.host.runs_python and not self.host.metered:
                    result = self.wait_locked(found, context, until_ns, wakeups)
                else:
                    with nogil:
                        result = self.wait_locked(found, context, until_ns, wakeups)
                if result == WAIT_READY:
                    return 1
                # A signal's handler, or another thread, woke or closed the endpoint.
                if library.lock.wakeups != wakeups:
                    return 0
                # No answer had time to come: the partner may have stood still as well.
                if not self.host.runs_python and library.now_ns - until_ns > STANDSTILL_NS:
                    deadline_ns += min(library.now_ns - began_ns, NEVER_NS - deadline_ns)
                if result == WAIT_TIMED_OUT and library.now_ns >= deadline_ns:
                    self.stop_looking()
                    return 0
                self.check_signals(result)
                if library.lock.wakeups != wakeups:
                    return 0
        finally:
            if self.waiter is not None:
                self.waiter.leave()

    cdef WaitResult wait_locked(self, found_function found, void *context, int64_t deadline_ns,
                                uint32_t wakeups) noexcept nogil:
        cdef News news
        cdef WaitResult result
        cdef int64_t until_ns
        cdef uint64_t blocks
        news.library = <void *>self.library
        news.event_index = &self.library.lock.event_index
        while True:
            progress(self.library)
            if found(self.library, context):
                return WAIT_READY
            if self.library.now_ns >= deadline_ns:
                return WAIT_TIMED_OUT
            news.seen = self.library.lock.event_index
            until_ns = min(deadline_ns, next_timer_ns(self.library))
            blocks = self.wait_begins()
            lock_sleep(self.library, until_ns)
            result = self.idle(news_ready, &news, until_ns)
            lock_woken(self.library)
            self.wait_ended(result, blocks)
            if result == WAIT_STOPPED:
                return WAIT_STOPPED
            if self.library.lock.wakeups != wakeups:
                return WAIT_TIMED_OUT

    cdef int check_own(self, Request request) except -1:
        if request.library is not self.library:
            raise InputError("the request belongs to another endpoint")
        return 0

    cdef int refuse_wait(self) except -1:
        lock_leave(self.library)
        try:
            self.fail("the call would wait, but progression is disabled", "progression-disabled")
        finally:
            lock_enter(self.library)
        return 0

    cdef int check_signals(self, WaitResult result) except -1:
        """Without the lock, since a signal's handler may call this endpoint."""
        lock_leave(self.library)
        try:
            PyErr_CheckSignals()
        finally:
            lock_enter(self.library)
        if result == WAIT_STOPPED:
            raise self.host.ended(
                f"the run was stopped while endpoint {self.index} of node {self.node.index} "
                "waited")
        return 0


# -- Calls about the endpoint as a whole: progress, wakeups, draining, closing.

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept


cdef bint found_drained(Library library, void *context) noexcept nogil:
    return not sends_pending(library)


cdef class ProgressionCalls(EndpointCore):
    """Progress and the end of an endpoint."""

    @property
    def session(self):
        """The session id drawn when the endpoint was opened, 32 bits."""
        return self.library.session

    def counters(self) -> dict:
        """The library's and the driver's send counters, by name."""
        return self.library.counter_values()

    def progress(self) -> int:
        """One pass over events, resends and acknowledgements; returns the events taken.

        MX: progress. Raises MxError "endpoint-closed".
        """
        cdef int taken
        self.enter()
        taken = self.make_pass()
        self.leave()
        return taken

    def wakeup(self) -> None:
        """Let every thread that is blocked in a call of this endpoint return, with no result.

        `wait`, `wait_any`, `peek` and `probe` return None, `connect`, `send` and `recv` raise
        MxError "woken". Their requests go on. MX: wakeup.
        """
        self.enter()
        lock_wake_all(self.library)
        self.leave()

    def disable_progression(self) -> None:
        """Calls make no passes until `reenable_progression`. MX: disable_progression.

        They see what is done already; one that would have to wait raises MxError
        "progression-disabled". The partners get no acknowledgements meanwhile.
        """
        self.enter()
        self.library.progression_disabled = True
        self.leave()

    def reenable_progression(self) -> None:
        """Calls make passes again. MX: reenable_progression."""
        self.enter()
        self.library.progression_disabled = False
        self.leave()

    def set_error_handler(self, handler) -> None:
        """Call `handler(message, code)` before a call raises MxError. MX: set_error_handler.

        What it raises is raised instead. None: no handler. In MX the default handler ends the
        program; here the exception is that.
        """
        self.error_handler = handler

    @property
    def next_timer_ns(self):
        """When the library next wants a pass though nothing comes, ns; None if never."""
        cdef int64_t timer_ns
        if not self.library.opened:
            return None
        self.enter()
        timer_ns = next_timer_ns(self.library)
        self.leave()
        return None if timer_ns == NEVER_NS else timer_ns

    def drain(self, timeout_ns=None) -> bool:
        """Wait until all that was sent is acknowledged; False if `timeout_ns` passed first.

        A `timeout_ns` below 0 counts as 0, here and in every call that waits.
        """
        cdef bint drained
        self.enter()
        try:
            drained = self.wait_for(found_drained, NULL, timeout_ns)
        finally:
            self.leave()
        return drained

    def close(self) -> None:
        """Send the acknowledgements that are owed and close. MX: close_endpoint.

        Requests that are not done end with "endpoint-closed"; threads that wait return as by
        `wakeup`. Closing twice is harmless, also at the same time.
        """
        cdef Library library = self.library
        self.take_lock()
        while library.opened and library.lock.waiting > 0:
            lock_wake_all(library)
            lock_leave(library)
            with nogil:
                sched_yield()
            lock_enter(library)
        if not library.opened:
            lock_leave(library)
            return
        lock_count_wakeup(library)  # for a wait that looks at signals now and is not counted
        self.flush_c()
        if library.busy_poll is not None:
            library.busy_poll.resume()
        library.opened = False
        lock_leave(library)
        # First, since handlers and pulls write to the buffers until then.
        library.driver.close()
        collect_all(library, "endpoint-closed")
        library.close()

    def __del__(self):
        # Its requests keep themselves and their buffers, so nothing else would ever end them.
        if self.library is not None and self.library.opened:
            warnings.warn(f"endpoint {self.index} was not closed", ResourceWarning, source=self)
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
