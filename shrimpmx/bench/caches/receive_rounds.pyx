"""The node under test: its interrupt handler and its rank, on one core, in compiled loops.

What runs here runs in the simulated cache. So there is no Python between two packets, and NICs,
link, far node and dma agent live in another process, which works while this one waits for a pipe.
The clock is virtual.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from posix.unistd cimport read, write

from shrimpmx.host.interrupts cimport InterruptAgent
from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.progress cimport library_ready, next_timer_ns
from shrimpmx.mx.types cimport REQUEST_DONE, STATUS_SUCCESS
from shrimpmx.native.atomics cimport load_relaxed_u64
from shrimpmx.native.clock cimport clock_now_ns
from shrimpmx.workloads.messages cimport check_partner, make_buffers

from shrimpmx.errors import AbortedError, MxError

cdef extern from *:
    """
    /* Behind a function's last call: callgrind does not see a call that is a jump. */
    static inline void no_tail_call(void) { __asm__ volatile("" ::: "memory"); }

    /* Callgrind's START_INSTRUMENTATION, by instructions that valgrind knows and that do nothing
       on a CPU. */
    static inline void simulate_from_here(void)
    {
        volatile uint64_t request[6] = {0x43540004};
    #if defined(__x86_64__)
        uint64_t answer = 0;
        __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi;"
                         "xchgq %%rbx, %%rbx"
                         : "+d"(answer) : "a"(request) : "cc", "memory");
    #elif defined(__aarch64__)
        register uint64_t answer __asm__("x3") = 0;
        register volatile uint64_t *asked __asm__("x4") = request;
        __asm__ volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51;"
                         "ror x12, x12, #61; orr x10, x10, x10"
                         : "+r"(answer) : "r"(asked) : "cc", "memory");
    #endif
        (void)answer;
    }
    """
    void no_tail_call() noexcept nogil
    void simulate_from_here() noexcept nogil

cdef enum:
    ANY_MATCH = 0


cdef class ReceiveRounds:
    """Answers messages of a far node that takes turns with this process.

    `to_others` gets 16 bytes per turn: when this node next wants to run, ns, and whether it did
    anything; then it waits for a byte from `from_others`. The simulation of caches begins when it
    is made.
    """

    def __init__(self, InterruptAgent handler not None, Endpoint endpoint not None,
                 int from_others, int to_others):
        self.handler = handler
        self.endpoint = endpoint
        self.from_others = from_others
        self.to_others = to_others
        simulate_from_here()

    def turn(self) -> None:
        """Let the others work once, then this node. AbortedError if they are gone."""
        if not self.let_others():
            raise AbortedError("the process with the far node has ended")
        self.take_turn()

    def begin(self, Partner partner not None, uint32_t size_bytes, uint64_t count) -> None:
        """Post the receive for the first of `count` messages of `size_bytes` from the partner."""
        cdef uint8_t[::1] incoming, outgoing
        check_partner(self.endpoint, partner)
        incoming = make_buffers(size_bytes, 1)
        outgoing = make_buffers(size_bytes, 1)
        self.buffers = (incoming, outgoing)
        self.incoming, self.outgoing = &incoming[0], &outgoing[0]
        self.partner = partner.partner
        self.size_bytes = size_bytes
        self.received, self.expected = 0, count
        self.receive = self.endpoint.irecv_c(self.incoming, size_bytes, ANY_MATCH, 0)
        if self.receive == NULL:
            raise MemoryError("not enough memory for another request")

    def warm(self, uint64_t count) -> None:
        """Answer `count` messages, which do not count."""
        self.check(self.warm_rounds(count))

    def measure(self, uint64_t count) -> None:
        """Answer `count` messages; callgrind counts, and dumps at the end."""
        self.check(self.measured_rounds(count))

    def end(self) -> None:
        """Let the last reply arrive."""
        while self.reply != NULL:
            self.turn()
            self.check(True)

    cdef int check(self, bint is_fine) except -1:
        if self.failed:
            raise MxError("a message of the simulated run was lost or came out of turn", "lost")
        if not is_fine:
            raise AbortedError("the process with the far node has ended")
        return 0

    cdef bint warm_rounds(self, uint64_t count) noexcept nogil:
        cdef bint is_fine = self.rounds(count)
        no_tail_call()
        return is_fine

    cdef bint measured_rounds(self, uint64_t count) noexcept nogil:
        cdef bint is_fine = self.rounds(count)
        no_tail_call()
        return is_fine

    cdef bint rounds(self, uint64_t count) noexcept nogil:
        cdef uint64_t last = self.received + count
        while self.received < last and not self.failed:
            if not self.let_others():
                return False
            self.take_turn()
        return not self.failed

    cdef bint let_others(self) noexcept nogil:
        cdef int64_t[2] report
        cdef uint8_t go
        report[0] = min(self.handler.next_due_ns, next_timer_ns(self.endpoint.library))
        report[1] = self.worked
        if write(self.to_others, report, sizeof(report)) != sizeof(report):
            return False
        return read(self.from_others, &go, 1) == 1

    cdef void take_turn(self) noexcept nogil:
        """The handler if there is an interrupt, then the rank if there is news for it."""
        cdef int64_t now_ns = clock_now_ns(self.endpoint.control.clock())
        self.worked = False
        if (load_relaxed_u64(&self.handler.interrupts.pending) != 0
                or self.handler.next_due_ns <= now_ns):
            self.handler_side(now_ns)
            self.worked = True
        if (library_ready(<void *>self.endpoint.library)
                or next_timer_ns(self.endpoint.library) <= now_ns):
            self.worked = True
            self.library_side()
            no_tail_call()

    cdef void handler_side(self, int64_t now_ns) noexcept nogil:
        self.handler.step(now_ns)
        no_tail_call()

    cdef void library_side(self) noexcept nogil:
        self.pass_and_answer()
        no_tail_call()

    cdef void pass_and_answer(self) noexcept nogil:
        """A pass of the library; a message that is there is answered."""
        self.endpoint.progress_c()
        if self.reply != NULL and self.reply.flags & REQUEST_DONE:
            self.endpoint.release_c(self.reply)
            self.reply = NULL
        if self.receive == NULL or not self.receive.flags & REQUEST_DONE:
            return
        if self.reply != NULL or self.receive.status != STATUS_SUCCESS:
            self.failed = True
            return
        self.endpoint.release_c(self.receive)
        self.received += 1
        self.receive = NULL
        if self.received < self.expected:
            self.receive = self.endpoint.irecv_c(self.incoming, self.size_bytes, ANY_MATCH, 0)
            self.failed = self.receive == NULL
        self.reply = self.endpoint.isend_c(
            self.partner, self.outgoing, self.size_bytes, ANY_MATCH)
        self.endpoint.doorbell_c()
        if self.reply == NULL:
            self.failed = True
        elif self.reply.flags & REQUEST_DONE:
            self.endpoint.release_c(self.reply)
            self.reply = NULL
