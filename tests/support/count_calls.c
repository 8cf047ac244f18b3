/* Preloaded into a Python process: counts allocations and takings of the GIL, of all threads.
 *
 * The real functions are found with dlsym; what dlsym itself allocates before that is served
 * from a small static store. The counters are read by ctypes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

atomic_long allocations, gil_takings;

static char store[65536];
static atomic_size_t stored;

static int is_stored(void *pointer) {
    return (char *)pointer >= store && (char *)pointer < store + sizeof store;
}
static void *take_from_store(size_t size) {
    return store + atomic_fetch_add(&stored, (size + 15) & ~(size_t)15);
}

#define REAL(name, type)                                                                    \
    static __typeof__(type) real;                                                                    \
    static _Thread_local int searching;                                                     \
    if (!real && !searching) {                                                              \
        searching = 1;                                                                      \
        real = (__typeof__(type))dlsym(RTLD_NEXT, name);                                                \
        searching = 0;                                                                      \
    }

void *malloc(size_t size) {
    REAL("malloc", void *(*)(size_t))
    if (!real)
        return take_from_store(size);
    allocations++;
    return real(size);
}
void *calloc(size_t count, size_t size) {
    REAL("calloc", void *(*)(size_t, size_t))
    if (!real)
        return take_from_store(count * size); /* static: zero */
    allocations++;
    return real(count, size);
}
void *realloc(void *pointer, size_t size) {
    REAL("realloc", void *(*)(void *, size_t))
    if (!real || is_stored(pointer)) {
        void *moved = malloc(size);
        if (pointer)
            memcpy(moved, pointer, size);
        return moved;
    }
    allocations++;
    return real(pointer, size);
}
void free(void *pointer) {
    REAL("free", void (*)(void *))
    if (!is_stored(pointer) && real)
        real(pointer);
}

int PyGILState_Ensure(void) {
    REAL("PyGILState_Ensure", int (*)(void))
    gil_takings++;
    return real();
}
void PyEval_RestoreThread(void *state) {
    REAL("PyEval_RestoreThread", void (*)(void *))
    gil_takings++;
    real(state);
}
