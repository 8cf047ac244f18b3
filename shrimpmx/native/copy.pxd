"""Copies, of large blocks by the fastest way, and between the memories of two processes."""

from libc.stdint cimport uint64_t

# -- Copies, of large blocks by the way that is faster on this machine; see copy.h.

cdef extern from "native/copy.h" nogil:
    enum:
        COPY_LARGE_BYTES
        COPY_LENGTHS
    enum copy_way:
        COPY_ORDINARY
        COPY_STREAMING

    ctypedef struct copy_costs "struct copy_costs":
        pass

    void copy_bytes(void *to, const void *source, uint64_t length) noexcept  # it may be 0
    copy_costs *copy_costs_of(copy_costs *all, uint64_t length) noexcept
    copy_way copy_next(const copy_costs *costs, uint64_t length) noexcept
    void copy_learn(copy_costs *costs, copy_way way, uint64_t length, uint64_t ticks) noexcept
    # As memcpy; for blocks of COPY_LARGE_BYTES and more.
    void copy_large(copy_costs *all, void *to, const void *source, uint64_t length) noexcept


# -- Copies between the memories of two processes, without shared memory.

cdef enum:
    MEMORY_GONE = -1   # there is no such process
    MEMORY_BAD = -2    # part of the remote range is not mapped, or not for that; or it is forbidden
    MEMORY_OWN = -3    # the fault is the local range's

# Both return 0 when all of `length` bytes went over, else one of these.
cdef int process_read(int pid, uint64_t remote, void *local, uint64_t length) noexcept nogil
cdef int process_write(int pid, uint64_t remote, const void *local,
                       uint64_t length) noexcept nogil

# -- Copies within this process, from or to memory of the program, which may be anything: False,
# and no signal, if it cannot be read, or written.

cdef bint copy_from_program(void *to, const void *source, uint64_t length) noexcept nogil
cdef bint copy_to_program(void *to, const void *source, uint64_t length) noexcept nogil
