"""Attributes: values under keys, copied and deleted by functions of the user's (MPI 3.1, 6.7).

A communicator has them in a list, the newest first: the order in which they are deleted.
"""

from libc.stdlib cimport calloc, free

from shrimpmx.mpi.abi cimport (
    MPI_APPNUM, MPI_Comm, MPI_ERR_COMM, MPI_ERR_KEYVAL, MPI_ERR_NO_MEM, MPI_HOST, MPI_IO,
    MPI_KEYVAL_INVALID, MPI_LASTUSEDCODE, MPI_PROC_NULL, MPI_SUCCESS, MPI_TAG_UB,
    MPI_UNIVERSE_SIZE, MPI_WTIME_IS_GLOBAL,
)
from shrimpmx.mpi.communicator cimport Attribute, Comm, comm_of
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.error_code cimport last_code
from shrimpmx.mpi.matching cimport TAG_MAX
from shrimpmx.mpi.table cimport (
    MPI_Comm_copy_attr_function, MPI_Comm_delete_attr_function, mpi_table,
)
from shrimpmx.mpi.world cimport world

cdef enum:
    KEYS = 65536
    HANDLE = <int>0xA4000000
    NUMBER = 0x03FFFFFF

cdef struct Key:
    MPI_Comm_copy_attr_function *copies
    MPI_Comm_delete_attr_function *deletes
    void *state
    bint freed               # by the user: attributes keep it

cdef:
    Key *keys[KEYS]
    int keys_count = 0
    # What the predefined attributes point to.
    int tag_max = TAG_MAX
    int any_source = -2
    int no_host = MPI_PROC_NULL
    int yes = 1
    int application = 0


cdef Key *key_of(int handle) noexcept nogil:
    if (handle & ~NUMBER) != HANDLE or handle & NUMBER >= keys_count:
        return NULL
    return keys[handle & NUMBER]


cdef int create_keyval(MPI_Comm_copy_attr_function *copies,
                       MPI_Comm_delete_attr_function *deletes, int *handle,
                       void *state) noexcept nogil:
    """The number of a freed key is not given out again."""
    global keys_count
    cdef Key *key = <Key *>calloc(1, sizeof(Key))
    if key == NULL or keys_count == KEYS:
        free(key)
        return error_raise(NULL, MPI_ERR_NO_MEM)
    key.copies = copies
    key.deletes = deletes
    key.state = state
    handle[0] = HANDLE | keys_count
    keys[keys_count] = key
    keys_count += 1
    return MPI_SUCCESS


cdef int free_keyval(int *handle) noexcept nogil:
    cdef Key *key = key_of(handle[0])
    if key == NULL or key.freed:
        return error_raise(NULL, MPI_ERR_KEYVAL)
    key.freed = True
    handle[0] = MPI_KEYVAL_INVALID
    return MPI_SUCCESS


cdef Attribute **place_of(Comm *comm, int key) noexcept nogil:
    """The link to the attribute of that key, or to the end of the list."""
    cdef Attribute **place = &comm.attributes
    while place[0] != NULL and place[0].key != key:
        place = &place[0].next
    return place


cdef int delete_at(Comm *comm, Attribute **place) noexcept nogil:
    cdef Attribute *attribute = place[0]
    cdef Key *key = key_of(attribute.key)
    cdef int code = MPI_SUCCESS
    if key.deletes != NULL:
        code = key.deletes(comm.handle, attribute.key, attribute.value, key.state)
    if code == MPI_SUCCESS:
        # The function may have changed the list.
        place = place_of(comm, attribute.key)
        if place[0] == attribute:
            place[0] = attribute.next
            free(attribute)
    return code


cdef int set_attr(MPI_Comm handle, int key_handle, void *value) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Key *key = key_of(key_handle)
    cdef Attribute **place
    cdef Attribute *attribute
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if key == NULL or key.freed:
        return error_raise(comm, MPI_ERR_KEYVAL)
    place = place_of(comm, key_handle)
    if place[0] != NULL:
        code = delete_at(comm, place)
        if code != MPI_SUCCESS:
            return error_raise(comm, code)
    attribute = <Attribute *>calloc(1, sizeof(Attribute))
    if attribute == NULL:
        return error_raise(comm, MPI_ERR_NO_MEM)
    attribute.key = key_handle
    attribute.value = value
    attribute.next = comm.attributes
    comm.attributes = attribute
    return MPI_SUCCESS


cdef int get_attr(MPI_Comm handle, int key_handle, void *value, int *flag) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Attribute *attribute
    cdef void **found = <void **>value
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    flag[0] = 1
    if key_handle == MPI_TAG_UB:
        found[0] = &tag_max
    elif key_handle == MPI_HOST:
        found[0] = &no_host
    elif key_handle == MPI_IO:
        found[0] = &any_source
    elif key_handle == MPI_WTIME_IS_GLOBAL:
        found[0] = &yes
    elif key_handle == MPI_UNIVERSE_SIZE:
        found[0] = &world.size
    elif key_handle == MPI_LASTUSEDCODE:
        found[0] = &last_code
    elif key_handle == MPI_APPNUM:
        found[0] = &application
    elif key_of(key_handle) == NULL:
        return error_raise(comm, MPI_ERR_KEYVAL)
    else:
        attribute = place_of(comm, key_handle)[0]
        flag[0] = attribute != NULL
        if attribute != NULL:
            found[0] = attribute.value
    return MPI_SUCCESS


cdef int delete_attr(MPI_Comm handle, int key_handle) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Attribute **place
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    place = place_of(comm, key_handle)
    if key_of(key_handle) == NULL or place[0] == NULL:
        return error_raise(comm, MPI_ERR_KEYVAL)
    code = delete_at(comm, place)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int attributes_copy(Comm *source, Comm *target) noexcept nogil:
    """In the order in which they were set."""
    cdef Attribute *attribute = source.attributes
    cdef Attribute **end = &target.attributes
    cdef Attribute *copied
    cdef Key *key
    cdef void *value
    cdef int wanted, code
    while attribute != NULL:
        key = key_of(attribute.key)
        wanted = 0
        if key.copies != NULL:
            code = key.copies(source.handle, attribute.key, key.state, attribute.value, &value,
                              &wanted)
            if code != MPI_SUCCESS:
                return code
        if wanted:
            copied = <Attribute *>calloc(1, sizeof(Attribute))
            if copied == NULL:
                return MPI_ERR_NO_MEM
            copied.key = attribute.key
            copied.value = value
            end[0] = copied
            end = &copied.next
        attribute = attribute.next
    return MPI_SUCCESS


cdef int attributes_delete(Comm *comm) noexcept nogil:
    cdef int code
    while comm.attributes != NULL:
        code = delete_at(comm, &comm.attributes)
        if code != MPI_SUCCESS:
            return code
    return MPI_SUCCESS


cdef void attribute_fill(mpi_table *table) noexcept nogil:
    table.Comm_create_keyval = create_keyval
    table.Comm_free_keyval = free_keyval
    table.Comm_set_attr = set_attr
    table.Comm_get_attr = get_attr
    table.Comm_delete_attr = delete_attr
