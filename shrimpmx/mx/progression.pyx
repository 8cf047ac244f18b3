"""Calls about the endpoint as a whole: progress, wakeups, draining, closing."""

import warnings

from libc.stdint cimport int64_t

from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.handles cimport collect_all
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.lock cimport lock_count_wakeup, lock_enter, lock_leave, lock_wake_all
from shrimpmx.mx.progress cimport next_timer_ns, sends_pending
from shrimpmx.native.clock cimport NEVER_NS

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
