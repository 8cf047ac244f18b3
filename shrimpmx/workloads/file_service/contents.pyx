"""What is in a file block: a function of its number and its version, so that it can be checked."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

from shrimpmx.errors import InputError

cdef enum:
    STAMP_BYTES = 16   # block and version
    # Where in the noise a content can begin; a prime, so that blocks differ from each other.
    PLACES = 8191
    STEP_BLOCK = 61
    STEP_VERSION = 4099


cdef class Contents:
    """Contents of blocks of `block_bytes`, drawn from `seed`: a stamp, then noise.

    InputError if a block is too short for its stamp. Buffers must be of that length.
    """

    def __init__(self, uint64_t block_bytes, seed):
        if block_bytes < STAMP_BYTES:
            raise InputError(
                f"a file block needs at least {STAMP_BYTES} bytes to be told from others, not "
                f"{block_bytes}")
        self.block_bytes = block_bytes
        self.noise = np.random.default_rng(seed).integers(
            0, 256, block_bytes + PLACES, dtype=np.uint8)

    cdef const uint8_t *place(self, uint64_t block, uint64_t version) noexcept nogil:
        return &self.noise[(block * STEP_BLOCK + version * STEP_VERSION) % PLACES]

    def fill(self, uint8_t[::1] buffer not None, uint64_t block, uint64_t version):
        """Make `buffer` the content of `block` in `version`."""
        cdef uint64_t[2] stamp
        self.check_length(buffer.shape[0])
        stamp[0] = block
        stamp[1] = version
        memcpy(&buffer[0], &stamp, STAMP_BYTES)
        memcpy(&buffer[0] + STAMP_BYTES, self.place(block, version),
               self.block_bytes - STAMP_BYTES)

    def matches(self, const uint8_t[::1] buffer not None, uint64_t block, uint64_t version):
        """Whether `buffer` is the content of `block` in `version`, to the last byte."""
        cdef uint64_t[2] stamp
        self.check_length(buffer.shape[0])
        stamp[0] = block
        stamp[1] = version
        return memcmp(&buffer[0], &stamp, STAMP_BYTES) == 0 and memcmp(
            &buffer[0] + STAMP_BYTES, self.place(block, version),
            self.block_bytes - STAMP_BYTES) == 0

    cdef int check_length(self, int64_t length) except -1:
        if <uint64_t>length != self.block_bytes:
            raise ValueError(f"a block has {self.block_bytes} bytes, not {length}")
        return 0
