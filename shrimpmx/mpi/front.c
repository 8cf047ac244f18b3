/* libmpi.so.12: MPICH's ABI in front of a table of functions, which MPI_Init takes from the Python
 * module shrimpmx.mpi.world. Outside a run another table stands there, whose functions end the
 * process, so that no call checks. Nothing here links with Python: its symbols are looked up. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi/embed.h"
#include "mpi/table.h"
#include "mpi/tool_types.h"

#define EXPORTED __attribute__((visibility("default")))
/* The names of call_##of: those that programs call, and profilers. standard.c, which includes this
 * file, gives its own functions these names. */
#ifndef STANDARD_ABI
#define NAMED_AS(name, of) \
    EXPORTED extern __typeof__(call_##of) MPI_##name __attribute__((alias("call_" #of))); \
    EXPORTED extern __typeof__(call_##of) PMPI_##name __attribute__((alias("call_" #of)));
#else
#define NAMED_AS(name, of)
#endif
#define NAMES(name) NAMED_AS(name, name)

enum { COMM_WORLD = 0x44000000 };
enum { UNDEFINED = -32766 };
enum { SUCCESS = 0, ERR_ARG = 12, ERR_OTHER = 15 };
enum { MPI_VERSION = 4, MPI_SUBVERSION = 1 };
enum {
    T_ERR_NOT_INITIALIZED = 60,
    T_ERR_INVALID_INDEX = 62,
    T_ERR_INVALID_HANDLE = 64,
    T_ERR_INVALID_SESSION = 67,
    T_ERR_INVALID_NAME = 73,
    T_ERR_INVALID = 74,
};
enum { EXIT_MISUSED = 1, EXIT_NOT_STARTED = 2, EXIT_INTERRUPTED = 128 + SIGINT };

/* What programs may call: all while MPI is initialized, or a session is open. */
static enum { BEFORE_INIT, RUNNING, FINALIZED, FORKED } state;
static enum { NOT_BEGUN, BEGUN, ENDED } world_model; /* by MPI_Init, and MPI_Finalize */
static int sessions; /* that are open */
static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER; /* of what begins and ends those */

static _Noreturn void called_outside(const char *function) {
    static const char *const when[] = {
        [BEFORE_INIT] = "before MPI_Init",
        [FINALIZED] = "after MPI_Finalize",
        [FORKED] = "in a process forked from a rank, where MPI is finalized",
    };
    const int by_session = state == FINALIZED && world_model != ENDED;
    dprintf(STDERR_FILENO, "%s was called %s\n", function,
            by_session ? "after the last MPI_Session_finalize" : when[state]);
    _exit(EXIT_MISUSED);
}

static const struct mpi_table *always(void);

/* The clock, which no program may ask for yet, gives time all the same. */
static double seconds(struct timespec time) {
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double outside_Wtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return seconds(now);
}

static double outside_Wtick(void) {
    struct timespec tick;
    clock_getres(CLOCK_MONOTONIC, &tick);
    return seconds(tick);
}

/* The function of MPI that this thread has called last, and where it is kept. */
static _Thread_local int called __attribute__((tls_model("initial-exec")));

static int *place_of_called(void) {
    return &called;
}

static int tools_are_there(void);

/* A count for a program's int. */
static int in_int(MPI_Count count) {
    return count <= INT_MAX ? (int)count : UNDEFINED;
}

#include "mpi/calls.h"
#include "mpi/traced.h"

static void end(int as) {
    state = as;
    table = &outside_table;
}

static void in_forked_child(void) {
    end(FORKED);
}

/* Python's functions, from the process that loaded this library, or from embed.c; called with the
 * GIL. */
static struct {
    int (*Py_IsInitialized)(void);
    int (*PyGILState_Ensure)(void);
    void (*PyGILState_Release)(int);
    void *(*PyImport_ImportModule)(const char *);
    void *(*PyObject_CallMethod)(void *, const char *, const char *, ...);
    void *(*PyObject_GetAttrString)(void *, const char *);
    int (*PyArg_ParseTuple)(void *, const char *, ...);
    void *(*PyCapsule_GetPointer)(void *, const char *);
    void **PyExc_KeyboardInterrupt;
    int (*PyErr_ExceptionMatches)(void *);
    void (*PyErr_Clear)(void);
    void (*PyErr_Print)(void);
    void (*Py_Exit)(int);
} python;

static int find_python(void) {
#define FIND(name) ((*(void **)&python.name = dlsym(RTLD_DEFAULT, #name)) != NULL)
    return FIND(Py_IsInitialized) && FIND(PyGILState_Ensure) && FIND(PyGILState_Release) &&
           FIND(PyImport_ImportModule) && FIND(PyObject_CallMethod) &&
           FIND(PyObject_GetAttrString) && FIND(PyArg_ParseTuple) &&
           FIND(PyCapsule_GetPointer) && FIND(PyExc_KeyboardInterrupt) &&
           FIND(PyErr_ExceptionMatches) && FIND(PyErr_Clear) && FIND(PyErr_Print) &&
           FIND(Py_Exit) && python.Py_IsInitialized();
#undef FIND
}

/* Ends the process as an uncaught exception does: SystemExit with its code, others after their
 * traceback; Ctrl-C without a word, since it came in no code of the user's. */
static void exit_by_exception(const char *sentence) {
    if (python.PyErr_ExceptionMatches(*python.PyExc_KeyboardInterrupt)) {
        python.PyErr_Clear();
        python.Py_Exit(EXIT_INTERRUPTED);
    }
    python.PyErr_Print();
    dprintf(STDERR_FILENO, "%s", sentence);
    python.Py_Exit(EXIT_NOT_STARTED);
}

/* Imports a module of the package around this library, whatever package of that name the program's
 * directory has. NULL with an exception. */
static void *import_beside(const char *name) {
    enum { PARTS_BELOW_HOME = 4 }; /* shrimpmx/mpi/lib/libmpi.so.12 */
    char home[PATH_MAX];
    Dl_info library;
    void *path = python.PyObject_GetAttrString(python.PyImport_ImportModule("sys"), "path");
    if (path == NULL || dladdr(&python, &library) == 0 || realpath(library.dli_fname, home) == NULL)
        return python.PyImport_ImportModule(name);
    for (int parts = 0; parts < PARTS_BELOW_HOME && strrchr(home, '/') != NULL; parts++)
        *strrchr(home, '/') = '\0';
    python.PyObject_CallMethod(path, "insert", "is", 0, home);
    void *module = python.PyImport_ImportModule(name);
    if (module != NULL)
        python.PyObject_CallMethod(path, "remove", "s", home); /* the first one is ours */
    return module;
}

static const struct mpi_table *start_world(int required, int *provided) {
    const struct mpi_table *started = NULL;
    void *module, *pair, *capsule;
    const char *calls = ""; /* the file for them; "": they are not traced */
    ssize_t clock = 0, records = 0;
    /* Modules seed the random numbers of the C library, and one takes SIGINT where no interpreter
     * was: both are the program's. */
    static char apart[64];
    char *const numbers = initstate(1, apart, sizeof apart);
    struct sigaction interrupt;
    sigaction(SIGINT, NULL, &interrupt);
    const int embeds = !find_python();
    if (embeds) {
        const char *problem = embed_python();
        if (problem != NULL || !find_python()) {
            dprintf(STDERR_FILENO, "MPI_Init %s\n", problem ? problem : "has no Python");
            _exit(EXIT_NOT_STARTED);
        }
    }
    const int gil = python.PyGILState_Ensure();
    module = import_beside("shrimpmx.mpi.starting");
    if (module == NULL)
        exit_by_exception("MPI_Init needs shrimpmx in the Python that runs the program\n");
    /* What the pair holds is kept for ever: MPI_Finalize comes when Python is gone. */
    pair = python.PyObject_CallMethod(module, "start", "in", required, (ssize_t)place_of_called);
    if (pair != NULL && python.PyArg_ParseTuple(pair, "Oi|snn", &capsule, provided, &calls, &clock,
                                                &records))
        started = python.PyCapsule_GetPointer(capsule, "shrimpmx.mpi.world.table");
    if (started == NULL)
        exit_by_exception("");
    if (*calls && records && calls_keep(calls, (int64_t (*)(void))clock, (const uint64_t *)records)) {
        static struct mpi_table traced;
        traced_fill(&traced, started);
        started = &traced;
    }
    python.PyGILState_Release(gil);
    if (embeds)
        sigaction(SIGINT, &interrupt, NULL);
    setstate(numbers);
    return started;
}

/* An address is missing in a call that may also come before MPI_Init and after MPI_Finalize, where
 * no handler is told of it. */
static int missing_anywhere(int number) {
    called = number;
    return state == RUNNING ? null_argument(COMM_WORLD, number) : ERR_ARG;
}

/* The functions of the run, once this process has joined it, and the level of threads. */
static const struct mpi_table *joined;
static int level_of_threads;
static int has_left; /* the run */

static void leave_at_exit(void) {
    if (state == FORKED || world_model == BEGUN || sessions > 0 || has_left)
        return;
    called = MPI_FUNCTION_Finalize;
    joined->Leave();
}

/* Joins the run at the first time. A session may end long before others that need this rank's
 * answers, so it leaves at the end of the process if MPI_Finalize is not the last to end. */
static void join(int required) {
    if (joined != NULL)
        return;
    joined = start_world(required, &level_of_threads);
    pthread_atfork(NULL, NULL, in_forked_child);
    atexit(leave_at_exit);
}

static void begin(void) {
    if (has_left) {
        joined->Rejoin();
        has_left = 0;
    }
    table = joined;
    state = RUNNING;
}

static const struct mpi_table *always(void) {
    const int function = called;
    pthread_mutex_lock(&beginning);
    join(0);
    pthread_mutex_unlock(&beginning);
    called = function;
    return joined;
}

static int initialize(int number, int required, int *provided) {
    called = number;
    pthread_mutex_lock(&beginning);
    if (world_model == BEGUN && state == RUNNING) {
        const int code = ERR_OTHER | (number + 1) << 8;
        pthread_mutex_unlock(&beginning);
        table->Comm_call_errhandler(COMM_WORLD, code);
        return code;
    }
    if (world_model != NOT_BEGUN || state == FORKED)
        called_outside(number == MPI_FUNCTION_Init ? "MPI_Init" : "MPI_Init_thread");
    join(required);
    begin();
    world_model = BEGUN;
    *provided = level_of_threads;
    pthread_mutex_unlock(&beginning);
    return SUCCESS;
}

static int call_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int level;
    const int code = initialize(MPI_FUNCTION_Init_thread, required, &level);
    if (code != SUCCESS)
        return code;
    if (provided == NULL)
        return missing_anywhere(MPI_FUNCTION_Init_thread);
    *provided = level;
    return SUCCESS;
}
NAMES(Init_thread)

static int call_Init(int *argc, char ***argv) {
    enum { THREAD_SINGLE };
    int provided;
    return initialize(MPI_FUNCTION_Init, THREAD_SINGLE, &provided);
}
NAMES(Init)

static void end_session(void) {
    pthread_mutex_lock(&beginning);
    sessions--;
    if (sessions == 0 && world_model != BEGUN)
        end(FINALIZED);
    pthread_mutex_unlock(&beginning);
}

static int call_Finalize(void) {
    called = MPI_FUNCTION_Finalize;
    if (world_model != BEGUN)
        outside_table.Finalize();
    pthread_mutex_lock(&beginning);
    const int ends = sessions == 0;
    pthread_mutex_unlock(&beginning);
    const int result = ends ? table->Finalize() : table->World_end();
    world_model = ENDED;
    has_left = ends;
    if (ends && state == RUNNING)
        end(FINALIZED);
    return result;
}
NAMES(Finalize)

static int call_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session) {
    if (state == FORKED)
        called_outside("MPI_Session_init");
    pthread_mutex_lock(&beginning);
    join(0);
    called = MPI_FUNCTION_Session_init;
    if (state != RUNNING)
        begin();
    sessions++;
    pthread_mutex_unlock(&beginning);
    const int code = session == NULL ? null_argument(COMM_WORLD, MPI_FUNCTION_Session_init)
                                     : table->Session_init(info, errhandler, session);
    if (code != SUCCESS)
        end_session();
    return code;
}
NAMES(Session_init)

