"""Ping-pong over SHRIMP's base library: two processes write each other's flag in turn.

The waiting paper's micro-benchmark (5.1, Figures 2 and 3): one word, no library above virtual
memory-mapped communication, computing before each send.
"""

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.layout cimport COUNTER_recv_messages
from shrimpmx.shared.vmmc cimport VMMC_LETTER_GONE, VMMC_WATCHED_MAX, vmmc_letter
from shrimpmx.vmmc.buffers cimport Export, Import
from shrimpmx.vmmc.process cimport VMMC_ASK_INTERRUPT, VMMC_DONE, VMMC_STOPPED, VmmcProcess
from shrimpmx.wait.waiter cimport WAIT_READY, FlagWatch, WatchList, any_flag_changed
from shrimpmx.workloads.messages cimport Delays, delays_between, next_delay_ns

from shrimpmx.errors import InputError, VmmcError


# -- Two processes of VMMC that write each other's flags: what the ping-pongs there share.
#
# Each exports memory that the other maps, as programs on SHRIMP's base library do (waiting paper,
# 2.2). A peer that closes or dies ends a wait: its NIC sends a letter, and each wait watches the
# mailbox too.

# A rank exports nothing else, so that its peer knows the index.
cdef enum:
    EXPORT_INDEX = 0
    PAGE_BYTES = 4096

# How long a peer may take to export and to map, and the times between two looks, by which ranks
# begin apart: far below spin limits, or the first wait ends in a sleep; and between two
# questions whether it lives, ns (ours).
cdef int64_t MEETING_LIMIT_NS = 20_000_000_000
cdef int64_t LOOK_NS = 20_000
cdef int64_t QUESTION_NS = 100_000_000


cdef class Peer:
    """The process at an endpoint of another node, mapped, and `length` bytes that it maps of ours.

    `offsets` say where in ours the 32-bit flags lie that waits are for; the last word is taken.
    Both sides make it once both processes are open: each waits until the other has mapped it.
    Raises VmmcError "gone" if the peer has closed, "timeout" if it does not map within 20 s;
    InputError if the flags lie on more pages than one wait can watch.
    """

    def __init__(self, VmmcProcess process not None, uint32_t node, uint32_t endpoint,
                 uint64_t length=PAGE_BYTES, offsets=(0,)):
        cdef Export ours = process.export(length, allowed_node=node)
        cdef Import theirs
        self.process = process
        self.host = process.host
        self.node = node
        self.endpoint = endpoint
        self.ours = ours
        self.memory = ours.start
        self.length = length
        if ours.index != EXPORT_INDEX:
            raise InputError("a ping-pong rank exports no other buffer")
        theirs = mapped(process, node, endpoint)
        self.theirs = theirs
        self.import_index = theirs.index
        self.meet()
        self.choose(offsets)  # to map is to wait for something else
        self.read_mail()

    def __dealloc__(self):
        free(self.watches)

    cdef int meet(self) except -1:
        cdef uint32_t *met = <uint32_t *>(self.memory + self.length - sizeof(uint32_t))
        cdef int64_t until_ns = self.host.now_c() + MEETING_LIMIT_NS
        cdef int64_t question_ns = self.host.now_c() + QUESTION_NS
        self.theirs.set_flag(self.theirs.length - sizeof(uint32_t), 1, False)
        while load_acquire_u32(met) == 0:
            if self.process.control.stop_state() != "no":
                self.check(PEER_STOPPED, 0)
            if self.host.now_c() > until_ns:
                raise late(self.node, self.endpoint)
            if self.host.now_c() > question_ns:
                # Of the death of a peer that has not mapped ours no letter tells.
                mapped(self.process, self.node, self.endpoint).unmap()
                question_ns = self.host.now_c() + QUESTION_NS
            self.host.sleep(LOOK_NS)
        return 0

    cdef int choose(self, object offsets) except -1:
        cdef uint32_t count = len(offsets)
        cdef uint32_t **addresses = <uint32_t **>calloc(count, sizeof(uint32_t *))
        cdef bint watched
        self.flags_count = count
        self.watches = <FlagWatch *>calloc(count + 1, sizeof(FlagWatch))
        if addresses == NULL or self.watches == NULL:
            free(addresses)
            raise MemoryError
        for index, offset in enumerate(offsets):
            addresses[index] = <uint32_t *>(self.memory + <uint64_t>offset)
            self.watches[index].address = addresses[index]
        self.watches[count].address = <const void *>&self.process.mailbox.letters.head
        watched = self.process.watch_c(addresses, count)
        free(addresses)
        if not watched:
            raise InputError(
                f"{count} flags lie on more pages than a wait can watch ({VMMC_WATCHED_MAX - 1})")
        return 0

    cdef PeerResult put_c(self, uint64_t offset, const void *data, uint64_t length) noexcept nogil:
        return sent(self.process.update_c(self.import_index, offset, data, length, 0))

    cdef PeerResult set_flag_c(self, uint64_t offset, uint32_t value) noexcept nogil:
        cdef PeerResult result = sent(self.process.update_c(
            self.import_index, offset, &value, sizeof(value), VMMC_ASK_INTERRUPT))
        self.process.doorbell_c()
        return result

    cdef PeerResult wait_c(self) noexcept nogil:
        cdef WatchList flags, all_of_them
        cdef uint64_t *counters = self.process.counters
        flags.watches = all_of_them.watches = self.watches
        flags.count = self.flags_count
        all_of_them.count = self.flags_count + 1
        while True:
            self.waits += 1
            if self.process.wait_c(any_flag_changed, &all_of_them, NEVER_NS) != WAIT_READY:
                return PEER_STOPPED
            if any_flag_changed(&flags):
                counters[COUNTER_recv_messages] += 1
                return PEER_DONE
            self.spurious += 1
            if not self.read_mail():
                return PEER_GONE

    cdef PeerResult expect_c(self, uint32_t wanted) noexcept nogil:
        cdef PeerResult result = self.wait_c()
        if result != PEER_DONE:
            return result
        self.watches[0].seen = load_acquire_u32(self.watches[0].address)
        return PEER_DONE if self.watches[0].seen == wanted else PEER_CORRUPT

    cdef bint read_mail(self) noexcept nogil:
        cdef vmmc_letter letter
        cdef bint there = True
        while True:
            # Before the look: a letter that comes behind it differs from this.
            self.watches[self.flags_count].seen = load_acquire_u32(
                self.watches[self.flags_count].address)
            if not self.process.take_letter_c(&letter):
                return there
            if (letter.kind == VMMC_LETTER_GONE and letter.node == self.node
                    and letter.endpoint == self.endpoint):
                there = False

    cdef int check(self, PeerResult result, uint64_t number) except -1:
        if result == PEER_DONE:
            return 0
        where = f"endpoint {self.process.index} of node {self.process.node.index}"
        peer = f"endpoint {self.endpoint} of node {self.node}"
        if result == PEER_STOPPED:
            raise self.host.ended(f"the run was stopped while {where} was at work")
        if result == PEER_GONE:
            raise VmmcError(f"{peer} has closed before message {number} of {where}", "gone")
        raise VmmcError(f"{where} found a wrong flag for message {number}", "corrupted")


