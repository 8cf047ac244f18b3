"""Whose turn it is on a simulated CPU: the base class of the schedulers."""

from libc.stdint cimport int64_t

from shrimpmx.simulation.host cimport CpuUser


# What takes turns on a CPU. `weight` is its share beside others; `had_ns` what it has had, by its
# weight.
cdef class Schedulable(CpuUser):
    cdef int64_t weight
    cdef double had_ns


# Chooses for one CPU, which tells it each time that something happens there.
cdef class Scheduler:
    cdef readonly list waiting       # those that want the CPU, as they came
    cdef readonly Schedulable running  # the one that has it; None: none

    # One wants to run that slept; it takes the place of the running one if it may at once.
    cdef int wake(self, Schedulable one, int64_t now_ns) except -1
    # One comes from another CPU and wants to run here.
    cdef int arrive(self, Schedulable one, Scheduler other, int64_t now_ns) except -1
    # The running one has had the CPU for so long.
    cdef void charge(self, int64_t ran_ns) noexcept
    # When the turn of the running one may be over while others wait.
    cdef int64_t turn_ends_ns(self) noexcept
    # Put the running one back if its turn is over. Others wait.
    cdef int review(self, int64_t now_ns) except -1
    # Give the CPU, which none has, to the one whose turn it is.
    cdef int dispatch(self, int64_t now_ns) except -1
    # The running one lets another go first (sched_yield). Others wait.
    cdef int give_way(self, int64_t now_ns) except -1
    # The running one leaves the CPU.
    cdef void leave(self) noexcept
    # Put the running one back among those that wait.
    cdef int put_back(self) except -1
