"""Views of files (MPI 4.1, 14.3), representations of data (14.5) and positions of pointers (14.4).

A view is a list of the runs of bytes that one filetype has, and repeats for ever.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, strcmp, strcpy, strlen

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ARG, MPI_ERR_CONVERSION, MPI_ERR_DUP_DATAREP, MPI_ERR_FILE, MPI_ERR_INFO, MPI_ERR_IO,
    MPI_ERR_NO_MEM, MPI_ERR_OTHER, MPI_ERR_TYPE, MPI_ERR_UNSUPPORTED_DATAREP,
    MPI_ERR_UNSUPPORTED_OPERATION, MPI_MAX_DATAREP_STRING, MPI_MODE_RDONLY, MPI_MODE_SEQUENTIAL,
    MPI_SEEK_CUR, MPI_SEEK_END, MPI_SEEK_SET, MPI_SUCCESS, MPI_Aint, MPI_Count, MPI_Datatype,
    MPI_Info,
)
from shrimpmx.mpi.datatype cimport (
    Datatype, bytes_type, datatype_drop, datatype_keep, datatype_of, datatype_remember,
    datatype_walk, is_predefined,
)
from shrimpmx.mpi.error cimport DETAIL_SEQUENTIAL, error_detailed, error_of_file
from shrimpmx.mpi.file cimport (
    DATA_AS_IN_MEMORY, DATA_EXTERNAL, DATA_OF_PROGRAM, SPLIT_NONE, Run, file_agree, file_bytes,
    file_hints, file_of, shared_pointer,
)
from shrimpmx.mpi.info cimport info_is
from shrimpmx.mpi.pack cimport external_bytes
from shrimpmx.mpi.table cimport (
    MPI_Datarep_conversion_function, MPI_Datarep_conversion_function_c,
    MPI_Datarep_extent_function, MPI_File, MPI_Offset, mpi_table,
)
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.native.atomics cimport load_relaxed_u64, store_relaxed_u64

cdef enum:
    RUNS_MIN = 16

cdef int64_t DISPLACEMENT_CURRENT = -54278278
cdef double PLACES_END = 9e18  # a little less than an int64_t holds

cdef enum:
    STANDARD = 3

# MPI's own representations, and behind them the program's, newest first.
cdef Representation[STANDARD] standard


# -- representations -----------------------------------------------------------------------------

cdef void prepare() noexcept nogil:
    cdef int index
    strcpy(standard[0].name, "native")
    strcpy(standard[1].name, "internal")
    strcpy(standard[2].name, "external32")
    standard[2].kind = DATA_EXTERNAL
    for index in range(STANDARD - 1):
        standard[index].next = &standard[index + 1]


cdef const Representation *representation_of(const char *name) noexcept nogil:
    """NULL: there is none."""
    cdef const Representation *each = &standard[0]
    while each != NULL and strcmp(each.name, name) != 0:
        each = each.next
    return each


cdef int register_as(const char *name, void *reads, void *writes,
                     MPI_Datarep_extent_function *extents, void *state,
                     bint is_large) noexcept nogil:
    cdef Representation *made
    if not 0 < strlen(name) < MPI_MAX_DATAREP_STRING or extents == NULL:
        return error_of_file(NULL, MPI_ERR_ARG)
    made = <Representation *>calloc(1, sizeof(Representation))
    if made == NULL:
        return error_of_file(NULL, MPI_ERR_NO_MEM)
    made[0].kind = DATA_OF_PROGRAM
    strcpy(made.name, name)
    made.reads = reads
    made.writes = writes
    made.extents = extents
    made.state = state
    made.is_large = is_large
    call_enter(<EndpointCore>world.core)
    if representation_of(name) != NULL:
        free(made)
        made = NULL
    else:
        made.next = standard[STANDARD - 1].next
        standard[STANDARD - 1].next = made
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if made != NULL else error_of_file(NULL, MPI_ERR_DUP_DATAREP)


cdef int register_datarep(const char *name, MPI_Datarep_conversion_function *reads,
                          MPI_Datarep_conversion_function *writes,
                          MPI_Datarep_extent_function *extents, void *state) noexcept nogil:
    return register_as(name, <void *>reads, <void *>writes, extents, state, False)


cdef int register_datarep_c(const char *name, MPI_Datarep_conversion_function_c *reads,
                            MPI_Datarep_conversion_function_c *writes,
                            MPI_Datarep_extent_function *extents, void *state) noexcept nogil:
    return register_as(name, <void *>reads, <void *>writes, extents, state, True)


# What a datatype is in a file.
cdef struct Measure:
    const Representation *representation
    int64_t bytes            # -1: a function of the program's failed
    bint is_same             # all basic types have the size that they have in memory


cdef int64_t basic_bytes(const Representation *representation, const Datatype *type) noexcept nogil:
    cdef MPI_Aint extent
    if representation.kind == DATA_EXTERNAL:
        return external_bytes(type)
    if representation.extents(type.handle, &extent, representation.state) != MPI_SUCCESS:
        return -1
    return extent


cdef void measure(void *context, const Datatype *type, uint8_t *data, int64_t count) noexcept nogil:
    cdef Measure *found = <Measure *>context
    cdef int64_t bytes = basic_bytes(found.representation, type)
    found.is_same = found.is_same and bytes == type.size
    if bytes < 0 or found.bytes < 0:
        found.bytes = -1
    else:
        found.bytes += count * bytes


cdef Measure measured(const Representation *representation, const Datatype *type) noexcept nogil:
    cdef Measure found = Measure(representation, 0, True)
    if representation.kind == DATA_AS_IN_MEMORY:
        found.bytes = type.size
    else:
        datatype_walk(type, NULL, 1, True, measure, &found)
    return found


cdef int64_t bytes_in_file(const Representation *representation,
                           const Datatype *type) noexcept nogil:
    if representation.kind == DATA_AS_IN_MEMORY:
        return type.size
    return measured(representation, type).bytes


# -- runs of bytes -------------------------------------------------------------------------------

cdef struct Runs:
    Run *runs
    int64_t count
    int64_t room             # -1: no memory
    int64_t bytes


cdef void add_run(void *context, const Datatype *type, uint8_t *data, int64_t count) noexcept nogil:
    cdef Runs *found = <Runs *>context
    cdef int64_t place = <int64_t>data, length = count * type.size
    cdef Run *last = &found.runs[found.count - 1]
    cdef Run *runs
    if found.room < 0 or length == 0:
        return
    if found.count > 0 and last.place + last.length == place:
        last.length += length
    else:
        if found.count == found.room:
            found.room = max(RUNS_MIN, 2 * found.room)
            runs = <Run *>realloc(found.runs, found.room * sizeof(Run))
            if runs == NULL:
                found.room = -1
                return
            found.runs = runs
        found.runs[found.count] = Run(place, found.bytes, length)
        found.count += 1
    found.bytes += length


cdef bint view_of_bytes(View *view) noexcept nogil:
    view[0] = View(0, bytes_type(), bytes_type(), &standard[0], 1, 1, 1, NULL, 1, True, True)
    view.runs = <Run *>malloc(sizeof(Run))
    if view.runs != NULL:
        view.runs[0] = Run(0, 0, 1)
    return view.runs != NULL


cdef void view_end(View *view) noexcept nogil:
    datatype_drop(view.etype)
    datatype_drop(view.filetype)
    free(view.runs)


cdef int view_make(View *view, int64_t start, Datatype *etype, Datatype *filetype,
                   const Representation *representation, bint is_written) noexcept nogil:
    """The class of an error. Displacements ascend, also from a filetype to the next, and nothing
    that may be written overlaps.
    """
    cdef Measure unit = measured(representation, etype)
    cdef Measure whole = measured(representation, filetype)
    cdef Runs found = Runs(NULL, 0, 0, 0)
    cdef int64_t index
    cdef Run *last
    if unit.bytes < 0 or whole.bytes < 0:
        return MPI_ERR_CONVERSION
    if not whole.is_same and not filetype.dense:
        return MPI_ERR_UNSUPPORTED_DATAREP
    if unit.bytes == 0 or whole.bytes % unit.bytes != 0:
        return MPI_ERR_TYPE
    if filetype.true_lower < 0 or (whole.bytes > 0 and filetype.extent <= 0):
        return MPI_ERR_IO
    datatype_walk(filetype, NULL, 1, False, add_run, &found)
    if found.room < 0:
        free(found.runs)
        return MPI_ERR_NO_MEM
    view[0] = View(start, etype, filetype, representation, unit.bytes, whole.bytes,
                   filetype.extent, found.runs, found.count, False, True)
    if not whole.is_same:
        view.runs[0] = Run(0, 0, whole.bytes)
        view.extent = whole.bytes
    view.is_plain = found.count == 1 and view.runs[0].length == view.extent
    for index in range(1, found.count):
        last = &found.runs[index - 1]
        if found.runs[index].place < last.place + last.length:
            view.is_ordered = False
            if is_written or found.runs[index].place < last.place:
                free(found.runs)
                view.runs = NULL
                return MPI_ERR_IO
    last = &found.runs[found.count - 1]
    if found.count > 0 and last.place + last.length > found.runs[0].place + view.extent:
        view.is_ordered = False
    datatype_keep(etype)
    datatype_keep(filetype)
    return MPI_SUCCESS


# -- places and positions ------------------------------------------------------------------------

cdef Piece view_walk(const View *view, int64_t position) noexcept nogil:
    cdef Piece piece = Piece(0, 0, position)
    cdef int64_t low = 0, high = view.runs_count, middle
    if view.is_plain or view.bytes == 0:
        return piece
    piece.tile = position // view.bytes
    position -= piece.tile * view.bytes
    while high - low > 1:
        middle = (low + high) // 2
        if view.runs[middle].before <= position:
            low = middle
        else:
            high = middle
    piece.run = low
    piece.within = position - view.runs[low].before
    return piece


cdef int64_t view_next(const View *view, Piece *piece, int64_t most, int64_t *place) noexcept nogil:
    cdef const Run *run = &view.runs[piece.run]
    cdef int64_t length
    if view.bytes == 0:
        return 0
    place[0] = view.start + piece.tile * view.extent + run.place + piece.within
    length = most if view.is_plain else min(most, run.length - piece.within)
    piece.within += length
    if not view.is_plain and piece.within == run.length:
        piece.within = 0
        piece.run += 1
        if piece.run == view.runs_count:
            piece.run = 0
            piece.tile += 1
    return length


cdef int64_t view_place(const View *view, int64_t position) noexcept nogil:
    cdef Piece piece = view_walk(view, position)
    cdef int64_t place = view.start
    view_next(view, &piece, 1, &place)
    return place


cdef bint view_reaches(const View *view, int64_t etypes, int64_t bytes) noexcept nogil:
    cdef double end = <double>etypes * view.unit + bytes
    if etypes < 0 or end > PLACES_END:
        return False
    return (end / max(1, view.bytes) + 1) * view.extent + view.start <= PLACES_END


cdef int64_t view_position(const View *view, int64_t place) noexcept nogil:
    cdef int64_t tile, low = 0, high = view.runs_count, middle
    if view.bytes == 0:
        return 0
    place -= view.start + view.runs[0].place
    if place <= 0 or view.is_plain:
        return max(0, place)
    tile = place // view.extent
    place += view.runs[0].place - tile * view.extent
    while high - low > 1:
        middle = (low + high) // 2
        if view.runs[middle].place <= place:
            low = middle
        else:
            high = middle
    return (tile * view.bytes + view.runs[low].before
            + min(place - view.runs[low].place, view.runs[low].length))


# -- calls: views --------------------------------------------------------------------------------

cdef int check_view(const File *file, int64_t displacement, const Datatype *etype,
                    const Datatype *filetype, const Representation *representation,
                    MPI_Info info) noexcept nogil:
    cdef bint is_sequential = file.amode & MPI_MODE_SEQUENTIAL != 0
    if file.split != SPLIT_NONE:
        return MPI_ERR_OTHER
    if (displacement == DISPLACEMENT_CURRENT) != is_sequential or (
            displacement < 0 and not is_sequential):
        return MPI_ERR_ARG
    if etype == NULL or filetype == NULL or not etype.committed or not filetype.committed:
        return MPI_ERR_TYPE
    if representation == NULL:
        return MPI_ERR_UNSUPPORTED_DATAREP
    return MPI_SUCCESS if info_is(info) else MPI_ERR_INFO


cdef int set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype,
                  MPI_Datatype filetype, const char *name, MPI_Info info) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef const Representation *representation = representation_of(name)
    cdef View made
    cdef int code
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    made.runs = NULL
    code = check_view(file, displacement, datatype_of(etype), datatype_of(filetype),
                      representation, info)
    if code == MPI_SUCCESS:
        if displacement == DISPLACEMENT_CURRENT:
            displacement = view_place(
                &file.view, load_relaxed_u64(shared_pointer(file)) * file.view.unit)
        code = view_make(&made, displacement, datatype_of(etype), datatype_of(filetype),
                         representation, file.amode & MPI_MODE_RDONLY == 0)
    # All have the same etype, by its extent, and none uses the shared pointer of before any more.
    code = file_agree(file, made.unit if code == MPI_SUCCESS else 0, 0, code)
    if code != MPI_SUCCESS:
        if made.runs != NULL:
            view_end(&made)
        return error_of_file(file, code)
    view_end(&file.view)
    file.view = made
    file.position = 0
    file_hints(file, info)
    if file.comm.rank == 0:
        store_relaxed_u64(shared_pointer(file), 0)
    code = file_agree(file, 0, 0, MPI_SUCCESS)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


cdef MPI_Datatype given(Datatype *type) noexcept nogil:
    """The program gets a handle, which it frees unless the type is MPI's own."""
    if not is_predefined(type):
        datatype_remember(type, &type.handles)
    return type.handle


