"""The world of this process: its endpoint, its partners by rank, and how it ends.

A process may have several, each of a rank with a stack of its own under a virtual clock. Groups,
datatypes, operations, keys, info objects and the buffer of buffered sends are the process's.
"""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mpi.section cimport awaited_function
from shrimpmx.mx.core cimport EndpointCore, found_function
from shrimpmx.mx.types cimport MxPartner
from shrimpmx.shared.layout cimport control_header, runner_record

cdef struct World:
    void *core               # its EndpointCore, which is kept for ever
    # Ranks have numbers in the run, by which groups and communicators know them: those that it
    # begins with come first, then slots for spawned ones. What follows is by these numbers.
    int rank
    int size                 # of the run, with its slots
    const int *members       # those of MPI_COMM_WORLD, in its order
    int members_count
    int first                # ranks that the run begins with
    MxPartner **partners     # NULL: it was never connected to that one
    const int *nodes         # the emulated node it is on
    const int *endpoints     # and its endpoint there
    uint32_t *pids           # those that this one is connected to, by the process; 0: it is not
    # In the run's memory: how often a set of contexts was looked at to take it, and how many
    # processes use each.
    uint32_t *contexts
    uint32_t *context_uses
    uint64_t *file_pointers  # in the run's memory, shared ones: of the file with that set, etypes
    uint32_t **comm_counts   # of each, in the run's memory: its communicators
    control_header *header   # of the run
    runner_record *me        # of this rank; NULL: a world of one
    runner_record **runners
    # Of processes.pyx: a communicator of all of the run, with contexts of its own; and the parents.
    void *comm_run
    int parent               # a handle
    int application          # the number of its command
    # Of communicator.pyx, schedule.pyx and request.pyx.
    void *comm_world
    void *comm_self
    void *schedules          # under way
    void *windows            # of window.pyx
    void *orphans            # requests that the user has freed before they were over

# That of the stack that runs.
cdef World *world

# Waits under the lock until found(context); `awaiting` tells what for, NULL: nothing to tell.
# Meanwhile the collectives under way go on (MPI 3.1, 5.12). False if a signal's handler has raised
# an exception, or the run ends while this rank is in MPI_Finalize; elsewhere a call does not return
# from a run that ends.
cdef bint world_wait(found_function found, awaited_function awaiting,
                     void *context) noexcept nogil
# Connects to these ranks, by their numbers in the run, where this one is not: the code of an error.
cdef int world_connect(const int *ranks, int size) noexcept nogil
# These have connected, or are about to: the code of an error.
cdef int world_adopt(const int *ranks, int size) noexcept nogil


cdef inline bint world_has_slots() noexcept nogil:
    """Whether ranks may be started: without them all ranks of the run are always connected."""
    return world.size > world.first


# Writes out the program's output, and ends its unfinished line: before what is said on its end.
cdef void world_end_lines() noexcept nogil
# Ends this process at once, and with it the run: Abort, and errors that are fatal.
cdef void world_abort(int code) noexcept nogil
