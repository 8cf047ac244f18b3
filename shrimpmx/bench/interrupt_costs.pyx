"""What an interrupt and a timer of this host take, of the processes that stand for them in a run;
and what the NIC takes to choose a packet's rx queue.

A handler is a process of real-time priority, where that is permitted, which sleeps on a CPU: alone
there, or in the place of one that computes.
"""

import numpy as np
import random
import struct
import time
from contextlib import nullcontext

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.bench.probe cimport SETTLE_NS, SLEEP_LIMIT_NS, block_until, keep, page_of, shared_page
from shrimpmx.native.atomics cimport (
    cpu_pause, load_acquire_u32, load_relaxed_u64, store_relaxed_u64, store_release_u32,
)
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.futex cimport WAIT_SLOT_IDLE, futex_wait, wait_slot_wake
from shrimpmx.nic.steering cimport FlowTable, Steering
from shrimpmx.shared.layout cimport STEERING_ARFS
from shrimpmx.wire.wire cimport (
    NO_ENDPOINT, PTYPE_MEDIUM_FRAG, PTYPE_PULL_REPLY, PTYPE_PULL_REQUEST, PTYPE_SMALL, PTYPE_TINY,
    WIRE_ETHERTYPE, WIRE_MARK, WIRE_NO_PEER, frame_endpoint,
)

from shrimpmx.bench.probe import HANDLER_PRIORITY, Shared, child, pinned
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.private import private_control, private_node


# How long a handler may take to answer, and any process of a measurement to end, ns (ours).
cdef int64_t ANSWER_NS = 1_000_000_000
cdef int64_t LONGEST_NS = 60_000_000_000


cdef void _handle(shared_page *page, const int64_t *since_ns, shared_page *rank) noexcept nogil:
    """The handler, or what one wakes; it keeps how long it runs after `since_ns`, NULL: nothing. It
    wakes the process of the page `rank`, NULL for none, if that has answered, and the other side,
    if that sleeps.
    """
    cdef uint32_t turn = 1, answered
    cdef int64_t limit_ns = monotonic_now_ns() + LONGEST_NS
    while block_until(page, 1, turn, limit_ns):
        # H5: when one that computes last did; sent_ns comes with the turn (H3).
        if since_ns != NULL and page.sent_ns >= page.kept_from_ns and not keep(
                page, monotonic_now_ns() - <int64_t>load_relaxed_u64(<const void *>since_ns)):
            return
        page.done_ns = monotonic_now_ns()
        store_release_u32(&page.turn, turn + 1)  # H3: the sample and done_ns stand; pairs with H4
        wait_slot_wake(&page.slots[0])
        if rank != NULL:
            answered = load_acquire_u32(&rank.turn)  # H4: pairs with H3
            if answered % 2 == 0:
                rank.sent_ns = monotonic_now_ns()
                store_release_u32(&rank.turn, answered + 1)
                wait_slot_wake(&rank.slots[1])
        turn += 2


cdef void _raise(shared_page *page, int64_t budget_ns, bint keeps,
                 int64_t settle_ns=SETTLE_NS, int64_t before_ns=0) noexcept nogil:
    """An interrupt each `settle_ns` after the handler was about to sleep, and at least one, first
    for `before_ns` of which nothing is kept; it `keeps` how long the call takes by which it is
    raised.
    """
    cdef uint32_t turn = 0
    cdef int64_t until_ns
    cdef int64_t end_ns
    page.kept_from_ns = monotonic_now_ns() + before_ns
    end_ns = page.kept_from_ns + budget_ns
    while page.sent_ns < page.kept_from_ns or monotonic_now_ns() < end_ns:
        until_ns = monotonic_now_ns() + ANSWER_NS
        while load_acquire_u32(&page.slots[1].armed) == WAIT_SLOT_IDLE:
            cpu_pause()
            if monotonic_now_ns() > until_ns:
                return
        until_ns = monotonic_now_ns() + settle_ns
        while monotonic_now_ns() < until_ns:
            cpu_pause()
        page.sent_ns = monotonic_now_ns()
        store_release_u32(&page.turn, turn + 1)
        # It may not sleep yet, and needs no call then.
        if wait_slot_wake(&page.slots[1]) and keeps and page.sent_ns >= page.kept_from_ns:
            if not keep(page, monotonic_now_ns() - page.sent_ns):
                return
        turn += 2
        while load_acquire_u32(&page.turn) != turn:  # H4: pairs with H3
            cpu_pause()
            if monotonic_now_ns() > until_ns + ANSWER_NS:
                return


