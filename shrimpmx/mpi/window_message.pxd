"""What ranks do to windows of others: at once where they reach the memory, else by messages."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from shrimpmx.mpi.abi cimport MPI_Datatype, MPI_Op
from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.window cimport Control, Transfer, Window

cdef enum MessageKind:
    # With a Head, and data.
    MESSAGE_PUT = 1
    MESSAGE_GET
    MESSAGE_ACCUMULATE
    MESSAGE_FETCH            # MPI_Get_accumulate and MPI_Fetch_and_op
    MESSAGE_COMPARE          # data: what is compared, and what comes there
    # With a Brief.
    MESSAGE_FLUSH
    MESSAGE_LOCK_SHARED
    MESSAGE_LOCK_EXCLUSIVE
    MESSAGE_UNLOCK_SHARED
    MESSAGE_UNLOCK_EXCLUSIVE
    MESSAGE_RELEASED         # its lock, for which others wait
    MESSAGE_POST
    MESSAGE_COMPLETE

cdef struct Brief:
    uint32_t kind
    uint32_t tag             # of the answer; 0: none

cdef struct Head:            # in front of the description of a datatype, and of data
    Brief brief
    int64_t place            # bytes from the window's beginning; an address of a dynamic one
    int64_t count
    MPI_Op operation
    MPI_Datatype datatype    # 0: its description follows
    int64_t described        # bytes of it
    int64_t unused           # data are aligned to 16 bytes

# All of these under the lock.
# Does it here: `data` is in one piece, as is the result.
cdef void operate(Window *window, int rank, const Head *head, const Datatype *type,
                  uint8_t *address, const uint8_t *data, uint8_t *result) noexcept nogil
# The same for elements of a built-in type without gaps, which need not be under the lock.
# `result`: what was there before; NULL: it is not asked for.
cdef void combine(Control *control, MPI_Op operation, MPI_Datatype datatype, int64_t count,
                  int64_t bytes, uint8_t *address, const void *data, void *result) noexcept nogil
cdef void compare_and_replace(Control *control, int64_t bytes, uint8_t *address,
                              const void *compared, const void *data, void *result) noexcept nogil
# The memory of this rank's window that so many elements have; NULL: it is not all in it.
cdef uint8_t *own_memory(const Window *window, int64_t place, const Datatype *type,
                         int64_t count) noexcept nogil
# Where elements begin and end, from the first one's beginning.
cdef void reach_of(const Datatype *type, int64_t count, int64_t *low, int64_t *high) noexcept nogil
# A message to be filled, and its start; NULL: no memory.
cdef Transfer *message_new(int64_t bytes) noexcept nogil
cdef uint8_t *message_data(Transfer *transfer) noexcept nogil
cdef int message_send(Window *window, int rank, Transfer *transfer) noexcept nogil
cdef int brief_send(Window *window, int rank, MessageKind kind, uint32_t tag) noexcept nogil
# The same, with an answer that the target's record then awaits.
cdef int brief_ask(Window *window, int rank, MessageKind kind) noexcept nogil
cdef uint32_t answer_tag(Window *window) noexcept nogil
# Bytes of a description, which is written to `into`, unless that is NULL.
cdef int64_t describe(const Datatype *type, uint8_t *into) noexcept nogil
# Gives the lock of this rank to those that wait for it.
cdef void grant(Window *window) noexcept nogil
cdef bint lock_try(uint32_t *word, bint exclusive, bint waited) noexcept nogil
# Another one wants this rank's lock: False without memory.
cdef bint waiter_add(Window *window, int rank, bint exclusive, uint32_t tag) noexcept nogil
# After a pass: what has arrived is done.
cdef void windows_advance() noexcept nogil
