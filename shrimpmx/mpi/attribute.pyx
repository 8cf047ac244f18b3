"""Attributes: values under keys, copied and deleted by functions of the user's (MPI 3.1, 6.7).

An object has them in a list, the newest first: the order in which they are deleted.
"""

from libc.stdlib cimport calloc, free

from shrimpmx.mpi.abi cimport (
    MPI_APPNUM, MPI_Comm, MPI_Datatype, MPI_ERR_COMM, MPI_ERR_KEYVAL, MPI_ERR_NO_MEM, MPI_ERR_TYPE,
    MPI_HOST, MPI_IO, MPI_KEYVAL_INVALID, MPI_LASTUSEDCODE, MPI_PROC_NULL, MPI_SUCCESS, MPI_TAG_UB,
    MPI_UNIVERSE_SIZE, MPI_WTIME_IS_GLOBAL,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.datatype cimport Datatype, datatype_of
from shrimpmx.mpi.error cimport ended, error_raise
from shrimpmx.mpi.error_code cimport last_code
from shrimpmx.mpi.matching cimport TAG_MAX
from shrimpmx.mpi.table cimport (
    MPI_Comm_copy_attr_function, MPI_Comm_delete_attr_function, MPI_Type_copy_attr_function,
    MPI_Type_delete_attr_function, MPI_Win_copy_attr_function, MPI_Win_delete_attr_function,
    mpi_table,
)
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore

cdef enum:
    KEYS = 65536
    HANDLE = <int>0xA4000000
    NUMBER = 0x03FFFFFF

cdef struct Key:
    KeyKind kind
    # Those of datatypes and windows have the same type: each handle is an int.
    MPI_Comm_copy_attr_function *copies
    MPI_Comm_delete_attr_function *deletes
    void *state
    bint freed               # by the user: attributes keep it

cdef:
    Key *keys[KEYS]
    int keys_count = 0
    # What the predefined attributes of communicators point to.
    int tag_max = TAG_MAX
    int any_source = -2
    int no_host = MPI_PROC_NULL
    int yes = 1
    int application = 0


# -- keys ----------------------------------------------------------------------------------

cdef Key *key_of(int handle) noexcept nogil:
    cdef int number = handle & NUMBER
    return keys[number] if (handle & ~NUMBER) == HANDLE and number < keys_count else NULL


cdef bint fits(int handle, KeyKind kind) noexcept nogil:
    """Whether it is a key of such objects, which may be freed."""
    cdef Key *key = key_of(handle)
    return key != NULL and key.kind == kind


cdef int create_key(KeyKind kind, MPI_Comm_copy_attr_function *copies,
                    MPI_Comm_delete_attr_function *deletes, int *handle,
                    void *state) noexcept nogil:
    """The number of a freed key is not given out again."""
    global keys_count
    cdef Key *key = <Key *>calloc(1, sizeof(Key))
    handle[0] = MPI_KEYVAL_INVALID
    call_enter(<EndpointCore>world.core)
    if key != NULL and keys_count < KEYS:
        key[0] = Key(kind, copies, deletes, state, False)
        keys[keys_count] = key
        handle[0] = HANDLE | keys_count
        keys_count += 1
    call_leave(<EndpointCore>world.core)
    if handle[0] == MPI_KEYVAL_INVALID:
        free(key)
        return error_raise(NULL, MPI_ERR_NO_MEM)
    return MPI_SUCCESS


cdef int free_key(KeyKind kind, int *handle) noexcept nogil:
    if not fits(handle[0], kind) or key_of(handle[0]).freed:
        return error_raise(NULL, MPI_ERR_KEYVAL)
    key_of(handle[0]).freed = True
    handle[0] = MPI_KEYVAL_INVALID
    return MPI_SUCCESS


# -- attributes ----------------------------------------------------------------------------

cdef Attribute *attribute_of(const Attribute *attributes, int key) noexcept nogil:
    cdef Attribute *attribute = <Attribute *>attributes
    while attribute != NULL and attribute.key != key:
        attribute = attribute.next
    return attribute


cdef int delete_one(Attribute **attributes, int handle, Attribute *attribute) noexcept nogil:
    cdef Key *key = key_of(attribute.key)
    cdef Attribute **place = attributes
    cdef int code = MPI_SUCCESS
    if key.deletes != NULL:
        code = key.deletes(handle, attribute.key, attribute.value, key.state)
    if code != MPI_SUCCESS:
        return code
    call_enter(<EndpointCore>world.core)
    # The function may have changed the list.
    while place[0] != NULL and place[0] != attribute:
        place = &place[0].next
    if place[0] == attribute:
        place[0] = attribute.next
        free(attribute)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


cdef int attribute_set(Attribute **attributes, int handle, KeyKind kind, int key,
                       void *value) noexcept nogil:
    cdef Attribute *attribute
    cdef int code
    if not fits(key, kind) or key_of(key).freed:
        return MPI_ERR_KEYVAL
    attribute = attribute_of(attributes[0], key)
    if attribute != NULL:
        code = delete_one(attributes, handle, attribute)
        if code != MPI_SUCCESS:
            return code
    attribute = <Attribute *>calloc(1, sizeof(Attribute))
    if attribute == NULL:
        return MPI_ERR_NO_MEM
    call_enter(<EndpointCore>world.core)
    attribute[0] = Attribute(key, value, attributes[0])
    attributes[0] = attribute
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


cdef int attribute_get(const Attribute *attributes, KeyKind kind, int key, void **value,
                       int *flag) noexcept nogil:
    cdef Attribute *attribute
    if not fits(key, kind):
        return MPI_ERR_KEYVAL
    attribute = attribute_of(attributes, key)
    flag[0] = attribute != NULL
    if attribute != NULL:
        value[0] = attribute.value
    return MPI_SUCCESS


cdef int attribute_delete(Attribute **attributes, int handle, KeyKind kind,
                          int key) noexcept nogil:
    cdef Attribute *attribute = attribute_of(attributes[0], key)
    if not fits(key, kind) or attribute == NULL:
        return MPI_ERR_KEYVAL
    return delete_one(attributes, handle, attribute)


cdef int attributes_copy(const Attribute *attributes, int handle, Attribute **to) noexcept nogil:
    """The copies stand in the same order."""
    cdef const Attribute *attribute = attributes
    cdef Attribute **end = to
    cdef Key *key
    cdef void *value
    cdef int wanted, code
    while attribute != NULL:
        key = key_of(attribute.key)
        wanted = 0
        if key.copies != NULL:
            code = key.copies(handle, attribute.key, key.state, attribute.value, &value, &wanted)
            if code != MPI_SUCCESS:
                return code
        if wanted:
            end[0] = <Attribute *>calloc(1, sizeof(Attribute))
            if end[0] == NULL:
                return MPI_ERR_NO_MEM
            end[0].key = attribute.key
            end[0].value = value
            end = &end[0].next
        attribute = attribute.next
    return MPI_SUCCESS


cdef int attributes_delete(Attribute **attributes, int handle) noexcept nogil:
    cdef int code
    while attributes[0] != NULL:
        code = delete_one(attributes, handle, attributes[0])
        if code != MPI_SUCCESS:
            return code
    return MPI_SUCCESS


# -- of communicators ------------------------------------------------------------------------

cdef int comm_create_keyval(MPI_Comm_copy_attr_function *copies,
                            MPI_Comm_delete_attr_function *deletes, int *handle,
                            void *state) noexcept nogil:
    return create_key(OF_COMMUNICATORS, copies, deletes, handle, state)


cdef int comm_free_keyval(int *handle) noexcept nogil:
    return free_key(OF_COMMUNICATORS, handle)


cdef int comm_set_attr(MPI_Comm handle, int key, void *value) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return ended(comm, attribute_set(&comm.attributes, handle, OF_COMMUNICATORS, key, value))


cdef int comm_get_attr(MPI_Comm handle, int key, void *value, int *flag) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef void **found = <void **>value
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    flag[0] = 1
    if key == MPI_TAG_UB:
        found[0] = &tag_max
    elif key == MPI_HOST:
        found[0] = &no_host
    elif key == MPI_IO:
        found[0] = &any_source
    elif key == MPI_WTIME_IS_GLOBAL:
        found[0] = &yes
    elif key == MPI_UNIVERSE_SIZE:
        found[0] = &world.size
    elif key == MPI_LASTUSEDCODE:
        found[0] = &last_code
    elif key == MPI_APPNUM:
        found[0] = &application
    else:
        return ended(comm, attribute_get(comm.attributes, OF_COMMUNICATORS, key, found, flag))
    return MPI_SUCCESS


cdef int comm_delete_attr(MPI_Comm handle, int key) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return ended(comm, attribute_delete(&comm.attributes, handle, OF_COMMUNICATORS, key))


# -- of datatypes ----------------------------------------------------------------------------

cdef int type_create_keyval(MPI_Type_copy_attr_function *copies,
                            MPI_Type_delete_attr_function *deletes, int *handle,
                            void *state) noexcept nogil:
    return create_key(OF_DATATYPES, copies, deletes, handle, state)


cdef int type_free_keyval(int *handle) noexcept nogil:
    return free_key(OF_DATATYPES, handle)


cdef int type_set_attr(MPI_Datatype handle, int key, void *value) noexcept nogil:
    cdef Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    return ended(NULL, attribute_set(&type.attributes, handle, OF_DATATYPES, key, value))


cdef int type_get_attr(MPI_Datatype handle, int key, void *value, int *flag) noexcept nogil:
    cdef Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    return ended(NULL, attribute_get(type.attributes, OF_DATATYPES, key, <void **>value, flag))


cdef int type_delete_attr(MPI_Datatype handle, int key) noexcept nogil:
    cdef Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    return ended(NULL, attribute_delete(&type.attributes, handle, OF_DATATYPES, key))


# -- of windows, of which there is none --------------------------------------------------------

cdef int win_create_keyval(MPI_Win_copy_attr_function *copies,
                           MPI_Win_delete_attr_function *deletes, int *handle,
                           void *state) noexcept nogil:
    return create_key(OF_WINDOWS, copies, deletes, handle, state)


cdef int win_free_keyval(int *handle) noexcept nogil:
    return free_key(OF_WINDOWS, handle)


cdef void attribute_fill(mpi_table *table) noexcept nogil:
    table.Comm_create_keyval = comm_create_keyval
    table.Comm_free_keyval = comm_free_keyval
    table.Comm_set_attr = comm_set_attr
    table.Comm_get_attr = comm_get_attr
    table.Comm_delete_attr = comm_delete_attr
    table.Type_create_keyval = type_create_keyval
    table.Type_free_keyval = type_free_keyval
    table.Type_set_attr = type_set_attr
    table.Type_get_attr = type_get_attr
    table.Type_delete_attr = type_delete_attr
    table.Win_create_keyval = win_create_keyval
    table.Win_free_keyval = win_free_keyval
