"""Attributes: values under keys, copied and deleted by functions of the user's (MPI 3.1, 6.7).

An object has a record of each key that it has had an attribute of. Records stay in its list until
the object ends, also those of deleted attributes: the user's functions may change the attributes
that a call goes through, and look-ups take no lock.
"""

from libc.stdint cimport intptr_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.mpi.abi cimport (
    MPI_APPNUM, MPI_ERR_COMM, MPI_ERR_KEYVAL, MPI_ERR_NO_MEM, MPI_ERR_TYPE, MPI_HOST, MPI_IO,
    MPI_ERR_WIN, MPI_KEYVAL_INVALID, MPI_LASTUSEDCODE, MPI_PROC_NULL, MPI_SUCCESS, MPI_TAG_UB,
    MPI_UNIVERSE_SIZE, MPI_WIN_BASE, MPI_WIN_CREATE_FLAVOR, MPI_WIN_DISP_UNIT, MPI_WIN_MODEL,
    MPI_WIN_SIZE, MPI_WIN_UNIFIED, MPI_WTIME_IS_GLOBAL, MPI_Aint, MPI_Comm, MPI_Datatype, MPI_Win,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.datatype cimport Datatype, datatype_of
from shrimpmx.mpi.error cimport (
    DETAIL_KEYVALS, ended, error_detailed, error_of_window, error_raise, last_code,
)
from shrimpmx.mpi.matching cimport TAG_MAX
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.section cimport shown_function, shown_function_again
from shrimpmx.mpi.table cimport (
    MPI_Comm_copy_attr_function, MPI_Comm_delete_attr_function, MPI_Type_copy_attr_function,
    MPI_Type_delete_attr_function, MPI_Win_copy_attr_function, MPI_Win_delete_attr_function,
    mpi_table,
)
from shrimpmx.mpi.window cimport Window, window_of
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.native.atomics cimport exchange_u64, load_acquire_u64

cdef enum:
    KEYS = 65536
    HANDLE = <int>0xA4000000
    NUMBER = 0x03FFFFFF
    WIDTH_OF_INTEGER = 3

# Functions of Fortran's and C++'s libraries, which call those of their language.
ctypedef int (*copy_proxy)(void *function, int handle, int key, void *state, int width,
                           void *value, void **copied, int *wanted) noexcept nogil
ctypedef int (*delete_proxy)(void *function, int handle, int key, int width, void *value,
                             void *state) noexcept nogil

cdef struct Key:
    KeyKind kind
    # Those of datatypes and windows have the same type: each handle is an int.
    MPI_Comm_copy_attr_function *copies
    MPI_Comm_delete_attr_function *deletes
    copy_proxy copies_by     # NULL: they are C's
    delete_proxy deletes_by
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
    # ... and one of windows.
    int model = MPI_WIN_UNIFIED


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
    keys[number][0] = Key(kind, copies, deletes, NULL, NULL, state, False, 1)
    handle[0] = HANDLE | number
    return MPI_SUCCESS


cdef void key_drop(int handle) noexcept nogil:
    """Under the lock. With the last use another key may have its number."""
    cdef Key *key = key_of(handle)
    key.uses -= 1
    if key.uses == 0:
        number_give(&numbers, handle & NUMBER)


cdef int free_key(KeyKind kind, int *handle) noexcept nogil:
    """Once more of a key that attributes still have, which a program may (MPI 3.1, 6.7.2)."""
    if not fits(handle[0], kind) or key_of(handle[0]).uses == 0:
        return error_raise(NULL, MPI_ERR_KEYVAL)
    call_enter(<EndpointCore>world.core)
    if not key_of(handle[0]).freed:
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


cdef int put(Attribute **attributes, int key, void *value, int width,
             uint64_t turn) noexcept nogil:
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
    record.width = width
    exchange_u64(&record.turn, turn)  # R1: publishes the value.
    return MPI_SUCCESS


cdef void *value_in_c(Attribute *attribute) noexcept nogil:
    """A value that was set in Fortran is an integer there, and the address of one in C (17.2.7)."""
    return attribute.value if attribute.width == 0 else <void *>&attribute.value


cdef int call_delete(int handle, Attribute *attribute) noexcept nogil:
    cdef Key *key = key_of(attribute.key)
    cdef int call = shown_function()
    cdef int code = MPI_SUCCESS
    if key.deletes != NULL and key.deletes_by != NULL:
        code = key.deletes_by(<void *>key.deletes, handle, attribute.key, attribute.width,
                              attribute.value, key.state)
    elif key.deletes != NULL:
        code = key.deletes(handle, attribute.key, value_in_c(attribute), key.state)
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


cdef int attribute_set(Attribute **attributes, int handle, KeyKind kind, int key, void *value,
                       int width) noexcept nogil:
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
    code = put(attributes, key, value, width, turns)
    call_leave(<EndpointCore>world.core)
    return code


cdef int attribute_get(const Attribute *attributes, KeyKind kind, int key,
                       Attribute **found) noexcept nogil:
    found[0] = attribute_of(attributes, key)
    return MPI_SUCCESS if fits(key, kind) else MPI_ERR_KEYVAL


cdef int get_in_c(const Attribute *attributes, KeyKind kind, int key, void *value,
                  int *flag) noexcept nogil:
    cdef Attribute *attribute
    cdef int code = attribute_get(attributes, kind, key, &attribute)
    flag[0] = attribute != NULL
    if attribute != NULL:
        (<void **>value)[0] = value_in_c(attribute)
    return code


cdef int attribute_delete(Attribute **attributes, int handle, KeyKind kind,
                          int key) noexcept nogil:
    cdef Attribute *attribute = attribute_of(attributes[0], key)
    if not fits(key, kind) or attribute == NULL:
        return MPI_ERR_KEYVAL
    return delete_one(handle, attribute)


cdef int copy_one(Attribute *attribute, int handle, Attribute **to) noexcept nogil:
    """The function may delete the attribute and free its key, which stays until the copy is there.
    """
    cdef Key *key = key_of(attribute.key)
    cdef uint64_t turn
    cdef void *value
    cdef void *copied = NULL
    cdef int width, wanted = 0, call = shown_function()
    cdef int code = MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    turn = attribute.turn
    value = attribute.value
    width = attribute.width
    key.uses += turn != 0
    call_leave(<EndpointCore>world.core)
    if turn == 0:
        return MPI_SUCCESS
    if key.copies != NULL and key.copies_by != NULL:
        code = key.copies_by(<void *>key.copies, handle, attribute.key, key.state, width, value,
                             &copied, &wanted)
        if width == WIDTH_OF_INTEGER:
            copied = <void *><intptr_t><int><intptr_t>copied
    elif key.copies != NULL:
        code = key.copies(handle, attribute.key, key.state, value_in_c(attribute), &copied, &wanted)
        if copied == &attribute.value:  # the same again
            copied = value
        else:
            width = 0
    shown_function_again(call)
    call_enter(<EndpointCore>world.core)
    if code == MPI_SUCCESS and wanted:
        code = put(to, attribute.key, copied, width, turn)
    key_drop(attribute.key)
    call_leave(<EndpointCore>world.core)
    return code


cdef int attributes_copy(Attribute *attributes, int handle, Attribute **to) noexcept nogil:
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
    return ended(comm, attribute_set(&comm.attributes, handle, OF_COMMUNICATORS, key, value, 0))


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
        found[0] = &world.application
    else:
        return ended(comm, get_in_c(comm.attributes, OF_COMMUNICATORS, key, value, flag))
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
    return ended(NULL, attribute_set(&type.attributes, handle, OF_DATATYPES, key, value, 0))


cdef int type_get_attr(MPI_Datatype handle, int key, void *value, int *flag) noexcept nogil:
    cdef Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    return ended(NULL, get_in_c(type.attributes, OF_DATATYPES, key, value, flag))


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


cdef int win_set_attr(MPI_Win handle, int key, void *value) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int code
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    code = attribute_set(&window.attributes, handle, OF_WINDOWS, key, value, 0)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_window(window, code)


cdef int win_get_attr(MPI_Win handle, int key, void *value, int *flag) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef void **found = <void **>value
    cdef int code
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    flag[0] = 1
    if key == MPI_WIN_BASE:
        found[0] = window.base
    elif key == MPI_WIN_SIZE:
        found[0] = &window.size
    elif key == MPI_WIN_DISP_UNIT:
        found[0] = &window.unit
    elif key == MPI_WIN_CREATE_FLAVOR:
        found[0] = &window.flavor
    elif key == MPI_WIN_MODEL:
        found[0] = &model
    else:
        code = get_in_c(window.attributes, OF_WINDOWS, key, value, flag)
        return MPI_SUCCESS if code == MPI_SUCCESS else error_of_window(window, code)
    return MPI_SUCCESS


cdef int win_delete_attr(MPI_Win handle, int key) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int code
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    code = attribute_delete(&window.attributes, handle, OF_WINDOWS, key)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_window(window, code)


# -- for libraries of other languages ----------------------------------------------------------

cdef Attribute **attributes_of(KeyKind kind, int handle, Comm **comm) noexcept nogil:
    """Of an object, and where errors of calls on it go; NULL: there is none."""
    comm[0] = comm_of(handle) if kind == OF_COMMUNICATORS else NULL
    if comm[0] != NULL:
        return &comm[0].attributes
    if kind == OF_DATATYPES and datatype_of(handle) != NULL:
        return &datatype_of(handle).attributes
    if kind == OF_WINDOWS and window_of(handle) != NULL:
        return &window_of(handle).attributes
    return NULL


cdef int no_object(KeyKind kind) noexcept nogil:
    if kind == OF_WINDOWS:
        return MPI_ERR_WIN
    return MPI_ERR_COMM if kind == OF_COMMUNICATORS else MPI_ERR_TYPE


cdef int fortran_set_attr(int kind, int handle, int key, MPI_Aint value, int width) noexcept nogil:
    cdef Comm *comm
    cdef Attribute **attributes = attributes_of(<KeyKind>kind, handle, &comm)
    if attributes == NULL:
        return error_raise(NULL, no_object(<KeyKind>kind))
    return ended(comm, attribute_set(attributes, handle, <KeyKind>kind, key, <void *>value, width))


cdef int fortran_get_attr(int kind, int handle, int key, MPI_Aint *value,
                          int *flag) noexcept nogil:
    cdef Comm *comm
    cdef Attribute *attribute
    cdef Attribute **attributes = attributes_of(<KeyKind>kind, handle, &comm)
    cdef int code
    if attributes == NULL:
        return error_raise(NULL, no_object(<KeyKind>kind))
    code = attribute_get(attributes[0], <KeyKind>kind, key, &attribute)
    flag[0] = attribute != NULL
    if attribute != NULL:
        value[0] = <MPI_Aint>attribute.value
    return ended(comm, code)


cdef int set_proxy(int handle, void *copies, void *deletes) noexcept nogil:
    cdef Key *key = key_of(handle)
    if key == NULL:
        return error_raise(NULL, MPI_ERR_KEYVAL)
    key.copies_by = <copy_proxy>copies
    key.deletes_by = <delete_proxy>deletes
    return MPI_SUCCESS


cdef void attribute_fill(mpi_table *table) noexcept nogil:
    table.Fortran_set_attr = fortran_set_attr
    table.Fortran_get_attr = fortran_get_attr
    table.Keyval_set_proxy = set_proxy
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
    table.Win_set_attr = win_set_attr
    table.Win_get_attr = win_get_attr
    table.Win_delete_attr = win_delete_attr