static int call_Session_finalize(MPI_Session *session) {
    called = MPI_FUNCTION_Session_finalize;
    if (session == NULL && state == RUNNING)
        return null_argument(COMM_WORLD, called);
    const int code = table->Session_finalize(session);
    if (code == SUCCESS)
        end_session();
    return code;
}
NAMES(Session_finalize)

static int call_Initialized(int *flag) {
    if (flag == NULL)
        return missing_anywhere(MPI_FUNCTION_Initialized);
    *flag = world_model != NOT_BEGUN;
    return SUCCESS;
}
NAMES(Initialized)

static int call_Finalized(int *flag) {
    if (flag == NULL)
        return missing_anywhere(MPI_FUNCTION_Finalized);
    *flag = world_model == ENDED || state == FORKED;
    return SUCCESS;
}
NAMES(Finalized)

static int call_Get_version(int *version, int *subversion) {
    if (version == NULL || subversion == NULL)
        return missing_anywhere(MPI_FUNCTION_Get_version);
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return SUCCESS;
}
NAMES(Get_version)

static int call_Get_library_version(char *version, int *resultlen) {
    static const char name[] = "shrimpmx " SHRIMPMX_VERSION;
    if (version == NULL || resultlen == NULL)
        return missing_anywhere(MPI_FUNCTION_Get_library_version);
    memcpy(version, name, sizeof name);
    *resultlen = sizeof name - 1;
    return SUCCESS;
}
NAMES(Get_library_version)

