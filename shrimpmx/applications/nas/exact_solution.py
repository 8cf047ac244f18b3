"""The flow that BT, SP and LU compute: its exact solution, and the constants of the gas.

RNR-94-007, chapter 3: the five components of the state are density, the three components of
momentum, and energy, each per volume. The solution is a polynomial of the place in a unit cube.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

COMPONENTS = 5

C1 = 1.4  # ratio of specific heats, gamma
C2 = 0.4  # gamma - 1
C3C4 = 0.1  # viscosity
C1C5 = 1.96  # gamma times the Prandtl factor
C1345 = C1C5 * C3C4

# By component: the constant, then the factors of x, y, z, x², y², z², x³, ... z⁴.
COEFFICIENTS = np.array(
    (
        (2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3),
        (1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5),
        (2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4),
        (2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3),
        (5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2),
    )
)


def exact_solution(x: npt.ArrayLike, y: npt.ArrayLike, z: npt.ArrayLike) -> Array:
    """The state at places of the unit cube, shape (5, *that of x, y and z broadcast together)."""
    places = tuple(np.asarray(place, np.float64) for place in (x, y, z))
    dimensions = max(place.ndim for place in places)
    columns = COEFFICIENTS.reshape(COMPONENTS, -1, *(1,) * dimensions)
    value: Array = columns[:, 0]
    for axis, place in enumerate(places):
        polynomial = np.zeros(())
        for power in reversed(range(4)):  # Horner's rule
            polynomial = place * (columns[:, 1 + axis + 3 * power] + polynomial)
        value = value + polynomial
    return value
