"""What memory costs the cores of an emulated host: copies by their bytes, cache lines by distance.

An emulated host's cores share no cache, so a line that goes from one to another takes no longer
than one that stays. Handlers and ranks add what it takes on the host that they stand for, about one
line for each hand-over of the ledger (host/charges.pxd, mx/progress.pyx).
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free


cdef class Prices:
    """Prices of one host. `lines_ns`: for each core, what a line costs it from each of the cores,
    ns; `copy_bytes_per_second`: how fast a core copies (0: in no time). `handover_ns`: what a frame
    costs beside its lines whose endpoint another core had last; `cold_packet_ns`: each frame of a
    poll of a ring that another core polled last; `reply_ns`: a pull reply that a handler sends,
    beside what a packet takes to send; `keeps_copies`: ranks pay for what they keep for a resend;
    `poll_ns`: a poll that finds frames, beside these; `send_message_ns`, `receive_message_ns`: a
    message of a rank, beside its packets and events.

    All handlers of a host share one object, since it keeps which core polled each ring.
    """

    def __cinit__(self, lines_ns, int64_t copy_bytes_per_second=0, int64_t handover_ns=0,
                  int64_t cold_packet_ns=0, int64_t reply_ns=0, bint keeps_copies=False,
                  int64_t poll_ns=0, int64_t send_message_ns=0, int64_t receive_message_ns=0):
        cdef uint32_t to, source
        self.prices.cores = <uint32_t>len(lines_ns)
        self.prices.handover_ns = handover_ns
        self.prices.send_message_ns = send_message_ns
        self.prices.receive_message_ns = receive_message_ns
        self.prices.keeps_copies = keeps_copies
        self.cold_packet_ns = cold_packet_ns
        self.reply_ns = reply_ns
        self.poll_ns = poll_ns
        self.prices.copy_ns_per_byte = 1e9 / copy_bytes_per_second if copy_bytes_per_second else 0
        self.prices.lines_ns = <int64_t *>calloc(
            max(1, self.prices.cores * self.prices.cores), sizeof(int64_t))
        if self.prices.lines_ns == NULL:
            raise MemoryError
        for to in range(self.prices.cores):
            for source in range(self.prices.cores):
                self.prices.lines_ns[to * self.prices.cores + source] = lines_ns[to][source]

    cdef bint is_free(self) noexcept nogil:
        cdef uint32_t index
        for index in range(self.prices.cores * self.prices.cores):
            if self.prices.lines_ns[index] != 0:
                return False
        return (self.prices.copy_ns_per_byte == 0 and self.prices.handover_ns == 0
                and self.cold_packet_ns == 0 and self.poll_ns == 0
                and self.prices.send_message_ns == 0 and self.prices.receive_message_ns == 0)

    cdef int64_t begin_poll(self, uint32_t vector, uint32_t core) noexcept nogil:
        cdef uint32_t last = self.polled_by[vector]
        self.polled_by[vector] = core
        return self.cold_packet_ns if last != 0 and last != core else 0

    def __dealloc__(self):
        free(self.prices.lines_ns)
