/* libmpi_abi.so.1: MPI's standard ABI (MPI 5.0, chapter 20), a second front of the same table. Its
 * functions convert handles, numbers, statuses and what stands for a buffer, and call those of
 * front.c, whose types and numbers are MPICH's. In names, in_ is to these, out_ from these. */
#define STANDARD_ABI
#include "mpi/front.c"
#include "mpi/standard_numbers.h"

/* The names that programs call, and profilers. */
#define STANDARD_ALIAS(name, of) \
    EXPORTED extern __typeof__(of) MPI_##name __attribute__((alias(#of))); \
    EXPORTED extern __typeof__(of) PMPI_##name __attribute__((alias(#of)));
#define STANDARD_NAMES(name) STANDARD_ALIAS(name, abi_##name)

enum { ERR_SPAWN = 42, ERR_NO_MEM = 34, ERR_ABI = 81, CLASS_MASK = 0xFF };

/* -- Single values. */

/* Handles of files are numbers from 1, which here are no predefined ones. */
enum { FIRST_FILE = 0x10000 };

static MPI_File in_File(ABI_File file) {
    const uintptr_t handle = (uintptr_t)file;
    if (handle == ABI_FILE_NULL)
        return NULL;
    return handle > FIRST_FILE ? (MPI_File)(handle - FIRST_FILE) : (MPI_File)-1;
}

static ABI_File out_File(MPI_File file) {
    return (ABI_File)(file == NULL ? (uintptr_t)ABI_FILE_NULL : (uintptr_t)file + FIRST_FILE);
}

/* A code is a class in its lowest byte, and what it is about above that; or a program's own, which
 * is the same in both ABIs; or one of tools, which is a class alone. */
static int in_error(int code) {
    enum { FIRST_OF_TOOLS = 1001, LAST_OF_TOOLS = 1018 };
    if (code <= 0 || code > 0x3FFFFFFF)
        return code;
    if (FIRST_OF_TOOLS <= code && code <= LAST_OF_TOOLS)
        return in_error_class(code);
    return in_error_class(code & CLASS_MASK) | (code & ~CLASS_MASK);
}

static int out_error(int code) {
    if (code <= 0 || code > 0x3FFFFFFF)
        return code;
    const int class = out_error_class(code & CLASS_MASK);
    return class > CLASS_MASK ? class : class | (code & ~CLASS_MASK);
}

static int in_modes(int modes) {
    int found = 0;
    for (unsigned left = (unsigned)modes; left != 0; left &= left - 1)
        found |= in_mode((int)(left & -left));
    return found;
}

static int out_modes(int modes) {
    int found = 0;
    for (unsigned left = (unsigned)modes; left != 0; left &= left - 1)
        found |= out_mode((int)(left & -left));
    return found;
}

#define ABI_IN_PLACE ((void *)1)
#define ABI_BUFFER_AUTOMATIC ((void *)2)
#define MPICH_IN_PLACE ((void *)-1)
#define MPICH_BUFFER_AUTOMATIC ((void *)-2)

static void *in_buffer(const void *buffer) {
    if (buffer == ABI_IN_PLACE)
        return MPICH_IN_PLACE;
    return buffer == ABI_BUFFER_AUTOMATIC ? MPICH_BUFFER_AUTOMATIC : (void *)buffer;
}

static void *out_buffer(void *buffer) {
    return buffer == MPICH_BUFFER_AUTOMATIC ? ABI_BUFFER_AUTOMATIC : buffer;
}

static int *in_weights(const int *weights) {
    if (weights == (int *)10)
        return UNWEIGHTED;
    return weights == (int *)11 ? WEIGHTS_EMPTY : (int *)weights;
}

static MPI_Offset in_displacement(MPI_Offset displacement) {
    return displacement == -1 ? -54278278 : displacement; /* MPI_DISPLACEMENT_CURRENT */
}

static MPI_T_pvar_handle in_pvar_handle(MPI_T_pvar_handle handle) {
    return handle == (MPI_T_pvar_handle)1 ? ALL_HANDLES : handle;
}

/* -- Statuses. */

