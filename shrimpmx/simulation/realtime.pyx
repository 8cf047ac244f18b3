"""Real-time tasks on a simulated CPU, above those that another scheduler has."""

from libc.stdint cimport int64_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.simulation.scheduler cimport Schedulable, Scheduler


cdef class RealtimeScheduler(Scheduler):
    """First in, first out by priority (SCHED_FIFO); other tasks as `others` has them.

    A real-time task runs until it sleeps, or one of a higher priority wakes; that it has taken the
    CPU from has it back before others of its own priority.
    """

    cdef Scheduler others
    cdef list queue                  # real-time tasks that wait, in the order of their turns
    cdef Schedulable first           # the real-time task that runs; None: none does

    def __init__(self, Scheduler others not None):
        self.others = others
        self.queue = []

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        if one.realtime == 0:
            self.others.wake(one, now_ns)
        else:
            self.enqueue(one, False)
            self._take_for(one)
        return self._tell()

    cdef int _take_for(self, Schedulable one) except -1:
        """The running task gives the CPU back if `one` comes before it."""
        if self.first is not None:
            if one.realtime > self.first.realtime:
                self.first.preemptions += 1
                self.enqueue(self.first, True)
                self.first = None
        elif self.others.running is not None:
            self.others.put_back()
        return 0

    cdef int enqueue(self, Schedulable one, bint ahead) except -1:
        cdef Schedulable other
        cdef int place = 0
        for other in self.queue:
            if other.realtime < one.realtime or (ahead and other.realtime == one.realtime):
                break
            place += 1
        self.queue.insert(place, one)
        return 0

    cdef int _tell(self) except -1:
        self.running = self.others.running if self.first is None else self.first
        self.waiting = [*self.queue, *self.others.waiting]
        return 0

    cdef int arrive(self, Schedulable one, Scheduler other, int64_t now_ns) except -1:
        cdef RealtimeScheduler there = <RealtimeScheduler>other
        if one.realtime != 0:
            there.leave()
            return self.wake(one, now_ns)
        self.others.arrive(one, there.others, now_ns)
        there._tell()
        return self._tell()

    cdef void charge(self, int64_t now_ns, int64_t ran_ns) noexcept:
        if self.first is None:
            self.others.charge(now_ns, ran_ns)

    cdef int64_t turn_ends_ns(self, int64_t since_ns) noexcept:
        if self.first is not None or not self.others.waiting:
            return NEVER_NS
        return self.others.turn_ends_ns(since_ns)

    cdef int review(self, int64_t now_ns) except -1:
        if self.first is None and self.others.waiting:
            self.others.review(now_ns)
            return self._tell()
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        if self.queue:
            self.first = self.queue.pop(0)
        else:
            self.others.dispatch(now_ns)
        return self._tell()

    cdef bint give_way(self, int64_t now_ns) except -1:
        cdef bint gave = False
        if self.first is None and self.others.waiting:
            gave = self.others.give_way(now_ns)
            self._tell()
        return gave

    cdef bint may_give_way(self) noexcept:
        return self.first is None and self.others.waiting and self.others.may_give_way()

    cdef int leave(self) except -1:
        if self.first is not None:
            self.first = None
        else:
            self.others.leave()
        return self._tell()
