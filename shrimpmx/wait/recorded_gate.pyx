"""A gate that keeps what waits ask of it, for tests: no device, no interrupts."""

from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t

from shrimpmx.wait.strategy cimport InterruptGate
from shrimpmx.wait.waiter cimport Waiter

CALLS = ("enable", "disable", "always", "watch", "never", "polled")

cdef enum:
    CALLS_MAX = 1024

cdef struct CallRecord:
    uint32_t count
    unsigned char calls[CALLS_MAX]   # indices of CALLS
    PyObject *gate                   # a RecordedGate whose `at_enable` is called, or NULL


cdef inline void keep(void *context, unsigned char call) noexcept nogil:
    cdef CallRecord *record = <CallRecord *>context
    record.calls[record.count % CALLS_MAX] = call
    record.count += 1


cdef void keep_enable(void *context) noexcept nogil:
    keep(context, 0)
    if (<CallRecord *>context).gate != NULL:
        call_at_enable(<CallRecord *>context)


cdef void call_at_enable(CallRecord *record) noexcept with gil:
    (<RecordedGate>record.gate).at_enable()


cdef void keep_disable(void *context) noexcept nogil:
    keep(context, 1)


cdef void keep_always(void *context) noexcept nogil:
    keep(context, 2)


cdef void keep_watch(void *context) noexcept nogil:
    keep(context, 3)


cdef void keep_never(void *context) noexcept nogil:
    keep(context, 4)


cdef void keep_polled(void *context) noexcept nogil:
    keep(context, 5)


cdef class RecordedGate:
    """The gate of `waiter` from now on; `calls()` are the names of what it was asked, in order.

    `at_enable` is called when a wait has enabled the interrupts and has yet to look once more.
    """

    cdef InterruptGate gate
    cdef CallRecord record
    cdef Waiter waiter
    cdef object at_enable

    def __cinit__(self, Waiter waiter not None, at_enable=None):
        self.gate = InterruptGate(
            keep_enable, keep_disable, keep_always, keep_watch, keep_never, keep_polled,
            &self.record)
        self.waiter = waiter
        self.at_enable = at_enable
        self.record.gate = NULL if at_enable is None else <PyObject *>self
        waiter.use_gate(&self.gate)

    def __dealloc__(self):
        if self.waiter is not None:
            self.waiter.use_gate(NULL)

    def calls(self) -> list:
        cdef uint32_t index
        cdef list names = []
        for index in range(min(self.record.count, <uint32_t>CALLS_MAX)):
            names.append(CALLS[self.record.calls[index]])
        return names
