"""What becomes of requests: test and wait, peek, cancel, forget."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mx.connect cimport connect_cancel
from shrimpmx.mx.handles cimport (
    Request, Status, StatusFields, reap_forgotten, request_finish, request_take,
)
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.lock cimport lock_forgotten, lock_leave
from shrimpmx.mx.match cimport match_cancel
from shrimpmx.mx.messages cimport MessageCalls
from shrimpmx.mx.request cimport request_forget
from shrimpmx.mx.send cimport send_limit_resends
from shrimpmx.mx.types cimport (
    REQUEST_CONNECT, REQUEST_DONE, REQUEST_RECEIVE, ListLink, MxRequest, request_of_ending,
)

from shrimpmx.errors import InputError

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef uint64_t ALL_BITS = <uint64_t>0xFFFFFFFFFFFFFFFF

# Which completed request is asked for; what was found.
cdef struct Wanted:
    uint64_t match
    uint64_t mask
    MxRequest *request


cdef inline uint64_t match_of(const MxRequest *request) noexcept nogil:
    return request.mask if request.kind == REQUEST_CONNECT else request.match


cdef bint found_completed(Library library, void *context) noexcept nogil:
    """The oldest completed request that fits, among those that Python calls started."""
    cdef Wanted *wanted = <Wanted *>context
    cdef ListLink *link = library.request.completed.next
    while link != &library.request.completed:
        wanted.request = request_of_ending(link)
        if wanted.request.owner != NULL and wanted.match == (
            wanted.mask & match_of(wanted.request)
        ):
            return True
        link = link.next
    wanted.request = NULL
    return False


cdef bint found_over(Library library, void *context) noexcept nogil:
    """Whether a Request is done, or another thread ended it: its MxRequest is another's then."""
    cdef MxRequest *request = (<Request>context).request
    return request == NULL or request.flags & REQUEST_DONE != 0


cdef Status status_of_ended(Request handle):
    """The status of a request that a call has taken; in another thread it may just be making it."""
    while handle.status is None:
        PyErr_CheckSignals()
        with nogil:
            sched_yield()
    return handle.status


