"""A process of VMMC: what it exports, what it has mapped, and how it waits for updates."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.nic.lent cimport LentNic
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.heap cimport Heap
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport COUNTERS_MAX
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_export, vmmc_letter, vmmc_process
from shrimpmx.vmmc.imports cimport Imports
from shrimpmx.vmmc.mailbox cimport Mailbox
from shrimpmx.vmmc.pages cimport Pages
from shrimpmx.vmmc.sender cimport Sender
from shrimpmx.wait.strategy cimport WaitEnvironment, WaitResult, ready_function
from shrimpmx.wait.waiter cimport Waiter

# What compiled calls return when they do not succeed; vmmc_status where a peer refused.
cdef enum VmmcError:
    VMMC_DONE = 0
    VMMC_BAD_RANGE = -1       # past the end of the buffer
    VMMC_BAD_IMPORT = -2      # not mapped (any more)
    VMMC_STOPPED = -3         # the run is being stopped, or the host has failed

cdef enum:
    VMMC_ASK_INTERRUPT = 1    # flags of update_c: interrupt the receiver, if it wants that

cdef enum:
    VMMC_MAP_TAGS = 1 << 30   # tags from here on are those of the Python call map()


cdef class VmmcProcess:
    cdef readonly Node node
    cdef readonly Control control
    cdef readonly Host host
    cdef readonly Waiter waiter
    cdef readonly Heap heap
    cdef readonly uint32_t index       # its endpoint
    cdef readonly bint opened
    cdef vmmc_process *shared
    cdef vmmc_export *exports
    cdef Imports imports
    cdef Pages pages                   # which of its pages interrupt
    cdef uint64_t *counters            # of its agent: enum rank_counter
    cdef uint8_t *memory               # start of its part of the heap
    # Private.
    cdef LentNic lent                  # None: the NIC has a CPU of its own
    cdef Sender sender
    cdef uint64_t[COUNTERS_MAX] own_counters   # if it has no agent
    cdef WaitEnvironment environment   # of a process without a waiter
    cdef uint32_t runner
    cdef uint32_t core
    cdef uint32_t last_generation
    cdef Mailbox mailbox
    cdef uint64_t thread               # the only one that may call
    cdef uint32_t last_tag
    cdef object exported               # set of living Export objects
    cdef object mapping                # MapRequest by its tag: those not answered

    # -- memory. Offsets are in the process's part of the heap; -1: no room.
    cdef int64_t export_c(self, uint64_t offset, uint64_t length, uint32_t allowed_node,
                          bint interrupts) noexcept nogil   # index of the export
    cdef void unexport_c(self, uint32_t export_index) noexcept nogil
    # Asks for a mapping; its answer is a letter MAPPED with this tag.
    cdef int map_request_c(self, uint32_t node, uint32_t endpoint, uint32_t export_index,
                           uint32_t tag) noexcept nogil
    # Keeps what such a letter, or another process, told; the index of the import or -1.
    cdef int64_t import_c(self, uint32_t node, uint32_t endpoint, uint32_t export_index,
                          uint32_t generation, uint64_t length) noexcept nogil
    cdef void unimport_c(self, uint32_t import_index) noexcept nogil

    # -- sending. Nothing is seen by the NIC before doorbell_c(); what does not fit the tx ring
    # rings it and waits for room. In order: data, then the flag that announces it.
    cdef int update_c(self, uint32_t import_index, uint64_t offset, const void *data,
                      uint64_t length, uint32_t flags) noexcept nogil
    # A library's letter, VMMC_LETTER_BYTES of `data`, to an endpoint, or to the owner of `port` if
    # `endpoint` is VMMC_NO_ENDPOINT. `kind` from VMMC_LETTER_LIBRARY on; what cannot be delivered
    # comes back as a letter BOUNCED with this tag.
    cdef int letter_c(self, uint32_t node, uint32_t endpoint, uint32_t port, uint32_t kind,
                      uint32_t tag, uint32_t status, const uint8_t *data) noexcept nogil
    cdef void doorbell_c(self) noexcept nogil

    # -- receiving. Letters are for one taker: take_letter_c gives each once, in order. The Python
    # calls map() and wait() take what comes meanwhile from the mailbox, notice what is theirs, and
    # keep the rest, GONE included, for take_letter_c, which gives that first. Tags below
    # VMMC_MAP_TAGS are free for callers of map_request_c. An import whose process has gone is
    # noticed when its letter GONE leaves the mailbox: update_c says VMMC_BAD_IMPORT from then on.
    cdef bint mail_c(self) noexcept nogil                        # is there a letter?
    cdef bint take_letter_c(self, vmmc_letter *letter) noexcept nogil   # the next one, if any
    # What waits watch from now on: the pages of these addresses, and always the mailbox. False if
    # they are more than VMMC_WATCHED_MAX, or lie elsewhere. The Python calls map() and wait() set
    # this for themselves and leave it so.
    cdef bint watch_c(self, uint32_t **addresses, uint32_t count) noexcept nogil
    # Waits until ready(context), the deadline or a stop, by the process's strategy.
    cdef WaitResult wait_c(self, ready_function ready, void *context,
                           int64_t deadline_ns) noexcept nogil

    # -- ports of the node: whose letters to a port are is known to its NIC.
    cdef bint take_port_c(self, uint32_t port) noexcept nogil    # False: it is taken
    cdef void give_port_c(self, uint32_t port) noexcept nogil

    cdef bint next_letter(self, vmmc_letter *letter) noexcept nogil
    cdef void await_deposits(self) noexcept nogil
    cdef bint stopped(self) noexcept nogil
    cdef bint import_gone(self, uint32_t import_index) noexcept nogil
    cdef int sort_mail(self) except -1
    cdef void hand_over(self, const vmmc_letter *letter) noexcept
    # Whether the caller is the thread that opened it, and it is open.
    cdef bint may_call(self) noexcept
    cdef int check_caller(self) except -1
    cdef int take_over(self) except -1
    cdef int prepare(self, vmmc_process *shared) except -1
