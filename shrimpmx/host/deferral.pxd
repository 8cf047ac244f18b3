"""Deferral of interrupts: polls by timer before they are on again.

A handler that has emptied a ring leaves interrupts off and polls again after a timeout, until so
many polls in a row have found nothing (Linux: napi_defer_hard_irqs, gro_flush_timeout).
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.shared.layout cimport NODE_VECTORS_MAX

cdef struct interrupt_deferral:
    uint32_t polls                          # that must find nothing; 0: nothing is deferred
    int64_t timeout_ns                      # between two of them
    uint32_t[NODE_VECTORS_MAX] left         # of each vector: polls that may yet find nothing


cdef inline void deferral_renew(interrupt_deferral *deferral, uint32_t number) noexcept nogil:
    deferral.left[number] = deferral.polls


cdef inline bint deferral_goes_on(interrupt_deferral *deferral, uint32_t number,
                                  uint32_t polled) noexcept nogil:
    """Whether interrupts stay off after a poll of `polled` frames; counts one that found none."""
    if deferral.polls == 0:
        return False
    if polled != 0:
        deferral_renew(deferral, number)
    if deferral.left[number] == 0:
        return False
    deferral.left[number] -= 1
    return True