cdef void _raise_here(shared_page *page, int64_t budget_ns) noexcept nogil:
    """Interrupts of a handler on this very CPU; this process sleeps until it has run."""
    cdef uint32_t turn = 0
    cdef int64_t until_ns
    cdef int64_t end_ns = monotonic_now_ns() + budget_ns
    while turn == 0 or monotonic_now_ns() < end_ns:
        until_ns = monotonic_now_ns() + SETTLE_NS
        while monotonic_now_ns() < until_ns:
            cpu_pause()
        page.sent_ns = monotonic_now_ns()
        store_release_u32(&page.turn, turn + 1)
        wait_slot_wake(&page.slots[1])
        turn += 2
        if not block_until(page, 0, turn, until_ns + ANSWER_NS):
            return


cdef void _compute(shared_page *page, shared_page *handler) noexcept nogil:
    """What a handler interrupts; of that of `handler`, NULL for none, it keeps how long after the
    end of each run it goes on.
    """
    cdef uint32_t seen = 0, turn
    cdef int64_t now_ns
    cdef int64_t limit_ns = monotonic_now_ns() + LONGEST_NS
    while not load_acquire_u32(&page.stop):
        turn = 0 if handler == NULL else load_acquire_u32(&handler.turn)  # H4
        now_ns = monotonic_now_ns()
        store_relaxed_u64(<void *>&page.ran_ns, <uint64_t>now_ns)  # H5
        if now_ns > limit_ns:
            return
        if turn != seen and turn % 2 == 0:
            seen = turn
            if not keep(page, now_ns - handler.done_ns):
                return
        cpu_pause()


cdef void _sleep(shared_page *page, const int64_t *since_ns) noexcept nogil:
    """Sleeps to a time, over and over: how late it wakes up, or how long after `since_ns`."""
    cdef int64_t until_ns
    while not load_acquire_u32(&page.stop):
        until_ns = monotonic_now_ns() + SETTLE_NS
        futex_wait(&page.slots[1].word, page.slots[1].word, SETTLE_NS)
        if since_ns != NULL:
            until_ns = <int64_t>load_relaxed_u64(<const void *>since_ns)
        if not keep(page, monotonic_now_ns() - until_ns):
            return


def _handler(shared):
    cdef shared_page *page = page_of(shared)
    with nogil:
        _handle(page, NULL, NULL)


def _timed_handler(shared):
    cdef shared_page *page = page_of(shared)
    with nogil:
        _handle(page, &page.sent_ns, NULL)


def _handler_in_place_of(interrupted):
    """A handler, for child(), that keeps how long after the process of that page it runs."""
    def handle(shared):
        cdef shared_page *page = page_of(shared)
        cdef shared_page *other = page_of(interrupted)
        with nogil:
            _handle(page, &other.ran_ns, NULL)

    return handle


def _handler_that_wakes(rank):
    """A handler, for child(), that wakes the process of the page `rank`."""
    def handle(shared):
        cdef shared_page *page = page_of(shared)
        cdef shared_page *woken = page_of(rank)
        with nogil:
            _handle(page, NULL, woken)

    return handle


def _sleeper(interrupted=None):
    """One that sleeps to times, for child(); `interrupted` is the page of one in whose place it
    comes, and it keeps how long after that.
    """
    def sleep(shared):
        cdef shared_page *page = page_of(shared)
        cdef const int64_t *since_ns = NULL
        if interrupted is not None:
            since_ns = &page_of(interrupted).ran_ns
        with nogil:
            _sleep(page, since_ns)

    return sleep


def _rank(handler=None):
    """A process that computes, for child(); `handler` is the page of one whose ends it notes."""
    def compute(shared):
        cdef shared_page *page = page_of(shared)
        cdef shared_page *other = NULL
        if handler is not None:
            other = page_of(handler)
        with nogil:
            _compute(page, other)

    return compute


