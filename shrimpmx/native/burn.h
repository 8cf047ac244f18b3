/* Computing for a while: what an application does, or a slower host takes, between two calls.
 * Async-signal-safe: it only reads the clock.
 */
#ifndef SHRIMPMX_NATIVE_BURN_H
#define SHRIMPMX_NATIVE_BURN_H

#include <stdint.h>

#include "native/clock.h"

/* A longer step between two looks at the clock means that the CPU was taken away (ours:
 * a look costs 20 to 60 ns, an interrupt more than a microsecond). */
#define BURN_STEP_NS 1000

/* Uses `delay_ns` of CPU: time during which this process was preempted does not count. */
static inline void burn_ns(const struct clock *clock, int64_t delay_ns) {
    int64_t before_ns = clock_now_ns(clock);
    while (delay_ns > 0) {
        int64_t now_ns = clock_now_ns(clock);
        int64_t step_ns = now_ns - before_ns;
        delay_ns -= step_ns < BURN_STEP_NS ? step_ns : BURN_STEP_NS;
        before_ns = now_ns;
    }
}

#endif
