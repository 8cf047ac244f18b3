"""The owner's end of a mailbox, and the letters that were taken out but are for others."""

from libc.stdlib cimport free, malloc

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.ring cimport ring, ring_available, ring_consume, ring_depth, ring_slot
from shrimpmx.shared.vmmc cimport VMMC_MAILBOX_ENTRIES, vmmc_letter


cdef bint mailbox_open(Mailbox *box, ring *letters) noexcept:
    box.letters = letters
    box.kept_first = box.kept_count = 0
    ring_consume(letters, ring_depth(letters))
    if box.kept == NULL:
        box.kept = <vmmc_letter *>malloc(VMMC_MAILBOX_ENTRIES * sizeof(vmmc_letter))
    return box.kept != NULL


cdef void mailbox_free(Mailbox *box) noexcept:
    free(box.kept)
    box.kept = NULL


cdef bint mailbox_any(Mailbox *box) noexcept nogil:
    return box.kept_count > 0 or load_acquire_u32(&box.letters.head) != box.letters.tail


cdef bint mailbox_next(Mailbox *box, vmmc_letter *letter) noexcept nogil:
    if ring_available(box.letters, 1) == 0:
        return False
    letter[0] = (<vmmc_letter *>ring_slot(box.letters, box.letters.tail))[0]
    ring_consume(box.letters, 1)
    return True


cdef bint mailbox_room(Mailbox *box) noexcept nogil:
    return box.kept_count < VMMC_MAILBOX_ENTRIES


cdef void mailbox_keep(Mailbox *box, const vmmc_letter *letter) noexcept nogil:
    box.kept[(box.kept_first + box.kept_count) % VMMC_MAILBOX_ENTRIES] = letter[0]
    box.kept_count += 1


cdef bint mailbox_kept(Mailbox *box, vmmc_letter *letter) noexcept nogil:
    if box.kept_count == 0:
        return False
    letter[0] = box.kept[box.kept_first]
    box.kept_first = (box.kept_first + 1) % VMMC_MAILBOX_ENTRIES
    box.kept_count -= 1
    return True
