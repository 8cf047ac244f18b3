"""The imports of a process: the remote exports that it has mapped, if they are still there."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from shrimpmx.shared.vmmc cimport vmmc_import

cdef enum import_state:
    IMPORT_FREE = 0
    IMPORT_USED = 1
    IMPORT_GONE = 2     # the process behind it has closed; its user gives the index back

cdef struct Imports:
    vmmc_import *entries     # [VMMC_IMPORTS], in the node segment
    uint8_t *states          # [VMMC_IMPORTS]: enum import_state

# Empty tables. False: no memory.
cdef bint imports_open(Imports *imports, vmmc_import *entries) noexcept
cdef void imports_free(Imports *imports) noexcept
# `wanted` becomes one of them; its index, or -1 if there is no room.
cdef int64_t imports_add(Imports *imports, const vmmc_import *wanted) noexcept nogil
cdef void imports_drop(Imports *imports, uint32_t index) noexcept nogil
# The import of that index; NULL if there is none, or its process has gone.
cdef const vmmc_import *imports_find(Imports *imports, uint32_t index) noexcept nogil
# The process at that endpoint has gone, and all that was mapped of it.
cdef void imports_gone(Imports *imports, uint32_t node, uint32_t endpoint) noexcept nogil
