"""The notification signal of the strategy `notify`; see notify.h."""

from cpython.exc cimport PyErr_SetFromErrno
from libc.stdint cimport int64_t, uint64_t

from shrimpmx.native.futex cimport wait_slot

from shrimpmx.errors import InputError, MachineError

cdef extern from "<signal.h>":
    int SIGRTMIN

cdef extern from *:
    """
    #include "native/notify.h"
    static struct notify_state notify_process;
    static void notify_handler(int number) {
        (void)number;
        notify_handler_add(&notify_process);
    }
    """
    cdef struct notify_state:
        int signal
        wait_slot *slot
        int64_t cost_ns
    notify_state notify_process
    void notify_handler(int number) noexcept nogil
    uint64_t notify_load(const notify_state *state) noexcept nogil
    int notify_set_handler(notify_state *state, int number,
                           void (*handler)(int) noexcept nogil) noexcept
    int notify_restore_handler(notify_state *state) noexcept


cdef int notify_install(int signal) except -1:
    if notify_process.signal == signal:
        return 0
    if notify_process.signal != 0:
        raise MachineError(
            f"notifications already use signal {notify_process.signal} in this process; "
            "remove() it first"
        )
    if notify_set_handler(&notify_process, signal, notify_handler) != 0:
        raise InputError(f"signal {signal} cannot have a handler; use one from {default_signal()}")
    return 0


cdef int notify_remove() except -1:
    notify_process.slot = NULL  # its segment may go before the next notification
    if notify_restore_handler(&notify_process) != 0:
        PyErr_SetFromErrno(OSError)
    return 0


cdef void notify_set_slot(wait_slot *slot) noexcept nogil:
    notify_process.slot = slot


cdef void notify_set_cost(int64_t cost_ns) noexcept nogil:
    notify_process.cost_ns = cost_ns


cdef uint64_t notify_count() noexcept nogil:
    return notify_load(&notify_process)


def default_signal():
    """The signal used unless told otherwise: the first real-time one that the C library leaves."""
    return SIGRTMIN


def install(int signal=0):
    """Install the handler for `signal` (0: the default one) and return the signal's number."""
    signal = signal or default_signal()
    notify_install(signal)
    return signal


def remove():
    """Bring back the disposition from before `install`; harmless if nothing is installed."""
    notify_remove()


def count():
    """How often the handler ran in this process."""
    return notify_count()
