"""The host of a rank whose process runs while it has the baton of a simulated run.

It stops in every operation: it writes its wish into one pipe and reads from another one, until the
simulation has done that. The pipes have names, so that a program finds them as it finds the run's
memory, and again if it has closed them.

Threads of a process share its baton. One that waits for news leads: it waits in the simulation for
all. Any other one knocks, which ends that wait, when it has called the library, has taken events,
or wants something that it cannot wait for behind the leader. All that wait look again whenever a
turn has come.
"""

import os

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EBADF, EINTR, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t
from posix.time cimport CLOCK_THREAD_CPUTIME_ID, clock_gettime, timespec
from posix.fcntl cimport O_CLOEXEC, O_RDONLY, O_WRONLY, open as open_file
from posix.unistd cimport close, read, write

from shrimpmx.costs.meter cimport Prices
from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host

cdef extern from "Python.h" nogil:
    int Py_IsInitialized()

cdef extern from "<fcntl.h>" nogil:
    enum:
        F_DUPFD_CLOEXEC
    int fcntl(int descriptor, int command, int argument)

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes)
    int pthread_mutex_lock(pthread_mutex_t *mutex)
    int pthread_mutex_unlock(pthread_mutex_t *mutex)
    int pthread_cond_init(pthread_cond_t *condition, const void *attributes)
    int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
    int pthread_cond_broadcast(pthread_cond_t *condition)

cdef extern from *:
    """
    /* Up to which turn this thread has looked for news, plus 1; 0: it has never asked for any. How
     * many calls there were then, and events that had been taken. */
    static _Thread_local uint64_t looked_at, looked_calls, looked_taken;
    """
    uint64_t looked_at, looked_calls, looked_taken

# Descriptors that programs open lie below (ours).
cdef int DESCRIPTOR_LEAST = 512

# A program that reads the clock takes so long for it: one that waits for a time by nothing else
# gets there (ours).
cdef int64_t CLOCK_READ_NS = 30
# Small costs are charged when so much has come together, or with the next wish (ours).
cdef int64_t OWED_MAX_NS = 10_000
# A call that has looked in vain keeps the CPU for a look, unless something happens on the node;
# after looks with nothing in between twice as long as the last time, up to this (ours).
cdef int64_t VAIN_MAX_NS = 10_000


def pipe_paths(directory, name):
    """The pipes of a process in a run's directory: of its wishes, and of its turns."""
    return directory / f"{name}.wishes", directory / f"{name}.turns"


