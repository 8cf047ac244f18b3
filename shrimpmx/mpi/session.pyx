"""Sessions (MPI 4.1, 11.3): handles on the run that this process has joined, as often as it likes.

There are two sets of processes: the ranks of MPI_COMM_WORLD, and this one. A group of a set knows
its session, to which it leads the errors of calls on it; a communicator made of the group does too.
"""

from libc.stdio cimport snprintf
from libc.stdlib cimport calloc
from libc.string cimport memset, strlen, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ARG, MPI_ERR_INFO, MPI_ERR_NO_MEM, MPI_ERR_SESSION, MPI_GROUP_NULL, MPI_INFO_NULL,
    MPI_SESSION_NULL, MPI_Errhandler, MPI_Group, MPI_Info,
)
from shrimpmx.mpi.error cimport (
    DETAIL_SESSIONS, error_by_handler, error_detailed, error_raise, handler_drop, handler_keep,
    handler_of_sessions,
)
from shrimpmx.mpi.group cimport group_make
from shrimpmx.mpi.info cimport info_is, info_make, info_set
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore

cdef extern from "<strings.h>" nogil:
    int strcasecmp(const char *one, const char *other) noexcept

cdef enum:
    SESSIONS = 4096
    HANDLE = <int>0xB8000000
    NUMBER = 0x03FFFFFF
    NUMBER_BYTES = 12        # of the digits of an int, with the zero at the end

cdef enum Set:
    SET_WORLD
    SET_SELF
    SETS

cdef:
    Session *sessions[SESSIONS]     # [number]; NULL: never made
    Numbers numbers


cdef const char *name_of(int number) noexcept nogil:
    return "mpi://WORLD" if number == SET_WORLD else "mpi://SELF"


cdef int set_of(const char *name) noexcept nogil:
    """SETS: there is none of that name, in which capitals do not count."""
    cdef int number = 0
    while number < SETS and (name == NULL or strcasecmp(name, name_of(number)) != 0):
        number += 1
    return number


cdef Session *session_of(MPI_Session handle) noexcept nogil:
    cdef int number = handle & NUMBER
    if (handle & ~NUMBER) != HANDLE or number >= SESSIONS or sessions[number] == NULL:
        return NULL
    return sessions[number] if sessions[number].handle == handle else NULL


cdef int init(MPI_Info info, MPI_Errhandler handler, MPI_Session *made) noexcept nogil:
    cdef int number
    made[0] = MPI_SESSION_NULL
    if not handler_of_sessions(handler):
        return error_raise(NULL, MPI_ERR_ARG)
    if not info_is(info):
        return error_by_handler(handler, MPI_ERR_INFO)
    call_enter(<EndpointCore>world.core)
    number = number_take(&numbers, SESSIONS)
    if number >= 0 and sessions[number] == NULL:
        sessions[number] = <Session *>calloc(1, sizeof(Session))
    if number >= 0 and sessions[number] != NULL:
        memset(sessions[number], 0, sizeof(Session))
        sessions[number].handle = HANDLE | number
        sessions[number].error_handler = handler
        handler_keep(handler)
        made[0] = sessions[number].handle
    elif number >= 0:
        number_give(&numbers, number)
    call_leave(<EndpointCore>world.core)
    if made[0] == MPI_SESSION_NULL:
        return error_by_handler(handler, error_detailed(MPI_ERR_NO_MEM, DETAIL_SESSIONS))
    return MPI_SUCCESS


cdef int finalize(MPI_Session *handle) noexcept nogil:
    """What was made from it and not freed stays, and must not be used."""
    cdef Session *session = session_of(handle[0])
    if session == NULL:
        return error_raise(NULL, MPI_ERR_SESSION)
    call_enter(<EndpointCore>world.core)
    handler_drop(session.error_handler)
    session.handle = 0
    number_give(&numbers, handle[0] & NUMBER)
    call_leave(<EndpointCore>world.core)
    handle[0] = MPI_SESSION_NULL
    return MPI_SUCCESS


cdef int get_num_psets(MPI_Session handle, MPI_Info info, int *count) noexcept nogil:
    cdef Session *session = session_of(handle)
    if session == NULL:
        return error_raise(NULL, MPI_ERR_SESSION)
    count[0] = SETS
    return session_ended(session, MPI_SUCCESS if info_is(info) else MPI_ERR_INFO)


cdef int get_nth_pset(MPI_Session handle, MPI_Info info, int number, int *length,
                      char *name) noexcept nogil:
    """`length`: the room, then what the whole name needs, both with the zero at the end."""
    cdef Session *session = session_of(handle)
    if session == NULL:
        return error_raise(NULL, MPI_ERR_SESSION)
    if not info_is(info):
        return session_ended(session, MPI_ERR_INFO)
    if not 0 <= number < SETS or length[0] < 0 or (length[0] > 0 and name == NULL):
        return session_ended(session, MPI_ERR_ARG)
    if length[0] > 0:
        strncpy(name, name_of(number), length[0] - 1)
        name[length[0] - 1] = 0
    length[0] = <int>strlen(name_of(number)) + 1
    return MPI_SUCCESS


cdef int get_info(MPI_Session handle, MPI_Info *info) noexcept nogil:
    """Each session has the same level of threads, whatever it asked for."""
    cdef int code
    if session_of(handle) == NULL:
        return error_raise(NULL, MPI_ERR_SESSION)
    code = info_make(info)
    return code if code != MPI_SUCCESS else info_set(info[0], "thread_level",
                                                     "MPI_THREAD_MULTIPLE")


cdef int get_pset_info(MPI_Session handle, const char *name, MPI_Info *info) noexcept nogil:
    cdef Session *session = session_of(handle)
    cdef char[NUMBER_BYTES] text
    cdef int code, number = set_of(name)
    cdef int size = 1 if number == SET_SELF else world.members_count
    info[0] = MPI_INFO_NULL
    if session == NULL:
        return error_raise(NULL, MPI_ERR_SESSION)
    if number == SETS:
        return session_ended(session, MPI_ERR_ARG)
    snprintf(text, NUMBER_BYTES, "%d", size)
    code = info_make(info)
    return code if code != MPI_SUCCESS else info_set(info[0], "mpi_size", text)


cdef int group_from_pset(MPI_Session handle, const char *name, MPI_Group *made) noexcept nogil:
    cdef Session *session = session_of(handle)
    cdef int number = set_of(name)
    made[0] = MPI_GROUP_NULL
    if session == NULL:
        return error_raise(NULL, MPI_ERR_SESSION)
    if number == SETS:
        return session_ended(session, MPI_ERR_ARG)
    if number == SET_SELF:
        return session_ended(session, group_make(&world.rank, 1, session, made))
    return session_ended(session, group_make(world.members, world.members_count, session, made))


cdef void session_fill(mpi_table *table) noexcept nogil:
    table.Session_init = init
    table.Session_finalize = finalize
    table.Session_get_num_psets = get_num_psets
    table.Session_get_nth_pset = get_nth_pset
    table.Session_get_info = get_info
    table.Session_get_pset_info = get_pset_info
    table.Group_from_session_pset = group_from_pset
