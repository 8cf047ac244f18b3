"""Joining the run in MPI_Init, and leaving it in MPI_Finalize.

start() is the last Python that runs: MPI_Finalize comes when the interpreter is gone (mpi4py calls
it from Py_AtExit). What the compiled calls use is kept for ever.
"""

import atexit
import os

from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport FILE, fflush, fprintf, fputc, snprintf, stderr, stdout
from libc.stdlib cimport calloc, free
from posix.unistd cimport _exit

from shrimpmx.mpi.abi cimport (
    MPI_COMM_NULL, MPI_COMM_SELF, MPI_ERR_NO_MEM, MPI_ERR_OTHER, MPI_MAX_PROCESSOR_NAME,
    MPI_SUCCESS, MPI_THREAD_MULTIPLE, MPI_Comm,
)
from shrimpmx.mpi.attribute cimport attribute_fill, attributes_delete
from shrimpmx.mpi.collective_calls cimport (
    barrier_of_world, collective_fill, data_calls_fill, neighborhood_fill, reduction_calls_fill,
)
from shrimpmx.mpi.comm_create cimport comm_create_fill, intercomm_fill
from shrimpmx.mpi.communicator cimport comm_fill, comm_query_fill, comm_self, comm_start
from shrimpmx.mpi.datatype cimport datatype_query_fill, datatype_start
from shrimpmx.mpi.datatype_make cimport (
    datatype_array_fill, datatype_fortran_fill, datatype_make_fill,
)
from shrimpmx.mpi.error cimport CODE_INTERRUPTED, error_code_fill, error_fill
from shrimpmx.mpi.file cimport file_fill
from shrimpmx.mpi.file_calls cimport file_calls_fill
from shrimpmx.mpi.file_view cimport file_view_fill
from shrimpmx.mpi.group cimport group_fill, group_start
from shrimpmx.mpi.info cimport info_fill
from shrimpmx.mpi.memory cimport memory_fill
from shrimpmx.mpi.operation cimport operation_fill
from shrimpmx.mpi.pack cimport pack_fill
from shrimpmx.mpi.partitioned cimport partitioned_fill
from shrimpmx.mpi.persistent cimport persistent_fill
from shrimpmx.mpi.point cimport buffered_fill, point_fill
from shrimpmx.mpi.processes cimport names_fill, processes_fill, processes_start
from shrimpmx.mpi.request cimport completion_fill, generalized_fill
from shrimpmx.mpi.schedule cimport schedules_advance, schedules_of_world
from shrimpmx.mpi.section cimport (
    awaited_function, note_silence, pcontrol, section_start, shown_add, shown_clear, shown_in,
    shown_start, shown_write, work_begin, work_end,
)
from shrimpmx.mpi.session cimport session_fill
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.tool cimport tool_fill
from shrimpmx.mpi.topology cimport (
    cartesian_fill, dimensions_fill, dist_graph_fill, graph_fill, topology_fill,
)
from shrimpmx.mpi.window cimport window_fill
from shrimpmx.mpi.window_access cimport window_access_fill
from shrimpmx.mpi.window_epoch cimport window_epoch_fill
from shrimpmx.mx.calls cimport call_enter, call_leave, call_look, call_release, call_wait
from shrimpmx.mx.core cimport EndpointCore, found_done, found_function
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.partner cimport (
    ack_flush_all, connect_cancel, connect_start, partner_make,
)
from shrimpmx.mx.send cimport send_limit_resends
from shrimpmx.mx.types cimport (
    REQUEST_DONE, STATUS_SUCCESS, MxPartner, MxRequest, list_empty,
)
from shrimpmx.native.atomics cimport fetch_add_u32, load_acquire_u32, store_release_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.trace cimport trace_ring
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport RUNNER_DONE, RUNNER_FAILED, runner_record
from shrimpmx.shared.section cimport (
    control_context_uses, control_file_pointers, control_process_section,
)
from shrimpmx.wait.waiter cimport WAIT_READY, WAIT_STOPPED, WaitResult

from shrimpmx.errors import AbortedError
from shrimpmx.mpi.interrupts import end_call_by
from shrimpmx.mpi.joining import join_world
from shrimpmx.mpi.selection import algorithms_select

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    pthread_t pthread_self() noexcept
    int pthread_equal(pthread_t one, pthread_t other) noexcept

