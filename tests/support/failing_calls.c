/* Loaded before the C library (LD_PRELOAD): one of the system calls of a command fails.
 *
 * FAILING_CALL names it, FAILING_AT says which one: calls of all processes of the command are
 * counted together, in the file FAILING_COUNT, from the moment that a process opens the package
 * on. A file of code or of an installed library is opened in any case, and memory that is private
 * is mapped: an interpreter that has none for itself ends as it likes. Of the files of /proc and
 * /sys whose names differ by numbers alone, the first few of each process fail. Of writes those to
 * files fail.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *call = "";
static uint64_t at, *count;
static int armed;

static __attribute__((constructor)) void start(void) {
    const char *name = getenv("FAILING_CALL"), *number = getenv("FAILING_AT");
    const char *path = getenv("FAILING_COUNT");
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR) : -1;
    if (!name || !number || file < 0)
        return;
    call = name;
    at = strtoull(number, 0, 10);
    count = (uint64_t *)syscall(SYS_mmap, 0, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED,
                                file, 0L);
    syscall(SYS_close, file);
}

static int fails(const char *name) {
    if (!armed || !count || strcmp(name, call) != 0)
        return 0;
    return __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) == at;
}

#define NEXT(function) \
    static __typeof__(function) *next; \
    if (!next) \
    next = (__typeof__(function) *)dlsym(RTLD_NEXT, #function)

static int is_code(const char *path) {
    const char *end = strrchr(path, '.');
    if (strstr(path, "/shrimpmx/__pycache__/__init__") || strstr(path, "/shrimpmx/__init__"))
        armed = 1;
    return (end && (!strncmp(end, ".py", 3) || !strncmp(end, ".so", 3))) ||
           strstr(path, "/site-packages/") || !*path;
}

static int is_one_of_many(const char *path) {
    enum { FEW = 3, KINDS = 4096 };
    static uint8_t opened[KINDS];
    uint32_t kind = 0;
    if (!armed || (strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0))
        return 0;
    for (const char *at = path; *at; at++)
        if (*at < '0' || *at > '9')
            kind = kind * 31 + (unsigned char)*at;
    if (opened[kind % KINDS] == FEW)
        return 1;
    opened[kind % KINDS]++;
    return 0;
}

static int open_fails(const char *path) {
    return !is_code(path) && !is_one_of_many(path) && fails("open");
}

#define OPEN(function) \
    int function(const char *path, int flags, ...) { \
        NEXT(function); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (open_fails(path)) { \
            errno = EMFILE; \
            return -1; \
        } \
        return next(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPEN_AT(function) \
    int function(int directory, const char *path, int flags, ...) { \
        NEXT(function); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (open_fails(path)) { \
            errno = EMFILE; \
            return -1; \
        } \
        return next(directory, path, flags, mode); \
    }
OPEN_AT(openat)
OPEN_AT(openat64)

#define MAP(function) \
    void *function(void *place, size_t length, int rights, int flags, int file, off_t offset) { \
        NEXT(function); \
        if (flags & MAP_SHARED && fails("mmap")) { \
            errno = ENOMEM; \
            return MAP_FAILED; \
        } \
        return next(place, length, rights, flags, file, offset); \
    }
MAP(mmap)
MAP(mmap64)

pid_t fork(void) {
    NEXT(fork);
    if (fails("fork")) {
        errno = EAGAIN;
        return -1;
    }
    return next();
}
/* By which Python starts programs; the child of a fork may do all that one of a vfork may. */
pid_t vfork(void) { return fork(); }

/* By which a rank tells whether others may copy from its memory: a clone(2) like a fork. */
long syscall(long number, ...) {
    NEXT(syscall);
    enum { MOST = 6 };
    long given[MOST];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < MOST; i++)
        given[i] = va_arg(more, long);
    va_end(more);
    if (number == SYS_clone && fails("fork")) {
        errno = EAGAIN;
        return -1;
    }
    return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument) {
    NEXT(pthread_create);
    return fails("thread") ? EAGAIN : next(thread, attributes, function, argument);
}

mqd_t mq_open(const char *name, int flags, ...) {
    NEXT(mq_open);
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    struct mq_attr *attributes = flags & O_CREAT ? va_arg(more, struct mq_attr *) : 0;
    va_end(more);
    if (fails("mq_open")) {
        errno = EMFILE;
        return (mqd_t)-1;
    }
    return next(name, flags, mode, attributes);
}

ssize_t write(int file, const void *data, size_t length) {
    NEXT(write);
    struct stat about;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && fails("write")) {
        errno = ENOSPC;
        return -1;
    }
    return next(file, data, length);
}

int fsync(int file) {
    NEXT(fsync);
    if (fails("fsync")) {
        errno = EIO;
        return -1;
    }
    return next(file);
}

int ftruncate64(int file, off64_t length) {
    NEXT(ftruncate64);
    if (fails("size")) {
        errno = ENOSPC;
        return -1;
    }
    return next(file, length);
}

int posix_fallocate64(int file, off64_t offset, off64_t length) {
    NEXT(posix_fallocate64);
    return fails("size") ? ENOSPC : next(file, offset, length);
}
