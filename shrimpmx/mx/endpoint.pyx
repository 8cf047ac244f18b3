"""An endpoint of the MX library.

The calls are MX's: `isend` and `irecv` start a request, `test` and `wait` complete it,
`iprobe` and `probe` look at unexpected messages, `cancel` takes a receive back. Nothing
moves unless the application calls in. A buffer belongs to its request until `test` or
`wait` has returned the request's status.
"""

import warnings

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.mx.ack cimport ack_flush_all
from shrimpmx.mx.connect cimport connect_cancel, connect_start
from shrimpmx.mx.handles cimport (
    Partner, Request, collect_all, partner_of, request_bind, request_collect, request_make,
    status_make,
)
from shrimpmx.mx.library cimport Library, request_release
from shrimpmx.mx.match cimport match_cancel, match_receive, match_unexpected
from shrimpmx.mx.partner cimport partner_make
from shrimpmx.mx.progress cimport (
    next_timer_ns, progress, wake_condition_open, wake_condition_ready,
)
from shrimpmx.mx.send cimport send_start
from shrimpmx.mx.types cimport (
    EAGER_MAX_BYTES, REQUEST_CONNECT, REQUEST_DONE, MxPartner, MxRequest, link_empty,
)
from shrimpmx.native.atomics cimport cpu_pause, load_relaxed_u32
from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL, NEVER_NS, clock_now_ns
from shrimpmx.native.trace cimport TRACE_wait_begin, TRACE_wait_end, Trace, trace_record
from shrimpmx.shared.node cimport Node
from shrimpmx.wait.strategy cimport WAIT_READY, WAIT_STOPPED, WAIT_TIMED_OUT, WaitResult
from shrimpmx.wait.waiter cimport Waiter

from shrimpmx.errors import AbortedError, InputError, MxError
from shrimpmx.params import MxParameters

cdef uint64_t ALL_BITS = <uint64_t>0xFFFFFFFFFFFFFFFF
# How often a Python wait looks for signals such as Ctrl-C, ns.
cdef int64_t SIGNAL_CHECK_NS = 500_000_000