cdef extern from * nogil:
    """
    /* Whether what the C library has not written yet ends within a line. */
    #ifdef __GLIBC__
    static int within_line(const FILE *file) {
        return file->_IO_write_ptr > file->_IO_write_base && file->_IO_write_ptr[-1] != '\\n';
    }
    #else
    static int within_line(const FILE *file) { (void)file; return 0; }
    #endif
    """
    int within_line(const FILE *file)

# The thread level that MPI_Init_thread provides.
provided = MPI_THREAD_MULTIPLE
# The file that keeps the calls of this rank; "": they are not traced.
calls = ""

# Between two looks at the other ranks while this one has finished, ns.
cdef int64_t LOOK_NS = 1_000_000
# How long a call has waited when it shows so, and between two times that it does, ns (ours).
cdef int64_t SHOW_NS = 250_000_000

cdef:
    mpi_table table
    int level = MPI_THREAD_MULTIPLE
    bint is_leaving = False
    pthread_t main_thread


def start(int required, size_t called=0):
    """Join the run that this process was started in, or be a world of one.

    Returns the capsule of the table of MPI's functions. `required`: the thread level that the
    program asks for, which changes nothing. `called`: see shown_start.
    """
    global calls
    algorithms_select(os.environ)
    joined = join_world()
    cdef bint joined_later = joined.world is not None and joined.world.parent >= 0
    keep(joined)
    calls = joined.calls
    functions = begin(joined, called)
    # Before the interpreter takes itself apart, which comes before MPI_Finalize.
    atexit.register(end_work)
    processes_start(joined)
    with nogil:
        work_begin(<uint32_t>world.first, joined_later)
    return functions


def clock():
    """The address of a C function that tells the time of the run's clock, ns."""
    return <size_t>&clock_ns


def records():
    """The address of the count of this rank's records in the trace; 0: it is not traced."""
    cdef trace_ring *ring = (<EndpointCore>world.core).library.trace
    return <size_t>&ring.next if ring != NULL else 0


cdef int64_t clock_ns() noexcept nogil:
    return (<EndpointCore>world.core).host.now_c()


def end_work():
    """What comes now is none of the program's work."""
    with nogil:
        work_end()


def begin(joined, size_t called=0):
    """Let MPI's calls of this process be those of `joined`, which has to outlive them, until
    another begins or goes on: the capsule of the table of functions. `called`: see shown_start.
    """
    global is_leaving, main_thread
    is_leaving = False
    main_thread = pthread_self()
    bind(joined, called)
    group_start()
    datatype_start()
    comm_start()
    fill()
    return PyCapsule_New(&table, "shrimpmx.mpi.world.table", NULL)


def current():
    """The world that begin() has made last, or that goes on: a capsule for go_on()."""
    return PyCapsule_New(world, "shrimpmx.mpi.world.World", NULL)


def go_on(other):
    """Let MPI's calls be those of another world, whose rank's stack runs now."""
    global world
    world = <World *>PyCapsule_GetPointer(other, "shrimpmx.mpi.world.World")


cdef void keep(object joined):
    """Also when the interpreter has dropped all that it holds."""
    Py_INCREF(joined)


