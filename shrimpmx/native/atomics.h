/* Atomic operations on words that processes share.
 *
 * A thin naming layer over the compiler's builtins, so that Cython code says
 * which ordering it needs. Each use names its partner in a comment:
 * "R1 publishes the slot; pairs with A1".
 */
#ifndef SHRIMPMX_NATIVE_ATOMICS_H
#define SHRIMPMX_NATIVE_ATOMICS_H

#include <stdint.h>

static inline uint8_t load_acquire_u8(const volatile uint8_t *address) {
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
static inline void store_release_u8(volatile uint8_t *address, uint8_t value) {
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}
static inline uint32_t load_relaxed_u32(const volatile uint32_t *address) {
    return __atomic_load_n(address, __ATOMIC_RELAXED);
}
static inline uint32_t load_acquire_u32(const volatile uint32_t *address) {
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
static inline void store_relaxed_u32(volatile uint32_t *address, uint32_t value) {
    __atomic_store_n(address, value, __ATOMIC_RELAXED);
}
static inline void store_release_u32(volatile uint32_t *address, uint32_t value) {
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}
static inline uint32_t exchange_u32(volatile uint32_t *address, uint32_t value) {
    return __atomic_exchange_n(address, value, __ATOMIC_ACQ_REL);
}
static inline uint32_t fetch_add_u32(volatile uint32_t *address, uint32_t value) {
    return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL);
}
static inline int compare_exchange_u32(volatile uint32_t *address, uint32_t expected,
                                       uint32_t desired) {
    return __atomic_compare_exchange_n(address, &expected, desired, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}
static inline uint64_t load_relaxed_u64(const volatile uint64_t *address) {
    return __atomic_load_n(address, __ATOMIC_RELAXED);
}
static inline uint64_t load_acquire_u64(const volatile uint64_t *address) {
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
static inline void store_relaxed_u64(volatile uint64_t *address, uint64_t value) {
    __atomic_store_n(address, value, __ATOMIC_RELAXED);
}
static inline void store_release_u64(volatile uint64_t *address, uint64_t value) {
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}
static inline uint64_t exchange_u64(volatile uint64_t *address, uint64_t value) {
    return __atomic_exchange_n(address, value, __ATOMIC_ACQ_REL);
}
static inline uint64_t fetch_or_u64(volatile uint64_t *address, uint64_t value) {
    return __atomic_fetch_or(address, value, __ATOMIC_ACQ_REL);
}
static inline uint64_t fetch_add_u64(volatile uint64_t *address, uint64_t value) {
    return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL);
}

/* Orders a store before a later load of another word: the one ordering that
 * acquire and release do not give. It stands in every "store, fence, check". */
static inline void full_fence(void) {
#if defined(__x86_64__)
    /* A locked operation on the stack: the same ordering as mfence, half the time. */
    __asm__ __volatile__("lock; addl $0,-4(%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* For data that is read while it may be overwritten, as in a seqlock: the reader's loads before
 * the fence come before its later look at the count, the writer's count before its later stores. */
static inline void acquire_fence(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
static inline void release_fence(void) { __atomic_thread_fence(__ATOMIC_RELEASE); }

/* Tells the CPU that this is a spin loop. */
static inline void cpu_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#else
#error "shrimpmx supports x86-64 and aarch64 only"
#endif
}

static inline void prefetch_read(const void *address) { __builtin_prefetch(address, 0, 3); }
/* Fetches a line for writing. Spelt out, since compilers emit a *read* prefetch here for a generic
 * x86-64, and the store then has to ask the other CPU a second time. */
static inline void prefetch_write(const void *address) {
#if defined(__x86_64__)
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1, 3);
#endif
}

#endif
