/* Where a traced program calls MPI. The line of a Python program is that of its frame, which takes
 * the GIL; of a compiled one the return address is noted, whose line the launcher looks up. */
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi/tracing.h"

enum { FRAMES_MOST = 16, PLACES_MOST = 2048 };

static struct calls_header *kept;
static char *text;
static struct traced_call *ring;
static int64_t (*now)(void);
static const volatile uint64_t *records_written;
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
/* Places by their texts: a table with open addressing of where each begins, plus one. */
static uint32_t places[PLACES_MOST];

static struct {
    int (*Py_IsInitialized)(void);
    int (*PyGILState_Ensure)(void);
    void (*PyGILState_Release)(int);
    void *(*PyEval_GetFrame)(void);
    void *(*PyFrame_GetBack)(void *);
    void *(*PyFrame_GetCode)(void *);
    int (*PyFrame_GetLineNumber)(void *);
    void *(*PyObject_GetAttrString)(void *, const char *);
    const char *(*PyUnicode_AsUTF8)(void *);
    void (*Py_IncRef)(void *);
    void (*Py_DecRef)(void *);
    void (*PyErr_Clear)(void);
} python;

static int find_python(void) {
#define FIND(name) ((*(void **)&python.name = dlsym(RTLD_DEFAULT, #name)) != NULL)
    return FIND(Py_IsInitialized) && FIND(PyGILState_Ensure) && FIND(PyGILState_Release) &&
           FIND(PyEval_GetFrame) && FIND(PyFrame_GetBack) && FIND(PyFrame_GetCode) &&
           FIND(PyFrame_GetLineNumber) && FIND(PyObject_GetAttrString) &&
           FIND(PyUnicode_AsUTF8) && FIND(Py_IncRef) && FIND(Py_DecRef) && FIND(PyErr_Clear);
#undef FIND
}

int calls_keep(const char *path, int64_t (*clock)(void), const volatile uint64_t *records) {
    const size_t size =
        sizeof *kept + CALLS_TEXT_BYTES + CALLS_MOST * sizeof(struct traced_call);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return 0;
    void *whole = MAP_FAILED;
    if (ftruncate(file, (off_t)size) == 0)
        whole = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (whole == MAP_FAILED)
        return 0;
    text = (char *)whole + sizeof *kept;
    ring = (struct traced_call *)(text + CALLS_TEXT_BYTES);
    now = clock;
    records_written = records;
    find_python();
    kept = whole;
    return 1;
}

static uint32_t place_of_text(const char *words) {
    uint32_t hash = 2166136261u, place = NO_PLACE;
    const size_t length = strlen(words) + 1;
    for (const char *letter = words; *letter; letter++)
        hash = (hash ^ (unsigned char)*letter) * 16777619u;
    pthread_mutex_lock(&places_lock);
    for (uint32_t look = 0; look < PLACES_MOST; look++) {
        uint32_t *slot = &places[(hash + look) % PLACES_MOST];
        if (*slot == 0) {
            if (kept->text_bytes + length > CALLS_TEXT_BYTES)
                break;
            memcpy(text + kept->text_bytes, words, length);
            *slot = (uint32_t)kept->text_bytes + 1;
            kept->text_bytes += length;
        } else if (strcmp(text + *slot - 1, words) != 0)
            continue;
        place = *slot - 1;
        break;
    }
    pthread_mutex_unlock(&places_lock);
    return place;
}

/* The frame in Python that has called, without those of mpi4py: its line and function. */
static int python_place(char *words, size_t room) {
    int found = 0;
    const int gil = python.PyGILState_Ensure();
    void *frame = python.PyEval_GetFrame();
    if (frame != NULL)
        python.Py_IncRef(frame);
    while (frame != NULL) {
        void *code = python.PyFrame_GetCode(frame);
        void *file = python.PyObject_GetAttrString(code, "co_filename");
        void *name = python.PyObject_GetAttrString(code, "co_name");
        const char *path = file ? python.PyUnicode_AsUTF8(file) : NULL;
        const char *function = name ? python.PyUnicode_AsUTF8(name) : NULL;
        void *back = NULL;
        if (path != NULL && function != NULL && strstr(path, "/mpi4py/") == NULL) {
            const int line = python.PyFrame_GetLineNumber(frame);
            snprintf(words, room, "%s:%d, %s", path, line, function);
            found = 1;
        } else {
            python.PyErr_Clear();
            back = python.PyFrame_GetBack(frame);
        }
        python.Py_DecRef(name);
        python.Py_DecRef(file);
        python.Py_DecRef(code);
        python.Py_DecRef(frame);
        frame = back;
    }
    python.PyGILState_Release(gil);
    return found;
}

/* The first return address outside this library, as its file and the address in that. */
static int compiled_place(char *words, size_t room) {
    void *frames[FRAMES_MOST];
    char path[PATH_MAX];
    Dl_info own, other;
    const int count = backtrace(frames, FRAMES_MOST);
    if (dladdr(places, &own) == 0)
        return 0;
    for (int at = 0; at < count; at++) {
        if (dladdr(frames[at], &other) == 0 || other.dli_fbase == own.dli_fbase)
            continue;
        const ElfW(Ehdr) *head = other.dli_fbase;
        const uintptr_t base = head->e_type == ET_EXEC ? 0 : (uintptr_t)other.dli_fbase;
        if (realpath(other.dli_fname, path) == NULL && realpath("/proc/self/exe", path) == NULL)
            return 0;
        /* The call stands before what it returns to. */
        snprintf(words, room, "%s+0x%lx", path, (unsigned long)((uintptr_t)frames[at] - base - 1));
        return 1;
    }
    return 0;
}

struct traced_call call_begun(int function) {
    char words[PATH_MAX + 256];
    /* Python calls MPI_Finalize when it has gone. */
    const int has_python = python.PyErr_Clear != NULL;
    const int known = has_python && !python.Py_IsInitialized()
                          ? 0
                          : (has_python && python_place(words, sizeof words)) ||
                                compiled_place(words, sizeof words);
    return (struct traced_call){
        .begin_ns = now(),
        .begin_record = *records_written,
        .function = (uint32_t)function,
        .place = known ? place_of_text(words) : NO_PLACE,
    };
}

void call_ended(struct traced_call *call) {
    call->end_ns = now();
    call->end_record = *records_written;
    ring[__atomic_fetch_add(&kept->calls, 1, __ATOMIC_RELAXED) % CALLS_MOST] = *call;
}
