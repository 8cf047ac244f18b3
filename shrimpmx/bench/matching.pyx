"""The library's matching by itself, and MPI's calls through the table of functions.

Receives and messages are plain numbers here, given by the caller: what a match costs, and the
receive that it finds.
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.mpi.abi cimport MPI_BYTE, MPI_COMM_WORLD, MPI_SUCCESS, MPI_Request, no_status
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mx.match_table cimport (
    Matching, matching_close, matching_keep, matching_open, matching_post, matching_remove,
    matching_take_posted, matching_unexpected,
)
from shrimpmx.mx.types cimport REQUEST_POSTED, REQUEST_UNEXPECTED, MxRequest, list_clear
from shrimpmx.native.clock cimport monotonic_now_ns

from shrimpmx.errors import InputError, MxError


cdef uint64_t ALL_BITS = <uint64_t>0xFFFFFFFFFFFFFFFF
# Exchanges between two looks at the clock: its cost is below a nanosecond each.
cdef uint32_t BATCH = 1000


cdef class Matcher:
    """Room for receives and messages numbered from 0 to `numbers` - 1.

    The context id is the `context_bits` bits of a match from bit `context_shift` on; `entries`
    is the size of the tables at first. Raises InputError for a context id beyond 64 bits.
    """

    cdef Matching matching
    cdef MxRequest *requests
    cdef uint64_t numbers
    cdef uint64_t counted
    cdef uint64_t grew

    def __init__(self, uint64_t numbers, uint32_t context_bits=0, uint32_t context_shift=0,
                 uint64_t entries=16):
        matching_open(&self.matching, entries, context_bits, context_shift, &self.grew,
                      &self.counted)
        self.numbers = numbers
        self.requests = <MxRequest *>calloc(numbers, sizeof(MxRequest))
        if self.requests == NULL:
            raise MemoryError(f"not enough memory for {numbers} requests")
        for i in range(numbers):
            list_clear(&self.requests[i].queue)

    def __dealloc__(self):
        matching_close(&self.matching)
        free(self.requests)

    cdef MxRequest *idle(self, uint64_t number) except NULL:
        if number >= self.numbers:
            raise InputError(f"there is no request {number}; there are {self.numbers}")
        if self.requests[number].flags & (REQUEST_POSTED | REQUEST_UNEXPECTED):
            raise InputError(f"request {number} waits already")
        return &self.requests[number]

    cdef object number_of(self, MxRequest *request):
        return None if request == NULL else request - self.requests

    def post(self, uint64_t number, uint64_t match, uint64_t mask=ALL_BITS) -> None:
        """Receive `number` waits for a message with `match == (mask & its match)`."""
        cdef MxRequest *receive = self.idle(number)
        receive.match = match
        receive.mask = mask
        matching_post(&self.matching, receive)

    def keep(self, uint64_t number, uint64_t match) -> None:
        """Message `number` waits for a receive."""
        cdef MxRequest *kept = self.idle(number)
        kept.match = match
        matching_keep(&self.matching, kept)

    def take_posted(self, uint64_t match) -> int | None:
        """The oldest receive that takes such a message; it waits no longer. None: none does."""
        return self.number_of(matching_take_posted(&self.matching, match))

    def unexpected(self, uint64_t match, uint64_t mask=ALL_BITS) -> int | None:
        """The oldest message that such a receive takes; it goes on waiting. None: there is none."""
        return self.number_of(matching_unexpected(&self.matching, match, mask))

    def remove(self, uint64_t number) -> None:
        """The receive or message waits no longer; harmless if it did not."""
        if number < self.numbers:
            matching_remove(&self.matching, &self.requests[number])

    @property
    def comparisons(self):
        """Receives and messages looked at so far."""
        return self.counted

    @property
    def grown(self):
        """How often a table had to grow."""
        return self.grew


def exchange(uint64_t posted, double seconds):
    """Nanoseconds to match a message and post its receive again, of `posted` receives.

    Receives have distinct matches; messages come in an order without pattern. An array, one
    figure for each thousand exchanges.
    """
    cdef Matcher matcher = Matcher(posted)
    cdef uint64_t drawn = 1
    cdef int64_t begin_ns, end_ns, until_ns
    cdef MxRequest *receive
    for number in range(posted):
        matcher.post(number, number)
    figures = []
    end_ns = monotonic_now_ns()
    until_ns = end_ns + <int64_t>(seconds * 1e9)
    while not figures or end_ns < until_ns:
        begin_ns = monotonic_now_ns()
        with nogil:
            for _ in range(BATCH):
                drawn = drawn * <uint64_t>6364136223846793005 + <uint64_t>1442695040888963407
                receive = matching_take_posted(&matcher.matching, (drawn >> 33) % posted)
                matching_post(&matcher.matching, receive)
        end_ns = monotonic_now_ns()
        figures.append((end_ns - begin_ns) / <double>BATCH)
    return np.array(figures)


# -- MPI's calls as a compiled program makes them: through the table of functions.

cdef enum:
    BYTES_MAX = 4096


def mpi_round_trips(table, int other, bint first, int count, int size_bytes):
    """Exchange `count` messages of `size_bytes`, 4096 at most, with rank `other`; `first`: this
    rank sends first. `table`: the capsule that shrimpmx.mpi.world.begin returns. MxError if a call
    fails.
    """
    cdef mpi_table *calls = <mpi_table *>PyCapsule_GetPointer(table, "shrimpmx.mpi.world.table")
    cdef char[BYTES_MAX] data
    cdef int _turn, code = MPI_SUCCESS
    with nogil:
        for _turn in range(count):
            if first:
                code |= calls.Send(data, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD)
            code |= calls.Recv(data, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, no_status())
            if not first:
                code |= calls.Send(data, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD)
    check(code)


def mpi_exchanges(table, int other, bint first, int count, int size_bytes):
    """The same by Irecv, Isend and Wait, with both messages on their way at once."""
    cdef mpi_table *calls = <mpi_table *>PyCapsule_GetPointer(table, "shrimpmx.mpi.world.table")
    cdef char[BYTES_MAX] data, received
    cdef MPI_Request[2] requests
    cdef int _turn, code = MPI_SUCCESS
    with nogil:
        for _turn in range(count):
            code |= calls.Irecv(received, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                                &requests[0])
            code |= calls.Isend(data, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1])
            code |= calls.Wait(&requests[0], no_status())
            code |= calls.Wait(&requests[1], no_status())
    check(code)


cdef int check(int code) except -1:
    if code != MPI_SUCCESS:
        raise MxError(f"a call of MPI failed with {code}")
    return 0
