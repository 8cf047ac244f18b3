/* The least that figure 3 of the waiting paper can cost on this machine: pairs of processes that
 * exchange a word through shared memory, without a NIC, an interrupt handler or a link.
 *
 * What the emulator adds to these figures is the price of its agents; see docs/performance.md.
 *
 *   cc -O2 -o waiting_sketch tools/waiting_sketch.c
 *   ./waiting_sketch STRATEGY PAIRS MIN_US MAX_US ROUND_TRIPS [SPIN_US] [hog]
 *
 * Prints wall and CPU time per round trip, us: the wall time of a process, the CPU of both of a pair.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum strategy { SPIN, SCHED, BLOCK, SPIN_BLOCK };

struct flag {
    _Alignas(64) volatile uint32_t value; /* the word that the peer writes */
    volatile uint32_t asleep;             /* the owner sleeps, or is about to */
};

#define RANKS_MAX 128

struct shared {
    struct flag flags[RANKS_MAX];
    _Alignas(64) volatile uint32_t ready;
    volatile double wall_us[RANKS_MAX], cpu_us[RANKS_MAX];
};

static int64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* As the emulator's delay: a step longer than 1 us is time of another process. */
static void burn(int64_t delay_ns) {
    int64_t before = now_ns(CLOCK_MONOTONIC);
    while (delay_ns > 0) {
        int64_t now = now_ns(CLOCK_MONOTONIC), step = now - before;
        delay_ns -= step < 1000 ? step : 1000;
        before = now;
    }
}

static void set(struct flag *flag, uint32_t value) {
    __atomic_store_n(&flag->value, value, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(&flag->asleep, 0, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &flag->value, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int spin(struct flag *flag, uint32_t value, int64_t limit_ns) {
    int64_t until = limit_ns < 0 ? INT64_MAX : now_ns(CLOCK_MONOTONIC) + limit_ns;
    for (uint32_t look = 1;; look++) {
        if (flag->value == value)
            return 1;
        if (look % 16 == 0 && limit_ns >= 0 && now_ns(CLOCK_MONOTONIC) >= until)
            return 0;
        __builtin_ia32_pause();
    }
}

static void await(struct flag *flag, uint32_t value, enum strategy strategy, int64_t limit_ns) {
    if (strategy == SPIN) {
        spin(flag, value, -1);
    } else if (strategy == SCHED) {
        while (flag->value != value)
            sched_yield();
    } else if (strategy == BLOCK || !spin(flag, value, limit_ns)) {
        while (flag->value != value) {
            __atomic_store_n(&flag->asleep, 1, __ATOMIC_SEQ_CST);
            if (flag->value != value)
                syscall(SYS_futex, &flag->value, FUTEX_WAIT, value - 1, NULL, NULL, 0);
        }
    }
}

struct plan {
    enum strategy strategy;
    int pairs, trips, hogs;
    int64_t least_ns, most_ns, limit_ns;
};

static void exchange(const struct plan *plan, struct shared *shared, int rank) {
    struct flag *mine = &shared->flags[rank], *other = &shared->flags[rank ^ 1];
    uint64_t state = 88172645463325252ull + 7919 * (uint64_t)rank;
    uint64_t spread_ns = (uint64_t)(plan->most_ns - plan->least_ns);
    __atomic_fetch_add(&shared->ready, 1, __ATOMIC_SEQ_CST);
    while (shared->ready < 2 * (uint32_t)plan->pairs)
        sched_yield();
    int64_t wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int trip = 1; trip <= plan->trips; trip++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        if (rank & 1)
            await(mine, (uint32_t)trip, plan->strategy, plan->limit_ns);
        burn(plan->least_ns + (spread_ns > 0 ? (int64_t)(state % spread_ns) : 0));
        set(other, (uint32_t)trip);
        if (!(rank & 1))
            await(mine, (uint32_t)trip, plan->strategy, plan->limit_ns);
    }
    shared->wall_us[rank] = (now_ns(CLOCK_MONOTONIC) - wall) / 1e3 / plan->trips;
    shared->cpu_us[rank] = (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e3 / plan->trips;
}

/* A process on `cpu`, which dies with this one. Returns 0 in the child. */
static pid_t fork_on(int cpu) {
    pid_t pid = fork();
    if (pid == 0) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        sched_setaffinity(0, sizeof cpus, &cpus);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    return pid;
}

static void run(const struct plan *plan, struct shared *shared) {
    pid_t hogs[2];
    for (int hog = 0; hog < plan->hogs; hog++) {
        hogs[hog] = fork_on(hog);
        for (volatile uint64_t turn = 0; hogs[hog] == 0; turn++) {}
    }
    for (int rank = 0; rank < 2 * plan->pairs; rank++)
        if (fork_on(rank & 1) == 0) {
            exchange(plan, shared, rank);
            _exit(0);
        }
    for (int rank = 0; rank < 2 * plan->pairs; rank++)
        wait(NULL);
    for (int hog = 0; hog < plan->hogs; hog++)
        kill(hogs[hog], SIGKILL);
}

int main(int count, char **words) {
    static const char *const names[] = {"spin", "sched", "block", "spin-block"};
    struct plan plan = {0};
    if (count < 6 || atoi(words[2]) < 1 || atoi(words[2]) > RANKS_MAX / 2 || atoi(words[5]) < 1) {
        fprintf(stderr, "usage: %s spin|sched|block|spin-block PAIRS MIN_US MAX_US ROUND_TRIPS "
                        "[SPIN_US] [hog]\n", words[0]);
        return 2;
    }
    while (plan.strategy < SPIN_BLOCK && strcmp(names[plan.strategy], words[1]) != 0)
        plan.strategy++;
    plan.pairs = atoi(words[2]);
    plan.least_ns = atoll(words[3]) * 1000;
    plan.most_ns = atoll(words[4]) * 1000;
    plan.trips = atoi(words[5]);
    plan.limit_ns = count > 6 ? atoll(words[6]) * 1000 : 0;
    plan.hogs = count > 7 && strcmp(words[7], "hog") == 0 ? 2 : 0;
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    run(&plan, shared);
    double wall_us = 0, cpu_us = 0;
    for (int rank = 0; rank < 2 * plan.pairs; rank++) {
        wall_us += shared->wall_us[rank] / (2 * plan.pairs);
        cpu_us += shared->cpu_us[rank] / plan.pairs;
    }
    printf("wall %.0f us, CPU %.0f us per round trip\n", wall_us, cpu_us);
    return 0;
}