cdef int get_view(MPI_File handle, MPI_Offset *displacement, MPI_Datatype *etype,
                  MPI_Datatype *filetype, char *name) noexcept nogil:
    cdef File *file = file_of(handle)
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    displacement[0] = file.view.start
    etype[0] = given(file.view.etype)
    filetype[0] = given(file.view.filetype)
    memcpy(name, file.view.representation.name, strlen(file.view.representation.name) + 1)
    return MPI_SUCCESS


cdef int get_type_extent(MPI_File handle, MPI_Datatype datatype, MPI_Count *extent) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef const Datatype *type = datatype_of(datatype)
    cdef Measure found
    if file == NULL or type == NULL:
        return error_of_file(file, MPI_ERR_FILE if file == NULL else MPI_ERR_TYPE)
    found = measured(file.view.representation, type)
    if found.bytes < 0 or not (found.is_same or type.dense):
        return error_of_file(file, MPI_ERR_CONVERSION if found.bytes < 0
                             else MPI_ERR_UNSUPPORTED_DATAREP)
    extent[0] = type.extent if found.is_same else found.bytes
    return MPI_SUCCESS


# -- calls: positions ----------------------------------------------------------------------------

cdef int check_positions(const File *file) noexcept nogil:
    if file == NULL:
        return MPI_ERR_FILE
    if file.amode & MPI_MODE_SEQUENTIAL:
        return error_detailed(MPI_ERR_UNSUPPORTED_OPERATION, DETAIL_SEQUENTIAL)
    return MPI_SUCCESS


