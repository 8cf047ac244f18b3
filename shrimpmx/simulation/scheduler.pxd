"""Whose turn it is on a simulated CPU: the base class of the schedulers."""

from libc.stdint cimport int64_t

from shrimpmx.simulation.host cimport CpuUser

# Linux's classes of tasks that are not real-time, as sched(7) has them.
cdef enum Policy:
    NORMAL, BATCH, IDLE


# What takes turns on a CPU. What it is: `nice`, `policy`, and its `gang`, -1: it is alone. Which of
# the others count, its scheduler says.
cdef class Schedulable(CpuUser):
    cdef readonly int nice, gang
    cdef readonly int realtime       # its priority as a real-time task; 0: it is none
    cdef Policy policy
    cdef double weight               # of `nice` and `policy`; 1 is that of nice 0
    cdef double had_ns               # fair, eevdf: CPU time so far, by its weight
    cdef double lag_ns, deadline_ns  # eevdf: what it is owed; when its request is served
    cdef int64_t counter, recharges, place  # goodness
    cdef int64_t row, column         # gang: its place in the matrix


# Chooses for one CPU, which tells it each time that something happens there.
cdef class Scheduler:
    cdef readonly list waiting       # those that want the CPU, as they came
    cdef readonly Schedulable running  # the one that has it; None: none
    cdef int64_t tick_ns             # the clock interrupts each tick_ns, 0: at any time
    cdef int64_t ahead_ns            # ... first so long before its tick_ns are over

    # One wants to run that slept; it takes the place of the running one if it may at once.
    cdef int wake(self, Schedulable one, int64_t now_ns) except -1
    # One that has the CPU of `other` leaves it and wants to run here.
    cdef int arrive(self, Schedulable one, Scheduler other, int64_t now_ns) except -1
    # The running one has had the CPU for so long, up to now.
    cdef void charge(self, int64_t now_ns, int64_t ran_ns) noexcept
    # When the turn of the running one may be over while others wait; its time has been counted up
    # to `since_ns`.
    cdef int64_t turn_ends_ns(self, int64_t since_ns) noexcept
    # Put the running one back if its turn is over. Others wait.
    cdef int review(self, int64_t now_ns) except -1
    # Give the CPU, which none has, to the one whose turn it is.
    cdef int dispatch(self, int64_t now_ns) except -1
    # The running one yields (sched_yield), while others wait; whether one of these has the CPU now.
    cdef bint give_way(self, int64_t now_ns) except -1
    # Whether a yield may have an effect before anything else happens.
    cdef bint may_give_way(self) noexcept
    # The running one leaves the CPU.
    cdef int leave(self) except -1

    # For schedulers: the first tick from that time on.
    cdef int64_t tick_from(self, int64_t time_ns) noexcept
    # For schedulers: put the running one back among those that wait; give the CPU to one of these.
    cdef int put_back(self) except -1
    cdef int start(self, Schedulable one) except -1
