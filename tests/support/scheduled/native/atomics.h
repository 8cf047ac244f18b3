/* In place of native/atomics.h: before each operation another agent may go on. */
#ifndef SHRIMPMX_SCHEDULED_ATOMICS_H
#define SHRIMPMX_SCHEDULED_ATOMICS_H

#include <sched.h>

#include "../../../../shrimpmx/native/atomics.h"
#include "../scheduler.h"

/* A macro does not expand inside itself: the name on the right is the function. */
/* Only those of event rings are bytes. */
#define load_acquire_u8(address) (schedule_peek(address), load_acquire_u8(address))
#define store_release_u8(address, value) \
    (schedule_point(SCHEDULE_STORE), store_release_u8(address, value))
#define load_relaxed_u32(address) (schedule_point(SCHEDULE_LOAD), load_relaxed_u32(address))
#define load_acquire_u32(address) (schedule_point(SCHEDULE_LOAD), load_acquire_u32(address))
#define store_relaxed_u32(address, value) \
    (schedule_point(SCHEDULE_STORE), store_relaxed_u32(address, value))
#define store_release_u32(address, value) \
    (schedule_point(SCHEDULE_STORE), store_release_u32(address, value))
#define exchange_u32(address, value) (schedule_point(SCHEDULE_CHANGE), exchange_u32(address, value))
#define fetch_add_u32(address, value) \
    (schedule_point(SCHEDULE_CHANGE), fetch_add_u32(address, value))
#define compare_exchange_u32(address, expected, desired) \
    (schedule_point(SCHEDULE_CHANGE), compare_exchange_u32(address, expected, desired))
#define load_relaxed_u64(address) (schedule_point(SCHEDULE_LOAD), load_relaxed_u64(address))
#define load_acquire_u64(address) (schedule_point(SCHEDULE_LOAD), load_acquire_u64(address))
#define store_relaxed_u64(address, value) \
    (schedule_point(SCHEDULE_STORE), store_relaxed_u64(address, value))
#define store_release_u64(address, value) \
    (schedule_point(SCHEDULE_STORE), store_release_u64(address, value))
#define exchange_u64(address, value) (schedule_point(SCHEDULE_CHANGE), exchange_u64(address, value))
#define fetch_or_u64(address, value) (schedule_point(SCHEDULE_CHANGE), fetch_or_u64(address, value))
#define fetch_add_u64(address, value) \
    (schedule_point(SCHEDULE_CHANGE), fetch_add_u64(address, value))
#define cpu_pause() schedule_pause()
#define sched_yield() (schedule_pause(), 0)

#endif
