"""Atomic operations on words that processes share; see atomics.h."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from "native/atomics.h" nogil:
    uint8_t load_acquire_u8(const void *address) noexcept
    uint32_t load_relaxed_u32(const void *address) noexcept
    uint32_t load_acquire_u32(const void *address) noexcept
    void store_relaxed_u32(void *address, uint32_t value) noexcept
    void store_release_u32(void *address, uint32_t value) noexcept
    uint32_t exchange_u32(void *address, uint32_t value) noexcept
    uint32_t fetch_add_u32(void *address, uint32_t value) noexcept
    int compare_exchange_u32(void *address, uint32_t expected, uint32_t desired) noexcept
    uint64_t load_relaxed_u64(const void *address) noexcept
    uint64_t load_acquire_u64(const void *address) noexcept
    void store_relaxed_u64(void *address, uint64_t value) noexcept
    uint64_t exchange_u64(void *address, uint64_t value) noexcept
    uint64_t fetch_or_u64(void *address, uint64_t value) noexcept
    uint64_t fetch_add_u64(void *address, uint64_t value) noexcept
    void full_fence() noexcept
    void cpu_pause() noexcept
    void prefetch_read(const void *address) noexcept
    void prefetch_write(const void *address) noexcept