cdef int64_t sought(const File *file, int64_t offset, int whence, int64_t current) noexcept nogil:
    cdef int64_t bytes = 0
    if whence == MPI_SEEK_CUR:
        offset += current
    elif whence == MPI_SEEK_END:
        if file_bytes(file, &bytes) != 0:
            return -1
        offset += (view_position(&file.view, bytes) + file.view.unit - 1) // file.view.unit
    elif whence != MPI_SEEK_SET:
        return -1
    return max(-1, offset)


cdef int seek(MPI_File handle, MPI_Offset offset, int whence) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code = check_positions(file)
    cdef int64_t position
    if code == MPI_SUCCESS:
        position = sought(file, offset, whence, file.position)
        if position < 0:
            code = MPI_ERR_ARG
        else:
            file.position = position
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


cdef int get_position(MPI_File handle, MPI_Offset *offset) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code = check_positions(file)
    if code != MPI_SUCCESS:
        return error_of_file(file, code)
    offset[0] = file.position
    return MPI_SUCCESS


cdef int seek_shared(MPI_File handle, MPI_Offset offset, int whence) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int64_t position = 0
    cdef int code = check_positions(file)
    if file == NULL:
        return error_of_file(NULL, code)
    code = file_agree(file, offset ^ <int64_t>whence << 48, 0, code)
    if code == MPI_SUCCESS and file.comm.rank == 0:
        position = sought(file, offset, whence, load_relaxed_u64(shared_pointer(file)))
        if position >= 0:
            store_relaxed_u64(shared_pointer(file), position)
    if code == MPI_SUCCESS:
        code = file_agree(file, 0, 0, MPI_ERR_ARG if position < 0 else MPI_SUCCESS)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


cdef int get_position_shared(MPI_File handle, MPI_Offset *offset) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code = check_positions(file)
    if code != MPI_SUCCESS:
        return error_of_file(file, code)
    offset[0] = load_relaxed_u64(shared_pointer(file))
    return MPI_SUCCESS


cdef int get_byte_offset(MPI_File handle, MPI_Offset offset, MPI_Offset *place) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code = check_positions(file)
    if code == MPI_SUCCESS and not view_reaches(&file.view, offset, 0):
        code = MPI_ERR_ARG
    if code != MPI_SUCCESS:
        return error_of_file(file, code)
    place[0] = view_place(&file.view, offset * file.view.unit)
    return MPI_SUCCESS


cdef void file_view_fill(mpi_table *table) noexcept nogil:
    prepare()
    table.File_set_view = set_view
    table.File_get_view = get_view
    table.File_get_type_extent = get_type_extent
    table.File_seek = seek
    table.File_get_position = get_position
    table.File_seek_shared = seek_shared
    table.File_get_position_shared = get_position_shared
    table.File_get_byte_offset = get_byte_offset
    table.Register_datarep = register_datarep
    table.Register_datarep_c = register_datarep_c
