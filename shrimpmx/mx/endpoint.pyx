"""An endpoint of the MX library, and what becomes of its requests.

The calls are MX's: `isend` and `irecv` start a request, `test` and `wait` complete it,
`iprobe` and `probe` look at unexpected messages, `cancel` takes a receive back. Nothing
moves unless the application calls in. A buffer belongs to its request until `test` or
`wait` has returned the request's status.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.mx.core cimport deadline_of
from shrimpmx.mx.handles cimport (
    Partner, Request, Status, StatusFields, partner_of, reap_forgotten, request_bind,
    request_failed, request_finish, request_make, request_take, status_of,
)
from shrimpmx.mx.library cimport Library, count
from shrimpmx.mx.lock cimport lock_enter, lock_forgotten, lock_leave
from shrimpmx.mx.messages cimport MessageCalls
from shrimpmx.mx.partner cimport (
    connect_cancel, connect_known, connect_start, partner_die, partner_make,
)
from shrimpmx.mx.progress cimport progress
from shrimpmx.mx.recv cimport match_cancel, match_unexpected
from shrimpmx.mx.request cimport request_forget
from shrimpmx.mx.send cimport send_limit_resends
from shrimpmx.mx.types cimport (
    REQUEST_CONNECT, REQUEST_DONE, REQUEST_RECEIVE, STATUS_SUCCESS, STATUS_UNREACHABLE, ListLink,
    MxPartner, MxRequest, request_of_ending,
)
from shrimpmx.native.atomics cimport load_relaxed_u32
from shrimpmx.shared.layout cimport SMALL_MAX_BYTES, TINY_MAX_BYTES, COUNTER_moves

from shrimpmx.errors import InputError
from shrimpmx.mx.handles import strerror
from shrimpmx.mx.messages import SEGMENTS_MAX


# -- What becomes of requests: test and wait, peek, cancel, forget.

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


# Between two looks at all endpoints of the process while one connects, ns (ours).
cdef int64_t CONNECT_LOOK_NS = 20_000


# Which unexpected message is asked for; what was found.
cdef struct Probe:
    uint64_t match
    uint64_t mask
    MxRequest *kept


cdef bint found_unexpected(Library library, void *context) noexcept nogil:
    cdef Probe *probe = <Probe *>context
    probe.kept = match_unexpected(library, probe.match, probe.mask)
    return probe.kept != NULL


cdef class Endpoint(CompletionCalls):
    """Endpoint `index` of `node`, opened by the process of `runner`. MX: open_endpoint.

    `waiter` is how it waits (None: it spins); `host` is how time passes (None: the waiter's, or
    the kernel's); a partner that connects must name `key`;
    `agent` is the index of the rank's record in the control segment, whose counters are
    kept (None: the endpoint's own, see `counters`); `busy_poll` if it polls the rx ring itself,
    without waiting for interrupts. For tests: `session_id`, and `first_seqnum`,
    the number that partners give to their first message.
    Raises InputError if the endpoint does not exist, MxError if it is open already.
    """

    def iconnect(self, int node, int endpoint, uint32_t key=0, uint64_t match=0,
                 context=None) -> Request:
        """Ask a remote endpoint for its session; its status has it as `source`. MX: iconnect.

        `match` is for `test_any` and the like. Raises InputError if there is no such address.
        """
        cdef Library library = self.library
        cdef Request handle = request_make(library, None, False, context)
        cdef MxPartner *partner = NULL
        cdef MxRequest *request = NULL
        self.enter()
        if node >= 0 and 0 <= endpoint <= 255:
            partner = partner_make(library, node, endpoint)
        if partner != NULL:
            request = connect_start(library, partner, key)
            if request != NULL:
                request.mask = match
            self.doorbell_c()
            request_bind(handle, request)
        self.leave()
        if partner == NULL:
            raise InputError(
                f"there is no endpoint {endpoint} of node {node}; nodes are 0 to "
                f"{library.settings.nodes_count - 1}, endpoints 0 to 255")
        if request == NULL:
            request_failed(handle)
        return handle

    def connect(self, int node, int endpoint, uint32_t key=0, timeout_ns=None) -> Partner:
        """Connect to a remote endpoint and return it as a partner to send to. MX: connect.

        Raises MxError with status "bad-connection-key", "bad-endpoint", "endpoint-closed",
        "remote-endpoint-unreachable", after `timeout_ns` "timeout", after a `wakeup` "woken".
        Meanwhile every open endpoint of this process makes progress, since it may be one of
        them that has to answer (Open-MX: OMX_CONNECT_POLLALL); but none whose unexpected handler
        is running, which may be the caller.
        """
        cdef uint32_t wakeups = self.library.lock.wakeups
        cdef Request handle = self.iconnect(node, endpoint, key)
        try:
            if len(self.library.siblings) > 1:
                status = self.wait_polling_all(handle, timeout_ns, wakeups)
            else:
                status = self.wait(handle, timeout_ns)
        except BaseException:
            self.cancel(handle)
            raise
        if status is None:
            self.cancel(handle)
            if self.library.lock.wakeups != wakeups:
                self.fail("the wait was ended by a wakeup", "woken")
            self.fail(
                f"endpoint {endpoint} of node {node} did not answer within {timeout_ns} ns",
                "timeout")
        if status.code != "success":
            self.fail(
                f"cannot connect to endpoint {endpoint} of node {node}: {strerror(status.code)}",
                status.code)
        return status.source

    def introduce(self, Endpoint other not None) -> Partner:
        """Connect to an endpoint that this process has open too, without packets: both learn what a
        request and its reply would have told. For simulated ranks of one process.
        """
        cdef MxPartner *partner
        other.check_open()
        self.enter()
        partner = connect_known(self.library, other.library)
        self.leave()
        if partner == NULL:
            raise MemoryError("not enough memory for another partner")
        return partner_of(self.library, partner)

    cdef object wait_polling_all(self, Request handle, object timeout_ns, uint32_t wakeups):
        cdef Library library
        cdef int64_t deadline_ns
        deadline_ns = deadline_of(self.host.now_c(), timeout_ns)
        while True:
            status = self.test(handle)
            if (
                status is not None
                or self.library.lock.wakeups != wakeups
                or self.library.now_ns >= deadline_ns
            ):
                return status
            for library in list(self.library.siblings):
                # A handler's thread has the lock of its endpoint until it returns. Two handlers
                # that connect would wait for each other's, hence not even another thread's.
                if library is not self.library and library.handler_thread == 0:
                    lock_enter(library)
                    if library.opened and not library.progression_disabled:
                        progress(library)
                    lock_leave(library)
            if load_relaxed_u32(&self.control.header.stop) != 0:
                raise self.host.ended(
                    f"the run was stopped while endpoint {self.index} of node "
                    f"{self.node.index} connected")
            self.host.sleep(CONNECT_LOOK_NS)

    def iprobe(self, uint64_t match=0, uint64_t mask=ALL_BITS):
        """The Status of the oldest unexpected message that fits, or None. One pass. MX: iprobe.

        Raises MxError "bad-match-mask" as `irecv` does.
        """
        return self.look(match, mask, False, None)

    def probe(self, uint64_t match=0, uint64_t mask=ALL_BITS, timeout_ns=None):
        """Wait for an unexpected message that fits. MX: probe.

        None after `timeout_ns`, or a `wakeup`. Raises MxError "bad-match-mask" as `irecv` does.
        """
        return self.look(match, mask, True, timeout_ns)

    cdef object look(self, uint64_t match, uint64_t mask, bint blocking,
                     object timeout_ns):
        cdef Probe probe
        cdef StatusFields fields
        cdef bint found
        self.check_mask(match, mask)
        probe.match = match
        probe.mask = mask
        self.enter()
        try:
            if blocking:
                found = self.wait_for(found_unexpected, &probe, timeout_ns)
            else:
                self.make_pass()
                found = found_unexpected(self.library, &probe)
            if found:
                fields.partner = probe.kept.partner
                fields.match = probe.kept.match
                fields.length = probe.kept.length
                fields.transferred = 0
                fields.status = STATUS_SUCCESS
        finally:
            self.leave()
        return status_of(self.library, &fields, None) if found else None

    def disconnect(self, Partner partner not None) -> None:
        """End the conversation with a partner. MX: disconnect.

        What is in flight either way ends with "remote-endpoint-unreachable", and so does every
        later send, until the next connect.
        """
        self.check_partner(partner)
        self.enter()
        partner_die(self.library, partner.partner, STATUS_UNREACHABLE)
        self.leave()

    def register_unexp_handler(self, handler) -> None:
        """Ask `handler(partner, match, length, data)` about each unexpected message.

        It is called in the middle of a pass, when no posted receive takes a message; `data` is
        a memoryview of the whole payload if that is at hand (tiny, small, a medium message of
        one fragment), else None. It returns CONTINUE: the message waits for a receive; or
        FINISHED: it is dealt with, and a large or synchronous send reports that it was
        truncated. It may not call this endpoint: MxError "handler-running". What it raises goes
        to sys.unraisablehook, and the message waits. None: no handler.
        MX: register_unexp_handler.
        """
        cdef object _replaced  # dropped without the lock
        self.enter()
        _replaced = self.library.unexpected_handler
        self.library.unexpected_handler = handler
        self.leave()

    # -- addresses, and what there is ------------------------------------------

    @property
    def process_core(self):
        """The core of its node that its process runs on, for steering and the ledger; None: not
        told. The code that moves the process sets it; to another core than before counts as a move.
        """
        return self.library.driver.process_core

    @process_core.setter
    def process_core(self, core):
        before = self.library.driver.process_core
        if core is not None and not 0 <= core < self.node.header.cores_count:
            raise InputError(
                f"node {self.node.header.index} has no core {core}; its cores are 0 to "
                f"{self.node.header.cores_count - 1}")
        self.library.driver.process_core = core
        if before is not None and core is not None and core != before:
            count(self.library, COUNTER_moves)

    def get_endpoint_addr(self) -> Partner:
        """This endpoint's own address. MX: get_endpoint_addr. To send to it, connect to it."""
        cdef MxPartner *partner
        self.enter()
        partner = partner_make(self.library, self.node.header.index, self.index)
        self.leave()
        if partner == NULL:
            raise MemoryError("not enough memory for another partner")
        return partner_of(self.library, partner)

    def decompose_endpoint_addr(self, Partner partner not None) -> tuple:
        """Node and endpoint index of an address. MX: decompose_endpoint_addr."""
        return partner.node, partner.endpoint

    def decompose_endpoint_addr2(self, Partner partner not None) -> tuple:
        """The same and the session id, None if not connected. MX: decompose_endpoint_addr2."""
        session = partner.session
        if session is None and self.get_endpoint_addr() is partner:
            session = self.session
        return partner.node, partner.endpoint, session

    def set_endpoint_addr_context(self, Partner partner not None, context) -> None:
        """Keep an object of the application's with a partner. MX: set_endpoint_addr_context."""
        partner.context = context

    def get_endpoint_addr_context(self, Partner partner not None):
        """That object; None at first. MX: get_endpoint_addr_context."""
        return partner.context

    def hostname_of_node(self, int node) -> str:
        """The name of a node. MX: nic_id_to_hostname. InputError if there is none such."""
        if not 0 <= node < <int>self.library.settings.nodes_count:
            raise InputError(
                f"there is no node {node}; nodes are 0 to {self.library.settings.nodes_count - 1}")
        return f"node{node}"

    def node_of_hostname(self, str hostname not None) -> int:
        """The node of that name. MX: hostname_to_nic_id. InputError if there is none such."""
        for node in range(<int>self.library.settings.nodes_count):
            if hostname == f"node{node}":
                return node
        raise InputError(
            f"there is no node {hostname!r}; nodes are node0 to "
            f"node{self.library.settings.nodes_count - 1}")

    def get_info(self) -> dict:
        """Limits and sizes, by name. MX: get_info. Lengths are bytes."""
        cdef Library library = self.library
        return {
            "api": 0x301,
            "node": self.node.header.index,
            "nodes": library.settings.nodes_count,
            "endpoint": self.index,
            "endpoints": self.node.header.endpoints_count,
            "session": library.session,
            "mtu": self.node.header.geometry.mtu_bytes,
            "tiny_max": TINY_MAX_BYTES,
            "small_max": SMALL_MAX_BYTES,
            "medium_frag": self.node.header.geometry.medium_frag_bytes,
            "medium_frags_max": self.node.header.geometry.medium_frags_max,
            "eager_max": library.settings.eager_max,
            "segments_max": SEGMENTS_MAX,
            "early_window": library.settings.early_window,
            "throttle": library.settings.throttle,
            "zombies_max": library.settings.zombies_max,
            "resends_max": library.send.resends_max,
            "resend_delay_ns": library.settings.resend_delay_ns,
            "ack_delay_ns": library.settings.ack_delay_ns,
        }