cdef class CompletionCalls(MessageCalls):
    """Completion of an endpoint's requests."""

    def test(self, Request request not None):
        """The request's Status if it is done, else None; makes a pass if it is not. MX: test."""
        if request.request == NULL:
            return request.status
        self.check_own(request)
        self.enter()
        if request.request != NULL:
            if not request.request.flags & REQUEST_DONE:
                self.make_pass()
            if request.request.flags & REQUEST_DONE:
                return self.take(request)
        self.leave()
        return request.status

    def wait(self, Request request not None, timeout_ns=None):
        """Wait for the request's Status; None after `timeout_ns`, or a `wakeup`. MX: wait.

        If another thread ends the request, its status is returned as well. A `timeout_ns` below
        0 counts as 0. Raises AbortedError if the run is stopped meanwhile.
        """
        if request.request == NULL:
            return status_of_ended(request)
        self.check_own(request)
        self.enter()
        try:
            if not found_over(self.library, <void *>request):
                self.wait_for(found_over, <void *>request, timeout_ns)
        except BaseException:
            self.leave()
            raise
        if request.request == NULL:
            self.leave()
            return status_of_ended(request)
        # What remains of a closed endpoint's request is not looked at.
        if self.library.opened and request.request.flags & REQUEST_DONE:
            return self.take(request)
        self.leave()
        return request.status

    cdef Status take(self, Request handle):
        """The status of a done request. Called under the lock, which it gives back."""
        cdef StatusFields fields
        cdef Status status
        request_take(self.library, handle.request, &fields)
        handle.request = NULL
        if self.host.metered:
            self.host.call_ends()
        lock_leave(self.library)
        # Before the forgotten ones, whose objects may run any code: others wait for the status.
        status = request_finish(handle, &fields)
        if lock_forgotten(self.library):
            reap_forgotten(self.library)
        return status

    def test_any(self, uint64_t match=0, uint64_t mask=0):
        """The Status of the oldest completed request that fits, or None; one pass. MX: test_any.

        A request fits if `match == (mask & its match)`: the message's for sends and receives,
        iconnect's own for connects. By default all do. That request is over: its `test`
        returns the same status. Raises MxError "bad-match-mask" as `irecv` does.
        """
        return self.completed(match, mask, True, False, None)

    def wait_any(self, uint64_t match=0, uint64_t mask=0, timeout_ns=None):
        """The same, and waits for one. MX: wait_any. None after `timeout_ns`, or a `wakeup`."""
        return self.completed(match, mask, True, True, timeout_ns)

    def ipeek(self, uint64_t match=0, uint64_t mask=0):
        """The oldest completed Request that fits, as in `test_any`, or None. MX: ipeek.

        It stays to be tested. Requests are found in the order in which they completed.
        """
        return self.completed(match, mask, False, False, None)

    def peek(self, uint64_t match=0, uint64_t mask=0, timeout_ns=None):
        """The same, and waits for one. MX: peek. None after `timeout_ns`, or a `wakeup`."""
        return self.completed(match, mask, False, True, timeout_ns)

    cdef object completed(self, uint64_t match, uint64_t mask, bint consume,
                          bint blocking, object timeout_ns):
        cdef Wanted wanted
        cdef Request handle
        cdef bint found
        self.check_mask(match, mask)
        wanted.match = match
        wanted.mask = mask
        self.enter()
        try:
            found = found_completed(self.library, &wanted)
            if not found and blocking:
                found = self.wait_for(found_completed, &wanted, timeout_ns)
            elif not found:
                self.make_pass()
                found = found_completed(self.library, &wanted)
        except BaseException:
            self.leave()
            raise
        if not found:
            self.leave()
            return None
        handle = <Request>wanted.request.owner
        if consume:
            return self.take(handle)
        self.leave()
        return handle

    def ibuffered(self, Request request not None) -> bool:
        """Whether a send's buffer may be used again, though it is not acknowledged. MX: ibuffered.

        The library has copied it, or it is acknowledged; then the request is done as well.
        Makes no pass.
        """
        cdef bint done
        if request.request == NULL:
            return True
        self.check_own(request)
        self.enter()
        done = request.request == NULL or request.request.flags & REQUEST_DONE != 0
        self.leave()
        return done

    def cancel(self, Request request not None) -> bool:
        """Take a receive back that has matched nothing yet, or a connect. MX: cancel.

        False if it is too late, and for every send: that cannot be taken back. The request is
        over, with status "cancelled".
        """
        cdef int taken
        self.check_own(request)
        if request.request == NULL:
            return False
        self.enter()
        taken = self.take_back(request)
        if taken:
            self.take(request)
        else:
            self.leave()
        return taken != 0

    def cancel_notest(self, Request request not None) -> bool:
        """The same, but `test_any` and the like will find the request. MX: cancel_notest."""
        cdef int taken
        self.check_own(request)
        if request.request == NULL:
            return False
        self.enter()
        taken = self.take_back(request)
        self.leave()
        return taken != 0

    cdef int take_back(self, Request request) except -1:
        cdef MxRequest *started = request.request
        if started == NULL or started.flags & REQUEST_DONE:
            return 0
        if started.kind == REQUEST_CONNECT:
            connect_cancel(self.library, started)
            return 1
        return started.kind == REQUEST_RECEIVE and match_cancel(self.library, started)

    def forget(self, Request request not None) -> None:
        """The caller will not test it: it ends by itself when it is done. MX: forget.

        Until then it keeps its buffer. `test` and `wait` return its status once it has ended.
        """
        self.check_own(request)
        if request.request == NULL:
            return
        self.enter()
        if request.request != NULL:
            request_forget(self.library, request.request)
        self.leave()

    def context(self, Request request not None):
        """What the request was started with. MX: context."""
        return request.context

    def set_request_timeout(self, Request request, timeout_ns) -> None:
        """Give up `request`, or with None every request of the endpoint, after `timeout_ns`.

        A message that is not answered after ceil(2 * ms / 1024) resends is given up, and its
        partner with it: its requests end with "remote-endpoint-unreachable". None: the
        endpoint's limit (mx.resends_max). MX: set_request_timeout, in ms there. Raises
        InputError for a time that is not positive, or another endpoint's request.
        """
        cdef uint32_t resends = self.library.settings.resends_max
        if request is not None:
            self.check_own(request)
        if timeout_ns is not None:
            if not 0 < timeout_ns <= 0xFFFFFFFF * 512_000_000:
                raise InputError(f"a timeout must be positive, but is {timeout_ns} ns")
            resends = -(-timeout_ns // 512_000_000)
        self.enter()
        if request is None:
            send_limit_resends(self.library, resends)
        elif request.request != NULL:
            request.request.resends_max = resends
        self.leave()
