"""Buffers that a process exports, flags in them, and remote buffers that it has mapped.

The Python face of VMMC. What these calls do in C is in process.pxd; that is what compiled
libraries use.
"""

import numpy as np

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.shared.vmmc cimport (
    VMMC_ANY_NODE, VMMC_NOT_ALLOWED, VMMC_NOT_EXPORTED, VMMC_NO_PROCESS, VMMC_OK, VMMC_PAGE_BYTES,
)
from shrimpmx.vmmc.process cimport (
    VMMC_ASK_INTERRUPT, VMMC_BAD_IMPORT, VMMC_BAD_RANGE, VMMC_MAP_TAGS, VMMC_STOPPED, News,
    VmmcProcess, deadline_of, wait_for_news,
)
from shrimpmx.wait.waiter cimport WAIT_TIMED_OUT, Strategy, WaitResult

from shrimpmx.errors import InputError, VmmcError


# Why a map request failed: its status for programs, and in words.
REFUSALS = {
    VMMC_NOT_EXPORTED: ("not-exported", "it is not exported"),
    VMMC_NOT_ALLOWED: ("not-allowed", "its owner does not allow that to this node"),
    VMMC_NO_PROCESS: ("no-process", "there is no open process"),
}


cdef class Export:
    """`length` bytes of this process that others may map and write; see VmmcProcess.export.

    `memory` is a numpy view of them, zeros at first; `index` is what others map, `generation` tells
    this export from earlier ones of that index.
    """

    def __init__(self, VmmcProcess process not None, uint64_t length, bint interrupts,
                 allowed_node):
        cdef uint64_t whole = (length + VMMC_PAGE_BYTES - 1) // VMMC_PAGE_BYTES * VMMC_PAGE_BYTES
        cdef uint8_t[::1] bytes_of
        cdef int64_t index
        # Whole pages: a page that interrupts belongs to one export.
        try:
            block = process.heap.allocate(whole)
        except MemoryError as error:
            raise VmmcError(str(error), "no-memory") from None
        bytes_of = block
        self.start = &bytes_of[0]
        memset(self.start, 0, whole)
        index = process.export_c(
            <uint64_t>(self.start - process.memory), length,
            VMMC_ANY_NODE if allowed_node is None else <uint32_t>allowed_node, interrupts)
        if index < 0:
            raise VmmcError(
                f"endpoint {process.index} has no export left", "no-exports")
        self.memory = np.frombuffer(block, np.uint8)[:length]
        self.process = process
        self.index = <uint32_t>index
        self.generation = process.exports[index].generation
        self.length = length
        self.interrupts = interrupts

    def __repr__(self) -> str:
        return f"<export {self.index}, {self.length} bytes>"

    def flag(self, uint64_t offset) -> Flag:
        """The 32-bit flag at `offset`, a multiple of 4. InputError if there is none."""
        return Flag(self, offset)

    def withdraw(self) -> None:
        """No update arrives any more when this returns; harmless if withdrawn already."""
        cdef VmmcProcess process = self.process
        if process is None:
            return
        process.check_caller()
        process.exported.discard(self)
        self.process = None
        with nogil:
            process.unexport_c(self.index)
        process.host.check()

    def forget(self) -> None:
        """Its process has closed."""
        self.process = None

    @property
    def exported(self) -> bool:
        """Whether others can still map and write it."""
        return self.process is not None


cdef class Flag:
    """A 32-bit word of an export that announces something by its change (waiting paper, 2.2).

    `seen` is 0 at first, as the word was when its buffer was exported: what a peer sets before
    this object is made counts as a change.
    """

    def __init__(self, Export export not None, uint64_t offset):
        if offset % 4 or export.length < 4 or offset > export.length - 4:
            raise InputError(
                f"a flag lies at a multiple of 4 in its buffer of {export.length} bytes, not at "
                f"{offset}")
        self.export = export
        self.offset = offset
        self.memory = export.memory
        self.address = <uint32_t *>(export.start + offset)

    def __repr__(self) -> str:
        return f"<flag at {self.offset} of export {self.export.index}: {self.value}>"

    @property
    def value(self) -> int:
        """What it is, in this machine's byte order."""
        return load_acquire_u32(self.address)  # F1: see news_came

    cpdef bint changed(self):
        """Whether it differs from `seen`."""
        return load_acquire_u32(self.address) != self.seen

    cpdef uint32_t update(self):
        """Its value, which counts as seen."""
        self.seen = load_acquire_u32(self.address)
        return self.seen

    cdef int check_of(self, VmmcProcess process) except -1:
        if self.export.process is not process:
            raise InputError(f"{self!r} belongs to another process, or is withdrawn")
        return 0


