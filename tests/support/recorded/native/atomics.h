/* In place of native/atomics.h: the same operations, each noted before it is done. */
#ifndef SHRIMPMX_RECORDED_ATOMICS_H
#define SHRIMPMX_RECORDED_ATOMICS_H

#include "../../../../shrimpmx/native/atomics.h"

void note(const char *operation, const volatile void *address);

/* A macro does not expand inside itself: the name on the right is the function. */
#define load_relaxed_u32(address) (note("load relaxed", address), load_relaxed_u32(address))
#define load_acquire_u32(address) (note("load acquire", address), load_acquire_u32(address))
#define store_relaxed_u32(address, value) \
    (note("store relaxed", address), store_relaxed_u32(address, value))
#define store_release_u32(address, value) \
    (note("store release", address), store_release_u32(address, value))
#define fetch_add_u32(address, value) (note("add", address), fetch_add_u32(address, value))
#define compare_exchange_u32(address, expected, desired) \
    (note("compare exchange", address), compare_exchange_u32(address, expected, desired))
#define load_relaxed_u64(address) (note("load relaxed", address), load_relaxed_u64(address))
#define store_release_u64(address, value) \
    (note("store release", address), store_release_u64(address, value))
#define acquire_fence() (note("acquire fence", 0), acquire_fence())
#define release_fence() (note("release fence", 0), release_fence())
#define full_fence() (note("fence", 0), full_fence())

#endif
