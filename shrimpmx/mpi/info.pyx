"""Info objects (MPI 3.1, chapter 9). Keys and values are kept in the order in which they came.

Hints mean something to windows (alloc_shared_noncontig, window.pyx) and to files, which give theirs
back (file.pyx); communicators and windows give an empty object back.
"""

from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, strcmp, strdup, strlen

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_INFO, MPI_ERR_INFO_KEY, MPI_ERR_INFO_NOKEY,
    MPI_ERR_INFO_VALUE, MPI_ERR_NO_MEM, MPI_INFO_ENV, MPI_INFO_NULL, MPI_SUCCESS, MPI_Comm,
    MPI_Info,
)
from shrimpmx.mpi.communicator cimport comm_of
from shrimpmx.mpi.error cimport DETAIL_INFOS, error_detailed, error_raise
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.table cimport mpi_table

cdef enum:
    INFOS = 65536
    HANDLE = <int>0x9C000000
    NUMBER = 0x03FFFFFF
    # MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL, with the zero at the end.
    KEY_MAX = 255
    VALUE_MAX = 1024

cdef struct Pair:
    char *key
    char *value
    Pair *next

cdef struct Info:
    bint used
    Pair *pairs

cdef:
    Info *infos[INFOS]       # NULL: never made
    Numbers numbers
    Info environment         # MPI_INFO_ENV, which has nothing


cdef Info *info_of(MPI_Info handle) noexcept nogil:
    cdef int number = handle & NUMBER
    if handle == MPI_INFO_ENV:
        return &environment
    if (handle & ~NUMBER) != HANDLE or number >= INFOS or infos[number] == NULL:
        return NULL
    return infos[number] if infos[number].used else NULL


cdef Pair **place_of(Info *info, const char *key) noexcept nogil:
    """The link to the pair of that key, or to the end of the list."""
    cdef Pair **place = &info.pairs
    while place[0] != NULL and strcmp(place[0].key, key) != 0:
        place = &place[0].next
    return place


cdef void drop(Pair **place) noexcept nogil:
    cdef Pair *pair = place[0]
    place[0] = pair.next
    free(pair.key)
    free(pair.value)
    free(pair)


cdef int check_key(const char *key) noexcept nogil:
    return MPI_SUCCESS if 0 < strlen(key) <= KEY_MAX else MPI_ERR_INFO_KEY


cdef int create(MPI_Info *made) noexcept nogil:
    cdef int number = number_take(&numbers, INFOS)
    made[0] = MPI_INFO_NULL
    if number < 0:
        return error_raise(NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_INFOS))
    if infos[number] == NULL:
        infos[number] = <Info *>calloc(1, sizeof(Info))
    if infos[number] == NULL:
        number_give(&numbers, number)
        return error_raise(NULL, MPI_ERR_NO_MEM)
    infos[number].used = True
    made[0] = HANDLE | number
    return MPI_SUCCESS


cdef int free_info(MPI_Info *handle) noexcept nogil:
    cdef Info *info = info_of(handle[0])
    if info == NULL or info == &environment:
        return error_raise(NULL, MPI_ERR_INFO)
    while info.pairs != NULL:
        drop(&info.pairs)
    info.used = False
    number_give(&numbers, handle[0] & NUMBER)
    handle[0] = MPI_INFO_NULL
    return MPI_SUCCESS


cdef int set_value(MPI_Info handle, const char *key, const char *value) noexcept nogil:
    cdef Info *info = info_of(handle)
    cdef Pair **place
    cdef char *copied
    if info == NULL or info == &environment:
        return error_raise(NULL, MPI_ERR_INFO)
    if check_key(key) != MPI_SUCCESS:
        return error_raise(NULL, MPI_ERR_INFO_KEY)
    if strlen(value) > VALUE_MAX:
        return error_raise(NULL, MPI_ERR_INFO_VALUE)
    copied = strdup(value)
    place = place_of(info, key)
    if place[0] == NULL:
        place[0] = <Pair *>calloc(1, sizeof(Pair))
        if place[0] != NULL:
            place[0].key = strdup(key)
    if copied == NULL or place[0] == NULL or place[0].key == NULL:
        return error_raise(NULL, MPI_ERR_NO_MEM)
    free(place[0].value)
    place[0].value = copied
    return MPI_SUCCESS


cdef int get_value(MPI_Info handle, const char *key, int room, char *value,
                   int *flag) noexcept nogil:
    """As much of it as `room` characters have, and a zero."""
    cdef Info *info = info_of(handle)
    cdef Pair *pair
    cdef int length
    if info == NULL:
        return error_raise(NULL, MPI_ERR_INFO)
    if check_key(key) != MPI_SUCCESS:
        return error_raise(NULL, MPI_ERR_INFO_KEY)
    if room < 0:
        return error_raise(NULL, MPI_ERR_ARG)
    pair = place_of(info, key)[0]
    flag[0] = pair != NULL
    if pair != NULL:
        length = min(room, <int>strlen(pair.value))
        memcpy(value, pair.value, length)
        value[length] = 0
    return MPI_SUCCESS


