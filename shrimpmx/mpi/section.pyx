"""The sections of a program that count, as their ranks begin and end them."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.mpi.abi cimport MPI_SUCCESS
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.native.atomics cimport exchange_u32, load_relaxed_u64
from shrimpmx.native.lock cimport shared_lock_give, shared_lock_take
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport COUNTERS_MAX, control_agent, control_header
from shrimpmx.shared.section cimport (
    control_rank_section, control_run_section, control_section_counters, rank_section, run_section,
)

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

cdef:
    control_header *header = NULL
    rank_section *mine = NULL


cdef void section_start(Control control, uint32_t runner):
    global header, mine
    header = control.header
    mine = control_rank_section(header, runner)


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
    run.begun += 1
    run.ranks += 1
    if run.ranks == 1:
        add_counters(-1)
    shared_lock_give(&run.lock)
    add_usage(-1)
    mine.elapsed_ns -= (<EndpointCore>world.core).host.program_now_ns()


cdef void end() noexcept nogil:
    """The clock first."""
    cdef run_section *run = control_run_section(header)
    mine.elapsed_ns += (<EndpointCore>world.core).host.program_now_ns()
    add_usage(1)
    shared_lock_take(&run.lock)
    run.ranks -= 1
    if run.ranks == 0:
        add_counters(1)
    shared_lock_give(&run.lock)


cdef void add_usage(int sign) noexcept nogil:
    cdef rusage used
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


cdef void add_counters(int sign) noexcept nogil:
    """Of all agents, with the lock held."""
    cdef uint32_t agent
    cdef int number
    cdef uint64_t *within
    cdef uint64_t value
    for agent in range(header.agents_count):
        within = control_section_counters(header, agent)
        for number in range(COUNTERS_MAX):
            value = load_relaxed_u64(<const void *>&control_agent(header, agent).counters[number])
            within[number] += value if sign > 0 else 0 - value