cdef class Import:
    """A remote export that this process has mapped; see VmmcProcess.map."""

    def __init__(self):
        raise TypeError("imports come from VmmcProcess.map")

    def __repr__(self) -> str:
        return f"<import of export {self.export_index} of {self.node}:{self.endpoint}>"

    @property
    def gone(self) -> bool:
        """Whether its process has closed or died, as far as this one has been told."""
        return self.process is not None and self.process.import_gone(self.index)

    def update(self, data, uint64_t offset=0, bint interrupt=False) -> None:
        """Write contiguous `data` at `offset` of the remote buffer, a deliberate update.

        `interrupt` asks for an interrupt behind the last packet, if the receiver wants one.
        The data may be changed as soon as this returns. VmmcError "out-of-range": nothing was sent;
        "gone"; "unmapped".
        """
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_C_CONTIGUOUS)
        try:
            self.send(view.buf, <uint64_t>view.len, offset, interrupt)
        finally:
            PyBuffer_Release(&view)

    def set_flag(self, uint64_t offset, uint32_t value, bint interrupt=True) -> None:
        """Write a flag, whole at once; errors as of `update`. What was sent before is there then.

        InputError if `offset` is no multiple of 4.
        """
        if offset % 4:
            raise InputError(f"a flag lies at a multiple of 4, not at {offset}")
        self.send(&value, 4, offset, interrupt)

    cdef int send(self, const void *data, uint64_t length, uint64_t offset,
                  bint interrupt) except -1:
        cdef VmmcProcess process = self.process
        cdef uint32_t flags = VMMC_ASK_INTERRUPT if interrupt else 0
        cdef int result
        if process is None:
            raise VmmcError(f"{self!r} is not mapped any more", "unmapped")
        process.check_caller()
        process.sort_mail()
        with nogil:
            result = process.update_c(self.index, offset, data, length, flags)
            process.doorbell_c()
        if result == VMMC_BAD_RANGE:
            raise VmmcError(
                f"{length} bytes at {offset} go past the end of {self!r}, {self.length} bytes",
                "out-of-range")
        if result == VMMC_BAD_IMPORT:
            raise VmmcError(f"endpoint {self.endpoint} of node {self.node} has gone away", "gone")
        if result == VMMC_STOPPED:
            raise process.host.ended("the run was stopped during an update")
        return 0

    def unmap(self) -> None:
        """Give the mapping up; harmless if that was done."""
        cdef VmmcProcess process = self.process
        if process is not None:
            process.check_caller()
            self.process = None
            process.unimport_c(self.index)


cdef class MapRequest:
    """A map request under way; VmmcProcess.map_start makes it. Its answer takes an import slot.

    So a caller that no longer wants it has to `cancel` it.
    """

    def __init__(self, VmmcProcess process not None, uint32_t node, uint32_t endpoint,
                 uint32_t export_index):
        cdef int result
        process.last_tag = (process.last_tag + 1) % VMMC_MAP_TAGS
        self.process = process
        self.tag = VMMC_MAP_TAGS + process.last_tag
        self.node, self.endpoint, self.export_index = node, endpoint, export_index
        with nogil:
            result = process.map_request_c(node, endpoint, export_index, self.tag)
            process.doorbell_c()
        if result == VMMC_BAD_RANGE:
            raise InputError(
                f"there is no export {export_index} of endpoint {endpoint} of node {node}; nodes "
                f"are 0 to {process.node.header.nodes_count - 1}, endpoints 0 to 254")
        if result == VMMC_STOPPED:
            raise process.host.ended("the run was stopped during a map request")
        process.mapping[self.tag] = self

    def test(self) -> Import | None:
        """The Import if the answer has come; VmmcError as of VmmcProcess.map."""
        self.process.check_caller()
        self.process.sort_mail()
        if self.failure is not None:
            raise self.failure
        return self.mapped

    def wait(self, timeout_ns=None) -> Import:
        """The Import; VmmcError as of VmmcProcess.map. It is given up at "timeout"."""
        cdef int64_t deadline_ns = deadline_of(self.process, timeout_ns)
        cdef News news
        cdef WaitResult result
        news.count = 0
        news.mail = <const uint32_t *><void *>&self.process.mailbox.letters.head
        self.process.watch_c(NULL, 0)
        while True:
            news.mail_seen = load_acquire_u32(news.mail)
            mapped = self.test()
            if mapped is not None:
                return mapped
            result = wait_for_news(self.process, None, &news, deadline_ns)
            if result == WAIT_TIMED_OUT:
                self.cancel()
                raise VmmcError(
                    f"endpoint {self.endpoint} of node {self.node} did not answer within "
                    f"{timeout_ns} ns", "timeout")

    def cancel(self) -> None:
        """Give it up: a late answer is dropped, and what was mapped is unmapped.

        VmmcError ("cancelled") is what `test` and `wait` raise from then on.
        """
        if self.process.opened:
            self.process.check_caller()
            self.process.mapping.pop(self.tag, None)
        if self.mapped is not None:
            self.mapped.unmap()
        self.failure = VmmcError(
            f"the mapping of export {self.export_index} of endpoint {self.endpoint} of node "
            f"{self.node} has been given up", "cancelled")

    def answered(self, uint32_t status, uint32_t generation, uint64_t length) -> None:
        """The letter that its process got."""
        cdef int64_t index
        if status != VMMC_OK:
            code, words = REFUSALS.get(status, ("refused", f"status {status}"))
            self.failure = VmmcError(
                f"cannot map export {self.export_index} of endpoint {self.endpoint} of node "
                f"{self.node}: {words}", code)
            return
        index = self.process.import_c(
            self.node, self.endpoint, self.export_index, generation, length)
        if index >= 0:
            self.mapped = import_make(self, <uint32_t>index, length)
        else:
            self.failure = VmmcError(
                f"endpoint {self.process.index} has no import left",
                "no-imports")


cdef Import import_make(MapRequest request, uint32_t index, uint64_t length):
    cdef Import mapped = Import.__new__(Import)
    mapped.process = request.process
    mapped.node = request.node
    mapped.endpoint = request.endpoint
    mapped.export_index = request.export_index
    mapped.length = length
    mapped.index = index
    return mapped


# -- Waiting for any of a set of flags (waiting paper, 2.2 and section 4).

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
        raise InputError(f"{used.name} works only as the strategy of the process's waiter")
    if not used.sleeps:
        return 0
    for flag in flags:
        if not (<Flag>flag).export.interrupts:
            raise InputError(
                f"updates of export {(<Flag>flag).export.index} do not interrupt, so nothing "
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
            raise MemoryError("not enough memory for a wait")
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
