"""NPB's random numbers: x[k+1] = a x[k] mod 2^46, as fractions of 2^46 (RNR-94-007, 2.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MULTIPLIER = 5**13
SEED = 314159265
_MODULUS_BITS = 46
_MASK = np.uint64((1 << _MODULUS_BITS) - 1)


def seed_after(steps: int, seed: int = SEED, multiplier: int = MULTIPLIER) -> int:
    """The seed after so many numbers have been drawn."""
    return pow(multiplier, steps, 1 << _MODULUS_BITS) * seed % (1 << _MODULUS_BITS)


def states(count: int, seed: int, multiplier: int = MULTIPLIER) -> npt.NDArray[np.uint64]:
    """The next `count` states after `seed`, shape (count,): each half follows from the half before,
    since products modulo 2^64 keep their low 46 bits."""
    values = np.empty(count, np.uint64)
    if count:
        values[0] = seed_after(1, seed, multiplier)
    done = 1
    while done < count:
        more = min(done, count - done)
        factor = np.uint64(pow(multiplier, done, 1 << _MODULUS_BITS))
        np.multiply(values[:more], factor, out=values[done : done + more])
        values[done : done + more] &= _MASK
        done += more
    return values


def uniform(count: int, seed: int = SEED, multiplier: int = MULTIPLIER) -> npt.NDArray[np.float64]:
    """The next `count` numbers in (0, 1) after `seed`, shape (count,)."""
    return np.multiply(states(count, seed, multiplier), 2.0**-_MODULUS_BITS, dtype=np.float64)