#define NO_STATUS ((MPI_Status *)1)
enum { UNSET = INT_MIN };

/* What a call does not set in a status stays as the program has it. */
static const MPI_Status unset_status = {.MPI_SOURCE = UNSET, .MPI_ERROR = UNSET};

/* The error is of no interest to any call that gets a status. */
static MPI_Status in_status(const ABI_Status *status) {
    return (MPI_Status){
        .count_lo = status->MPI_internal[0],
        .count_hi_and_cancelled = status->MPI_internal[1],
        .MPI_SOURCE = in_rank(status->MPI_SOURCE),
        .MPI_TAG = in_tag(status->MPI_TAG),
        .MPI_ERROR = UNSET,
    };
}

static void out_status(const MPI_Status *from, ABI_Status *status) {
    if (from->MPI_SOURCE != UNSET) {
        status->MPI_internal[0] = from->count_lo;
        status->MPI_internal[1] = from->count_hi_and_cancelled;
        status->MPI_SOURCE = out_rank(from->MPI_SOURCE);
        status->MPI_TAG = out_tag(from->MPI_TAG);
    }
    if (from->MPI_ERROR != UNSET)
        status->MPI_ERROR = out_error(from->MPI_ERROR);
}

#define ABI_STATUS_FIELD(name, field) \
    static int abi_Status_get_##name(const ABI_Status *status, int *result) { \
        if (status == NULL || result == NULL) \
            return out_error(ERR_ARG); \
        *result = status->field; \
        return SUCCESS; \
    } \
    STANDARD_NAMES(Status_get_##name) \
    static int abi_Status_set_##name(ABI_Status *status, int value) { \
        if (status == NULL) \
            return out_error(ERR_ARG); \
        status->field = value; \
        return SUCCESS; \
    } \
    STANDARD_NAMES(Status_set_##name)

ABI_STATUS_FIELD(source, MPI_SOURCE)
ABI_STATUS_FIELD(tag, MPI_TAG)
ABI_STATUS_FIELD(error, MPI_ERROR)

/* -- Lists: converted on the stack, or in memory of their own if they are long. */

enum { SHORT_LIST = 64 };

#define LIST(type, name, length) \
    type short_##name[SHORT_LIST]; \
    type *inner_##name = short_##name; \
    int64_t length_##name = (name) == NULL || (length) < 0 ? 0 : (length); \
    if (length_##name > SHORT_LIST) \
        inner_##name = malloc((size_t)length_##name * sizeof(type)); \
    if (inner_##name == NULL) { \
        length_##name = 0; \
        lacks_memory = 1; \
    }
#define DROP(name) \
    if (inner_##name != short_##name) \
        free(inner_##name)

static int raised(int number, int code) {
    called = number;
    if (state == RUNNING)
        table->Comm_call_errhandler(COMM_WORLD, code);
    return code;
}

static int no_memory(int number) {
    return raised(number, ERR_NO_MEM);
}

/* How many datatypes an exchange has, for what it sends and for what it receives. */
struct peers {
    int to, from;
};

static int find_ranks(MPI_Comm comm, struct peers *peers) {
    int is_inter = 0, code = SUCCESS;
    *peers = (struct peers){0, 0};
    if (state != RUNNING)
        return SUCCESS; /* the call says so */
    code = table->Comm_test_inter(comm, &is_inter);
    if (code == SUCCESS)
        code = is_inter ? table->Comm_remote_size(comm, &peers->to)
                        : table->Comm_size(comm, &peers->to);
    peers->from = peers->to;
    return code;
}

static int find_neighbors(MPI_Comm comm, struct peers *peers) {
    enum { GRAPH = 1, CART = 2, DIST_GRAPH = 3 };
    int topology = UNDEFINED, rank, dimensions, is_weighted;
    *peers = (struct peers){0, 0};
    if (state != RUNNING)
        return SUCCESS;
    int code = table->Topo_test(comm, &topology);
    if (code == SUCCESS && topology == DIST_GRAPH)
        return table->Dist_graph_neighbors_count(comm, &peers->from, &peers->to, &is_weighted);
    if (code == SUCCESS && topology == CART) {
        code = table->Cartdim_get(comm, &dimensions);
        peers->to = 2 * dimensions;
    } else if (code == SUCCESS && topology == GRAPH) {
        code = table->Comm_rank(comm, &rank);
        if (code == SUCCESS)
            code = table->Graph_neighbors_count(comm, rank, &peers->to);
    }
    peers->from = peers->to;
    return code;
}

#include "mpi/standard_calls.h"

STANDARD_ALIAS(Pcontrol, call_Pcontrol)
STANDARD_ALIAS(Aint_add, call_Aint_add)
STANDARD_ALIAS(Aint_diff, call_Aint_diff)

/* -- Functions of the program's, which the table calls by one of these. */

static void apply(const void *data, void *into, int length, MPI_Datatype datatype,
                  void *function) {
    ABI_Datatype of = out_Datatype(datatype);
    ((void (*)(void *, void *, int *, ABI_Datatype *))function)((void *)data, into, &length, &of);
}

static void apply_large(const void *data, void *into, int64_t length, MPI_Datatype datatype,
                        void *function) {
    ABI_Datatype of = out_Datatype(datatype);
    MPI_Count count = length;
    ((void (*)(void *, void *, MPI_Count *, ABI_Datatype *))function)((void *)data, into, &count,
                                                                      &of);
}

#define OPERATION(name, type, proxy) \
    static int abi_##name(type *user_fn, int commute, ABI_Op *op) { \
        MPI_Op inner_op; \
        const int code = call_##name(user_fn, commute, op ? &inner_op : NULL); \
        if (code == SUCCESS) { \
            table->Op_set_proxy(inner_op, proxy); \
            *op = out_Op(inner_op); \
        } \
        return out_error(code); \
    } \
    STANDARD_NAMES(name)

OPERATION(Op_create, MPI_User_function, apply)
OPERATION(Op_create_c, MPI_User_function_c, apply_large)

static void handle_error(int kind, void *object, int *code, void *function) {
    enum { OF_COMMUNICATORS, OF_FILES, OF_WINDOWS, OF_SESSIONS };
    int number = out_error(*code);
    void *handle = kind == OF_FILES           ? (void *)out_File(*(MPI_File *)object)
                   : kind == OF_COMMUNICATORS ? (void *)out_Comm(*(MPI_Comm *)object)
                   : kind == OF_WINDOWS       ? (void *)out_Win(*(MPI_Win *)object)
                                              : (void *)out_Session(*(MPI_Session *)object);
    ((void (*)(void **, int *, ...))function)(&handle, &number);
}

#define ERROR_HANDLER(kind) \
    static int abi_##kind##_create_errhandler(MPI_##kind##_errhandler_function *errhandler_fn, \
                                              ABI_Errhandler *errhandler) { \
        MPI_Errhandler inner_errhandler; \
        const int code = call_##kind##_create_errhandler(errhandler_fn, \
                                                         errhandler ? &inner_errhandler : NULL); \
        if (code == SUCCESS) { \
            always()->Errhandler_set_proxy(inner_errhandler, handle_error); \
            *errhandler = out_Errhandler(inner_errhandler); \
        } \
        return out_error(code); \
    } \
    STANDARD_NAMES(kind##_create_errhandler)

ERROR_HANDLER(Comm)
ERROR_HANDLER(File)
ERROR_HANDLER(Session)
ERROR_HANDLER(Win)

typedef int copies_attribute(void *, int, void *, void *, void *, int *);
typedef int deletes_attribute(void *, int, void *, void *);

/* What MPI_X_DUP_FN stands for. */
static int duplicate(void *handle, int keyval, void *extra, void *from, void *to, int *flag) {
    *(void **)to = from;
    *flag = 1;
    return SUCCESS;
}

/* `object`: the kind of handle. */
#define KEYVALS(kind, object) \
    static int copy_of_##kind(void *function, int handle, int keyval, void *extra, int width, \
                              void *value, void **copied, int *wanted) { \
        copies_attribute *const copies = function; \
        return in_error(copies(out_##object(handle), keyval, extra, value, copied, wanted)); \
    } \
    static int delete_of_##kind(void *function, int handle, int keyval, int width, void *value, \
                                void *extra) { \
        deletes_attribute *const deletes = function; \
        return in_error(deletes(out_##object(handle), keyval, value, extra)); \
    } \
    static int abi_##kind##_create_keyval(copies_attribute *copy_fn, deletes_attribute *delete_fn, \
                                          int *keyval, void *extra_state) { \
        if ((uintptr_t)copy_fn == 1) \
            copy_fn = duplicate; \
        const int code = call_##kind##_create_keyval((void *)copy_fn, (void *)delete_fn, keyval, \
                                                     extra_state); \
        if (code == SUCCESS) \
            table->Keyval_set_proxy(*keyval, copy_of_##kind, delete_of_##kind); \
        return out_error(code); \
    } \
    STANDARD_NAMES(kind##_create_keyval)

KEYVALS(Comm, Comm)
KEYVALS(Type, Datatype)
KEYVALS(Win, Win)

/* The functions of a generalized request, and what they get. */
struct generalized {
    int (*query)(void *, ABI_Status *);
    MPI_Grequest_free_function *frees;
    MPI_Grequest_cancel_function *cancels;
    void *extra;
};

static int query_generalized(void *state, MPI_Status *status) {
    const struct generalized *const request = state;
    ABI_Status seen = {.MPI_ERROR = UNSET};
    out_status(status, &seen);
    const int code = request->query(request->extra, &seen);
    *status = in_status(&seen);
    status->MPI_ERROR = in_error(seen.MPI_ERROR);
    return in_error(code);
}

static int free_generalized(void *state) {
    struct generalized *const request = state;
    const int code = request->frees(request->extra);
    free(request);
    return in_error(code);
}

static int cancel_generalized(void *state, int complete) {
    const struct generalized *const request = state;
    return in_error(request->cancels(request->extra, complete));
}

static int abi_Grequest_start(int (*query_fn)(void *, ABI_Status *),
                              MPI_Grequest_free_function *free_fn,
                              MPI_Grequest_cancel_function *cancel_fn, void *extra_state,
                              ABI_Request *request) {
    MPI_Request inner_request = 0;
    struct generalized *const state = malloc(sizeof *state);
    if (state == NULL)
        return out_error(no_memory(MPI_FUNCTION_Grequest_start));
    *state = (struct generalized){query_fn, free_fn, cancel_fn, extra_state};
    const int code = call_Grequest_start(query_fn ? query_generalized : NULL,
                                         free_fn ? free_generalized : NULL,
                                         cancel_fn ? cancel_generalized : NULL, state,
                                         request ? &inner_request : NULL);
    if (code != SUCCESS)
        free(state);
    if (request != NULL)
        *request = out_Request(inner_request);
    return out_error(code);
}
STANDARD_NAMES(Grequest_start)

/* The functions of a data representation; it is never freed. */
struct representation {
    void *reads, *writes;
    int (*extent)(ABI_Datatype, MPI_Aint *, void *);
    void *extra;
};

static int extent_represented(MPI_Datatype datatype, MPI_Aint *extent, void *state) {
    const struct representation *const of = state;
    return in_error(of->extent(out_Datatype(datatype), extent, of->extra));
}

/* `conversion`: reads or writes; `count_type`: that of the function's count. */
#define CONVERSION(name, conversion, count_type) \
    static int name(void *data, MPI_Datatype datatype, count_type count, void *in_file, \
                    MPI_Offset position, void *state) { \
        const struct representation *const of = state; \
        int (*const converts)(void *, ABI_Datatype, count_type, void *, MPI_Offset, void *) = \
            of->conversion; \
        return in_error(converts(data, out_Datatype(datatype), count, in_file, position, \
                                 of->extra)); \
    }

CONVERSION(read_represented, reads, int)
CONVERSION(write_represented, writes, int)
CONVERSION(read_represented_c, reads, MPI_Count)
CONVERSION(write_represented_c, writes, MPI_Count)

#define REGISTER(c) \
    static int abi_Register_datarep##c(const char *datarep, void *read_fn, void *write_fn, \
                                       int (*extent_fn)(ABI_Datatype, MPI_Aint *, void *), \
                                       void *extra_state) { \
        struct representation *const state = malloc(sizeof *state); \
        if (state == NULL) \
            return out_error(no_memory(MPI_FUNCTION_Register_datarep##c)); \
        *state = (struct representation){read_fn, write_fn, extent_fn, extra_state}; \
        const int code = call_Register_datarep##c( \
            datarep, read_fn ? read_represented##c : NULL, \
            write_fn ? write_represented##c : NULL, extent_fn ? extent_represented : NULL, state); \
        if (code != SUCCESS) \
            free(state); \
        return out_error(code); \
    } \
    STANDARD_NAMES(Register_datarep##c)

REGISTER()
REGISTER(_c)

/* -- Predefined attributes that are numbers with a meaning, which stay where they were found. */

static int abi_Comm_get_attr(ABI_Comm comm, int comm_keyval, void *attribute_val, int *flag) {
    enum { HOST = 0x64400003, IO = 0x64400005 };
    static int host, io;
    const int keyval = in_keyval(comm_keyval);
    const int code = call_Comm_get_attr(in_Comm(comm), keyval, attribute_val, flag);
    if (code == SUCCESS && *flag && (keyval == HOST || keyval == IO)) {
        int **const value = attribute_val, *const place = keyval == HOST ? &host : &io;
        *place = out_rank(**value);
        *value = place;
    }
    return out_error(code);
}
STANDARD_NAMES(Comm_get_attr)

static int abi_Win_get_attr(ABI_Win win, int win_keyval, void *attribute_val, int *flag) {
    enum { CREATE_FLAVOR = 0x66000007, MODEL = 0x66000009, FLAVORS = 5 };
    static int flavors[FLAVORS], model;
    const int keyval = in_keyval(win_keyval);
    const int code = call_Win_get_attr(in_Win(win), keyval, attribute_val, flag);
    int **const value = attribute_val;
    if (code == SUCCESS && *flag && keyval == CREATE_FLAVOR) {
        int *const place = &flavors[**value];
        *place = out_flavor(**value);
        *value = place;
    } else if (code == SUCCESS && *flag && keyval == MODEL) {
        model = out_model(**value);
        *value = &model;
    }
    return out_error(code);
}
STANDARD_NAMES(Win_get_attr)

/* -- What made a datatype: the numbers of a subarray and of a distributed array have meanings. */

static void out_contents(MPI_Datatype datatype, int *integers, const MPI_Datatype *handles,
                         ABI_Datatype *datatypes) {
    enum { SUBARRAY = 13, DARRAY = 14, BEFORE = 3 /* the size, the rank, the dimensions */ };
    MPI_Count count, addresses, large_counts, handles_count;
    int combiner;
    if (table->Type_get_envelope_c(datatype, &count, &addresses, &large_counts, &handles_count,
                                   &combiner) != SUCCESS)
        return;
    for (MPI_Count i = 0; i < handles_count; i++)
        datatypes[i] = out_Datatype(handles[i]);
    if (combiner == SUBARRAY || combiner == DARRAY)
        integers[count - 1] = out_order(integers[count - 1]);
    if (combiner == DARRAY) {
        const int dimensions = integers[BEFORE - 1];
        /* The sizes of the array come first, or are large counts. */
        int *const kinds = integers + BEFORE + (large_counts > 0 ? 0 : dimensions);
        for (int i = 0; i < dimensions; i++) {
            kinds[i] = out_distribution(kinds[i]);
            kinds[dimensions + i] = out_distribution_argument(kinds[dimensions + i]);
        }
    }
}

static int abi_Type_get_contents(ABI_Datatype datatype, int max_integers, int max_addresses,
                                 int max_datatypes, int *integers, MPI_Aint *addresses,
                                 ABI_Datatype *datatypes) {
    int lacks_memory = 0;
    const MPI_Datatype of = in_Datatype(datatype);
    LIST(MPI_Datatype, datatypes, max_datatypes);
    const int code = lacks_memory
                         ? no_memory(MPI_FUNCTION_Type_get_contents)
                         : call_Type_get_contents(of, max_integers, max_addresses, max_datatypes,
                                                  integers, addresses,
                                                  datatypes ? inner_datatypes : NULL);
    if (code == SUCCESS)
        out_contents(of, integers, inner_datatypes, datatypes);
    DROP(datatypes);
    return out_error(code);
}
STANDARD_NAMES(Type_get_contents)

static int abi_Type_get_contents_c(ABI_Datatype datatype, MPI_Count max_integers,
                                   MPI_Count max_addresses, MPI_Count max_large_counts,
                                   MPI_Count max_datatypes, int *integers, MPI_Aint *addresses,
                                   MPI_Count *large_counts, ABI_Datatype *datatypes) {
    int lacks_memory = 0;
    const MPI_Datatype of = in_Datatype(datatype);
    LIST(MPI_Datatype, datatypes, max_datatypes);
    const int code = lacks_memory
                         ? no_memory(MPI_FUNCTION_Type_get_contents_c)
                         : call_Type_get_contents_c(of, max_integers, max_addresses,
                                                    max_large_counts, max_datatypes, integers,
                                                    addresses, large_counts,
                                                    datatypes ? inner_datatypes : NULL);
    if (code == SUCCESS)
        out_contents(of, integers, inner_datatypes, datatypes);
    DROP(datatypes);
    return out_error(code);
}
STANDARD_NAMES(Type_get_contents_c)

/* -- Spawning: what to start is the root's to say, and every rank gets the codes. */

static int is_rank(MPI_Comm comm, int rank) {
    int own = -1;
    return state == RUNNING && table->Comm_rank(comm, &own) == SUCCESS && own == rank;
}

static void out_codes(MPI_Comm comm, int root, int count, const int *maxprocs, int code,
                      int *errcodes) {
    enum { INT = 0x4C000405 };
    int wanted = 0;
    if ((code & CLASS_MASK) != ERR_SPAWN || errcodes == NULL)
        return;
    if (is_rank(comm, root))
        for (int i = 0; i < count; i++)
            wanted += maxprocs[i];
    if (table->Ibcast(&wanted, 1, INT, root, comm, NULL) == SUCCESS)
        for (int i = 0; i < wanted; i++)
            errcodes[i] = out_error(errcodes[i]);
}

static int abi_Comm_spawn(const char *command, char **argv, int maxprocs, ABI_Info info, int root,
                          ABI_Comm comm, ABI_Comm *intercomm, int *errcodes) {
    MPI_Comm inner_intercomm = 0;
    const MPI_Comm of = in_Comm(comm);
    const int code = call_Comm_spawn(command, argv, maxprocs, in_Info(info), root, of,
                                     intercomm ? &inner_intercomm : NULL, errcodes);
    if (intercomm != NULL)
        *intercomm = out_Comm(inner_intercomm);
    out_codes(of, root, 1, &maxprocs, code, errcodes);
    return out_error(code);
}
STANDARD_NAMES(Comm_spawn)

static int abi_Comm_spawn_multiple(int count, char **commands, char ***argvs, const int *maxprocs,
                                   const ABI_Info *infos, int root, ABI_Comm comm,
                                   ABI_Comm *intercomm, int *errcodes) {
    int lacks_memory = 0;
    MPI_Comm inner_intercomm = 0;
    const MPI_Comm of = in_Comm(comm);
    LIST(MPI_Info, infos, is_rank(of, root) ? count : 0);
    for (int64_t i = 0; i < length_infos; i++)
        inner_infos[i] = in_Info(infos[i]);
    const int code =
        lacks_memory ? no_memory(MPI_FUNCTION_Comm_spawn_multiple)
                     : call_Comm_spawn_multiple(count, commands, argvs, maxprocs,
                                                infos ? inner_infos : NULL, root, of,
                                                intercomm ? &inner_intercomm : NULL, errcodes);
    if (intercomm != NULL)
        *intercomm = out_Comm(inner_intercomm);
    out_codes(of, root, count, maxprocs, code, errcodes);
    DROP(infos);
    return out_error(code);
}
STANDARD_NAMES(Comm_spawn_multiple)

/* -- What MPI 5 adds: the versions, and what is known of types. Fortran's are gfortran's. */

static int abi_Get_version(int *version, int *subversion) {
    if (version == NULL || subversion == NULL)
        return out_error(missing_anywhere(MPI_FUNCTION_Get_version));
    *version = STANDARD_VERSION;
    *subversion = STANDARD_SUBVERSION;
    return SUCCESS;
}
STANDARD_NAMES(Get_version)

static int abi_Abi_get_version(int *abi_major, int *abi_minor) {
    if (abi_major == NULL || abi_minor == NULL)
        return out_error(missing_anywhere(MPI_FUNCTION_Abi_get_version));
    *abi_major = STANDARD_ABI_VERSION;
    *abi_minor = STANDARD_ABI_SUBVERSION;
    return SUCCESS;
}
STANDARD_NAMES(Abi_get_version)

/* An info object with these keys and values, the last of which is NULL. */
static int make_info(int number, const char *const pairs[][2], ABI_Info *info) {
    MPI_Info made;
    if (info == NULL)
        return out_error(missing_anywhere(number));
    int code = call_Info_create(&made);
    for (int i = 0; code == SUCCESS && pairs[i][0] != NULL; i++)
        code = call_Info_set(made, pairs[i][0], pairs[i][1]);
    if (code == SUCCESS)
        *info = out_Info(made);
    return out_error(code);
}

static int abi_Abi_get_info(ABI_Info *info) {
    _Static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8, "");
    static const char *const sizes[][2] = {
        {"mpi_aint_size", "8"}, {"mpi_count_size", "8"}, {"mpi_offset_size", "8"}, {NULL, NULL}};
    return make_info(MPI_FUNCTION_Abi_get_info, sizes, info);
}
STANDARD_NAMES(Abi_get_info)

static int abi_Abi_get_fortran_info(ABI_Info *info) {
#define HAS(type) {"mpi_" type "_supported", "true"}
    static const char *const types[][2] = {
        {"mpi_logical_size", "4"},
        {"mpi_integer_size", "4"},
        {"mpi_real_size", "4"},
        {"mpi_double_precision_size", "8"},
        HAS("logical1"),  HAS("logical2"), HAS("logical4"), HAS("logical8"), HAS("logical16"),
        HAS("integer1"),  HAS("integer2"), HAS("integer4"), HAS("integer8"), HAS("integer16"),
        HAS("real2"),     HAS("real4"),    HAS("real8"),    HAS("real16"),   HAS("complex4"),
        HAS("complex8"),  HAS("complex16"), HAS("complex32"), HAS("double_complex"),
        {NULL, NULL}};
#undef HAS
    return make_info(MPI_FUNCTION_Abi_get_fortran_info, types, info);
}
STANDARD_NAMES(Abi_get_fortran_info)

static int abi_Abi_set_fortran_info(ABI_Info info) {
    return out_error(raised(MPI_FUNCTION_Abi_set_fortran_info, ERR_ABI));
}
STANDARD_NAMES(Abi_set_fortran_info)

static int is_logical_size(int size) {
    return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

static int abi_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false,
                                        int *is_set) {
    if (is_set == NULL || logical_true == NULL || logical_false == NULL)
        return out_error(missing_anywhere(MPI_FUNCTION_Abi_get_fortran_booleans));
    if (!is_logical_size(logical_size))
        return out_error(raised(MPI_FUNCTION_Abi_get_fortran_booleans, ERR_ARG));
    memset(logical_true, 0, (size_t)logical_size);
    memset(logical_false, 0, (size_t)logical_size);
    *(unsigned char *)logical_true = 1;
    *is_set = 1;
    return SUCCESS;
}
STANDARD_NAMES(Abi_get_fortran_booleans)

static int abi_Abi_set_fortran_booleans(int logical_size, void *logical_true,
                                        void *logical_false) {
    return out_error(raised(MPI_FUNCTION_Abi_set_fortran_booleans,
                            is_logical_size(logical_size) ? ERR_ABI : ERR_ARG));
}
STANDARD_NAMES(Abi_set_fortran_booleans)

#include "mpi/standard_aliases.h"
