/* In place of native/futex.h: the scheduler puts an agent to sleep, and wakes it. */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "native/atomics.h"

#define syscall schedule_futex
#include "../../../../shrimpmx/native/futex.h"
#undef syscall
