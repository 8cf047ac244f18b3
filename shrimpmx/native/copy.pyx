"""Copies, of large blocks by the fastest way, and between the memories of two processes."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport ESRCH, errno
from libc.stdint cimport uint64_t, uintptr_t
from posix.unistd cimport getpid


# -- Copies between the memories of two processes: process_vm_readv and process_vm_writev.
#
# One copy by the kernel, and the other process need not take part. The kernel asks for the
# same rights as a debugger: the same user, a process that may be dumped, and, where the Yama
# security module restricts it, the consent of the process whose memory it is
# (`allow_process_memory`). Containers may forbid the calls altogether.

cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <sys/uio.h>
    #include <sys/wait.h>
    #include <unistd.h>

    #include "native/pages.h"

    #ifndef PR_SET_PTRACER
    #define PR_SET_PTRACER 0x59616d61
    #endif

    static long copy_in(int pid, uint64_t remote, void *local, uint64_t length) {
        struct iovec here = {local, length}, there = {(void *)(uintptr_t)remote, length};
        return process_vm_readv(pid, &here, 1, &there, 1, 0);
    }
    static long copy_out(int pid, uint64_t remote, const void *local, uint64_t length) {
        struct iovec here = {(void *)local, length}, there = {(void *)(uintptr_t)remote, length};
        return process_vm_writev(pid, &here, 1, &there, 1, 0);
    }

    static void allow_all(void) {
        prctl(PR_SET_PTRACER, -1L /* PR_SET_PTRACER_ANY */, 0, 0, 0);
    }

    /* A child copies `question` out of its parent and writes it into the parent's `answer`. To
     * the kernel it is a process like any other of the run: it has its own memory, and is no
     * ancestor of the one that it reads. In C, since after the fork nothing but system calls is
     * safe. A bare clone: no SIGCHLD for the handlers of the program, no fork handlers. */
    static volatile uint64_t question, answer;
    static int child_may_copy(void) {
        int parent = getpid(), status = -1;
        question += 0x5a5a5a5a5a5a5a5bu;
        answer = 0;
        long child = syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
        if (child < 0)
            return 0;
        if (child == 0) {
            uint64_t word = 0;
            long done = copy_in(parent, (uint64_t)(uintptr_t)&question, &word, sizeof(word));
            if (done == sizeof(word))
                done = copy_out(parent, (uint64_t)(uintptr_t)&answer, &word, sizeof(word));
            _exit(done == sizeof(word) ? 0 : 1);
        }
        while (waitpid((int)child, &status, __WALL) < 0)
            if (errno != EINTR)
                return 0;
        return status == 0 && answer == question;
    }
    """
    long copy_in(int pid, uint64_t remote, void *local, uint64_t length) noexcept nogil
    long copy_out(int pid, uint64_t remote, const void *local, uint64_t length) noexcept nogil
    bint pages_are_ready(const void *start, uint64_t length, bint written) noexcept nogil
    void allow_all() noexcept nogil
    int child_may_copy() noexcept nogil


cdef int process_read(int pid, uint64_t remote, void *local, uint64_t length) noexcept nogil:
    # A call moves 2 GiB at most, and stops early where a page is missing: the next one fails.
    cdef uint64_t position = 0
    cdef long moved
    cdef char probe
    cdef int number
    while position < length:
        moved = copy_in(pid, remote + position, <char *>local + position, length - position)
        if moved <= 0:
            number = errno
            return fault_of(number, copy_in(pid, remote + position, &probe, 1) == 1)
        position += <uint64_t>moved
    return 0


cdef int process_write(int pid, uint64_t remote, const void *local,
                       uint64_t length) noexcept nogil:
    cdef uint64_t position = 0
    cdef long moved
    while position < length:
        moved = copy_out(pid, remote + position, <const char *>local + position,
                         length - position)
        if moved <= 0:
            return fault_of(errno, False)
        position += <uint64_t>moved
    return 0


cdef inline int fault_of(int number, bint is_readable) noexcept nogil:
    if number == ESRCH:
        return MEMORY_GONE
    return MEMORY_OWN if is_readable else MEMORY_BAD


cdef bint copy_from_program(void *to, const void *source, uint64_t length) noexcept nogil:
    if pages_are_ready(source, length, False):
        copy_bytes(to, source, length)
        return True
    return process_read(getpid(), <uintptr_t>source, to, length) == 0


cdef bint copy_to_program(void *to, const void *source, uint64_t length) noexcept nogil:
    if pages_are_ready(to, length, True):
        copy_bytes(to, source, length)
        return True
    return process_read(getpid(), <uintptr_t>source, to, length) == 0


cdef int probed_pid = 0
cdef bint probed = False


def process_memory_permitted():
    """Whether other processes of the run may copy from and to this one's memory.

    Tried, not guessed: the first call in a process forks a child that copies eight bytes from
    here and back. A child that could not be made counts as no. Later calls repeat the answer.
    """
    global probed_pid, probed
    if probed_pid != getpid():
        probed = child_may_copy() != 0
        probed_pid = getpid()
    return probed


def allow_process_memory():
    """Let any process of this user copy from and to this one's memory.

    Needed where Yama's ptrace_scope is 1, which allows only ancestors; elsewhere it does
    nothing. Forked children do not inherit it.
    """
    allow_all()


def memory_allows(uint64_t start, uint64_t length, bint written):
    """Whether a copy may read these bytes of this process, or write them. For tests."""
    return bool(pages_are_ready(<const void *><uintptr_t>start, length, written))


def address_of(const unsigned char[::1] memory not None):
    """Where these bytes, one at least, lie in this process; valid as long as they do."""
    return <uintptr_t>&memory[0]


def copy_within(unsigned char[::1] to not None, const unsigned char[::1] source not None):
    """Copy `source`, one byte at least, to the start of `to`. For tests."""
    copy_bytes(&to[0], &source[0], <uint64_t>min(to.shape[0], source.shape[0]))


def read_process(int pid, uint64_t remote, Py_ssize_t size_bytes):
    """Copy `size_bytes` from address `remote` of process `pid`; OSError if that is impossible."""
    data = PyBytes_FromStringAndSize(NULL, size_bytes)
    if process_read(pid, remote, PyBytes_AS_STRING(data), <uint64_t>size_bytes) != 0:
        raise OSError(f"cannot read {size_bytes} bytes at {remote:#x} of process {pid}")
    return data


def write_process(int pid, uint64_t remote, const unsigned char[::1] data not None):
    """Copy `data` to address `remote` of process `pid`; OSError if that is impossible."""
    cdef const void *start = &data[0] if data.shape[0] else NULL
    if process_write(pid, remote, start, <uint64_t>data.shape[0]) != 0:
        raise OSError(f"cannot write {data.shape[0]} bytes at {remote:#x} of process {pid}")
