"""The Toeplitz hash of a flow, as receive side scaling has it.

For each bit of the flow that is set, from its first on, the hash takes up (exclusive or) the 32
bits of the key that begin at that bit's place. So each byte adds something that depends on its
place and value only, and a table of those makes the hash one look-up a byte.

Source: Microsoft, "RSS hashing functions", with the key of its verification suite, which is the
default of many drivers.
"""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.errors import InputError

KEY = bytes.fromhex(
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
)


cdef class Toeplitz:
    """The hash with Microsoft's key, of up to 12 bytes."""

    def __init__(self):
        cdef uint32_t window, place, value, bit
        key = int.from_bytes(KEY, "big")
        for place in range(<uint32_t>TOEPLITZ_BYTES):
            for bit in range(8):
                window = key >> (8 * (len(KEY) - place) - 32 - bit) & 0xFFFFFFFF
                for value in range(256):
                    if value & 0x80 >> bit:
                        self.tables[place][value] ^= window

    cdef uint32_t hash(self, const uint8_t *flow, uint32_t count) noexcept nogil:
        cdef uint32_t found = 0
        cdef uint32_t place
        for place in range(count):
            found ^= self.tables[place][flow[place]]
        return found

    def hash_of(self, bytes flow not None):
        """The hash of addresses and ports, source before destination, in network byte order.

        InputError if `flow` has more than 12 bytes.
        """
        if len(flow) > TOEPLITZ_BYTES:
            raise InputError(
                f"a flow has {TOEPLITZ_BYTES} bytes, IPv4 addresses and ports, not {len(flow)}"
            )
        return self.hash(<const uint8_t *>flow, <uint32_t>len(flow))
