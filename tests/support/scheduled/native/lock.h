/* In place of native/lock.h: an agent that waits for a lock lets others go on, and so
 * may one that has given it back. */
#include <errno.h>
#include <pthread.h>

#include "native/atomics.h"

#define SHARED_LOCK_BY_LIBRARY
#define pthread_mutex_lock schedule_lock
#define pthread_mutex_trylock schedule_trylock
#define pthread_mutex_unlock schedule_unlock
#include "../../../../shrimpmx/native/lock.h"
#undef pthread_mutex_lock
#undef pthread_mutex_trylock
#undef pthread_mutex_unlock
