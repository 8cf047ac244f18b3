/* In place of native/clock.h: the monotonic clock is the scheduler's. */
#include <stdint.h>
#include <time.h>

#include "../scheduler.h"

#define clock_gettime schedule_clock
#include "../../../../shrimpmx/native/clock.h"
#undef clock_gettime

#define clock_nanosleep schedule_nap /* of the Host */
