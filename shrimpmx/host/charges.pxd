"""What an emulated host takes beside this one's own time, for interrupts and for frames.

An agent that pays says until when it works (`busy_until_ns`); its runner burns the time.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport node_header, node_vector

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil

cdef struct packet_charge:
    int64_t cost_ns          # added to what a frame takes, before it is handled; 0: nothing
    int64_t until_ns         # the handler works for the next frame until then
    bint paid                # ... which is over at its next step


cdef inline bint packet_is_paid(packet_charge *charge, int64_t now_ns) noexcept nogil:
    """Whether the next frame may be handled now; if not, its time begins."""
    if charge.paid:
        charge.paid = False
        return True
    charge.paid = True
    charge.until_ns = now_ns + charge.cost_ns
    return False


cdef inline int64_t interrupts_end_ns(node_header *node, uint64_t raised, uint32_t count,
                                      int64_t interrupt_time_ns, int64_t now_ns) noexcept nogil:
    """When `count` interrupts are over, of which the NIC raised those of the vectors in `raised`;
    the handler's own timer and other cores the others, which began now.
    """
    cdef int64_t began_ns = now_ns
    while raised != 0:
        began_ns = min(began_ns, node_vector(node, __builtin_ctzll(raised)).raised_ns)
        raised &= raised - 1
    return began_ns + <int64_t>count * interrupt_time_ns