cdef class BatonHost(Host):
    """The process's end; the first turn comes when it is made.

    `compute`: what the program computes between its calls: "none", "measured" (the CPU time of its
    thread times `factor`) or so many ns for each call.
    """

    def __init__(self, Control control not None, directory, name, compute, double factor,
                 Prices prices=None):
        Host.__init__(self, control, prices)
        self.moves = self.runs_python = self.metered = True
        self.measured, self.factor = compute == "measured", factor
        self.call_ns = compute if isinstance(compute, int) else 0
        self.shared, self.shared_bytes = <const char *>control.header, control.segment.size_bytes
        wishes, turns = pipe_paths(directory, name)
        self.wishes_path, self.turns_path = os.fsencode(wishes), os.fsencode(turns)
        self.wishes_name, self.turns_name = self.wishes_path, self.turns_path
        pthread_mutex_init(&self.lead.mutex, NULL)
        pthread_cond_init(&self.lead.over, NULL)
        self.wishes = opened(self.wishes_name, O_WRONLY)
        self.turns = opened(self.turns_name, O_RDONLY)
        # Joining is a call: neither that nor what the program has done before is charged.
        self.inside = True
        self.ask(WANT_TURN, 0)
        self.check()
        self.call_ends()

    def usage(self) -> dict[str, int]:
        """Virtual CPU time, all of it in user mode, and how often the CPU went to another task."""
        used = Host.usage(self)
        used["user_ns"] = used["task_clock_ns"] = self.cpu_ns()
        used["voluntary_switches"] = self.turn.sleeps
        used["involuntary_switches"] = self.turn.preemptions
        return used

    def run_on(self, cpus) -> None:
        """The first of them: a task is not moved by the scheduler."""
        self.ask(WANT_MOVE, cpus[0])
        self.check()

    cdef int take_notifications(self, wait_slot *slot) except -1:
        self.ask(WANT_NOTIFICATIONS, 0)  # of its record: no other is its own
        return self.check()

    cdef uint64_t notifications(self) noexcept nogil:
        return self.turn.handler_runs

    cdef bint burn_c(self, int64_t duration_ns) noexcept nogil:
        return duration_ns <= 0 or self.ask(WANT_COMPUTE, duration_ns)

    cdef bint sleep_c(self, int64_t duration_ns) noexcept nogil:
        return duration_ns <= 0 or self.ask(WANT_SLEEP, duration_ns)

    cdef bint pause(self, int64_t until_ns) noexcept nogil:
        if until_ns > self.now_c():
            return self.ask(WANT_POLL, self.paid(until_ns))
        # It will see soon that its time is over.
        self.owe(self.turn.look_ns)
        return not self.failed

    cdef bint yield_cpu(self, int64_t until_ns) noexcept nogil:
        return self.ask(WANT_OFFER, self.paid(until_ns))

    cdef bint block(self, uint32_t *word, uint32_t seen, int64_t until_ns) noexcept nogil:
        cdef uint64_t offset = <uint64_t>(<const char *>word - self.shared)
        if load_acquire_u32(word) != seen or self.now_c() >= until_ns:
            return True
        if offset >= self.shared_bytes:  # of a node, which the simulation has elsewhere
            return self.ask(WANT_POLL, self.paid(until_ns))
        return self.ask(WANT_BLOCK, until_ns, offset, seen)

    cdef int64_t cpu_ns(self) noexcept nogil:
        return self.turn.used_ns + self.owed_ns

    cdef int64_t program_now_ns(self) noexcept nogil:
        self.count()
        self.owe(CLOCK_READ_NS)
        return self.now_c() + self.owed_ns

    cdef void note_used(self) noexcept nogil:
        # What is owed stays so: no time passes.
        self.hand_over(WANT_USED, 0)

    cdef void call_begins(self) noexcept nogil:
        global looked_calls
        self.count()
        self.owed_ns += self.call_ns
        self.settle()
        self.inside = True
        # A thread's own call is no news to it, or one that tests in a loop would never wait.
        if looked_calls == self.lead.calls:
            looked_calls += 1
        self.lead.calls += 1

    cdef void looked_in_vain(self) noexcept nogil:
        cdef int64_t now_ns = self.now_c()
        if now_ns - self.vain_until_ns < self.turn.look_ns:
            self.vain_ns = min(2 * self.vain_ns, VAIN_MAX_NS)
        else:
            self.vain_ns = self.turn.look_ns
        self.ask(WANT_POLL, now_ns + self.vain_ns)
        self.vain_until_ns = self.now_c()

    cdef void call_ends(self) noexcept nogil:
        self.inside = False
        if self.measured:
            self.counted_ns = thread_ns()
        if self.lead.led:
            pthread_mutex_lock(&self.lead.mutex)
            if self.lead.led:
                self.knock()
            pthread_mutex_unlock(&self.lead.mutex)

    cdef void count(self) noexcept nogil:
        """What the program has computed by itself is owed."""
        cdef int64_t now_ns
        if self.measured and not self.inside:
            now_ns = thread_ns()
            # Another thread of the process has another count.
            self.owed_ns += <int64_t>(max(<int64_t>0, now_ns - self.counted_ns) * self.factor)
            self.counted_ns = now_ns

    cdef void owe(self, int64_t cost_ns) noexcept nogil:
        """Charge a cost later, with others."""
        self.owed_ns += cost_ns
        if self.owed_ns > OWED_MAX_NS:
            self.settle()

    cdef void settle(self) noexcept nogil:
        """Use the CPU time that is owed."""
        cdef int64_t owed_ns = self.owed_ns
        if owed_ns > 0:
            self.owed_ns = 0
            self.hand_over(WANT_COMPUTE, owed_ns)

    cdef int64_t paid(self, int64_t until_ns) noexcept nogil:
        """Until when to wait for news after a look in vain, having paid what is owed. The time that
        this takes may bring some, which the look has missed: then it is up to the next look.
        """
        self.count()
        if self.owed_ns <= 0:
            return until_ns
        self.settle()
        return self.now_c()

    cdef bint ask(self, Want want, int64_t argument, uint64_t detail=0,
                  uint32_t seen=0) noexcept nogil:
        """Wish for something, when all that is owed has been paid."""
        self.count()
        self.settle()
        return self.hand_over(want, argument, detail, seen)

    cdef bint hand_over(self, Want want, int64_t argument, uint64_t detail=0,
                        uint32_t seen=0) noexcept nogil:
        """False once the run has ended, or by what a signal's handler has raised. Needs no Python:
        MPI_Finalize comes when that is gone.
        """
        cdef Wish wish
        cdef bint waits = want == WANT_POLL or want == WANT_BLOCK or want == WANT_OFFER
        cdef bint leads, heard
        if self.failed:
            return False
        if self.awaits_turn and not self.hear():
            self.failed = True
            return False
        wish.want, wish.argument, wish.detail, wish.seen = want, argument, detail, seen
        pthread_mutex_lock(&self.lead.mutex)
        leads = self.may_lead(waits, argument)
        if leads:
            self.lead.led, self.lead.knocked = True, False
            self.lead.calls_before, self.lead.taken = self.lead.calls, self.events_taken
            self.lead.until_ns = argument if waits else 0
            wish.threads = self.lead.threads
            # What one thread waits for is not all that another one may see.
            wish.awaits = self.awaited_endpoint + 1
            if self.awaited == NULL or wish.threads > 1:
                wish.awaits = 0
            wish.taken = self.events_taken
            heard = self.tell(&wish)
        pthread_mutex_unlock(&self.lead.mutex)
        if not leads:
            return not self.failed
        heard = heard and self.hear()
        pthread_mutex_lock(&self.lead.mutex)
        self.failed |= not heard
        self.lead.led = False
        self.lead.turns += 1
        self.looks()
        pthread_cond_broadcast(&self.lead.over)
        pthread_mutex_unlock(&self.lead.mutex)
        return not self.failed

    cdef bint may_lead(self, bint waits, int64_t until_ns) noexcept nogil:
        """Whether a thread is to ask now, the lock held; else it is to look for news again."""
        cdef uint64_t before = self.lead.turns
        cdef bint is_new = looked_at == 0
        if is_new:
            self.lead.threads += 1
        if waits and self.lead.threads > 1 and (
                looked_at != before + 1 or looked_calls != self.lead.calls
                or looked_taken != self.events_taken):
            self.looks()
            return False
        if not self.lead.led and not (waits and self.lead.knocking != 0):
            return True
        if waits and (not self.lead.led or until_ns >= self.lead.until_ns):
            if self.lead.led and (self.lead.calls != self.lead.calls_before
                                  or self.lead.taken != self.events_taken):
                self.knock()
            while self.lead.turns == before and not self.failed:
                pthread_cond_wait(&self.lead.over, &self.lead.mutex)
            self.looks()
            return False
        self.lead.knocking += 1
        while self.lead.led and not self.failed:
            self.knock()
            pthread_cond_wait(&self.lead.over, &self.lead.mutex)
        self.lead.knocking -= 1
        return not self.failed

    cdef void looks(self) noexcept nogil:
        """The calling thread looks for news from now on, the lock held."""
        global looked_at, looked_calls, looked_taken
        looked_at = self.lead.turns + 1
        looked_calls, looked_taken = self.lead.calls, self.events_taken

    cdef void knock(self) noexcept nogil:
        """End the wait of the thread that leads, the lock held: its wish has been told."""
        cdef Wish wish
        if not self.lead.knocked:
            self.lead.knocked = True
            wish.want, wish.awaits, wish.argument, wish.detail = WANT_KNOCK, 0, 0, 0
            self.tell(&wish)

    cdef bint tell(self, Wish *wish) noexcept nogil:
        cdef ssize_t done = write(self.wishes, wish, sizeof(Wish))
        if done < 0 and errno == EBADF:  # the program has closed it
            self.wishes = opened(self.wishes_name, O_WRONLY)
            done = write(self.wishes, wish, sizeof(Wish))
        return done == sizeof(Wish)

    cdef bint hear(self) noexcept nogil:
        """Wait for the turn; False once the run has ended."""
        cdef ssize_t done
        while True:
            done = read(self.turns, &self.turn, sizeof(Turn))
            if done < 0 and errno == EBADF and self.turns >= 0:
                self.turns = opened(self.turns_name, O_RDONLY)
            elif done >= 0 or errno != EINTR:
                self.awaits_turn = False
                return done == sizeof(Turn)
            elif self.is_interrupted():
                # The process goes on by itself, and takes its turn before it wants anything more.
                self.awaits_turn = True
                return False

    cdef bint is_interrupted(self) noexcept nogil:
        """Whether a signal's handler has raised something, which is the host's failure now."""
        if not Py_IsInitialized():
            return False
        with gil:
            return self.handlers_raise()

    cdef bint handlers_raise(self) noexcept:
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            self.failure = error
        return self.failure is not None


cdef int opened(const char *path, int mode) noexcept nogil:
    """A descriptor, where possible above those of the program; -1: the run has ended."""
    cdef int low = open_file(path, mode | O_CLOEXEC)
    cdef int high
    if low < 0:
        return low
    high = fcntl(low, F_DUPFD_CLOEXEC, DESCRIPTOR_LEAST)
    if high < 0:
        return low
    close(low)
    return high


cdef int64_t thread_ns() noexcept nogil:
    """Real CPU time of the calling thread."""
    cdef timespec used
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used)
    return <int64_t>used.tv_sec * 1_000_000_000 + used.tv_nsec
