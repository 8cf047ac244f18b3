"""LU's implicit operator, linearised about a state: how a point's change couples with others.

RNR-94-007, chapter 3: per axis the operator is h (D A - D² N), with the time step h, the Jacobians
A of the fluxes, and N of all that viscosity, heat conduction and artificial diffusion even out. So
a change has the factor I + 2h (N of all axes) in its own equation, -h (A/2 + N) in that of the next
point along an axis, and h (A/2 - N) in that of the one before. No matrix is formed: the products
follow from velocity u and energy e per mass. Of a change v, the part v[1:4] - u v[0] of the
momentum changes the velocity, and v[4] - e v[0] the energy per mass.
"""

from __future__ import annotations

import numpy as np

from shrimpmx.applications.nas.exact_solution import C2, C3C4, C1345, Array
from shrimpmx.applications.nas.flow.right_hand_side import DIFFUSION

VISCOSITY = C3C4 * (1 + np.eye(3) / 3)  # by axis and momentum: 4/3 along its own axis


class ImplicitOperator:
    """On a grid of points³. `weight` multiplies what couples different points, for
    over-relaxation."""

    def __init__(self, points: int, time_step: float, weight: float) -> None:
        scale = points - 1
        second = time_step * scale**2  # of a second difference
        coupled = weight * second
        self.convection = np.full((3, 1), weight * time_step * scale / 2)
        self.diffusion = coupled * np.array(DIFFUSION)[:, None]
        self.viscosity = coupled * VISCOSITY[:, :, None]
        self.heat = coupled * C1345
        self.difference = coupled * (C3C4 - C1345)
        self.own_viscosity = 2 * second * VISCOSITY.sum(axis=0)[:, None]
        self.own_heat = 2 * second * 3 * C1345
        self.own_diffusion = 1 + 2 * second * sum(DIFFUSION)

    def linearise(self, state: Array) -> None:
        """About states of shape (5, number of points), which the other calls refer to."""
        self.volume = 1 / state[0]  # of a mass
        self.velocity = state[1:4] * self.volume
        self.energy = state[4] * self.volume
        kinetic = np.einsum("mp,mp->p", self.velocity, self.velocity) / 2
        self.pressure = C2 * (self.energy - kinetic)  # per mass
        self.enthalpy = self.energy + self.pressure
        viscosity = self.own_viscosity * self.volume
        heat = self.own_heat * self.volume
        self.momentum_factor = 1 / (self.own_diffusion + viscosity)
        self.energy_factor = 1 / (self.own_diffusion + heat)
        self.heating = (viscosity - heat) * self.velocity

    def solve(self, at: slice, right: Array) -> None:
        """Makes `right`, (5, length of `at`), the change of which it is what the factor in the own
        equation makes."""
        velocity, energy = self.velocity[:, at], self.energy[at]
        momentum = right[1:4]
        momentum -= velocity * right[0]
        momentum *= self.momentum_factor[:, at]
        right[4] -= energy * right[0]
        right[4] -= (self.heating[:, at] * momentum).sum(axis=0)
        right[4] *= self.energy_factor[at]
        right[0] *= 1 / self.own_diffusion
        momentum += velocity * right[0]
        right[4] += energy * right[0]

    def couple(self, at: slice, change: Array, way: int, coupled: Array) -> None:
        """Sets `coupled`, (3, 5, length of `at`), to what the change adds to the right-hand sides
        of the next points along each axis (way 1), or of those before (way -1)."""
        velocity, volume = self.velocity[:, at], self.volume[at]
        convection = way * self.convection
        momentum = change[1:4] - velocity * change[0]
        energy = change[4] - self.energy[at] * change[0]
        work = velocity * momentum
        work_sum = work[0] + work[1] + work[2]
        pressure = convection * (C2 * (energy - work_sum) + self.pressure[at] * change[0])
        stream = convection * velocity + self.diffusion
        moved = convection * momentum

        np.multiply(self.diffusion, change[0], out=coupled[:, 0])
        coupled[:, 0] += convection * change[1:4]
        np.multiply(stream[:, None], change[None, 1:], out=coupled[:, 1:])
        momenta = coupled[:, 1:4]
        momenta += moved[:, None] * velocity
        momenta += self.viscosity * (momentum * volume)
        for axis in range(3):
            momenta[axis, axis] += pressure[axis]
        coupled[:, 4] += velocity * pressure
        coupled[:, 4] += moved * self.enthalpy[at]
        work *= self.viscosity[0, 1] / 3 * volume
        work += (self.difference * work_sum + self.heat * energy) * volume
        coupled[:, 4] += work
