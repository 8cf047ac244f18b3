"""Starts a program as a child. No copy of this process is made for it: a fork would copy its page
tables, and then each page that one of both writes.
"""

import os

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <signal.h>
    #include <sys/prctl.h>
    #include <unistd.h>

    struct program {
        char **paths, **words, **environment;
        const char *directory; /* or NULL */
        const int *numbers;    /* pairs: a descriptor, and its number in the program */
        int numbers_count, own_group, parent;
        sigset_t unblocked;
        volatile int error; /* why it was not started; written by the child */
    };

    static int take_numbers(const struct program *p) {
        for (int i = 0; i < p->numbers_count; i += 2) {
            int from = p->numbers[i], to = p->numbers[i + 1];
            if ((from == to ? fcntl(to, F_SETFD, 0) : dup2(from, to)) < 0)
                return -1;
        }
        return 0;
    }

    /* Handlers are this process's: they must not run in a child that shares its memory. */
    static void reset_signals(const sigset_t *mask) {
        struct sigaction action;
        for (int number = 1; number < NSIG; number++) {
            if (sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_DFL)
                continue;
            /* Python ignores the two; the others are ignored on behalf of the caller, as by nohup.
             */
            if (action.sa_handler != SIG_IGN || number == SIGPIPE || number == SIGXFSZ)
                signal(number, SIG_DFL);
        }
        pthread_sigmask(SIG_SETMASK, mask, NULL);
    }

    /* As a shell looks for a program: the first error that is no missing file counts. */
    static int execute(const struct program *p) {
        int first = 0, last = ENOENT;
        for (char *const *path = p->paths; *path != NULL; path++) {
            execve(*path, p->words, p->environment);
            last = errno;
            if (first == 0 && last != ENOENT && last != ENOTDIR)
                first = last;
        }
        return first != 0 ? first : last;
    }

    static __attribute__((noinline)) int start(struct program *p) {
        sigset_t all, before, mask;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        mask = before;
        for (int number = 1; number < NSIG; number++)
            if (sigismember(&p->unblocked, number) == 1)
                sigdelset(&mask, number);
        int child = vfork();
        if (child == 0) {
            if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != p->parent)
                _exit(1);
            if ((p->own_group && setpgid(0, 0) != 0) || take_numbers(p) != 0
                || (p->directory != NULL && chdir(p->directory) != 0)) {
                p->error = errno;
                _exit(1);
            }
            reset_signals(&mask);
            p->error = execute(p);
            _exit(1);
        }
        if (child < 0)
            p->error = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return child;
    }
    """
    ctypedef struct sigset_t:
        pass
    cdef struct program:
        char **paths
        char **words
        char **environment
        const char *directory
        const int *numbers
        int numbers_count
        int own_group
        int parent
        sigset_t unblocked
        int error
    int sigemptyset(sigset_t *signals)
    int sigaddset(sigset_t *signals, int number)
    int start(program *p)

from libc.stdlib cimport free, malloc


cdef char **pointers_to(list texts) except NULL:
    """To each of the bytes, with NULL at the end; to be freed."""
    cdef char **found = <char **>malloc((len(texts) + 1) * sizeof(char *))
    if found == NULL:
        raise MemoryError
    for index, text in enumerate(texts):
        found[index] = <bytes>text
    found[len(texts)] = NULL
    return found


def start_program(words, environment, unblocked, *, directory="", own_group=False, numbers=()):
    """Start the program `words[0]`, looked for in the PATH of `environment`; returns its pid.

    The kernel kills it when the thread that started it ends. Signals have their default actions,
    but those that are ignored here; those in `unblocked` are not blocked. `directory` is where it
    starts, "" here; `own_group`: it leads a process group. `numbers` has pairs of a descriptor and
    its number in the program. Raises OSError if it cannot be started.
    """
    cdef program p
    cdef list kept = [os.fsencode(word) for word in words]
    cdef list variables = [os.fsencode(f"{key}={value}") for key, value in environment.items()]
    cdef list places = [b""] if b"/" in kept[0] else [
        os.fsencode(place) + b"/" for place in os.get_exec_path(environment)
    ]
    cdef list paths = [place + kept[0] for place in places]
    cdef bytes inside = os.fsencode(directory)
    cdef int *pairs = NULL
    for text in (*kept, *variables, inside):
        if b"\0" in text:
            raise ValueError("embedded null byte")
    p.paths = p.words = p.environment = NULL
    try:
        p.paths = pointers_to(paths)
        p.words = pointers_to(kept)
        p.environment = pointers_to(variables)
        p.numbers_count = 2 * len(numbers)
        pairs = <int *>malloc((p.numbers_count + 1) * sizeof(int))
        if pairs == NULL:
            raise MemoryError
        for index, (descriptor, number) in enumerate(numbers):
            pairs[2 * index] = descriptor
            pairs[2 * index + 1] = number
        p.numbers = pairs
        p.directory = <const char *>inside if inside else NULL
        p.own_group = own_group
        p.parent = os.getpid()
        sigemptyset(&p.unblocked)
        for number in unblocked:
            sigaddset(&p.unblocked, number)
        p.error = 0
        child = start(&p)
    finally:
        free(p.paths)
        free(p.words)
        free(p.environment)
        free(pairs)
    if p.error:
        if child > 0:
            os.waitpid(child, 0)
        raise OSError(p.error, os.strerror(p.error))
    return child