cdef PeerResult sent(int status) noexcept nogil:
    """What an update came to. Offsets are within the export: all else is a peer that is gone."""
    if status == VMMC_DONE:
        return PEER_DONE
    return PEER_STOPPED if status == VMMC_STOPPED else PEER_GONE


cdef Import mapped(VmmcProcess process, uint32_t node, uint32_t endpoint):
    """The peer's memory, as soon as it has exported it."""
    cdef int64_t until_ns = process.host.now_c() + MEETING_LIMIT_NS
    while True:
        try:
            return process.map(node, endpoint, EXPORT_INDEX)
        except VmmcError as error:
            if error.status == "no-process":
                raise VmmcError(f"endpoint {endpoint} of node {node} has closed", "gone") from None
            if error.status != "not-exported":
                raise
        if process.host.now_c() > until_ns:
            raise late(node, endpoint)
        process.host.sleep(LOOK_NS)


cdef object late(uint32_t node, uint32_t endpoint):
    return VmmcError(
        f"endpoint {endpoint} of node {node} was not ready within {MEETING_LIMIT_NS / 1e9:g} s",
        "timeout")


cdef enum:
    FLAG = 0                 # where the flag lies


def pingpong(Peer peer not None, bint initiator, uint32_t iterations, uint32_t warmup,
             int64_t delay_ns=0, int64_t delay_max_ns=0, uint64_t seed=1):
    """Exchange `warmup` + `iterations` words with `peer`, which was made with its defaults.

    Before each send a rank computes for `delay_ns`, or if `delay_max_ns` is not 0 for a time drawn
    evenly between the two from `seed`. That delay uses its CPU: time during which it is preempted
    does not count. The clock that it looks at all the while is part of it, as those of the paper's
    delay loop were, and belongs to the user time that `spin` shows.

    Returns half the round trip of each iteration behind the warm-up, ns (int64, one per
    iteration; one delay is in it). The rank that is not the initiator measures from send to send.
    Raises VmmcError if the peer closes or a word is not the next one, AbortedError if the run is
    stopped.
    """
    cdef Delays delays
    cdef int64_t[::1] samples
    cdef uint64_t number = 0
    cdef PeerResult result
    if iterations == 0:
        raise InputError("a ping-pong needs at least one iteration")
    delays_between(&delays, delay_ns, delay_max_ns, seed)
    measured = np.zeros(warmup + iterations, dtype=np.int64)
    samples = measured
    with nogil:
        if initiator:
            result = initiate(peer, &delays, samples, &number)
        else:
            result = respond(peer, &delays, samples, &number)
    peer.check(result, number)
    return measured[warmup:] // 2


cdef PeerResult initiate(Peer peer, Delays *delays, int64_t[::1] samples,
                         uint64_t *number) noexcept nogil:
    cdef int64_t start_ns
    cdef uint32_t word
    cdef PeerResult result
    for word in range(1, <uint32_t>samples.shape[0] + 1):
        number[0] = word - 1
        start_ns = peer.host.now_c()
        if not peer.host.burn_c(next_delay_ns(delays)):
            return PEER_STOPPED
        result = peer.set_flag_c(FLAG, word)
        if result == PEER_DONE:
            result = peer.expect_c(word)
        if result != PEER_DONE:
            return result
        samples[word - 1] = peer.host.now_c() - start_ns
    return PEER_DONE


cdef PeerResult respond(Peer peer, Delays *delays, int64_t[::1] samples,
                        uint64_t *number) noexcept nogil:
    cdef int64_t now_ns
    cdef int64_t before_ns = peer.host.now_c()
    cdef uint32_t word
    cdef PeerResult result
    for word in range(1, <uint32_t>samples.shape[0] + 1):
        number[0] = word - 1
        result = peer.expect_c(word)
        if result != PEER_DONE:
            return result
        if not peer.host.burn_c(next_delay_ns(delays)):
            return PEER_STOPPED
        result = peer.set_flag_c(FLAG, word)
        if result != PEER_DONE:
            return result
        now_ns = peer.host.now_c()
        samples[word - 1] = now_ns - before_ns
        before_ns = now_ns
    return PEER_DONE
