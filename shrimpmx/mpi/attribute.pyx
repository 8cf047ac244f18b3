"""Attributes: values under keys, copied and deleted by functions of the user's (MPI 3.1, 6.7).

An object has a record of each key that it has had an attribute of. Records stay in its list until
the object ends, also those of deleted attributes: the user's functions may change the attributes
that a call goes through, and look-ups take no lock.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.mpi.abi cimport (
    MPI_APPNUM, MPI_ERR_COMM, MPI_ERR_KEYVAL, MPI_ERR_NO_MEM, MPI_ERR_TYPE, MPI_HOST, MPI_IO,
    MPI_KEYVAL_INVALID, MPI_LASTUSEDCODE, MPI_PROC_NULL, MPI_SUCCESS, MPI_TAG_UB, MPI_UNIVERSE_SIZE,
    MPI_WTIME_IS_GLOBAL, MPI_Comm, MPI_Datatype,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.datatype cimport Datatype, datatype_of
from shrimpmx.mpi.error cimport DETAIL_KEYVALS, ended, error_detailed, error_raise, last_code
from shrimpmx.mpi.matching cimport TAG_MAX
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.section cimport shown_function, shown_function_again
from shrimpmx.mpi.table cimport (
    MPI_Comm_copy_attr_function, MPI_Comm_delete_attr_function, MPI_Type_copy_attr_function,
    MPI_Type_delete_attr_function, MPI_Win_copy_attr_function, MPI_Win_delete_attr_function,
    mpi_table,
)
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.native.atomics cimport exchange_u64, load_acquire_u64

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
    uint32_t uses            # the user's handle, attributes that have it, calls of its functions

cdef:
    Key *keys[KEYS]
    Numbers numbers
    uint64_t turns = 0       # attributes set so far
    # What the predefined attributes of communicators point to.
    int tag_max = TAG_MAX
    int any_source = -2
    int no_host = MPI_PROC_NULL
    int yes = 1
    int application = 0


# -- keys ----------------------------------------------------------------------------------

cdef Key *key_of(int handle) noexcept nogil:
    cdef int number = handle & NUMBER
    return keys[number] if (handle & ~NUMBER) == HANDLE and number < KEYS else NULL


cdef bint fits(int handle, KeyKind kind) noexcept nogil:
    """Whether it is a key of such objects, which may be freed."""
    cdef Key *key = key_of(handle)
    return key != NULL and key.kind == kind


cdef int create_key(KeyKind kind, MPI_Comm_copy_attr_function *copies,
                    MPI_Comm_delete_attr_function *deletes, int *handle,
                    void *state) noexcept nogil:
    cdef int number = number_take(&numbers, KEYS)
    handle[0] = MPI_KEYVAL_INVALID
    if number < 0:
        return error_raise(NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_KEYVALS))
    if keys[number] == NULL:
        keys[number] = <Key *>calloc(1, sizeof(Key))
    if keys[number] == NULL:
        number_give(&numbers, number)
        return error_raise(NULL, MPI_ERR_NO_MEM)
    keys[number][0] = Key(kind, copies, deletes, state, False, 1)
    handle[0] = HANDLE | number
    return MPI_SUCCESS


cdef void key_drop(int handle) noexcept nogil:
    """Under the lock. With the last use another key may have its number."""
    cdef Key *key = key_of(handle)
    key.uses -= 1
    if key.uses == 0:
        number_give(&numbers, handle & NUMBER)


cdef int free_key(KeyKind kind, int *handle) noexcept nogil:
    if not fits(handle[0], kind) or key_of(handle[0]).freed:
        return error_raise(NULL, MPI_ERR_KEYVAL)
    call_enter(<EndpointCore>world.core)
    key_of(handle[0]).freed = True
    key_drop(handle[0])
    call_leave(<EndpointCore>world.core)
    handle[0] = MPI_KEYVAL_INVALID
    return MPI_SUCCESS


# -- attributes ----------------------------------------------------------------------------

cdef Attribute *record_of(Attribute *attributes, int key) noexcept nogil:
    """Which may be that of a deleted attribute."""
    while attributes != NULL and attributes.key != key:
        attributes = attributes.next
    return attributes


cdef Attribute *attribute_of(const Attribute *attributes, int key) noexcept nogil:
    cdef Attribute *record = record_of(<Attribute *>attributes, key)
    # A1: pairs with R1 of put.
    return record if record != NULL and load_acquire_u64(&record.turn) != 0 else NULL


cdef int put(Attribute **attributes, int key, void *value, uint64_t turn) noexcept nogil:
    """Under the lock. `turn`: in the order of all attributes; a copy has its original's."""
    cdef Attribute *record = record_of(attributes[0], key)
    if record == NULL:
        record = <Attribute *>calloc(1, sizeof(Attribute))
        if record == NULL:
            return MPI_ERR_NO_MEM
        record.key = key
        record.next = attributes[0]
        # A look-up that finds the record reads its key and the next one.
        exchange_u64(<uint64_t *>attributes, <uint64_t>record)
    if record.turn == 0:
        key_of(key).uses += 1
    record.value = value
    exchange_u64(&record.turn, turn)  # R1: publishes the value.
    return MPI_SUCCESS