/* What stands behind the level is for profilers. Outside a run there is nothing to mark. */
static int call_Pcontrol(const int level, ...) {
    if (state != RUNNING)
        return SUCCESS;
    called = MPI_FUNCTION_Pcontrol;
    return table->Pcontrol(level);
}
NAMES(Pcontrol)

static MPI_Aint call_Aint_add(MPI_Aint base, MPI_Aint displacement) {
    return base + displacement;
}
NAMES(Aint_add)

static MPI_Aint call_Aint_diff(MPI_Aint address1, MPI_Aint address2) {
    return address1 - address2;
}
NAMES(Aint_diff)

/* -- Results of another type than those of the table: int for MPI_Count, and MPI 1's. */

/* Neither NULL nor MPI_STATUS_IGNORE. */
static int has_fields(const void *status) {
    return (intptr_t)status > 1;
}

static int call_Type_size(MPI_Datatype datatype, int *size) {
    MPI_Count whole;
    called = MPI_FUNCTION_Type_size;
    if (size == NULL && state == RUNNING)
        return null_argument(COMM_WORLD, called);
    const int code = table->Type_size_x(datatype, &whole);
    if (code == SUCCESS)
        *size = in_int(whole);
    return code;
}
NAMES(Type_size)

static int call_Get_elements(const MPI_Status *status, MPI_Datatype datatype, int *count) {
    MPI_Count whole;
    called = MPI_FUNCTION_Get_elements;
    if ((count == NULL || !has_fields(status)) && state == RUNNING)
        return null_argument(COMM_WORLD, called);
    const int code = table->Get_elements_x(status, datatype, &whole);
    if (code == SUCCESS)
        *count = in_int(whole);
    return code;
}
NAMES(Get_elements)

