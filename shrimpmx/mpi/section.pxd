"""What a program's work is, and which parts of it count; see shared/section.h."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.mx.types cimport MxPartner, MxRequest
from shrimpmx.shared.control cimport Control

cdef void section_start(Control control, uint32_t runner)
# The last that MPI_Init does: wait until all `ranks` that the run begins with are so far, and begin
# to work at one moment with them. One that comes `later` begins at once.
cdef void work_begin(uint32_t ranks, bint later) noexcept nogil
# What comes now is none of the program's work, but its end. At the second time it does nothing.
cdef void work_end() noexcept nogil
# Note whether this rank has sent or got a message so far.
cdef void note_silence() noexcept nogil
# MPI_Pcontrol. Level 0 ends this rank's section, 1 or 2 begins it; others, and a change to what is,
# do nothing. In a world of one without mpirun nothing counts.
cdef int pcontrol(int level) noexcept nogil


# -- What a rank shows of a call that waits for long: for reports of silence, and of a late run.
#
# Of shorter waits it shows how long they were, all in all. All of it is written under the lock.

# The first message that a call waits for.
cdef struct Awaited:
    bint known
    uint64_t match
    uint64_t mask
    const MxPartner *partner   # of a send; NULL: a receive

# Finds it for a waiting call: `context` is that of its found_function.
ctypedef void (*awaited_function)(const void *context, Awaited *awaited) noexcept nogil

# `called`, if not 0, is the address of a function that tells where the number of the calling
# thread's function of MPI is kept.
cdef void shown_start(size_t called)
# Where a process of a run shows it.
cdef void shown_in(Control control, uint32_t runner)
# That number; and that it is the same again, after a function of the program's has called others.
cdef int shown_function() noexcept nogil
# Whether that function is one for large counts, MPI_X_c.
cdef bint called_with_large_counts() noexcept nogil
cdef void shown_function_again(int function) noexcept nogil
# A call still waits, as it has for a while; `first`: this was not told before. `awaiting` may be
# NULL. The main thread's call is shown before those of others.
cdef void shown_write(awaited_function awaiting, const void *context,
                      bint first) noexcept nogil
# The function of MPI that this thread has called last.
cdef const char *shown_call() noexcept nogil
# The wait of such a call has ended.
cdef void shown_clear() noexcept nogil
# A call has waited for so long.
cdef void shown_add(int64_t waited_ns) noexcept nogil
# For awaited functions.
cdef void awaited_message(const MxRequest *mx, Awaited *awaited) noexcept nogil