cdef class Endpoint:
    """Endpoint `index` of `node`, opened by the process of `runner`.

    `waiter` is how it waits (None: it spins); `key` must be named by whoever connects;
    `agent` is the index of the rank's record in the control segment, whose counters are
    kept (None: the endpoint's own, see `counters`). For tests: `session_id`, and `first_seqnum`,
    the number that partners give to their first message.
    Raises InputError if the endpoint does not exist, MxError if it is open already.
    """

    def __init__(self, Node node not None, int index, int runner, Waiter waiter=None,
                 parameters=None, key=0, agent=None, session_id=None, first_seqnum=1):
        cdef DriverEndpoint driver = DriverEndpoint(node, index, runner)
        self.node = node
        self.control = node.control
        self.waiter = waiter
        self.index = index
        self.library = Library(node, driver, parameters or MxParameters(), key, agent,
                               first_seqnum)
        driver.counters = self.library.counters
        self.library.open(session_id)
        wake_condition_open(&self.wake, self.library)

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what happens to its messages, in the ring of agent `number`."""
        self.library.trace = trace.checked_ring(number)
        self.library.tracing = trace

    # -- compiled face ---------------------------------------------------------

    cdef MxRequest *isend_c(self, MxPartner *partner, const void *data, uint32_t length,
                            uint64_t match) noexcept nogil:
        return send_start(self.library, partner, data, length, match)

    cdef MxRequest *irecv_c(self, void *data, uint32_t capacity, uint64_t match,
                            uint64_t mask) noexcept nogil:
        return match_receive(self.library, data, capacity, match, mask)

    cdef void doorbell_c(self) noexcept nogil:
        if self.library.doorbell_wanted:
            self.library.doorbell_wanted = False
            self.library.driver.doorbell()

    cdef void flush_c(self) noexcept nogil:
        ack_flush_all(self.library)
        self.doorbell_c()

    cdef int progress_c(self) noexcept nogil:
        return progress(self.library)

    cdef bint test_c(self, MxRequest *request) noexcept nogil:
        if not request.flags & REQUEST_DONE:
            progress(self.library)
        return request.flags & REQUEST_DONE != 0

    cdef WaitResult wait_c(self, MxRequest *request, int64_t deadline_ns) noexcept nogil:
        # Open-MX's steps (omx_test.c): progress, test, then wait; and again.
        cdef WaitResult result
        while not request.flags & REQUEST_DONE:
            progress(self.library)
            if request.flags & REQUEST_DONE:
                break
            if self.library.now_ns >= deadline_ns:
                return WAIT_TIMED_OUT
            result = self.idle_c(deadline_ns)
            if result == WAIT_STOPPED:
                return WAIT_STOPPED
        return WAIT_READY

    cdef void release_c(self, MxRequest *request) noexcept nogil:
        request_release(self.library, request)

    cdef WaitResult idle_c(self, int64_t deadline_ns) noexcept nogil:
        cdef int64_t until_ns = min(deadline_ns, next_timer_ns(self.library))
        cdef uint32_t turns = 0
        if self.waiter is not None:
            if self.library.trace != NULL:
                return self.traced_wait(until_ns)
            return self.waiter.wait(wake_condition_ready, &self.wake, until_ns)
        while not wake_condition_ready(&self.wake):
            cpu_pause()
            turns += 1
            if turns % 16 == 0:
                if load_relaxed_u32(&self.control.header.stop) != 0:
                    return WAIT_STOPPED
                if clock_now_ns(self.library.clock) >= until_ns:
                    return WAIT_TIMED_OUT
        return WAIT_READY

    cdef WaitResult traced_wait(self, int64_t until_ns) noexcept nogil:
        cdef uint64_t blocks = self.waiter.environment.account.blocks
        cdef WaitResult result
        trace_record(self.library.trace, clock_now_ns(self.library.clock), TRACE_wait_begin,
                     self.index, 0)
        result = self.waiter.wait(wake_condition_ready, &self.wake, until_ns)
        trace_record(self.library.trace, clock_now_ns(self.library.clock), TRACE_wait_end,
                     <uint64_t>(result + 1), self.waiter.environment.account.blocks - blocks)
        return result

    # -- Python face -----------------------------------------------------------

    cdef int check_open(self) except -1:
        if not self.library.opened:
            raise MxError(f"endpoint {self.index} of node {self.node.index} is closed",
                          "endpoint-closed")
        return 0

    @property
    def session(self):
        """The session id drawn when the endpoint was opened."""
        return self.library.session

    def counters(self) -> dict:
        """The library's and the driver's send counters, by name."""
        return self.library.counter_values()

    def connect_start(self, int node, int endpoint, key=0) -> Request:
        """Ask a remote endpoint for its session; the status of `test` has it as `source`."""
        cdef Request handle
        cdef MxPartner *partner = NULL
        self.check_open()
        if node >= 0 and 0 <= endpoint <= 255:
            partner = partner_make(self.library, node, endpoint)
        if partner == NULL:
            raise InputError(
                f"there is no endpoint {endpoint} of node {node}; nodes are 0 to "
                f"{self.library.nodes_count - 1}, endpoints 0 to 255")
        handle = request_make(self.library, None, False)
        request_bind(handle, connect_start(self.library, partner, key))
        self.doorbell_c()
        return handle

    def connect(self, int node, int endpoint, key=0, timeout_ns=None) -> Partner:
        """Connect to a remote endpoint and return it as a partner to send to.

        Raises MxError with status "bad-connection-key", "bad-endpoint", "endpoint-closed",
        "remote-endpoint-unreachable" or, after `timeout_ns`, "timeout".
        """
        cdef Request handle = self.connect_start(node, endpoint, key)
        status = self.wait_in_slices(handle, timeout_ns)
        if status is None:
            connect_cancel(self.library, handle.request)
            request_collect(handle)
            raise MxError(
                f"endpoint {endpoint} of node {node} did not answer within {timeout_ns} ns",
                "timeout")
        if status.code != "success":
            raise MxError(
                f"cannot connect to endpoint {endpoint} of node {node}: {status.code}",
                status.code)
        return status.source

    def isend(self, buffer, Partner partner not None, uint64_t match) -> Request:
        """Start sending `buffer` (contiguous bytes; None: empty) to `partner`.

        Raises InputError if it is longer than an eager message (32768 bytes).
        """
        cdef Request handle
        self.check_open()
        if partner.library is not self.library:
            raise InputError("the partner belongs to another endpoint; connect from this one")
        handle = request_make(self.library, buffer, False)
        if handle.view.len > EAGER_MAX_BYTES:
            raise InputError(
                f"a message of {handle.view.len} bytes is longer than an eager message can be "
                f"({EAGER_MAX_BYTES} bytes); split it")
        request_bind(handle, send_start(
            self.library, partner.partner, handle.view.buf, <uint32_t>handle.view.len, match))
        self.doorbell_c()
        return handle

    def irecv(self, buffer, uint64_t match, uint64_t mask=ALL_BITS) -> Request:
        """Start receiving into `buffer` (writable, contiguous; None: empty).

        Takes the oldest message with `match == (mask & its match)`. Raises MxError
        "bad-match-mask" if `match` has bits outside `mask`.
        """
        cdef Request handle
        self.check_open()
        check_mask(match, mask)
        handle = request_make(self.library, buffer, True)
        request_bind(handle, match_receive(
            self.library, handle.view.buf, <uint32_t>min(handle.view.len, 0x7FFFFFFF), match,
            mask))
        return handle

    def test(self, Request request not None):
        """The request's Status if it is done, else None; makes a pass if it is not."""
        if request.request == NULL:
            return request.status
        self.check_own(request)
        if self.test_c(request.request):
            return request_collect(request)
        return None

    def wait(self, Request request not None, timeout_ns=None):
        """Wait for the request's Status; None if `timeout_ns` passed first.

        Raises AbortedError if the run is stopped meanwhile.
        """
        if request.request == NULL:
            return request.status
        self.check_own(request)
        if self.test_c(request.request):
            return request_collect(request)
        return self.wait_in_slices(request, timeout_ns)

    cdef object wait_in_slices(self, Request handle, object timeout_ns):
        cdef int64_t now_ns = clock_now_ns(self.library.clock)
        cdef int64_t deadline_ns = NEVER_NS if timeout_ns is None else now_ns + <int64_t>timeout_ns
        cdef MxRequest *request = handle.request
        cdef WaitResult result
        self.check_can_wait()
        while True:
            with nogil:
                result = self.wait_c(request, min(deadline_ns, now_ns + SIGNAL_CHECK_NS))
            now_ns = self.library.now_ns
            if result == WAIT_READY:
                return request_collect(handle)
            self.check_stopped(result)
            if now_ns >= deadline_ns:
                return None

    def iprobe(self, uint64_t match, uint64_t mask=ALL_BITS):
        """The Status of the oldest unexpected message that fits, or None. One pass."""
        cdef MxRequest *kept
        self.check_open()
        check_mask(match, mask)
        progress(self.library)
        kept = match_unexpected(self.library, match, mask)
        if kept == NULL:
            return None
        return status_make("success", partner_of(self.library, kept.partner), kept.match,
                           kept.length, 0)

    def probe(self, uint64_t match, uint64_t mask=ALL_BITS, timeout_ns=None):
        """Wait for an unexpected message that fits; None if `timeout_ns` passed first."""
        cdef int64_t now_ns = clock_now_ns(self.library.clock)
        cdef int64_t deadline_ns = NEVER_NS if timeout_ns is None else now_ns + <int64_t>timeout_ns
        cdef WaitResult result
        while True:
            status = self.iprobe(match, mask)
            now_ns = self.library.now_ns
            if status is not None or now_ns >= deadline_ns:
                return status
            self.check_can_wait()
            with nogil:
                result = self.idle_c(min(deadline_ns, now_ns + SIGNAL_CHECK_NS))
            self.check_stopped(result)

    def cancel(self, Request request not None) -> bool:
        """Take a receive back that has matched nothing yet, or a connect; False if too late.

        The cancelled request is done, with status "cancelled".
        """
        if request.request == NULL:
            return False
        self.check_own(request)
        if request.request.kind == REQUEST_CONNECT:
            if request.request.flags & REQUEST_DONE:
                return False
            connect_cancel(self.library, request.request)
            return True
        return match_cancel(self.library, request.request)

    def progress(self) -> int:
        """One pass over events, resends and acknowledgements; returns the events taken."""
        self.check_open()
        return progress(self.library)

    @property
    def next_timer_ns(self):
        """When the library next wants a pass though nothing comes, ns; None if never."""
        cdef int64_t timer_ns = next_timer_ns(self.library)
        return None if timer_ns == NEVER_NS else timer_ns

    def drain(self, timeout_ns=None) -> bool:
        """Wait until all that was sent is acknowledged; False if `timeout_ns` passed first."""
        cdef int64_t now_ns = clock_now_ns(self.library.clock)
        cdef int64_t deadline_ns = NEVER_NS if timeout_ns is None else now_ns + <int64_t>timeout_ns
        cdef WaitResult result
        self.check_open()
        while True:
            progress(self.library)
            if link_empty(&self.library.resend) and link_empty(&self.library.starved):
                return True
            now_ns = self.library.now_ns
            if now_ns >= deadline_ns:
                return False
            self.check_can_wait()
            with nogil:
                result = self.idle_c(min(deadline_ns, now_ns + SIGNAL_CHECK_NS))
            self.check_stopped(result)

    def close(self) -> None:
        """Send the acknowledgements that are owed and close.

        Requests that are not done end with "endpoint-closed". Closing twice is harmless.
        """
        if not self.library.opened:
            return
        self.flush_c()
        collect_all(self.library, "endpoint-closed")
        self.library.driver.close()
        self.library.close()

    def __del__(self):
        # Its requests keep themselves and their buffers, so nothing else would ever end them.
        if self.library is not None and self.library.opened:
            warnings.warn(f"endpoint {self.index} was not closed", ResourceWarning, source=self)
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    cdef int check_own(self, Request request) except -1:
        if request.library is not self.library:
            raise InputError("the request belongs to another endpoint")
        return 0

    cdef int check_can_wait(self) except -1:
        if self.waiter is None and self.library.clock.kind == CLOCK_KIND_VIRTUAL:
            raise InputError("nothing moves a virtual clock during a wait; use test and progress")
        return 0

    cdef int check_stopped(self, WaitResult result) except -1:
        PyErr_CheckSignals()
        if result == WAIT_STOPPED:
            raise AbortedError(
                f"the run was stopped while endpoint {self.index} of node {self.node.index} "
                "waited")
        return 0


cdef inline int check_mask(uint64_t match, uint64_t mask) except -1:
    if match & ~mask:
        raise MxError(
            f"match {match:#x} has bits outside the mask {mask:#x}; it could match nothing",
            "bad-match-mask")
    return 0