cdef int bind(object joined, size_t called) except -1:
    global world
    cdef EndpointCore core = joined.endpoint
    cdef Control control = joined.control
    cdef int size = len(joined.partners)
    cdef int *nodes = <int *>calloc(size, sizeof(int))
    cdef int *endpoints = <int *>calloc(size, sizeof(int))
    cdef int *members = <int *>calloc(size, sizeof(int))
    begun = joined.world.members if joined.world is not None else range(size)
    world = <World *>calloc(1, sizeof(World))
    if world == NULL or nodes == NULL or endpoints == NULL or members == NULL:
        raise MemoryError
    world.core = <void *>core
    world.rank = joined.rank
    world.size = size
    world.members, world.members_count = members, len(begun)
    for number, member in enumerate(begun):
        members[number] = member
    world.first = joined.first if joined.runners else size
    world.application = joined.world.application if joined.world is not None else 0
    world.parent = MPI_COMM_NULL
    world.pids = <uint32_t *>calloc(size, sizeof(uint32_t))
    world.partners = <MxPartner **>calloc(size, sizeof(MxPartner *))
    world.runners = <runner_record **>calloc(size, sizeof(runner_record *))
    world.comm_counts = <uint32_t **>calloc(size, sizeof(uint32_t *))
    if world.partners == NULL or world.runners == NULL or world.comm_counts == NULL \
            or world.pids == NULL:
        raise MemoryError
    world.nodes, world.endpoints = nodes, endpoints
    for number, endpoint in enumerate(joined.endpoints):
        endpoints[number] = endpoint
    # A rank that computes answers nothing for as long; one that dies ends the run.
    send_limit_resends(core.library, <uint32_t>-1)
    for number, partner in enumerate(joined.partners):
        if partner is not None:
            world.partners[number] = (<Partner>partner).partner
        nodes[number] = joined.nodes[number]
        runner = joined.runners[number] if joined.runners else number
        world.comm_counts[number] = <uint32_t *>&control_process_section(
            control.header, runner).communicators
    world.header = control.header
    world.contexts = <uint32_t *>&control.header.contexts
    world.context_uses = <uint32_t *>control_context_uses(control.header)
    world.file_pointers = <uint64_t *>control_file_pointers(control.header)
    world.schedules = schedules_of_world()
    shown_start(called)
    if joined.runners:
        for number, runner in enumerate(joined.runners):
            world.runners[number] = control.runner(runner)
        for number in begun:
            world.pids[number] = load_acquire_u32(<const void *>&world.runners[number].pid)
        world.me = world.runners[world.rank]
        shown_in(control, joined.runners[world.rank])
        section_start(control, joined.runners[world.rank])
    return 0


cdef void fill() noexcept nogil:
    error_fill(&table)
    error_code_fill(&table)
    info_fill(&table)
    memory_fill(&table)
    comm_fill(&table)
    comm_create_fill(&table)
    comm_query_fill(&table)
    intercomm_fill(&table)
    group_fill(&table)
    attribute_fill(&table)
    datatype_make_fill(&table)
    datatype_array_fill(&table)
    datatype_fortran_fill(&table)
    datatype_query_fill(&table)
    pack_fill(&table)
    operation_fill(&table)
    point_fill(&table)
    buffered_fill(&table)
    completion_fill(&table)
    persistent_fill(&table)
    partitioned_fill(&table)
    generalized_fill(&table)
    collective_fill(&table)
    data_calls_fill(&table)
    reduction_calls_fill(&table)
    neighborhood_fill(&table)
    topology_fill(&table)
    dimensions_fill(&table)
    cartesian_fill(&table)
    graph_fill(&table)
    dist_graph_fill(&table)
    processes_fill(&table)
    names_fill(&table)
    file_fill(&table)
    file_view_fill(&table)
    file_calls_fill(&table)
    session_fill(&table)
    window_fill(&table)
    window_access_fill(&table)
    window_epoch_fill(&table)
    table.Finalize = finalize
    table.World_end = end_world
    table.Leave = leave
    table.Rejoin = rejoin
    tool_fill(&table)
    table.Abort = abort
    table.Query_thread = query_thread
    table.Pcontrol = pcontrol
    table.Wtime = wtime
    table.Wtick = wtick
    table.Is_thread_main = is_thread_main
    table.Get_processor_name = get_processor_name


# -- waiting ---------------------------------------------------------------------

cdef struct Wanted:
    found_function found
    void *context


cdef bint found_going_on(Library library, void *context) noexcept nogil:
    cdef Wanted *wanted = <Wanted *>context
    schedules_advance()
    return wanted.found(library, wanted.context)


