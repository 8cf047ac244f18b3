#include "scheduler.h"

#include "clogs.h"
#include "invariants.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define AGENTS_MAX 32
#define NEVER INT64_MAX
#define QUIET_PAUSES 64 /* several of each agent */
#define NOBODY (-1)

/* Python's lock: each agent of a run has one of its own, so it is no reason to wait. */
int PyGILState_Check(void);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);

enum state { ABSENT, RUNNABLE, ASLEEP, GONE };

struct agent {
    enum state state;
    volatile uint32_t turn; /* counts up: the thread may go on */
    volatile uint32_t *word;
    int64_t until_ns;       /* of a sleeper; of a runnable one: not before */
    int woken;
    uint64_t priority;
    uint64_t points[SCHEDULE_KINDS];
    enum schedule_kind dies_in, stalls_in;
    uint64_t dies_at;       /* before so many of its points of that kind; 0: never */
    uint64_t stalls_at;     /* ... stands still then for */
    int64_t stall_ns;
    int stalls_late;        /* ... counted from the first death on */
    uint64_t points_late[SCHEDULE_KINDS];
    long thread;
};

static struct agent agents[AGENTS_MAX];
static int count, running = NOBODY, dying = NOBODY, deaths;
static enum schedule_policy policy;
static uint64_t pauses; /* since any agent has done more than look */
static uint64_t random_state, steps, steps_max, hash, switch_ppm, lowest;
static uint64_t changes[8];
static int64_t now, tick;
static const char *problem;
static volatile uint32_t ended; /* the word that the caller of schedule_run() sleeps on */
static enum schedule_end how;
static __thread int self = NOBODY;

uint64_t schedule_draw(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t draw(void) { return schedule_draw(&random_state); }

static void note(uint64_t what) { hash = (hash ^ what) * 0x100000001b3u; }

static void futex_sleep(volatile uint32_t *word, uint32_t seen) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == seen)
        syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}
static void futex_rouse(volatile uint32_t *word) {
    __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* -- whose turn it is ------------------------------------------------------------- */

static int may_run(const struct agent *agent) {
    return (agent->state == RUNNABLE || agent->state == ASLEEP) && agent->until_ns <= now;
}
static int ready(const struct agent *agent) {
    return agent->state == RUNNABLE ? agent->until_ns <= now : may_run(agent);
}

/* Of those that sleep, or stand still. */
static int64_t first_timer(void) {
    int64_t first = NEVER;
    for (int i = 0; i < count; i++)
        if (agents[i].until_ns > now && agents[i].until_ns < first)
            first = agents[i].until_ns;
    return first;
}

/* To the first timer, when nothing else is left. */
static int time_passes(void) {
    int64_t first = first_timer();
    int left = 0;
    for (int i = 0; i < count; i++)
        left |= agents[i].state != GONE;
    if (first == NEVER) {
        how = left ? SCHEDULE_ASLEEP : SCHEDULE_DONE;
        return 0;
    }
    now = first;
    return 1;
}

static int next_agent(void) {
    int found[AGENTS_MAX], n;
    do {
        n = 0;
        for (int i = 0; i < count; i++)
            if (ready(&agents[i]))
                found[n++] = i;
    } while (n == 0 && time_passes());
    if (n == 0)
        return NOBODY;
    if (policy == SCHEDULE_RANDOM)
        return found[draw() % n];
    int best = found[0];
    for (int i = 1; i < n; i++)
        if (agents[found[i]].priority > agents[best].priority)
            best = found[i];
    return best;
}

static void give_turn(int next) {
    running = next;
    if (next == NOBODY) {
        futex_rouse(&ended);
        return;
    }
    if (agents[next].state == ASLEEP) { /* its timer */
        agents[next].state = RUNNABLE;
        agents[next].woken = 0;
    }
    agents[next].until_ns = 0;
    note(0x100 + next);
    futex_rouse(&agents[next].turn);
}

/* The running agent lets the next one go on, and waits for its own turn. */
static void let_others(void) {
    uint32_t turn = agents[self].turn;
    int next = next_agent();
    if (next == self && agents[self].state == RUNNABLE) {
        agents[self].until_ns = 0;
        return;
    }
    void *locked = PyGILState_Check() ? PyEval_SaveThread() : NULL;
    give_turn(next);
    futex_sleep(&agents[self].turn, turn);
    if (locked)
        PyEval_RestoreThread(locked);
}

static void die(void) {
    if (PyGILState_Check())
        PyEval_SaveThread();
    agents[self].state = GONE;
    agents[self].until_ns = NEVER;
    note(0x200 + self);
    dying = self;
    deaths++;
    futex_rouse(&ended); /* the next turn is given when the kernel has released its locks */
    syscall(SYS_exit, 0);
}

/* -- points ------------------------------------------------------------------------ */

static int is_agent(void) { return self != NOBODY; }

static void end_all(enum schedule_end end) {
    how = end;
    if (PyGILState_Check())
        PyEval_SaveThread();
    futex_rouse(&ended);
    for (;;)
        pause(); /* the process is about to end */
}

static void one_step(enum schedule_kind kind) {
    now += tick;
    if (++steps > steps_max)
        end_all(SCHEDULE_TOO_LONG);
    problem = invariants_look(self, now);
    if (problem)
        end_all(SCHEDULE_BROKEN);
    struct agent *agent = &agents[self];
    uint64_t point = ++agent->points[kind];
    if (kind != SCHEDULE_LOAD)
        pauses = 0;
    if (kind == agent->dies_in && point == agent->dies_at)
        die();
    if (agent->stalls_late)
        point = deaths ? ++agent->points_late[kind] : 0;
    if (kind == agent->stalls_in && point == agent->stalls_at && point != 0) {
        agent->until_ns = now + agent->stall_ns;
        let_others();
    }
}

void schedule_point(enum schedule_kind kind) {
    if (!is_agent())
        return;
    one_step(kind);
    if (policy == SCHEDULE_RANDOM) {
        if (draw() % 1000000 < switch_ppm)
            let_others();
        return;
    }
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++)
        if (steps == changes[i])
            agents[self].priority = --lowest;
    let_others();
}

