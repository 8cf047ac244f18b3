"""What a process does with time: reads it, waits, uses the CPU, sleeps.

Ranks, their libraries and workloads, waiting strategies and runners reach time through the Host of
their process and in no other way. `KernelHost` is the kernel and the run's clock. Simulated runs
have a SimulatedHost or a BatonHost, so that the same compiled code runs to the end under a virtual
clock, exactly. `VirtualHost` has a virtual clock that only its maker moves. An operation works or
fails, and none takes no time.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EINTR
from libc.stdint cimport int64_t, uint32_t, uint64_t
from posix.time cimport (
    CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, clock_gettime, clock_nanosleep, timespec,
)

from shrimpmx.costs.meter cimport Prices, meter_of, pay
from shrimpmx.costs.rows cimport COST_handler_cost_ns, COST_reschedule_cost_ns, cost_row
from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32
from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL, NEVER_NS, burn_ns
from shrimpmx.native.futex cimport futex_wait, wait_slot
from shrimpmx.native.notify cimport notify_count, notify_install, notify_set_cost, notify_set_slot
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport STOP_NO, agent_paid, control_header

from shrimpmx.errors import AbortedError, InputError
from shrimpmx.native.cores import pin
from shrimpmx.native.perf import usage

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept


cdef class Host:
    """Base of all; `control` has the run's clock and its stop word.

    `moves`: time passes in its operations. Where it does not, each of them raises InputError.
    `prices`: of the emulated host, whose costs the process pays in addition to this one's time.
    """

    def __init__(self, Control control not None, Prices prices=None):
        self.control = control
        self.clock = control.clock()
        self.kept_prices = prices
        self.meter = meter_of(prices, NULL)

    def now_ns(self) -> int:
        """The run's clock, ns."""
        return self.program_now_ns()

    def burn(self, int64_t duration_ns) -> None:
        """Compute for `duration_ns` of CPU time; what others use meanwhile does not count."""
        with nogil:
            self.burn_c(duration_ns)
        self.check()

    def sleep(self, int64_t duration_ns) -> None:
        """Leave the CPU to others for `duration_ns`."""
        with nogil:
            self.sleep_c(duration_ns)
        self.check()
        PyErr_CheckSignals()

    def pay_as(self, uint32_t agent) -> None:
        """Note what the process pays in the record of that agent."""
        self.meter.paid = agent_paid(self.control._checked_agent(agent))

    def run_on(self, cpus) -> None:
        """Let this process run on these CPUs only."""
        pin(cpus)

    def usage(self) -> dict[str, int]:
        """What this process has used so far, by the names of shrimpmx.native.perf.usage; ns."""
        return dict.fromkeys(usage(), 0)

    def usage_since(self, before) -> dict[str, int]:
        """What it has used since `before`, its usage() then."""
        return {name: value - before[name] for name, value in self.usage().items()}

    def wait_started(self, int64_t timeout_ns) -> bool:
        """Wait until the ranks may begin or the run stops; False after `timeout_ns`."""
        cdef control_header *header = self.control.header
        cdef int64_t until_ns = self.now_c() + timeout_ns
        # A stop changes no word that this sleeps on, hence the looks in between.
        cdef int64_t look_ns = 100_000_000
        while load_acquire_u32(&header.started) == 0 and load_acquire_u32(&header.stop) == STOP_NO:
            if self.now_c() >= until_ns:
                return False
            with nogil:
                self.block(<uint32_t *><void *>&header.started, 0,
                           min(until_ns, self.now_c() + look_ns))
            self.check()
            PyErr_CheckSignals()
        return True

    def ended(self, sentence: str) -> BaseException:
        """What to raise where a wait ended by itself: that by which it failed, or else the run is
        being stopped: AbortedError(sentence).
        """
        failure, self.failure, self.failed = self.failure, None, False
        return AbortedError(sentence) if failure is None else failure

    cdef int check(self) except -1:
        if self.failed:
            raise self.ended("")
        return 0

    cdef bint same_process(self, Host other):
        return self is other

    cdef int64_t price_ns(self, cost_row which) noexcept nogil:
        return 0 if self.meter.prices == NULL else self.meter.prices.ns[which]

    cdef int charge_notifications(self) except -1:
        return 0

    cdef int take_notifications(self, wait_slot *slot) except -1:
        if slot.signal == 0:
            raise ValueError(
                "notify needs a signal: register the process with one (Control.register_process)"
            )
        notify_install(slot.signal)
        notify_set_slot(slot)
        return 0

    cdef void leave_notifications(self) noexcept nogil:
        notify_set_slot(NULL)

    cdef void pay_notifications(self, uint64_t runs) noexcept nogil:
        pass

    cdef uint64_t notifications(self) noexcept nogil:
        return notify_count()

    cdef bint burn_c(self, int64_t duration_ns) noexcept nogil:
        return False

    cdef bint sleep_c(self, int64_t duration_ns) noexcept nogil:
        return False

    cdef bint pause(self, int64_t until_ns) noexcept nogil:
        return False

    cdef bint yield_cpu(self, int64_t until_ns) noexcept nogil:
        return False

    cdef bint block(self, uint32_t *word, uint32_t seen, int64_t until_ns) noexcept nogil:
        return False

    cdef bint charge_kernel(self, int64_t cost_ns) noexcept nogil:
        return self.charge(cost_ns)

    cdef int64_t cpu_ns(self) noexcept nogil:
        return 0

    cdef int64_t program_now_ns(self) noexcept nogil:
        return self.now_c()

    cdef void call_begins(self) noexcept nogil:
        pass

    cdef void looked_in_vain(self) noexcept nogil:
        pass

    cdef void call_ends(self) noexcept nogil:
        pass


