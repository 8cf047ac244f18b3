"""Two processes of VMMC that write each other's flags."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.shared.host cimport Host
from shrimpmx.vmmc.process cimport VmmcProcess
from shrimpmx.wait.waiter cimport FlagWatch, WatchList

# How a compiled loop ended.
cdef enum PeerResult:
    PEER_DONE
    PEER_STOPPED             # the run is being stopped
    PEER_GONE                # the peer has closed, or was killed
    PEER_CORRUPT             # a flag is not what should have come


cdef class Peer:
    cdef readonly VmmcProcess process
    cdef Host host                     # the process's
    cdef readonly uint32_t node        # the peer's
    cdef readonly uint32_t endpoint
    cdef object ours                   # Export that the peer writes
    cdef object theirs                 # Import that we write
    cdef uint8_t *memory               # ours, zeros at first
    cdef uint64_t length
    cdef uint32_t import_index
    cdef FlagWatch *watches            # `flags_count` flags, and the mailbox behind them
    cdef readonly uint32_t flags_count
    cdef uint64_t waits                # of wait_c ...
    cdef uint64_t spurious             # ... that ended though no flag had changed

    # Waits until the peer has mapped ours, as we have mapped its.
    cdef int meet(self) except -1
    # Has waits look at the flags at these offsets of our memory.
    cdef int choose(self, object offsets) except -1
    # `length` bytes at `offset` of the peer's memory; the NIC sees them at the next flag.
    cdef PeerResult put_c(self, uint64_t offset, const void *data, uint64_t length) noexcept nogil
    # Sets a flag of the peer's and asks for an interrupt: what was put before it is there then.
    cdef PeerResult set_flag_c(self, uint64_t offset, uint32_t value) noexcept nogil
    # Waits until one of our flags differs from what was last seen of it. One wait of the process's
    # strategy, unless letters come meanwhile.
    cdef PeerResult wait_c(self) noexcept nogil
    # Waits until our only flag changes, and takes it. PEER_CORRUPT if it is not `wanted` then.
    cdef PeerResult expect_c(self, uint32_t wanted) noexcept nogil
    # Takes all letters; whether the peer is still there.
    cdef bint read_mail(self) noexcept nogil
    # Raises what `result` means, if anything; `number` is that of the message.
    cdef int check(self, PeerResult result, uint64_t number) except -1
