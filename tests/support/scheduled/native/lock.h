/* In place of native/lock.h: an agent that waits for a lock lets others go on. */
#include <errno.h>
#include <pthread.h>

#include "native/atomics.h"

#define pthread_mutex_lock schedule_lock
#include "../../../../shrimpmx/native/lock.h"
#undef pthread_mutex_lock
