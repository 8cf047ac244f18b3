"""Buffers that a process exports, flags in them, and remote buffers that it has mapped."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.vmmc.process cimport VmmcProcess

cdef class Export:
    cdef object __weakref__
    cdef VmmcProcess process           # None once withdrawn
    cdef readonly object memory        # numpy uint8
    cdef readonly uint32_t index
    cdef readonly uint32_t generation
    cdef readonly uint64_t length
    cdef readonly bint interrupts
    cdef uint8_t *start


cdef class Flag:
    cdef readonly Export export
    cdef readonly uint64_t offset
    cdef public uint32_t seen          # its value when it was last looked at
    cdef uint32_t *address
    cdef object memory                 # keeps it in place

    cpdef bint changed(self)
    cpdef uint32_t update(self)
    cdef int check_of(self, VmmcProcess process) except -1


cdef class Import:
    cdef VmmcProcess process           # None once unmapped
    cdef readonly uint32_t node
    cdef readonly uint32_t endpoint
    cdef readonly uint32_t export_index
    cdef readonly uint64_t length
    cdef readonly uint32_t index

    cdef int send(self, const void *data, uint64_t length, uint64_t offset,
                  bint interrupt) except -1


cdef class MapRequest:
    cdef VmmcProcess process
    cdef uint32_t tag, node, endpoint, export_index
    cdef Import mapped
    cdef object failure
