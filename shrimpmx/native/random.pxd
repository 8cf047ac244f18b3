"""Random numbers from a seed, inline: xorshift64* (Vigna 2016). A state is never 0."""

from libc.stdint cimport uint64_t


cdef inline uint64_t random_state(uint64_t seed) noexcept nogil:
    """The state that a generator begins with: the seed's bits spread (splitmix64)."""
    cdef uint64_t mixed = seed
    mixed = (mixed ^ (mixed >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    mixed = (mixed ^ (mixed >> 27)) * <uint64_t>0x94D049BB133111EB
    mixed = mixed ^ (mixed >> 31)
    return mixed if mixed != 0 else <uint64_t>0x9E3779B97F4A7C15


cdef inline uint64_t random_bits(uint64_t *state) noexcept nogil:
    """64 random bits."""
    cdef uint64_t x = state[0]
    x ^= x >> 12
    x ^= x << 25
    x ^= x >> 27
    state[0] = x
    return x * <uint64_t>0x2545F4914F6CDD1D


cdef inline double random_share(uint64_t *state) noexcept nogil:
    """Evenly from (0, 1], in steps of 2^-53."""
    return <double>((random_bits(state) >> 11) + 1) / 9007199254740992.0
