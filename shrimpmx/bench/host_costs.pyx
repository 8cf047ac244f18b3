"""What this host charges a process: handing a CPU over, keeping it, and waiting itself."""

import mmap
import numpy as np
import os
import signal
from contextlib import contextmanager

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset
from posix.signal cimport kill
from posix.types cimport pid_t
from posix.unistd cimport getpid

from shrimpmx.bench.probe cimport SAMPLES_MAX, block_until, keep, page_of, shared_page
from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32, store_release_u32
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.futex cimport futex_wait, futex_wake, wait_slot, wait_slot_wake
from shrimpmx.native.notify cimport notify_install, notify_remove, notify_set_slot
from shrimpmx.wait.waiter cimport WAIT_READY, FlagWatch, Waiter

from shrimpmx.bench.probe import Shared, child, pinned
from shrimpmx.native import cores
from shrimpmx.native.notify import default_signal
from shrimpmx.shared.private import private_control
from shrimpmx.wait.names import make_strategy


cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef enum:
    # Between two readings of the clock, another process had the CPU (ours).
    GAP_NS = 200_000
    # No probe lasts longer.
    LONGEST_NS = 60_000_000_000


cdef void _block_answer(shared_page *page, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 1
    while block_until(page, 1, turn, deadline_ns):
        store_release_u32(&page.turn, turn + 1)  # H1: hands the turn over; pairs with H2
        wait_slot_wake(&page.slots[0])
        turn += 2


cdef void _block_ask(shared_page *page, int64_t end_ns, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 0
    cdef int64_t begin_ns = monotonic_now_ns()
    cdef int64_t now_ns = begin_ns
    while page.count < SAMPLES_MAX and now_ns < end_ns:
        store_release_u32(&page.turn, turn + 1)  # H2: hands the turn over; pairs with H1
        wait_slot_wake(&page.slots[1])
        turn += 2
        if not block_until(page, 0, turn, deadline_ns):
            return
        now_ns = monotonic_now_ns()
        keep(page, (now_ns - begin_ns) // 2)
        begin_ns = now_ns


cdef bint _yield_until(shared_page *page, uint32_t turn, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turns = 0
    while load_acquire_u32(&page.turn) != turn:
        turns += 1
        if load_acquire_u32(&page.stop) or (turns % 64 == 0 and monotonic_now_ns() > deadline_ns):
            return False
        sched_yield()
    return True


cdef void _yield_answer(shared_page *page, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 1
    while _yield_until(page, turn, deadline_ns):
        store_release_u32(&page.turn, turn + 1)
        turn += 2


cdef void _yield_ask(shared_page *page, int64_t end_ns, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 0
    cdef int64_t begin_ns = monotonic_now_ns()
    cdef int64_t now_ns = begin_ns
    while page.count < SAMPLES_MAX and now_ns < end_ns:
        store_release_u32(&page.turn, turn + 1)
        turn += 2
        if not _yield_until(page, turn, deadline_ns):
            return
        now_ns = monotonic_now_ns()
        keep(page, (now_ns - begin_ns) // 2)
        begin_ns = now_ns


def _answer_blocking(shared):
    cdef shared_page *page = page_of(shared)
    with nogil:
        _block_answer(page, monotonic_now_ns() + LONGEST_NS)


def _answer_yielding(shared):
    cdef shared_page *page = page_of(shared)
    with nogil:
        _yield_answer(page, monotonic_now_ns() + LONGEST_NS)


def _spin(shared):
    cdef shared_page *page = page_of(shared)
    cdef int64_t deadline_ns = monotonic_now_ns() + LONGEST_NS
    with nogil:
        while not load_acquire_u32(&page.stop) and monotonic_now_ns() < deadline_ns:
            cpu_pause()


def wake_up(int cpu_a, int cpu_b, double seconds=0.2):
    """One way of a ping-pong between two processes that both block: wake-up and switch, ns.

    Equal CPUs give the wake-up on one CPU, different ones across. Returns float64 samples, fewer
    on a busy machine.
    """
    shared = Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with child(shared, cpu_b, _answer_blocking), pinned(cpu_a):
        with nogil:
            _block_ask(page, monotonic_now_ns() + budget_ns, monotonic_now_ns() + 3 * budget_ns)
    return shared.samples()


def context_switch(int cpu, double seconds=0.2):
    """Handing a CPU to and fro between two processes by sched_yield, ns per switch."""
    shared = Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with child(shared, cpu, _answer_yielding), pinned(cpu):
        with nogil:
            _yield_ask(page, monotonic_now_ns() + budget_ns, monotonic_now_ns() + 3 * budget_ns)
    return shared.samples()


def time_slices(int cpu, double seconds):
    """How long a process keeps its CPU while another one wants it, ns."""
    shared = Shared()
    cdef int64_t now_ns, before_ns, end_ns, began_ns = 0
    found = []
    with child(shared, cpu, _spin), pinned(cpu):
        before_ns = monotonic_now_ns()
        end_ns = before_ns + <int64_t>(seconds * 1e9)
        while before_ns < end_ns:
            with nogil:
                now_ns = monotonic_now_ns()
                while now_ns - before_ns < GAP_NS and now_ns < end_ns:
                    before_ns = now_ns
                    now_ns = monotonic_now_ns()
            if now_ns - before_ns >= GAP_NS:
                if began_ns:  # from the end of a gap to the next: others on the CPU do not count
                    found.append(before_ns - began_ns)
                began_ns = now_ns
            before_ns = now_ns
    return np.array(found, dtype=np.float64)


# -- What a process takes of a host that keeps its CPU: looks, yields, signals.

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef enum:
    BATCH = 1000


def looks(int cpu, double seconds):
    """One look of a spinning process and its pause, ns, each the mean of 1000."""
    cdef uint32_t flag = 0
    cdef int64_t begin_ns, now_ns, end_ns
    found = []
    with pinned(cpu):
        now_ns = monotonic_now_ns()
        end_ns = now_ns + <int64_t>(seconds * 1e9)
        while not found or now_ns < end_ns:
            with nogil:
                begin_ns = monotonic_now_ns()
                for _ in range(BATCH):
                    if load_acquire_u32(&flag) != 0:
                        break
                    cpu_pause()
                now_ns = monotonic_now_ns()
            found.append((now_ns - begin_ns) / <double>BATCH)
    return np.array(found)


def yields(int cpu, double seconds):
    """A sched_yield of a process that has its CPU to itself, ns, each the mean of 1000."""
    cdef int64_t begin_ns, now_ns, end_ns
    found = []
    with pinned(cpu):
        now_ns = monotonic_now_ns()
        end_ns = now_ns + <int64_t>(seconds * 1e9)
        while not found or now_ns < end_ns:
            with nogil:
                begin_ns = monotonic_now_ns()
                for _ in range(BATCH):
                    sched_yield()
                now_ns = monotonic_now_ns()
            found.append((now_ns - begin_ns) / <double>BATCH)
    return np.array(found)


def system_calls(int cpu, double seconds):
    """A sched_yield of a process that has its CPU to itself, and a look at the clock, ns, each by
    itself."""
    cdef int64_t begin_ns, now_ns, end_ns
    found = []
    with pinned(cpu):
        now_ns = monotonic_now_ns()
        end_ns = now_ns + <int64_t>(seconds * 1e9)
        while not found or now_ns < end_ns:
            with nogil:
                begin_ns = monotonic_now_ns()
                sched_yield()
                now_ns = monotonic_now_ns()
            found.append(now_ns - begin_ns)
    return np.array(found, np.float64)


cdef int64_t _kills(pid_t process, int number) noexcept nogil:
    """ns that a batch of calls takes."""
    cdef int64_t begin_ns = monotonic_now_ns()
    for _ in range(BATCH):
        kill(process, number)
    return monotonic_now_ns() - begin_ns


def signals(int cpu, double seconds):
    """A signal's way to the handler of a notification and back, ns, each the mean of 1000: by how
    much it makes a call longer that sends it to its own process. The handler wakes sleepers, of
    which there are none.
    """
    cdef wait_slot slot
    cdef int64_t with_ns, without_ns, end_ns
    cdef pid_t process = getpid()
    cdef int number = default_signal()
    found = []
    with pinned(cpu):
        end_ns = monotonic_now_ns() + <int64_t>(seconds * 1e9)
        memset(&slot, 0, sizeof(slot))
        notify_install(number)
        notify_set_slot(&slot)
        try:
            while not found or monotonic_now_ns() < end_ns:
                with nogil:
                    without_ns = _kills(process, 0)
                    with_ns = _kills(process, number)
                found.append((with_ns - without_ns) / <double>BATCH)
        finally:
            notify_set_slot(NULL)
            notify_remove()
    return np.array(found)


# -- What waiting itself costs here: a wait that succeeds at once, and waking a blocked process.
#
# The wake-up by a wait slot is compared with the least that any could cost, a bare futex: one store
# and one system call on either side. Both hand a turn to and fro between the same two processes, in
# blocks that alternate, so that whatever changes on the machine changes for both.

cdef enum:
    BLOCK = 32              # exchanges of one kind in a row
    WAITS = 1000            # waits of one figure
    SLEEP_LIMIT_NS = 50_000_000

# Time beyond the measuring after which a process gives up on the other.
GRACE_S = 2.0

cdef struct turn_word:
    uint32_t turn           # handed over last; a futex word
    uint32_t unused[15]

# The turn that a side awaits, and its word.
cdef struct Awaited:
    turn_word *mine
    uint32_t turn


cdef bint has_come(void *context) noexcept nogil:
    cdef Awaited *awaited = <Awaited *>context
    return load_acquire_u32(&awaited.mine.turn) == awaited.turn


cdef bint await_bare(turn_word *mine, uint32_t turn, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t seen = load_acquire_u32(&mine.turn)
    while seen != turn:
        if monotonic_now_ns() > deadline_ns:
            return False
        futex_wait(&mine.turn, seen, SLEEP_LIMIT_NS)
        seen = load_acquire_u32(&mine.turn)
    return True


cdef class _Side:
    """One of the two processes."""

    cdef turn_word *mine
    cdef turn_word *other
    cdef wait_slot *others_slot
    cdef Waiter waiter
    cdef object memory

    def __cinit__(self, control, memory, uint32_t number):
        cdef size_t address = memory.ctypes.data
        self.memory = memory
        self.mine = <turn_word *>address + number
        self.other = <turn_word *>address + (1 - number)
        self.waiter = Waiter(control, number, make_strategy("block"))
        self.others_slot = self.waiter.control.slot(1 - number)

    cdef bint receive(self, uint32_t turn, int64_t deadline_ns) noexcept nogil:
        cdef Awaited awaited
        if uses_bare(turn):
            return await_bare(self.mine, turn, deadline_ns)
        awaited.mine = self.mine
        awaited.turn = turn
        return self.waiter.wait(has_come, &awaited, deadline_ns) == WAIT_READY

    cdef void send(self, uint32_t turn) noexcept nogil:
        store_release_u32(&self.other.turn, turn)  # T1: the turn; pairs with has_come's acquire
        if uses_bare(turn):
            futex_wake(&self.other.turn, 1)
        else:
            wait_slot_wake(self.others_slot)

    cdef void answer(self, int64_t deadline_ns) noexcept nogil:
        cdef uint32_t turn = 1
        while self.receive(turn, deadline_ns):
            self.send(turn)
            turn += 1

    cdef int64_t exchange(self, uint32_t first, int64_t deadline_ns) noexcept nogil:
        """A block of exchanges from turn `first` on; the time taken, 0 if it was not finished."""
        cdef int64_t begin_ns = monotonic_now_ns()
        cdef uint32_t turn
        for turn in range(first, first + <uint32_t>BLOCK):
            self.send(turn)
            if not self.receive(turn, deadline_ns):
                return 0
        return monotonic_now_ns() - begin_ns


cdef inline bint uses_bare(uint32_t turn) noexcept nogil:
    return (turn - 1) // <uint32_t>BLOCK % 2 == 1


@contextmanager
def _two_sides(int cpu_a, int cpu_b, int64_t deadline_ns):
    """This process on `cpu_a`, and a child on `cpu_b` that answers."""
    cdef _Side answering
    control = private_control(["a", "b"], clock="monotonic")
    memory = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.uint8)
    before = os.sched_getaffinity(0)
    parent = os.getpid()
    answerer = os.fork()
    if answerer == 0:
        try:
            cores.die_with_parent(parent)
            cores.pin([cpu_b])
            answering = _Side(control, memory, 1)
            with nogil:
                answering.answer(deadline_ns)
        finally:
            os._exit(0)
    try:
        os.sched_setaffinity(0, {cpu_a})
        yield _Side(control, memory, 0)
    finally:
        os.sched_setaffinity(0, before)
        os.kill(answerer, signal.SIGKILL)
        os.waitpid(answerer, 0)


def wake_ups(int cpu_a, int cpu_b, double seconds):
    """Waking a process that blocks, from a store to the woken process's next one: ns.

    Returns two float64 arrays of equal length: by wait_slot_wake and the strategy `block`, and by a
    bare futex; element for element from neighbouring blocks. Each figure is the mean one way of 32
    exchanges. Fewer on a busy machine.
    """
    cdef int64_t end_ns = monotonic_now_ns() + <int64_t>(seconds * 1e9)
    cdef int64_t deadline_ns = end_ns + <int64_t>(GRACE_S * 1e9)
    cdef int64_t slot_ns, bare_ns
    cdef uint32_t turn = 1
    cdef _Side side
    by_slot, by_futex = [], []
    with _two_sides(cpu_a, cpu_b, deadline_ns) as one:
        side = one
        while not by_slot or monotonic_now_ns() < end_ns:
            with nogil:
                slot_ns = side.exchange(turn, deadline_ns)
                bare_ns = side.exchange(turn + BLOCK, deadline_ns) if slot_ns else 0
            if bare_ns == 0:
                break
            if turn > 1:  # the first blocks warm up, and see the child start
                by_slot.append(slot_ns / (2 * BLOCK))
                by_futex.append(bare_ns / (2 * BLOCK))
            turn += 2 * BLOCK
    return np.array(by_slot, np.float64), np.array(by_futex, np.float64)


def at_once(double seconds):
    """A wait for a flag that has changed already: ns per wait, float64, each the mean of 1000."""
    control = private_control(["a"])
    cdef Waiter waiter = Waiter(control, 0, make_strategy("spin-block"))
    cdef uint32_t flag = 1
    cdef FlagWatch watch
    cdef int64_t end_ns = monotonic_now_ns() + <int64_t>(seconds * 1e9)
    cdef int64_t begin_ns = 0, now_ns = 0
    watch.address = &flag
    watch.seen = 0
    found = []
    while not found or now_ns < end_ns:
        with nogil:
            begin_ns = monotonic_now_ns()
            for _ in range(WAITS):
                waiter.wait_flags(&watch, 1, begin_ns)
            now_ns = monotonic_now_ns()
        found.append((now_ns - begin_ns) / WAITS)
    return np.array(found, np.float64)
