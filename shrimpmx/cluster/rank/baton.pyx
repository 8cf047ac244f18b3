"""The host of a rank whose process runs while it has the baton of a simulated run.

It stops in every operation: it writes its wish into one pipe and reads from another one, until the
simulation has done that. The pipes have names, so that a program finds them as it finds the run's
memory.
"""

import os

from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t
from posix.time cimport CLOCK_THREAD_CPUTIME_ID, clock_gettime, timespec
from posix.unistd cimport read, write

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host

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

    def __init__(self, Control control not None, directory, name, compute, double factor):
        Host.__init__(self, control)
        self.moves = self.runs_python = self.metered = True
        self.measured, self.factor = compute == "measured", factor
        self.call_ns = compute if isinstance(compute, int) else 0
        self.shared, self.shared_bytes = <const char *>control.header, control.segment.size_bytes
        wishes, turns = pipe_paths(directory, name)
        self.wishes = os.open(wishes, os.O_WRONLY | os.O_CLOEXEC)
        self.turns = os.open(turns, os.O_RDONLY | os.O_CLOEXEC)
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

    cdef int set_handler_cost(self, int64_t cost_ns) except -1:
        self.handler_cost_ns = cost_ns
        return 0

    cdef int take_notifications(self, wait_slot *slot) except -1:
        self.ask(WANT_NOTIFICATIONS, self.handler_cost_ns)  # of its record: no other is its own
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

    cdef bint yield_cpu(self, int64_t until_ns, int64_t cost_ns) noexcept nogil:
        return self.ask(WANT_OFFER, self.paid(until_ns), <uint64_t>cost_ns)

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

    cdef void call_begins(self) noexcept nogil:
        self.count()
        self.owed_ns += self.call_ns
        self.settle()
        self.inside = True

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
        """False once the run has ended. Needs no Python: MPI_Finalize comes when that is gone."""
        cdef Wish wish
        cdef ssize_t taken = -1
        if self.failed:
            return False
        wish.want, wish.argument, wish.detail, wish.seen = want, argument, detail, seen
        wish.awaits = 0 if self.awaited == NULL else self.awaited_endpoint + 1
        wish.taken = self.events_taken
        if write(self.wishes, &wish, sizeof(Wish)) == sizeof(Wish):
            taken = read(self.turns, &self.turn, sizeof(Turn))
            while taken < 0 and errno == EINTR:
                taken = read(self.turns, &self.turn, sizeof(Turn))
        self.failed = taken != sizeof(Turn)
        return not self.failed


cdef int64_t thread_ns() noexcept nogil:
    """Real CPU time of the calling thread."""
    cdef timespec used
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used)
    return <int64_t>used.tv_sec * 1_000_000_000 + used.tv_nsec
