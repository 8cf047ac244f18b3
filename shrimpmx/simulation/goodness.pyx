"""The scheduler of Linux 2.0: ticks, counters and goodness."""

from libc.stdint cimport int64_t

from shrimpmx.simulation.scheduler cimport IDLE, Schedulable, Scheduler

from shrimpmx.errors import InputError

# The timer interrupts a hundred times a second on a PC.
cdef int64_t TICK_NS = 10_000_000
# A task that wakes takes the CPU from one that has so many ticks less, and one more.
cdef int64_t HEAD_START = 3
# Half of what is left is kept each time: after so many it counts no more.
cdef int64_t KEPT = 8

cdef enum Yield:
    LAST, EXPIRE, ONCE

YIELDS = ("last", "expire", "once")

cdef enum WakeUp:
    AT_ONCE, AT_TICK, AT_TURNS_END

WAKE_UPS = ("at-once", "at-tick", "at-turns-end")


cdef class GoodnessScheduler(Scheduler):
    """As Linux 2.0: the task runs that has most ticks left.

    Each tick of 10 ms takes one from the `counter` of the running task. When it has none left at a
    tick, or a task wakes that has more than three more, the best one is chosen: the one of most
    ticks, with one more for the running one; of equals the first in the queue. If none has any
    left, the first in the queue runs, and every task, asleep or not, keeps half of what it has and
    gets its priority on top: `slice_ns` in ticks, less or more by its nice value.

    `yields` is what sched_yield does, which changed over time. "last", early in 2.0: the task goes
    to the end of the queue and keeps the CPU. "expire", later in 2.0: it loses its ticks and
    another one is chosen. "once", from 2.2 on: another one is chosen; the task keeps its ticks.

    `wake_ups` is when a task that wakes with so many more ticks takes the CPU: "at-once";
    "at-tick", at the next tick; "at-turns-end", when the running one leaves it.
    """

    cdef int64_t slice_ticks, ticks, recharges, places
    cdef Yield yields
    cdef WakeUp wake_ups
    cdef bint due                    # one must be chosen
    cdef bint due_at_tick            # ... at the next tick
    cdef Schedulable chosen          # ... and has been

    def __init__(self, int64_t slice_ns, yields="expire", wake_ups="at-once"):
        if yields not in YIELDS:
            raise InputError(f"sched_yield is {', '.join(YIELDS)}, not {yields!r}")
        if wake_ups not in WAKE_UPS:
            raise InputError(f"wake_ups are {', '.join(WAKE_UPS)}, not {wake_ups!r}")
        self.wake_ups = WAKE_UPS.index(wake_ups)
        self.slice_ticks = max(<int64_t>1, slice_ns // TICK_NS)
        self.yields = YIELDS.index(yields)

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        if one.place == 0:
            one.counter, one.recharges = self._priority(one), self.recharges
        self._recharge(one)
        self._go_last(one)
        self.waiting.append(one)
        if (self.running is not None and self.wake_ups != AT_TURNS_END
                and one.counter > self.running.counter + HEAD_START):
            if self.wake_ups == AT_ONCE:
                self.due = True
                self.review(now_ns)
            else:
                self.due_at_tick = True
        return 0

    cdef int arrive(self, Schedulable one, Scheduler other, int64_t now_ns) except -1:
        other.leave()
        one.recharges = self.recharges
        return self.wake(one, now_ns)

    cdef void charge(self, int64_t now_ns, int64_t ran_ns) noexcept:
        cdef int64_t _tick
        for _tick in range(self.ticks, (now_ns + self.ahead_ns) // TICK_NS):
            self.due |= self.due_at_tick
            self.running.counter -= 1
            if self.running.counter < 0:
                self.running.counter = 0
                if self.waiting:
                    self.due = True
                else:
                    self.recharges += 1
                    self._recharge(self.running)
        self.ticks = (now_ns + self.ahead_ns) // TICK_NS

    cdef int64_t turn_ends_ns(self, int64_t since_ns) noexcept:
        if self.due:
            return since_ns
        if self.due_at_tick:
            return (self.ticks + 1) * TICK_NS - self.ahead_ns
        return (self.ticks + self.running.counter + 1) * TICK_NS - self.ahead_ns

    cdef int review(self, int64_t now_ns) except -1:
        cdef Schedulable best
        if self.due:
            self.due = self.due_at_tick = False
            best = self._choose(None)
            if best is not self.running:
                self.put_back()
                self.chosen = best
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        if self.chosen is None:
            self.chosen = self._choose(None)
        self.start(self.chosen)
        self.chosen = None
        self.due_at_tick = False
        self.ticks = (now_ns + self.ahead_ns) // TICK_NS
        return 0

    cdef bint give_way(self, int64_t now_ns) except -1:
        self._go_last(self.running)
        if self.yields == LAST:
            # No more than a return from a system call, at which a waiting wake-up takes the CPU.
            if not self.due_at_tick:
                return False
            self.due_at_tick = False
            self.chosen = self._choose(None)
            if self.chosen is self.running:
                self.chosen = None
                return False
        else:
            if self.yields == EXPIRE:
                self.running.counter = 0
            self.chosen = self._choose(self.running)
        self.put_back()
        self.dispatch(now_ns)
        return True

    cdef bint may_give_way(self) noexcept:
        return (
            self.yields != LAST or self.due_at_tick or self.running.place < self.places)

    cdef int64_t _priority(self, Schedulable one) noexcept:
        """Its ticks in a round. There was no idle class: such a task is as nice as can be."""
        cdef int nice = 19 if one.policy == IDLE else one.nice
        return max(<int64_t>1, self.slice_ticks * (20 - nice) // 20)

    cdef void _go_last(self, Schedulable one) noexcept:
        self.places += 1
        one.place = self.places

    cdef void _recharge(self, Schedulable one) noexcept:
        """Give it what it has missed."""
        one.recharges = max(one.recharges, self.recharges - KEPT)
        while one.recharges < self.recharges:
            one.recharges += 1
            one.counter = one.counter // 2 + self._priority(one)

    cdef Schedulable _choose(self, Schedulable yields):
        """The best one; `yields`, the running one if it does, counts as if it had no ticks."""
        cdef Schedulable best = None, one
        cdef int64_t most = -1, goodness
        for one in [*self.waiting, *([] if self.running is None else [self.running])]:
            goodness = 0 if one is yields else one.counter
            if goodness > 0 and one is self.running:
                goodness += 1
            if goodness > most or goodness == most and one.place < best.place:
                best, most = one, goodness
        if most == 0:
            self.recharges += 1
            for one in self.waiting:
                self._recharge(one)
            if self.running is not None:
                self._recharge(self.running)
        return best