void schedule_peek(const volatile uint8_t *address) {
    schedule_point(SCHEDULE_LOAD);
    if (is_agent())
        invariants_peek(self, address);
}

/* An agent's timer has come, and its turn has not. */
static int timer_has_come(void) {
    for (int i = 0; i < count; i++)
        if (agents[i].until_ns != 0 && agents[i].until_ns <= now)
            return 1;
    return 0;
}

/* When all that have a turn only look, and in vain, time passes faster, up to the next timer. The
 * last one left may look until a time of its own, which is no timer. */
static void skip_looks(void) {
    int64_t first = first_timer(), skipped;
    if (++pauses < QUIET_PAUSES || timer_has_come())
        return;
    skipped = tick << (pauses - QUIET_PAUSES < 20 ? pauses - QUIET_PAUSES : 20);
    now = first - now < skipped ? first : now + skipped;
}

/* A spinning agent has seen that others must go on first. */
void schedule_pause(void) {
    if (!is_agent())
        return;
    one_step(SCHEDULE_LOAD);
    agents[self].priority = --lowest;
    skip_looks();
    let_others();
}

int schedule_lock(pthread_mutex_t *lock) {
    if (!is_agent())
        return pthread_mutex_lock(lock);
    for (;;) {
        int error = schedule_trylock(lock);
        if (error != EBUSY)
            return error;
        schedule_pause();
    }
}

int schedule_trylock(pthread_mutex_t *lock) {
    schedule_point(SCHEDULE_CHANGE);
    int error = pthread_mutex_trylock(lock);
    if (error == 0 || error == EOWNERDEAD)
        schedule_point(SCHEDULE_LOCKED);
    return error;
}

int schedule_unlock(pthread_mutex_t *lock) {
    int error = pthread_mutex_unlock(lock);
    schedule_point(SCHEDULE_UNLOCKED);
    return error;
}

/* A NIC reads the clock between two steps only: no frame is on its way out of a link's ring. */
int schedule_clock(int clock, struct timespec *shown) {
    (void)clock;
    if (is_agent())
        clogs_pass(self, now);
    shown->tv_sec = now / 1000000000;
    shown->tv_nsec = now % 1000000000;
    return 0;
}

int schedule_nap(int clock, int flags, const struct timespec *duration, struct timespec *left) {
    if (!is_agent())
        return clock_nanosleep(clock, flags, duration, left);
    one_step(SCHEDULE_SLEEP);
    agents[self].until_ns = now + duration->tv_sec * 1000000000 + duration->tv_nsec;
    let_others();
    return 0;
}