cdef bint world_wait(found_function found, awaited_function awaiting,
                     void *context) noexcept nogil:
    cdef Wanted wanted = Wanted(found, context)
    cdef int64_t limit_ns = SHOW_NS
    cdef int64_t began_ns
    cdef bint is_shown = False
    cdef WaitResult result
    cdef bint goes_on = True
    if call_look(<EndpointCore>world.core, found_going_on, &wanted):
        return True
    if world.me == NULL and (<EndpointCore>world.core).host.runs_python:
        limit_ns = NEVER_NS  # handlers run, and nobody looks at what is shown
    began_ns = (<EndpointCore>world.core).library.now_ns
    while True:
        result = call_wait(<EndpointCore>world.core, found_going_on, &wanted, limit_ns)
        if result == WAIT_READY:
            break
        if result == WAIT_STOPPED and not is_leaving and world.header.stop != 0:
            _exit(1)  # another rank has failed, and the supervisor says so
        goes_on = not (result == WAIT_STOPPED if is_leaving else is_interrupted())
        if not goes_on:
            break
        shown_write(awaiting, context, not is_shown)
        is_shown = True
        if (<EndpointCore>world.core).host.metered:
            limit_ns = NEVER_NS  # nothing looks at it again before something happens
    if is_shown:
        shown_clear()
    shown_add((<EndpointCore>world.core).library.now_ns - began_ns)
    return goes_on


cdef int world_connect(const int *ranks, int size) noexcept nogil:
    """All requests go out before the first is waited for."""
    cdef MxRequest **requests
    cdef int rank, code = MPI_SUCCESS
    if not world_has_slots():
        return MPI_SUCCESS
    requests = <MxRequest **>calloc(max(1, size), sizeof(MxRequest *))
    if requests == NULL:
        return MPI_ERR_NO_MEM
    call_enter(<EndpointCore>world.core)
    for rank in range(size):
        if not is_connected(ranks[rank]):
            requests[rank] = connect_to((<EndpointCore>world.core).library, ranks[rank])
            if requests[rank] == NULL:
                code = MPI_ERR_NO_MEM
    (<EndpointCore>world.core).doorbell_c()
    for rank in range(size):
        if requests[rank] == NULL:
            continue
        if code == CODE_INTERRUPTED or not world_wait(found_done, NULL, requests[rank]):
            code = CODE_INTERRUPTED
            if not requests[rank].flags & REQUEST_DONE:
                connect_cancel((<EndpointCore>world.core).library, requests[rank])
        elif requests[rank].status == STATUS_SUCCESS:
            note_connected(ranks[rank])
        else:
            code = MPI_ERR_OTHER
        call_release(<EndpointCore>world.core, requests[rank])
    call_leave(<EndpointCore>world.core)
    free(requests)
    return code


cdef int world_adopt(const int *ranks, int size) noexcept nogil:
    cdef int rank, code = MPI_SUCCESS
    if not world_has_slots():
        return MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    for rank in range(size):
        if not is_connected(ranks[rank]):
            if not find_partner((<EndpointCore>world.core).library, ranks[rank]):
                code = MPI_ERR_NO_MEM
            note_connected(ranks[rank])
    call_leave(<EndpointCore>world.core)
    return code


cdef bint find_partner(Library library, int number) noexcept nogil:
    """False without memory."""
    world.partners[number] = partner_make(library, world.nodes[number], world.endpoints[number])
    return world.partners[number] != NULL


cdef void note_connected(int number) noexcept nogil:
    world.pids[number] = load_acquire_u32(<const void *>&world.runners[number].pid)


cdef bint is_connected(int number) noexcept nogil:
    return world.pids[number] != 0 and world.pids[number] == load_acquire_u32(
        <const void *>&world.runners[number].pid)


cdef MxRequest *connect_to(Library library, int number) noexcept nogil:
    """NULL without memory."""
    if not find_partner(library, number):
        return NULL
    return connect_start(library, world.partners[number], library.key)


cdef bint is_interrupted() noexcept nogil:
    """Whether a signal's handler, which runs without the lock, has raised something."""
    cdef bint raised
    if not pthread_equal(pthread_self(), main_thread):
        return False
    call_leave(<EndpointCore>world.core)
    raised = handlers_raise()
    call_enter(<EndpointCore>world.core)
    return raised


cdef bint handlers_raise() noexcept with gil:
    try:
        (<EndpointCore>world.core).host.check()
        PyErr_CheckSignals()
    except AbortedError:
        _exit(1)
    except BaseException as error:
        end_call_by(error)
        return True
    return False


cdef void world_end_lines() noexcept nogil:
    if within_line(stdout):
        fputc(c"\n", stdout)
    fflush(stdout)
    fflush(stderr)


cdef void world_abort(int code) noexcept nogil:
    world_end_lines()
    _exit(code & 0xFF if code & 0xFF else 1)


# -- the end ---------------------------------------------------------------------

