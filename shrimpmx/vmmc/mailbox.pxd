"""The owner's end of a mailbox, and the letters that were taken out but are for others."""

from libc.stdint cimport uint32_t

from shrimpmx.native.ring cimport ring
from shrimpmx.shared.vmmc cimport vmmc_letter

cdef struct Mailbox:
    ring *letters
    vmmc_letter *kept        # ring of VMMC_MAILBOX_ENTRIES in the process's own memory
    uint32_t kept_first
    uint32_t kept_count

# Empties it: what it holds was for an earlier process. False: no memory.
cdef bint mailbox_open(Mailbox *box, ring *letters) noexcept
cdef void mailbox_free(Mailbox *box) noexcept
# Is there a letter, kept or not?
cdef bint mailbox_any(Mailbox *box) noexcept nogil
# The next letter that the NIC put there.
cdef bint mailbox_next(Mailbox *box, vmmc_letter *letter) noexcept nogil
# Puts a letter aside, behind those that were; there is room if mailbox_room says so.
cdef bint mailbox_room(Mailbox *box) noexcept nogil
cdef void mailbox_keep(Mailbox *box, const vmmc_letter *letter) noexcept nogil
# The first of those that were put aside.
cdef bint mailbox_kept(Mailbox *box, vmmc_letter *letter) noexcept nogil
