"""Adapter from the firmware to a coalescing policy written in Python.

Each call takes the GIL. The first exception is kept in `failure`; after it the user's
code is not called any more, and the firmware's runner ends the run.
"""

from libc.math cimport ceil, llround
from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.nic.coalescing cimport (
    CAUSE_NONE, CAUSE_PACKET, CAUSE_SENT, CAUSE_TIMEOUT, Cause, CoalescingPolicy,
)

from shrimpmx.errors import InputError
from shrimpmx.nic.coalescing import CAUSE_NAMES


cdef class PythonPolicy(CoalescingPolicy):
    """Makes a `shrimpmx.nic.policy.Policy` a policy of the firmware.

    The user's times are those of the emulated hosts: the run's clock by `dilation`.
    """

    def __init__(self, policy not None, double dilation=1.0):
        self.policy = policy
        self.dilation = dilation
        self.read_deadline()

    cdef int64_t emulated_ns(self, int64_t now_ns) noexcept nogil:
        return now_ns if self.dilation == 1 else llround(now_ns / self.dilation)

    cdef void on_arrival(self, int64_t now_ns, bint marked,
                         uint32_t length_bytes) noexcept nogil:
        if self.failed:
            return
        with gil:
            try:
                self.policy.on_arrival(self.emulated_ns(now_ns), bool(marked), length_bytes)
                self.read_deadline()
            except BaseException as error:
                self.fail(error)

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        cdef Cause cause = CAUSE_NONE
        if self.failed:
            return CAUSE_NONE
        with gil:
            try:
                answer = self.policy.on_dma_complete(
                    self.emulated_ns(now_ns), bool(marked), dma_pending
                )
                cause = self.cause_of(answer, CAUSE_PACKET, "on_dma_complete")
                self.read_deadline()
            except BaseException as error:
                self.fail(error)
        return cause

    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil:
        cdef Cause cause = CAUSE_NONE
        if self.failed:
            return CAUSE_NONE
        with gil:
            try:
                answer = self.policy.on_send_complete(self.emulated_ns(now_ns))
                cause = self.cause_of(answer, CAUSE_SENT, "on_send_complete")
                self.read_deadline()
            except BaseException as error:
                self.fail(error)
        return cause

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        cdef Cause cause = CAUSE_NONE
        self.deadline_ns = NEVER_NS
        if self.failed:
            return CAUSE_NONE
        with gil:
            try:
                self.policy.deadline_ns = None
                answer = self.policy.on_deadline(self.emulated_ns(now_ns))
                cause = self.cause_of(answer, CAUSE_TIMEOUT, "on_deadline")
                self.read_deadline()
                if self.deadline_ns <= now_ns:  # it would be called for ever at this same time
                    raise InputError(
                        f"{type(self.policy).__name__}.on_deadline has set deadline_ns to "
                        f"{self.policy.deadline_ns!r}, which is not later than the deadline that "
                        f"has come, {self.emulated_ns(now_ns)}: set it to a later time, or to None"
                    )
            except BaseException as error:
                self.fail(error)
        return cause

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        if self.failed:
            return
        with gil:
            try:
                self.policy.on_raised(self.emulated_ns(now_ns), CAUSE_NAMES[<int>cause])
                self.read_deadline()
            except BaseException as error:
                self.fail(error)

    cdef Cause cause_of(self, object answer, Cause plain, str method) except *:
        """The cause that the answer of a policy's method means; `plain` is that of True."""
        if answer is None or answer is False:
            return CAUSE_NONE
        if answer is True:
            return plain
        if isinstance(answer, str) and answer in CAUSE_NAMES:
            return <Cause><int>CAUSE_NAMES.index(answer)
        raise InputError(
            f"{type(self.policy).__name__}.{method} returned {answer!r}; it must return True, "
            f"False, None or a cause: {', '.join(map(repr, CAUSE_NAMES))}"
        )

    cdef int read_deadline(self) except -1:
        cdef object deadline = self.policy.deadline_ns
        if deadline is None:
            self.deadline_ns = NEVER_NS
            return 0
        try:
            self.deadline_ns = deadline
        except (TypeError, ValueError, OverflowError):
            self.deadline_ns = -1
        if self.deadline_ns < 0:
            raise InputError(
                f"{type(self.policy).__name__}.deadline_ns is {deadline!r}; it must be a time in "
                "ns from 0 on, or None"
            )
        # Rounded up, a deadline is not before the time that the policy has set.
        if self.dilation != 1 and self.deadline_ns < NEVER_NS / self.dilation:
            self.deadline_ns = <int64_t>ceil(self.deadline_ns * self.dilation)
        return 0

    cdef void fail(self, object error) noexcept:
        self.failure = error
        self.failed = True
        self.deadline_ns = NEVER_NS