cdef class KernelHost(Host):
    """The kernel's scheduler, and a clock that runs by itself. Its operations always work."""

    def __init__(self, Control control not None, Prices prices=None):
        if control.clock().kind == CLOCK_KIND_VIRTUAL:
            raise InputError("the kernel does not move a virtual clock")
        Host.__init__(self, control, prices)
        self.moves = True

    def usage(self) -> dict[str, int]:
        return usage()

    cdef bint same_process(self, Host other):
        return isinstance(other, KernelHost)

    cdef int charge_notifications(self) except -1:
        notify_set_cost(self.price_ns(COST_handler_cost_ns))
        return 0

    cdef void pay_notifications(self, uint64_t runs) noexcept nogil:
        pay(&self.meter, COST_handler_cost_ns, <int64_t>runs)

    cdef bint burn_c(self, int64_t duration_ns) noexcept nogil:
        burn_ns(self.clock, duration_ns)
        return True

    cdef bint sleep_c(self, int64_t duration_ns) noexcept nogil:
        cdef timespec left
        if duration_ns <= 0:
            return True
        left.tv_sec = duration_ns // 1_000_000_000
        left.tv_nsec = duration_ns % 1_000_000_000
        while clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR:
            pass
        return True

    cdef bint pause(self, int64_t until_ns) noexcept nogil:
        cpu_pause()
        return True

    cdef bint yield_cpu(self, int64_t until_ns) noexcept nogil:
        sched_yield()
        return self.charge(pay(&self.meter, COST_reschedule_cost_ns))

    cdef bint block(self, uint32_t *word, uint32_t seen, int64_t until_ns) noexcept nogil:
        cdef int64_t left_ns = -1
        if until_ns != NEVER_NS:
            left_ns = until_ns - self.now_c()
            if left_ns <= 0:
                return True
        futex_wait(word, seen, left_ns)
        return True

    cdef int64_t cpu_ns(self) noexcept nogil:
        cdef timespec used
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used)
        return <int64_t>used.tv_sec * 1_000_000_000 + used.tv_nsec


cdef class VirtualHost(Host):
    """A virtual clock, and a function in the place of all others.

    `world(until_ns)` is called while this process waits, sleeps or computes: it lets something
    happen, or moves the clock, to `until_ns` at most (None: no limit). What it raises, the call
    raises that waited. Without a world the clock stands still for this process, and every operation
    raises.
    """

    def __init__(self, Control control not None, world=None, Prices prices=None):
        if control.clock().kind != CLOCK_KIND_VIRTUAL:
            raise InputError("a VirtualHost needs a virtual clock")
        Host.__init__(self, control, prices)
        if self.meter.prices != NULL and world is None:
            raise InputError("nothing moves the virtual clock, so no cost can be charged")
        self.world = world
        self.moves = world is not None
        self.runs_python = True

    def usage(self) -> dict[str, int]:
        """Virtual CPU time; there is no kernel here that uses any, switches or faults."""
        used = Host.usage(self)
        used["user_ns"] = used["task_clock_ns"] = self.used_ns
        return used

    cdef int charge_notifications(self) except -1:
        cdef int64_t cost_ns = self.price_ns(COST_handler_cost_ns)
        if cost_ns > 0:
            raise InputError(
                f"a signal handler cannot move a virtual clock, so {cost_ns} ns for each run of "
                "the notification handler cannot be charged")
        notify_set_cost(0)
        return 0

    cdef bint burn_c(self, int64_t duration_ns) noexcept nogil:
        self.used_ns += max(duration_ns, <int64_t>0)
        return self.advance_to(self.now_c() + duration_ns)

    cdef bint sleep_c(self, int64_t duration_ns) noexcept nogil:
        return self.advance_to(self.now_c() + duration_ns)

    cdef bint pause(self, int64_t until_ns) noexcept nogil:
        cdef int64_t before_ns = self.now_c()
        cdef bint went_on = self.advance(until_ns)
        self.used_ns += self.now_c() - before_ns
        return went_on

    cdef bint yield_cpu(self, int64_t until_ns) noexcept nogil:
        return self.advance(until_ns) and self.charge(pay(&self.meter, COST_reschedule_cost_ns))

    cdef bint block(self, uint32_t *word, uint32_t seen, int64_t until_ns) noexcept nogil:
        while load_acquire_u32(word) == seen and self.now_c() < until_ns:
            if not self.advance(until_ns):
                return False
        return True

    cdef int64_t cpu_ns(self) noexcept nogil:
        return self.used_ns

    cdef bint advance_to(self, int64_t until_ns) noexcept nogil:
        """All of the time until then."""
        while self.now_c() < until_ns:
            if not self.advance(until_ns):
                return False
        return True

    cdef bint advance(self, int64_t until_ns) noexcept nogil:
        """Some of the time until then."""
        if self.failed:
            return False
        if not self.moves and until_ns <= self.now_c():
            return True  # no time has to pass
        with gil:
            return self.ask_world(until_ns)

    cdef bint ask_world(self, int64_t until_ns) noexcept:
        try:
            if self.world is None:
                raise InputError(
                    "nothing moves the virtual clock while this process waits, sleeps or "
                    "computes; give its VirtualHost a world that does")
            self.world(None if until_ns == NEVER_NS else until_ns)
            return True
        except BaseException as error:
            self.failure = error
            self.failed = True
        return False


def host_of(Control control not None, Prices prices=None) -> Host:
    """The Host of a process that got none: the kernel's, or of a virtual clock without a world."""
    if control.clock().kind == CLOCK_KIND_VIRTUAL:
        return VirtualHost(control, None, prices)
    return KernelHost(control, prices)
