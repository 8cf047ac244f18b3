"""Depositing data straight into a process's memory, while the process looks at it.

Packets come in order, and the process may take a flag of a later packet for the sign that the data
of an earlier one is there: each packet's stores follow those before. A word of 4 or 8 bytes in its
place is one store, so that a flag is never seen half-written.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memmove

from shrimpmx.native.atomics cimport store_relaxed_u32, store_relaxed_u64

cdef extern from *:
    enum:
        __ATOMIC_RELEASE
    void __atomic_thread_fence(int order) noexcept nogil


cdef inline void deposit(uint8_t *place, const uint8_t *data, uint32_t length) noexcept nogil:
    cdef uint32_t word
    cdef uint64_t long_word
    __atomic_thread_fence(__ATOMIC_RELEASE)  # V4: after the packets before; pairs with a look
    if length == 4 and (<uintptr_t>place & 3) == 0:
        memcpy(&word, data, 4)
        store_relaxed_u32(<uint32_t *>place, word)
    elif length == 8 and (<uintptr_t>place & 7) == 0:
        memcpy(&long_word, data, 8)
        store_relaxed_u64(<uint64_t *>place, long_word)
    else:
        memmove(place, data, length)  # a process may write to its own export