def interrupt_to_handler(int cpu_nic, int cpu_core, double seconds=0.2, bint busy=True,
                         int64_t settle_ns=SETTLE_NS, int64_t sleep_ns=SLEEP_LIMIT_NS,
                         int64_t before_ns=0):
    """From raising on `cpu_nic` until the handler runs on `cpu_core`, ns: in the place of a process
    that computes there, or, if not `busy`, alone. It went to sleep `settle_ns` before, for
    `sleep_ns` at most. The first `before_ns` of it do not count.

    The two CPUs must differ: one that raises by itself would measure its own falling asleep.
    """
    if cpu_nic == cpu_core:
        raise ValueError("an interrupt is measured between two CPUs")
    shared = Shared(sleep_ns)
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with (
        child(shared, cpu_core, _timed_handler, HANDLER_PRIORITY),
        child(Shared(), cpu_core, _rank()) if busy else nullcontext(),
        pinned(cpu_nic),
    ):
        with nogil:
            _raise(page, budget_ns, False, settle_ns, before_ns)
    return shared.samples()


def interrupt_stalls(int cpu, int other, double seconds):
    """From when a process on CPU `other` last did anything until a handler runs in its place, which
    an interrupt from `cpu` has woken, ns.
    """
    shared, interrupted = Shared(), Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with (
        child(shared, other, _handler_in_place_of(interrupted), HANDLER_PRIORITY),
        child(interrupted, other, _rank()),
        pinned(cpu),
    ):
        with nogil:
            _raise(page, budget_ns, False)
    return shared.samples()


def wake_calls(int cpu, int other, double seconds, int64_t before_ns=0):
    """The call that wakes a process which sleeps on another CPU, for its caller, ns. The first
    `before_ns` of it do not count.
    """
    shared = Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with child(shared, other, _handler, HANDLER_PRIORITY), pinned(cpu):
        with nogil:
            _raise(page, budget_ns, True, SETTLE_NS, before_ns)
    return shared.samples()


def preempting_wakes(int cpu, double seconds):
    """From waking a process of real-time priority on one's own CPU until it runs, ns. Without that
    priority it may wait until this one sleeps.
    """
    shared = Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with child(shared, cpu, _timed_handler, HANDLER_PRIORITY), pinned(cpu):
        with nogil:
            _raise_here(page, budget_ns)
    return shared.samples()


def handlers_wakes(int cpu, int other, double seconds, int64_t before_ns=0):
    """From when a handler on CPU `other`, which an interrupt from `cpu` has woken, wakes a process
    there and sleeps, until that runs, ns. The first `before_ns` of it do not count.
    """
    shared, rank = Shared(), Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    page_of(rank).kept_from_ns = monotonic_now_ns() + before_ns
    with (
        child(rank, other, _timed_handler),
        child(shared, other, _handler_that_wakes(rank), HANDLER_PRIORITY),
        pinned(cpu),
    ):
        with nogil:
            _raise(page, budget_ns, False, SETTLE_NS, before_ns)
    return rank.samples()


def interrupt_exits(int cpu, int other, double seconds, int64_t sleep_ns=SLEEP_LIMIT_NS):
    """From the end of a handler on CPU `other` until the process goes on that it preempted, ns. The
    handler sleeps for `sleep_ns` at most.
    """
    shared, interrupted = Shared(sleep_ns), Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with (
        child(shared, other, _handler, HANDLER_PRIORITY),
        child(interrupted, other, _rank(shared)),
        pinned(cpu),
    ):
        with nogil:
            _raise(page, budget_ns, False)
    return interrupted.samples()


def late_timers(int cpu, double seconds):
    """From when a process of real-time priority was to wake up until it runs, in the place of one
    that computes, ns.
    """
    shared = Shared()
    with child(shared, cpu, _sleeper(), HANDLER_PRIORITY), child(Shared(), cpu, _rank()):
        time.sleep(seconds)
    return shared.samples()


def timer_stalls(int cpu, double seconds):
    """From when a process last did anything until one of real-time priority runs in its place whose
    sleep a time has ended, ns.
    """
    shared, interrupted = Shared(), Shared()
    with (
        child(interrupted, cpu, _rank()),
        child(shared, cpu, _sleeper(interrupted), HANDLER_PRIORITY),
    ):
        time.sleep(seconds)
    return shared.samples()


