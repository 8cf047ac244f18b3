/* Holders of a lock that die, and others that then take it, again and again; exits with 0 if each
 * was told what it had to be. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "native/lock.h"

#define CHECK(holds)                                                                               \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            fprintf(stderr, "round %d, line %d: %s\n", number, __LINE__, #holds);                  \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

enum { ROUNDS = 60 };
enum how { DEAD_BEFORE, DIES_MEANWHILE, DIES_WITH_A_WAITER, WAYS_TO_DIE };

/* One that dies holds `other`, too, or has held it in between, which leaves `lock` named. */
static pid_t forked(pthread_mutex_t *lock, pthread_mutex_t *other, int ready, int dies, int holds,
                    enum how how) {
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (shared_lock_take(lock) != SHARED_LOCK_TAKEN)
        _exit(1);
    if (!dies) {
        shared_lock_give(lock);
        _exit(0);
    }
    if (shared_lock_take(other) != SHARED_LOCK_TAKEN)
        _exit(1);
    if (!holds)
        shared_lock_give(other);
    if (write(ready, "x", 1) != 1)
        _exit(1);
    if (how == DIES_WITH_A_WAITER)
        usleep(3000);
    kill(getpid(), SIGKILL);
    _exit(1);
}

static int round_of(int number, pthread_mutex_t *lock, pthread_mutex_t *other) {
    const enum how how = (enum how)(number % WAYS_TO_DIE);
    const int holds = number / WAYS_TO_DIE % 2;
    int ready[2], status;
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t pid = forked(lock, other, ready[1], 1, holds, how);
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]), close(ready[1]);
    if (how == DEAD_BEFORE)
        CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(shared_lock_take(lock) == SHARED_LOCK_REPAIR);
    CHECK(shared_lock_try(lock) == SHARED_LOCK_BROKEN);
    CHECK(shared_lock_take(other) == (holds ? SHARED_LOCK_REPAIR : SHARED_LOCK_TAKEN));
    shared_lock_give(other);
    shared_lock_give(lock);
    if (how != DEAD_BEFORE)
        CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status));

    /* Handed over to one that waits. */
    CHECK(shared_lock_take(lock) == SHARED_LOCK_TAKEN);
    pid = forked(lock, other, 0, 0, 0, how);
    usleep(number % 2 ? 0 : 500);
    shared_lock_give(lock);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);

    /* Two at a time. */
    CHECK(shared_lock_take(lock) == SHARED_LOCK_TAKEN);
    CHECK(shared_lock_take(other) == SHARED_LOCK_TAKEN);
    CHECK(shared_lock_take(lock) == SHARED_LOCK_BROKEN);
    shared_lock_give(number % 2 ? lock : other);
    shared_lock_give(number % 2 ? other : lock);
    CHECK(load_relaxed_u32((uint32_t *)lock) == 0 && load_relaxed_u32((uint32_t *)other) == 0);
    const struct robust_list_head *list = shared_lock_this_thread()->list;
    CHECK(list == NULL || list->list_op_pending == NULL);
    return 0;
}

int main(void) {
    const int shared = MAP_SHARED | MAP_ANONYMOUS;
    pthread_mutex_t *locks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, shared, -1, 0);
    if (locks == MAP_FAILED || shared_lock_initialise(&locks[0]) != 0 ||
        shared_lock_initialise(&locks[1]) != 0)
        return 2;
    for (int number = 0; number < ROUNDS; number++)
        if (round_of(number, &locks[0], &locks[1]))
            return 1;
    return 0;
}