cdef bint found_drained(Library library, void *context) noexcept nogil:
    """Whether others have what they need: by now every receive of a program that is correct has its
    message, and nothing awaits the others."""
    return list_empty(&library.send.resend) and list_empty(&library.send.starved)


cdef bint found_all_done(Library library, void *context) noexcept nogil:
    """Whether all that this one is connected to have come here, or are gone."""
    cdef int number
    cdef uint32_t state
    for number in range(world.size):
        if world.pids[number] == 0:
            continue
        state = load_acquire_u32(<const void *>&world.runners[number].state)
        if (state != RUNNER_DONE and state != RUNNER_FAILED
                and load_acquire_u32(<const void *>&world.runners[number].pid)
                == world.pids[number]):
            return False
    return True


cdef inline uint32_t *ranks_again() noexcept nogil:
    """How many have left and are in a session again: where uses of the world's contexts, which are
    never taken, would be counted."""
    return &world.context_uses[0]


cdef bint found_none_again(Library library, void *context) noexcept nogil:
    return load_acquire_u32(ranks_again()) == 0


cdef int finalize() noexcept nogil:
    end_world()
    return leave()


cdef int end_world() noexcept nogil:
    """What MPI_Finalize does in any case: the program's own functions may still call MPI (MPI 3.1,
    8.7.1)."""
    attributes_delete(&comm_self().attributes, MPI_COMM_SELF)
    return MPI_SUCCESS


cdef int leave() noexcept nogil:
    """Returns when every rank that this one is connected to has come here: until then they may need
    this one's answers (MPI 4.1, 11.10.4).

    At once if an exception ends this one, whose exit code then ends the others, or if the run ends:
    others wait for what will not come, and this one's exit code says why. After another session it
    waits for those ranks that are in one, too, and for spawned ones.
    """
    global is_leaving
    cdef bint again
    if world.me == NULL:
        work_end()
        return MPI_SUCCESS
    if load_acquire_u32(<const void *>&world.me.state) == RUNNER_FAILED:
        return MPI_SUCCESS
    again = load_acquire_u32(<const void *>&world.me.state) == RUNNER_DONE
    work_end()
    is_leaving = True
    if not again:
        barrier_of_world()
    call_enter(<EndpointCore>world.core)
    # Those that wait for a message of this rank to carry them.
    ack_flush_all((<EndpointCore>world.core).library)
    world_wait(found_drained, NULL, NULL)
    if again:
        fetch_add_u32(ranks_again(), <uint32_t>-1)
        wait_for_others(found_none_again)
    else:
        store_release_u32(<void *>&world.me.state, RUNNER_DONE)
    wait_for_others(found_all_done)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


cdef void wait_for_others(found_function found) noexcept nogil:
    while not found((<EndpointCore>world.core).library, NULL):
        if world.header.stop != 0:
            break
        call_wait(<EndpointCore>world.core, found, NULL, LOOK_NS)


cdef int rejoin() noexcept nogil:
    """A session after the end of all else."""
    global is_leaving
    is_leaving = False
    if world.me != NULL:
        fetch_add_u32(ranks_again(), 1)
    return MPI_SUCCESS


cdef int abort(MPI_Comm comm, int code) noexcept nogil:
    note_silence()
    world_end_lines()
    fprintf(stderr, "rank %d called MPI_Abort with code %d\n", world.rank, code)
    world_abort(code)
    return MPI_SUCCESS


# -- queries ---------------------------------------------------------------------

cdef int query_thread(int *answer) noexcept nogil:
    answer[0] = level
    return MPI_SUCCESS


cdef int is_thread_main(int *flag) noexcept nogil:
    """Whether it is the thread that called MPI_Init."""
    flag[0] = pthread_equal(pthread_self(), main_thread)
    return MPI_SUCCESS


cdef int get_processor_name(char *name, int *length) noexcept nogil:
    """The emulated node: "node0"."""
    length[0] = snprintf(name, MPI_MAX_PROCESSOR_NAME, "node%d", world.nodes[world.rank])
    return MPI_SUCCESS


cdef double wtime() noexcept nogil:
    return (<EndpointCore>world.core).host.program_now_ns() * 1e-9


cdef double wtick() noexcept nogil:
    return 1e-9