static int call_Status_set_elements(MPI_Status *status, MPI_Datatype datatype, int count) {
    called = MPI_FUNCTION_Status_set_elements;
    if (!has_fields(status) && state == RUNNING)
        return null_argument(COMM_WORLD, called);
    return table->Status_set_elements_x(status, datatype, count);
}
NAMES(Status_set_elements)

static int call_Type_extent(MPI_Datatype datatype, MPI_Aint *extent) {
    MPI_Aint lb;
    called = MPI_FUNCTION_Type_extent;
    if (extent == NULL && state == RUNNING)
        return null_argument(COMM_WORLD, called);
    return table->Type_get_extent(datatype, &lb, extent);
}
NAMES(Type_extent)

static int call_Type_lb(MPI_Datatype datatype, MPI_Aint *lb) {
    MPI_Aint extent;
    called = MPI_FUNCTION_Type_lb;
    if (lb == NULL && state == RUNNING)
        return null_argument(COMM_WORLD, called);
    return table->Type_get_extent(datatype, lb, &extent);
}
NAMES(Type_lb)

static int call_Type_ub(MPI_Datatype datatype, MPI_Aint *ub) {
    MPI_Aint lb, extent;
    called = MPI_FUNCTION_Type_ub;
    if (ub == NULL && state == RUNNING)
        return null_argument(COMM_WORLD, called);
    const int code = table->Type_get_extent(datatype, &lb, &extent);
    if (code == SUCCESS)
        *ub = lb + extent;
    return code;
}
NAMES(Type_ub)