# -- What the NIC takes to choose a packet's rx queue: the same steps as in firmware.pyx.
#
# The packets are what a node with eight ranks gets: several types, marked and unmarked, in equal
# numbers and shuffled. They lie in the caches, as a packet does that the NIC is about to copy.

cdef enum:
    QUEUES = 8
    FRAME_BYTES = 64         # of a packet, what steering may look at
    FRAMES = 256
    ROUNDS = 64              # over the packets, for one figure

PULL_MAGIC = 0x21071980
TCP = 6


cdef class _Packets:
    cdef uint8_t frames[FRAMES][FRAME_BYTES]
    cdef Steering steering
    cdef FlowTable flows
    cdef bint follows
    cdef uint32_t total      # so that no choice is left out

    cdef void steer(self) noexcept nogil:
        cdef uint32_t i, queue
        cdef int endpoint
        for i in range(<uint32_t>FRAMES):
            endpoint = frame_endpoint(self.frames[i], FRAME_BYTES)
            if self.follows and endpoint != NO_ENDPOINT:
                self.flows.follow(endpoint)
            queue = self.steering.queue(endpoint, self.frames[i], FRAME_BYTES)
            if endpoint != NO_ENDPOINT:
                self.flows.passed(endpoint, queue, i)
            self.total += queue


def _open_mx(number):
    """A packet of Open-MX for one of eight endpoints, as far as steering looks into it."""
    endpoint, kind = number % 8, number // 8 % 5
    ptype = (PTYPE_TINY, PTYPE_SMALL, PTYPE_MEDIUM_FRAG, PTYPE_PULL_REQUEST, PTYPE_PULL_REPLY)[kind]
    # Of the fragments none is marked, of the replies every other one.
    marked = WIRE_MARK if kind in (0, 1, 3) or (kind == 4 and number % 2 == 0) else 0
    head = bytes(12) + struct.pack(">HHBB", WIRE_ETHERTYPE, WIRE_NO_PEER, ptype | marked, endpoint)
    if ptype == PTYPE_PULL_REPLY:
        head = head.ljust(28, b"\0") + struct.pack(">I", endpoint ^ PULL_MAGIC)
    return head.ljust(FRAME_BYTES, b"\0")


def _tcp(number):
    """A packet of TCP over IPv4, of one of as many connections."""
    addresses = bytes((10, 0, 0, number % 16, 10, 0, 1, 1))
    header = bytes((0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, TCP, 0, 0)) + addresses
    ports = (1024 + number).to_bytes(2, "big") + (80).to_bytes(2, "big")
    return bytes(12) + b"\x08\x00" + header + ports


def per_packet(str steering not None, double seconds):
    """Choose queues for about `seconds`: ns per packet, float64, each the mean of 16 384.

    `steering`: "endpoint" or "arfs", for packets of Open-MX, or "rss", for packets of TCP.
    """
    cdef _Packets packets = _Packets()
    cdef int64_t end_ns = monotonic_now_ns() + <int64_t>(seconds * 1e9)
    cdef int64_t begin_ns = 0, now_ns = 0
    cdef uint32_t i
    layout = NodeLayout(cores=QUEUES, rx_queues=QUEUES, steering=steering, rx_ring_entries=16,
                        core_runners=[0] * QUEUES, core_agents=[0] * QUEUES).place()
    node = private_node(private_control(["nic"], [("nic", "nic", 0)]), layout)
    packets.steering = Steering(node)
    packets.flows = FlowTable(node, 0)
    packets.follows = packets.steering.kind == STEERING_ARFS
    made = [(_tcp if steering == "rss" else _open_mx)(number) for number in range(FRAMES)]
    random.Random(1).shuffle(made)
    for i in range(<uint32_t>FRAMES):
        frame = made[i][:FRAME_BYTES].ljust(FRAME_BYTES, b"\0")
        memcpy(packets.frames[i], <const uint8_t *>frame, FRAME_BYTES)
    found = []
    while not found or now_ns < end_ns:
        with nogil:
            begin_ns = monotonic_now_ns()
            for _ in range(ROUNDS):
                packets.steer()
            now_ns = monotonic_now_ns()
        found.append((now_ns - begin_ns) / <double>(ROUNDS * FRAMES))
    return np.array(found, np.float64)