cdef int call_delete(int handle, const Attribute *attribute) noexcept nogil:
    cdef Key *key = key_of(attribute.key)
    cdef int call = shown_function()
    cdef int code = MPI_SUCCESS
    if key.deletes != NULL:
        code = key.deletes(handle, attribute.key, attribute.value, key.state)
    shown_function_again(call)
    return code


cdef int delete_one(int handle, Attribute *attribute) noexcept nogil:
    cdef int code = call_delete(handle, attribute)
    if code != MPI_SUCCESS:
        return code
    call_enter(<EndpointCore>world.core)
    # The function may have deleted it.
    if attribute.turn != 0:
        attribute.turn = 0
        key_drop(attribute.key)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


cdef int attribute_set(Attribute **attributes, int handle, KeyKind kind, int key,
                       void *value) noexcept nogil:
    global turns
    cdef Attribute *attribute
    cdef int code = MPI_SUCCESS
    if not fits(key, kind) or key_of(key).freed:
        return MPI_ERR_KEYVAL
    attribute = attribute_of(attributes[0], key)
    if attribute != NULL:
        code = call_delete(handle, attribute)
    if code != MPI_SUCCESS:
        return code
    call_enter(<EndpointCore>world.core)
    turns += 1
    code = put(attributes, key, value, turns)
    call_leave(<EndpointCore>world.core)
    return code


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
    return delete_one(handle, attribute)


cdef int copy_one(const Attribute *attribute, int handle, Attribute **to) noexcept nogil:
    """The function may delete the attribute and free its key, which stays until the copy is there.
    """
    cdef Key *key = key_of(attribute.key)
    cdef uint64_t turn
    cdef void *value
    cdef void *copied
    cdef int wanted = 0, call = shown_function()
    cdef int code = MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    turn = attribute.turn
    value = attribute.value
    key.uses += turn != 0
    call_leave(<EndpointCore>world.core)
    if turn == 0:
        return MPI_SUCCESS
    if key.copies != NULL:
        code = key.copies(handle, attribute.key, key.state, value, &copied, &wanted)
    shown_function_again(call)
    call_enter(<EndpointCore>world.core)
    if code == MPI_SUCCESS and wanted:
        code = put(to, attribute.key, copied, turn)
    key_drop(attribute.key)
    call_leave(<EndpointCore>world.core)
    return code


cdef int attributes_copy(const Attribute *attributes, int handle, Attribute **to) noexcept nogil:
    """The copies have the same order."""
    cdef int code = MPI_SUCCESS
    while attributes != NULL and code == MPI_SUCCESS:
        code = copy_one(attributes, handle, to)
        attributes = attributes.next
    return code


cdef Attribute *newest(Attribute *record) noexcept nogil:
    """The one that was set last; NULL: there is none."""
    cdef Attribute *found = NULL
    while record != NULL:
        if record.turn > (found.turn if found != NULL else 0):
            found = record
        record = record.next
    return found


cdef int attributes_delete(Attribute **attributes, int handle) noexcept nogil:
    cdef Attribute *attribute = newest(attributes[0])
    cdef int code
    while attribute != NULL:
        code = delete_one(handle, attribute)
        if code != MPI_SUCCESS:
            return code
        attribute = newest(attributes[0])
    while attributes[0] != NULL:
        attribute = attributes[0]
        attributes[0] = attribute.next
        free(attribute)
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
