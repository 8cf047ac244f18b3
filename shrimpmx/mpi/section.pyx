"""A program's work, the sections of it that count, and what a rank in a long call shows."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from posix.time cimport clock_gettime, timespec
from posix.unistd cimport getpid

from shrimpmx.cluster.rank.baton cimport BatonHost
from shrimpmx.mpi.abi cimport MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS
from shrimpmx.mpi.communicator cimport (
    CONTEXT_MESSAGES, CONTEXT_PARTITIONED, Comm, comm_of_context,
)
from shrimpmx.mpi.error cimport function_name
from shrimpmx.mpi.long_message cimport long_length
from shrimpmx.mpi.matching cimport (
    CONTEXT_MAX, CONTEXT_SHIFT, MATCH_LONG, SOURCE_MAX, TAG_BITS, TAG_MAX, match_source, match_tag,
)
from shrimpmx.mpi.table cimport MPI_FUNCTION_FIRST_LARGE, MPI_FUNCTIONS
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.match_table cimport MatchQueue
from shrimpmx.mx.types cimport REQUEST_SEND, ListLink, MxPartner, MxRequest, request_of_queue
from shrimpmx.native.atomics cimport (
    exchange_u32, fetch_add_u32, load_acquire_u32, load_relaxed_u64, store_release_u32,
)
from shrimpmx.native.lock cimport shared_lock_give, shared_lock_take
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport (
    AGENT_RANK, RECORD_COUNTERS, STOP_NO, COUNTER_recv_messages, COUNTER_recv_unexpected,
    COUNTER_send_mediumsq_frag, COUNTER_send_mediumva_frag, COUNTER_send_small, COUNTER_send_tiny,
    COUNTER_sent_large, COUNTER_sent_self, COUNTER_sent_shared, control_agent, control_header,
    control_runner, wait_account,
)
from shrimpmx.shared.section cimport (
    SHOWN_CALL_BYTES, SHOWN_COLLECTIVE, SHOWN_COMM_BYTES, SHOWN_MESSAGES, SHOWN_NOTHING,
    SHOWN_RECEIVE, SHOWN_SEND, control_process_section, control_run_section,
    control_section_counters, control_shown, process_section, run_section, shown_message,
    shown_wait,
)


cdef extern from "<time.h>" nogil:
    int clock_getcpuclockid(int pid, int *clock)

cdef extern from "<sys/resource.h>" nogil:
    enum:
        RUSAGE_SELF
    struct timeval:
        int64_t tv_sec
        int64_t tv_usec
    struct rusage:
        timeval ru_utime
        timeval ru_stime
        int64_t ru_nvcsw
        int64_t ru_nivcsw
        int64_t ru_minflt
        int64_t ru_majflt
    int getrusage(int who, rusage *used)

# Levels of MPI_Pcontrol (MPI 3.1, 14.2.4): profiling is off; on; on, with what was kept written.
cdef enum:
    LEVEL_OFF = 0
    LEVEL_ON = 1
    LEVEL_FLUSH = 2

# Ranks leave MPI_Init at a multiple of this time by the run's clock, all at the same one (ours).
cdef int64_t LEAVE_NS = 100_000

cdef:
    control_header *header = NULL
    process_section *mine = NULL
    uint32_t number = 0              # of this process


cdef void section_start(Control control, uint32_t runner):
    global header, mine, number
    header, number = control.header, runner
    mine = control_process_section(header, runner)


cdef void work_begin(uint32_t ranks, bint later) noexcept nogil:
    if mine == NULL:
        return
    if not later:
        begin_with_others(ranks)
    mine.spawned = later
    mine.working = 1
    add_usage(-1)
    mine.began_ns = (<EndpointCore>world.core).host.program_now_ns()
    mine.elapsed_ns = -mine.began_ns


cdef void begin_with_others(uint32_t ranks) noexcept nogil:
    cdef run_section *run = control_run_section(header)
    (<EndpointCore>world.core).host.call_begins()
    shared_lock_take(&run.lock)
    run.begun += 1
    run.ranks += 1
    if run.begun == ranks:
        add_agents(-1)
    shared_lock_give(&run.lock)
    fetch_add_u32(<void *>&run.met, 1)
    while sleep_until_multiple():
        if load_acquire_u32(<const void *>&run.met) >= ranks or header.stop != STOP_NO:
            break
    (<EndpointCore>world.core).host.call_ends()


cdef bint sleep_until_multiple() noexcept nogil:
    """False if it could not be."""
    cdef int64_t now_ns = (<EndpointCore>world.core).host.now_c()
    return (<EndpointCore>world.core).host.sleep_c(LEAVE_NS - now_ns % LEAVE_NS)


cdef void work_end() noexcept nogil:
    cdef run_section *run
    if mine == NULL or exchange_u32(&mine.working, 0) == 0:
        return
    run = control_run_section(header)
    note_silence()
    if mine.marked:
        pcontrol(LEVEL_OFF)
        return
    add_own_end()
    shared_lock_take(&run.lock)
    if not run.marked:
        add_own_agent()
        if not mine.spawned:
            leave(run)
    shared_lock_give(&run.lock)


cdef void note_silence() noexcept nogil:
    cdef const uint64_t *counters = (<EndpointCore>world.core).library.counters
    if mine != NULL:
        mine.silent = (
            counters[COUNTER_recv_messages] + counters[COUNTER_recv_unexpected]
            + counters[COUNTER_send_tiny] + counters[COUNTER_send_small]
            + counters[COUNTER_send_mediumsq_frag] + counters[COUNTER_send_mediumva_frag]
            + counters[COUNTER_sent_large] + counters[COUNTER_sent_self]
            + counters[COUNTER_sent_shared]) == 0


cdef int pcontrol(int level) noexcept nogil:
    if mine == NULL:
        return MPI_SUCCESS
    if level == LEVEL_ON or level == LEVEL_FLUSH:
        if exchange_u32(&mine.within, 1) == 0:
            begin()
    elif level == LEVEL_OFF:
        if exchange_u32(&mine.within, 0) == 1:
            end()
    return MPI_SUCCESS


cdef void begin() noexcept nogil:
    """The clock last, so that nothing of this counts."""
    cdef run_section *run = control_run_section(header)
    shared_lock_take(&run.lock)
    if not run.marked:
        forget_agents()
        run.marked = 1
        run.ranks = 0
    run.ranks += 1
    if run.ranks == 1:
        add_agents(-1)
    shared_lock_give(&run.lock)
    if not mine.marked:
        forget_own()
    add_usage(-1)
    mine.elapsed_ns -= (<EndpointCore>world.core).host.program_now_ns()


cdef void end() noexcept nogil:
    cdef run_section *run = control_run_section(header)
    add_own_end()
    shared_lock_take(&run.lock)
    leave(run)
    shared_lock_give(&run.lock)


cdef void add_own_end() noexcept nogil:
    """The clock first."""
    mine.elapsed_ns += (<EndpointCore>world.core).host.program_now_ns()
    add_usage(1)


cdef void add_own_agent() noexcept nogil:
    """What this rank has counted at the end of its work, with the lock held."""
    cdef uint32_t index
    for index in range(header.agents_count):
        if is_rank(index) and control_agent(header, index).runner == number:
            add_counters(index, 1)


cdef void leave(run_section *run) noexcept nogil:
    """With the lock held."""
    run.ranks -= 1
    if run.ranks == 0:
        add_agents(1)


cdef void forget_own() noexcept nogil:
    """What this rank did before its first section."""
    mine.marked = 1
    mine.elapsed_ns = mine.user_ns = mine.system_ns = mine.waited_ns = 0
    mine.voluntary_switches = mine.involuntary_switches = 0
    mine.minor_faults = mine.major_faults = 0
    memset(&mine.account, 0, sizeof(wait_account))


cdef void forget_agents() noexcept nogil:
    """What agents did before the first section, with the lock held."""
    cdef uint32_t index
    for index in range(header.agents_count):
        memset(control_section_counters(header, index), 0, RECORD_COUNTERS * sizeof(uint64_t))
    for index in range(header.runners_count):
        control_process_section(header, index).agents_ns = 0


cdef void add_usage(int sign) noexcept nogil:
    cdef rusage used
    mine.waited_ns += sign * control_shown(header, number).waited_ns
    add_words(<uint64_t *>&mine.account, <const uint64_t *>&control_runner(header, number).account,
              sizeof(wait_account) // sizeof(uint64_t), sign)
    if (<EndpointCore>world.core).host.metered:
        mine.user_ns += sign * (<EndpointCore>world.core).host.cpu_ns()
        return
    getrusage(RUSAGE_SELF, &used)
    mine.user_ns += sign * nanoseconds(used.ru_utime)
    mine.system_ns += sign * nanoseconds(used.ru_stime)
    mine.voluntary_switches += sign * used.ru_nvcsw
    mine.involuntary_switches += sign * used.ru_nivcsw
    mine.minor_faults += sign * used.ru_minflt
    mine.major_faults += sign * used.ru_majflt


cdef int64_t nanoseconds(timeval time) noexcept nogil:
    return time.tv_sec * 1_000_000_000 + time.tv_usec * 1000


cdef void add_agents(int sign) noexcept nogil:
    """The counters of all agents and the CPU time of their processes, with the lock held. At the
    end of the work those of ranks are there: each has added its own.
    """
    cdef uint32_t index
    cdef bint ends_work = sign > 0 and not control_run_section(header).marked
    for index in range(header.agents_count):
        if not (ends_work and is_rank(index)):
            add_counters(index, sign)
    if (<EndpointCore>world.core).host.metered:
        (<BatonHost>(<EndpointCore>world.core).host).note_used()
    for index in range(header.runners_count):
        control_process_section(header, index).agents_ns += sign * used_ns(index)


cdef bint is_rank(uint32_t agent) noexcept nogil:
    return control_agent(header, agent).kind == AGENT_RANK


cdef void add_counters(uint32_t agent, int sign) noexcept nogil:
    add_words(control_section_counters(header, agent),
              <const uint64_t *>control_agent(header, agent).counters, RECORD_COUNTERS, sign)


cdef int64_t used_ns(uint32_t runner) noexcept nogil:
    """CPU time so far of a process."""
    cdef int clock
    cdef timespec used
    if (<EndpointCore>world.core).host.metered:
        return control_process_section(header, runner).used_ns
    if (clock_getcpuclockid(<int>control_runner(header, runner).pid, &clock) != 0
            or clock_gettime(clock, &used) != 0):
        return 0
    return <int64_t>used.tv_sec * 1_000_000_000 + used.tv_nsec


cdef void add_words(uint64_t *sums, const uint64_t *words, size_t count, int sign) noexcept nogil:
    """Words that other processes may be writing."""
    cdef size_t index
    cdef uint64_t value
    for index in range(count):
        value = load_relaxed_u64(<const void *>&words[index])
        sums[index] += value if sign > 0 else 0 - value


# -- What a rank shows of a call that waits for long.

cdef extern from *:
    """
    #include <sys/syscall.h>
    #include <unistd.h>
    #define this_thread() ((uint32_t)syscall(SYS_gettid))
    """
    uint32_t this_thread() noexcept nogil

ctypedef int *(*called_function)() noexcept nogil

cdef:
    shown_wait *shown = NULL
    called_function place_of_called = NULL
    # Of threads that wait for long; the record shows one of these.
    uint32_t calls = 0


cdef void shown_start(size_t called):
    global place_of_called
    place_of_called = <called_function>called


cdef void shown_in(Control control, uint32_t runner):
    global shown
    shown = control_shown(control.header, runner)


cdef int shown_function() noexcept nogil:
    return place_of_called()[0] if place_of_called != NULL else -1


cdef bint called_with_large_counts() noexcept nogil:
    return MPI_FUNCTION_FIRST_LARGE <= shown_function() < MPI_FUNCTIONS


cdef void shown_function_again(int function) noexcept nogil:
    if place_of_called != NULL:
        place_of_called()[0] = function


cdef void shown_write(awaited_function awaiting, const void *context, bint first) noexcept nogil:
    global calls
    cdef uint32_t thread = this_thread()
    cdef Awaited awaited
    if shown == NULL:
        return
    calls += first
    if shown.thread != thread and shown.thread != 0 and thread != <uint32_t>getpid():
        return
    awaited.known = False
    if awaiting != NULL:
        awaiting(context, &awaited)
    change()
    if shown.thread != thread or first:
        shown.thread = thread
        shown.since_ns = (<EndpointCore>world.core).library.now_ns
        snprintf(shown.call, SHOWN_CALL_BYTES, "%s", shown_call())
    write_awaited(&awaited)
    write_unexpected((<EndpointCore>world.core).library)
    write_unacked((<EndpointCore>world.core).library)
    change()


cdef const char *shown_call() noexcept nogil:
    cdef const char *name = function_name(shown_function())
    if name == NULL:
        name = "a call"
    return name


cdef void shown_clear() noexcept nogil:
    global calls
    if shown == NULL:
        return
    calls -= 1
    if calls == 0 or shown.thread == this_thread():
        change()
        shown.thread = 0  # another one that waits still shows itself
        if calls == 0:
            shown.since_ns = 0
        change()


cdef void shown_add(int64_t waited_ns) noexcept nogil:
    if shown != NULL:
        shown.waited_ns += waited_ns


cdef void change() noexcept nogil:
    """Before what is written is odd, and when it is whole again."""
    store_release_u32(<void *>&shown.version, shown.version + 1)


cdef void write_awaited(const Awaited *awaited) noexcept nogil:
    cdef shown_message *message = &shown.awaited
    if not awaited.known:
        message.kind = SHOWN_NOTHING
        return
    write_message(message, awaited.match, awaited.mask, awaited.partner)
    if awaited.partner != NULL and message.kind == SHOWN_RECEIVE:
        message.kind = SHOWN_SEND


cdef void write_message(shown_message *message, uint64_t match, uint64_t mask,
                        const MxPartner *partner) noexcept nogil:
    """One from its source, or to a partner."""
    cdef uint32_t context = <uint32_t>(match >> CONTEXT_SHIFT & CONTEXT_MAX)
    cdef Comm *comm = comm_of_context(context)
    cdef bint any_source = (mask >> TAG_BITS & SOURCE_MAX) == 0
    message.kind = SHOWN_RECEIVE
    if comm != NULL and context - comm.context not in (CONTEXT_MESSAGES, CONTEXT_PARTITIONED):
        message.kind = SHOWN_COLLECTIVE
    message.peer = MPI_ANY_SOURCE if any_source else match_source(match)
    message.tag = match_tag(match) if mask & TAG_MAX else MPI_ANY_TAG
    message.world_peer = -1
    if partner == NULL and comm != NULL and 0 <= message.peer < comm.peers:
        partner = comm.partners[message.peer]
    elif partner != NULL and comm != NULL:
        message.peer = rank_among(comm.partners, comm.peers, partner, message.peer)
    if partner != NULL:
        message.world_peer = rank_among(world.partners, world.size, partner, -1)
    if comm == NULL:
        snprintf(message.comm, SHOWN_COMM_BYTES, "a communicator that is freed")
    elif comm.name[0] == 0:
        snprintf(message.comm, SHOWN_COMM_BYTES, "communicator 0x%x", comm.handle)
    else:
        snprintf(message.comm, SHOWN_COMM_BYTES, "%.*s", SHOWN_COMM_BYTES - 1, comm.name)


cdef int rank_among(MxPartner **partners, int size, const MxPartner *partner,
                    int absent) noexcept nogil:
    cdef int rank
    for rank in range(size):
        if partners[rank] == partner:
            return rank
    return absent


cdef bint is_piece(uint64_t match) noexcept nogil:
    """Of a long message, of which only the head is shown, as all of it."""
    cdef uint32_t context = <uint32_t>(match >> CONTEXT_SHIFT & CONTEXT_MAX)
    cdef const Comm *comm = comm_of_context(context)
    return match & MATCH_LONG != 0 and comm != NULL and context != comm.context


cdef void write_unexpected(Library library) noexcept nogil:
    """How many there are, and the oldest of them."""
    cdef MatchQueue *queue
    cdef MxRequest *kept
    cdef ListLink *link
    cdef uint64_t context
    shown.unexpected = 0
    for context in range(library.matching.context_last + 1):
        queue = &library.matching.unexpected.queues[context]
        link = queue.listed.next
        while link != &queue.listed:
            kept = request_of_queue(link)
            if is_piece(kept.match):
                link = link.next
                continue
            if shown.unexpected < SHOWN_MESSAGES:
                write_message(&shown.oldest[shown.unexpected], kept.match, <uint64_t>-1,
                              kept.partner)
                shown.oldest[shown.unexpected].length = <uint64_t>long_length(kept, NULL)
            shown.unexpected += 1
            link = link.next


cdef void write_unacked(Library library) noexcept nogil:
    """How many messages may have to be sent again, and how often they have been."""
    cdef ListLink *link = library.send.resend.next
    shown.unacked = 0
    shown.resends = 0
    while link != &library.send.resend:
        shown.unacked += 1
        shown.resends += request_of_queue(link).resends
        link = link.next


cdef void awaited_message(const MxRequest *mx, Awaited *awaited) noexcept nogil:
    awaited.known = mx != NULL
    if mx != NULL:
        awaited.match = mx.match
        awaited.mask = <uint64_t>-1 if mx.kind == REQUEST_SEND else mx.mask
        awaited.partner = mx.partner if mx.kind == REQUEST_SEND else NULL
