"""An endpoint of the MX library.

The calls are MX's: `isend` and `irecv` start a request, `test` and `wait` complete it,
`iprobe` and `probe` look at unexpected messages, `cancel` takes a receive back. Nothing
moves unless the application calls in. A buffer belongs to its request until `test` or
`wait` has returned the request's status.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.mx.completion cimport CompletionCalls
from shrimpmx.mx.connect cimport connect_known, connect_start
from shrimpmx.mx.core cimport deadline_of
from shrimpmx.mx.handles cimport (
    Partner, Request, StatusFields, partner_of, request_bind, request_failed, request_make,
    status_of,
)
from shrimpmx.mx.library cimport Library, count
from shrimpmx.mx.lock cimport lock_enter, lock_leave
from shrimpmx.mx.match cimport match_unexpected
from shrimpmx.mx.partner cimport partner_die, partner_make
from shrimpmx.mx.progress cimport progress
from shrimpmx.mx.types cimport STATUS_SUCCESS, STATUS_UNREACHABLE, MxPartner, MxRequest
from shrimpmx.native.atomics cimport load_relaxed_u32
from shrimpmx.shared.layout cimport COUNTER_moves, SMALL_MAX_BYTES, TINY_MAX_BYTES

from shrimpmx.errors import InputError
from shrimpmx.mx.handles import strerror
from shrimpmx.mx.vectored import SEGMENTS_MAX

cdef uint64_t ALL_BITS = <uint64_t>0xFFFFFFFFFFFFFFFF
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
            raise MemoryError("no memory for another partner")
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
            raise MemoryError("no memory for another partner")
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
