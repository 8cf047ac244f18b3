"""The imports of a process: the remote exports that it has mapped, if they are still there."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from shrimpmx.native.atomics cimport store_release_u32
from shrimpmx.shared.vmmc cimport VMMC_IMPORTS, vmmc_import


cdef bint imports_open(Imports *imports, vmmc_import *entries) noexcept:
    if imports.states == NULL:
        imports.states = <uint8_t *>malloc(VMMC_IMPORTS)
    if imports.states == NULL:
        return False
    imports.entries = entries
    memset(imports.states, IMPORT_FREE, VMMC_IMPORTS)
    memset(entries, 0, VMMC_IMPORTS * sizeof(vmmc_import))
    return True


cdef void imports_free(Imports *imports) noexcept:
    free(imports.states)
    imports.states = NULL


cdef int64_t imports_add(Imports *imports, const vmmc_import *wanted) noexcept nogil:
    cdef vmmc_import *entry
    cdef uint32_t index = 0
    while index < VMMC_IMPORTS and imports.states[index] != IMPORT_FREE:
        index += 1
    if index == VMMC_IMPORTS or wanted.generation == 0:
        return -1
    imports.states[index] = IMPORT_USED
    entry = &imports.entries[index]
    entry.node = wanted.node
    entry.endpoint = wanted.endpoint
    entry.export_index = wanted.export_index
    entry.length = wanted.length
    # E2: its owner before the generation; pairs with the NIC's look when the process closes.
    store_release_u32(&entry.generation, wanted.generation)
    return index


cdef void imports_drop(Imports *imports, uint32_t index) noexcept nogil:
    if index < VMMC_IMPORTS:
        store_release_u32(&imports.entries[index].generation, 0)
        imports.states[index] = IMPORT_FREE


cdef const vmmc_import *imports_find(Imports *imports, uint32_t index) noexcept nogil:
    if index >= VMMC_IMPORTS or imports.states[index] != IMPORT_USED:
        return NULL
    return &imports.entries[index]


cdef void imports_gone(Imports *imports, uint32_t node, uint32_t endpoint) noexcept nogil:
    cdef uint32_t index, count = VMMC_IMPORTS
    cdef vmmc_import *entry
    for index in range(count):
        entry = &imports.entries[index]
        if (imports.states[index] == IMPORT_USED and entry.node == node
                and entry.endpoint == endpoint):
            store_release_u32(&entry.generation, 0)
            imports.states[index] = IMPORT_GONE