cdef int get_string(MPI_Info handle, const char *key, int *room, char *text,
                    int *flag) noexcept nogil:
    """As get_value, but `room` has the zero, too, and gets what the whole value needs."""
    cdef int code, length = 0
    code = get_length(handle, key, &length, flag)
    if code != MPI_SUCCESS or not flag[0]:
        return code
    if room[0] > 0:
        code = get_value(handle, key, room[0] - 1, text, flag)
    room[0] = length + 1
    return code


cdef int get_length(MPI_Info handle, const char *key, int *length, int *flag) noexcept nogil:
    cdef Info *info = info_of(handle)
    cdef Pair *pair
    if info == NULL:
        return error_raise(NULL, MPI_ERR_INFO)
    if check_key(key) != MPI_SUCCESS:
        return error_raise(NULL, MPI_ERR_INFO_KEY)
    pair = place_of(info, key)[0]
    flag[0] = pair != NULL
    if pair != NULL:
        length[0] = <int>strlen(pair.value)
    return MPI_SUCCESS


cdef int get_count(MPI_Info handle, int *count) noexcept nogil:
    cdef Info *info = info_of(handle)
    cdef Pair *pair
    if info == NULL:
        return error_raise(NULL, MPI_ERR_INFO)
    count[0] = 0
    pair = info.pairs
    while pair != NULL:
        count[0] += 1
        pair = pair.next
    return MPI_SUCCESS


cdef int get_key(MPI_Info handle, int number, char *key) noexcept nogil:
    cdef Info *info = info_of(handle)
    cdef Pair *pair
    if info == NULL:
        return error_raise(NULL, MPI_ERR_INFO)
    pair = info.pairs
    while pair != NULL and number > 0:
        number -= 1
        pair = pair.next
    if pair == NULL or number < 0:
        return error_raise(NULL, MPI_ERR_ARG)
    memcpy(key, pair.key, strlen(pair.key) + 1)
    return MPI_SUCCESS


cdef int delete_key(MPI_Info handle, const char *key) noexcept nogil:
    cdef Info *info = info_of(handle)
    cdef Pair **place
    if info == NULL or info == &environment:
        return error_raise(NULL, MPI_ERR_INFO)
    if check_key(key) != MPI_SUCCESS:
        return error_raise(NULL, MPI_ERR_INFO_KEY)
    place = place_of(info, key)
    if place[0] == NULL:
        return error_raise(NULL, MPI_ERR_INFO_NOKEY)
    drop(place)
    return MPI_SUCCESS


cdef int dup(MPI_Info handle, MPI_Info *made) noexcept nogil:
    cdef Info *info = info_of(handle)
    cdef Pair *pair
    cdef int code
    if info == NULL:
        return error_raise(NULL, MPI_ERR_INFO)
    code = create(made)
    pair = info.pairs
    while pair != NULL and code == MPI_SUCCESS:
        code = set_value(made[0], pair.key, pair.value)
        pair = pair.next
    return code


cdef int create_env(int count, char **arguments, MPI_Info *made) noexcept nogil:
    """What MPI_INFO_ENV has."""
    return dup(MPI_INFO_ENV, made)


cdef int comm_set_info(MPI_Comm handle, MPI_Info info) noexcept nogil:
    if comm_of(handle) == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return MPI_SUCCESS if info_of(info) != NULL else error_raise(NULL, MPI_ERR_INFO)


cdef int comm_get_info(MPI_Comm handle, MPI_Info *made) noexcept nogil:
    return create(made) if comm_of(handle) != NULL else error_raise(NULL, MPI_ERR_COMM)


cdef bint info_is(MPI_Info handle) noexcept nogil:
    return handle == MPI_INFO_NULL or info_of(handle) != NULL


cdef const char *info_text(MPI_Info handle, const char *key) noexcept nogil:
    cdef Info *info = info_of(handle)
    cdef Pair *pair = NULL if info == NULL else place_of(info, key)[0]
    return NULL if pair == NULL else pair.value


cdef int info_set(MPI_Info handle, const char *key, const char *value) noexcept nogil:
    return set_value(handle, key, value)


cdef int info_make(MPI_Info *made) noexcept nogil:
    return create(made)


cdef void info_fill(mpi_table *table) noexcept nogil:
    table.Info_create = create
    table.Info_create_env = create_env
    table.Get_hw_resource_info = create  # no resource has a name here
    table.Info_dup = dup
    table.Info_free = free_info
    table.Info_set = set_value
    table.Info_get = get_value
    table.Info_get_string = get_string
    table.Info_get_valuelen = get_length
    table.Info_get_nkeys = get_count
    table.Info_get_nthkey = get_key
    table.Info_delete = delete_key
    table.Comm_set_info = comm_set_info
    table.Comm_get_info = comm_get_info