/* -- Fields of a status. */

#define STATUS_FIELD(name, field) \
    static int call_Status_get_##name(const MPI_Status *status, int *result) { \
        if (status == NULL || result == NULL) \
            return ERR_ARG; \
        *result = status->field; \
        return SUCCESS; \
    } \
    NAMES(Status_get_##name) \
    static int call_Status_set_##name(MPI_Status *status, int value) { \
        if (status == NULL) \
            return ERR_ARG; \
        status->field = value; \
        return SUCCESS; \
    } \
    NAMES(Status_set_##name)

STATUS_FIELD(source, MPI_SOURCE)
STATUS_FIELD(tag, MPI_TAG)
STATUS_FIELD(error, MPI_ERROR)

#include "mpi/tools.h"

#ifndef STANDARD_ABI

EXPORTED int *const MPI_UNWEIGHTED = UNWEIGHTED;
EXPORTED int *const MPI_WEIGHTS_EMPTY = WEIGHTS_EMPTY;
EXPORTED struct MPIR_T_pvar_handle_s *const MPI_T_PVAR_ALL_HANDLES = ALL_HANDLES;

/* Copies an attribute: what mpi.h names MPI_COMM_DUP_FN, MPI_TYPE_DUP_FN and MPI_WIN_DUP_FN. */
EXPORTED int MPIR_Dup_fn(int handle, int keyval, void *state, void *from, void *to, int *flag) {
    *(void **)to = from;
    *flag = 1;
    return SUCCESS;
}

/* -- Fortran: its handles are the same integers, and its status has the same fields. */

#define INTEGER_HANDLE(handle, type) \
    static MPI_Fint call_##handle##_c2f(type of) { return of; } \
    NAMES(handle##_c2f) \
    static type call_##handle##_f2c(MPI_Fint of) { return of; } \
    NAMES(handle##_f2c)

INTEGER_HANDLE(Comm, MPI_Comm)
INTEGER_HANDLE(Errhandler, MPI_Errhandler)
INTEGER_HANDLE(Group, MPI_Group)
INTEGER_HANDLE(Info, MPI_Info)
INTEGER_HANDLE(Message, MPI_Message)
INTEGER_HANDLE(Op, MPI_Op)
INTEGER_HANDLE(Request, MPI_Request)
INTEGER_HANDLE(Session, MPI_Session)
INTEGER_HANDLE(Type, MPI_Datatype)
INTEGER_HANDLE(Win, MPI_Win)

/* What the libraries of mpif.h and of the modules mpi and mpi_f08 look for, and write to. */
EXPORTED MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
EXPORTED MPI_Status MPIR_F08_MPI_STATUS_IGNORE_OBJ, MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
EXPORTED MPI_Status *MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
EXPORTED MPI_Status *MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
EXPORTED int MPIR_F08_MPI_IN_PLACE, MPIR_F08_MPI_BOTTOM;

/* Handles of files are numbers, in pointers that lead nowhere. */
static MPI_Fint call_File_c2f(MPI_File file) {
    return (MPI_Fint)(intptr_t)file;
}
NAMES(File_c2f)

static MPI_File call_File_f2c(MPI_Fint file) {
    return (MPI_File)(intptr_t)file;
}
NAMES(File_f2c)

static int copy_status(const void *from, void *to) {
    if (!has_fields(from) || !has_fields(to))
        return ERR_ARG;
    memcpy(to, from, sizeof(MPI_Status));
    return SUCCESS;
}

static int call_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status) {
    return copy_status(c_status, f_status);
}
NAMES(Status_c2f)

static int call_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status) {
    return copy_status(f_status, c_status);
}
NAMES(Status_f2c)

static int call_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f_status) {
    return copy_status(c_status, f_status);
}
NAMES(Status_c2f08)

static int call_Status_f082c(const MPI_F08_status *f_status, MPI_Status *c_status) {
    return copy_status(f_status, c_status);
}
NAMES(Status_f082c)

static int call_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status) {
    return copy_status(f_status, f08_status);
}
NAMES(Status_f2f08)

static int call_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status) {
    return copy_status(f08_status, f_status);
}
NAMES(Status_f082f)

#include "mpi/languages.h"

#endif