long schedule_futex(long number, volatile uint32_t *word, int operation, uint32_t value,
                    const struct timespec *timeout, void *unused, int unused_too) {
    if (operation == FUTEX_WAKE) {
        long woken = 0;
        schedule_point(SCHEDULE_WAKE);
        for (int i = 0; i < count && woken < value; i++) {
            if (agents[i].state != ASLEEP || agents[i].word != word)
                continue;
            agents[i].state = RUNNABLE;
            agents[i].until_ns = 0;
            agents[i].woken = 1;
            woken++;
        }
        invariants_woken(self, word);
        return woken;
    }
    if (!is_agent())
        return syscall(number, word, operation, value, timeout, unused, unused_too);
    schedule_point(SCHEDULE_SLEEP);
    if (*word != value) {
        errno = EAGAIN;
        return -1;
    }
    struct agent *agent = &agents[self];
    agent->word = word;
    agent->until_ns = NEVER;
    if (timeout)
        agent->until_ns = now + timeout->tv_sec * 1000000000 + timeout->tv_nsec;
    agent->woken = 0;
    agent->state = ASLEEP;
    note(0x300 + self);
    let_others();
    if (agent->woken)
        return 0;
    errno = ETIMEDOUT;
    return -1;
}

/* Named so by tools/schedules.py: memory of another process. */
ssize_t schedule_read(pid_t pid, const struct iovec *local, unsigned long locals,
                      const struct iovec *remote, unsigned long remotes, unsigned long flags) {
    schedule_point(SCHEDULE_COPY);
    return process_vm_readv(pid, local, locals, remote, remotes, flags);
}
ssize_t schedule_write(pid_t pid, const struct iovec *local, unsigned long locals,
                       const struct iovec *remote, unsigned long remotes, unsigned long flags) {
    schedule_point(SCHEDULE_COPY);
    return process_vm_writev(pid, local, locals, remote, remotes, flags);
}

/* -- for the test ------------------------------------------------------------------- */

void schedule_setup(uint64_t seed, int wanted, int agents_count, int64_t tick_ns, uint64_t ppm,
                    uint64_t most) {
    random_state = seed;
    policy = wanted;
    count = agents_count;
    tick = tick_ns;
    switch_ppm = ppm;
    steps_max = most;
    now = 1000000000;
    lowest = 1u << 30;
    hash = 0xcbf29ce484222325u;
    for (int i = 0; i < count; i++)
        agents[i].priority = (1ull << 31) + draw() % (1u << 31);
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++)
        changes[i] = draw() % (16ull << draw() % 16); /* early ones are as likely as late ones */
}

void schedule_death(int agent, int kind, uint64_t point) {
    agents[agent].dies_in = kind;
    agents[agent].dies_at = point;
}

void schedule_stall(int agent, int kind, uint64_t point, int64_t duration_ns, int late) {
    agents[agent].stalls_in = kind;
    agents[agent].stalls_at = point;
    agents[agent].stall_ns = duration_ns;
    agents[agent].stalls_late = late;
}

/* The calling thread becomes an agent, and waits for its first turn. */
void schedule_join(int agent) {
    uint32_t turn = agents[agent].turn;
    self = agent;
    agents[agent].thread = syscall(SYS_gettid);
    __atomic_store_n(&agents[agent].state, RUNNABLE, __ATOMIC_RELEASE);
    futex_sleep(&agents[agent].turn, turn);
}

/* It has ended; another one's turn has come. */
void schedule_leave(void) {
    agents[self].state = GONE;
    agents[self].until_ns = NEVER;
    self = NOBODY;
    give_turn(next_agent());
}

int schedule_joined(void) {
    int joined = 0;
    for (int i = 0; i < count; i++)
        joined += __atomic_load_n(&agents[i].state, __ATOMIC_ACQUIRE) != ABSENT;
    return joined;
}

static void until_gone(long thread) {
    while (syscall(SYS_tgkill, getpid(), thread, 0) == 0)
        sched_yield();
}

/* Let the agents go on until they end; a schedule_end. */
int schedule_run(void) {
    how = SCHEDULE_DONE;
    uint32_t seen = ended;
    give_turn(next_agent());
    for (;;) {
        futex_sleep(&ended, seen);
        seen++;
        if (dying == NOBODY)
            return how;
        until_gone(agents[dying].thread);
        dying = NOBODY;
        give_turn(next_agent());
    }
}

const char *schedule_problem(void) { return problem; }
int schedule_is_gone(int agent) { return agents[agent].state == GONE; }
int schedule_is_asleep(int agent) { return agents[agent].state == ASLEEP; }
int schedule_sleeps_on(int agent, const volatile uint32_t *word) {
    return agents[agent].state == ASLEEP && agents[agent].word == word;
}
int64_t schedule_until(int agent) { return agents[agent].until_ns; }
int schedule_agent_of(uint32_t thread) {
    for (int i = 0; thread && i < count; i++)
        if (agents[i].thread == (long)thread && agents[i].state != GONE)
            return i;
    return NOBODY;
}
int64_t schedule_now(void) { return now; }
uint64_t schedule_steps(void) { return steps; }
uint64_t schedule_hash(void) { return hash; }
