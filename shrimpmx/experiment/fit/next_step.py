"""What to measure next: for each cost that the data leave open, the command of the recipe whose
figure would tell most of it.

A figure that is measured changes the covariance C of the costs' logarithms by its slopes s: the
variance of cost i is less by (C s)_i^2 / (s'C s + v), v the variance of the figure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shrimpmx.errors import InputError
from shrimpmx.experiment.fit.measurements import UNCERTAINTY, Measurement
from shrimpmx.experiment.fit.predictor import NOTHING, Predictor
from shrimpmx.experiment.fit.solve import Solution, slopes_of

# A command that takes less than this share of a cost's deviation away says nothing of it (ours).
LEAST_GAIN = 0.2
_STREAM = {"workload": "stream", "window": "64", "iterations": "640"}
_PINGPONG = {"workload": "pingpong"}


class Candidate(NamedTuple):
    """A command, and the figure that it gives."""

    command: str
    metric: str
    settings: dict[str, str]


def _at(rx_usecs: int) -> dict[str, str]:
    if rx_usecs == 0:
        return {"coalescing": "disabled"}
    return {"coalescing": "timeout", "rx_usecs": str(rx_usecs)}


_TIME, _RATE, _COUNT = "half_round_trip", "message_rate", "interrupts_per_message"
CANDIDATES = (
    *(
        Candidate(
            f"PingPong of {size} B with rx-usecs 0",
            _TIME,
            _PINGPONG | _at(0) | {"size_bytes": str(size)},
        )
        for size in (0, 4096, 65_536)
    ),
    *(
        Candidate(
            f"Uniband of {size} B with rx-usecs {us}",
            _RATE,
            _STREAM | _at(us) | {"size_bytes": str(size)},
        )
        for size in (128, 4096)
        for us in (0, 100)
    ),
    Candidate(
        "PingPong of 128 B with rx-usecs 25 and its interrupts counted",
        _COUNT,
        _PINGPONG | _at(25) | {"size_bytes": "128"},
    ),
    Candidate(
        "Uniband of 128 B with rx-usecs 25 and the interrupts of both nodes counted",
        "interrupts_per_packet",
        _STREAM | _at(25) | {"size_bytes": "128"},
    ),
    Candidate(
        "PingPong of 0 B with rx-usecs 0 and ranks that sleep (I_MPI_WAIT_MODE=1, "
        "MV2_USE_BLOCKING=1), as wait=block",
        _TIME,
        _PINGPONG | _at(0) | {"size_bytes": "0", "wait": "block"},
    ),
    Candidate(
        "PingPong of 0 B with rx-usecs 100 and ranks that sleep (I_MPI_WAIT_MODE=1, "
        "MV2_USE_BLOCKING=1), as wait=block",
        _TIME,
        _PINGPONG | _at(100) | {"size_bytes": "0", "wait": "block"},
    ),
    Candidate(
        "Uniband of two pairs (osu_mbw_mr), 128 B, with rx-usecs 0, as pairs=2",
        _RATE,
        _STREAM | _at(0) | {"size_bytes": "128", "pairs": "2"},
    ),
)


def candidates_beside(
    known: Sequence[Measurement], common: dict[str, str]
) -> dict[str, Measurement]:
    """By command, those that are not among the known measurements, under `common` settings."""
    had = {(one.settings, one.metric) for one in known}
    found = {}
    for command, metric, settings in CANDIDATES:
        given = tuple(sorted((common | settings).items()))
        one = Measurement(given, metric, 1.0, UNCERTAINTY, "next", command)
        if (given, metric) not in had:
            with contextlib.suppress(InputError):  # one that does not go with the settings
                one.point()
                found[command] = one
    return found


def next_steps(
    solution: Solution, predictor: Predictor, commands: Sequence[str]
) -> list[dict[str, Any]]:
    """For each open cost the best of the commands, whose figures the predictor has, and the share
    of the cost's deviation that it takes away; none, where that is less than LEAST_GAIN.
    """
    open_costs = [
        index for index in range(len(solution.varied)) if not solution.is_determined(index)
    ]
    if not open_costs:
        return []
    every = range(len(commands))
    slopes = slopes_of(predictor, solution.varied, solution.logs, every)
    (figures,) = predictor.logs([solution.values], every)
    covariance = solution.covariance
    spread = slopes @ covariance
    variances = np.sum(spread * slopes, axis=1) + UNCERTAINTY**2 + solution.model**2
    left = 1 - spread**2 / variances[:, None] / np.diag(covariance)
    # A run that is not possible here says nothing.
    left[figures <= np.log(2 * NOTHING)] = 1.0
    gains = 1 - np.sqrt(np.clip(left, 0.0, 1.0))
    found = []
    for index in open_costs:
        best = int(np.argmax(gains[:, index]))
        gain = float(gains[best, index])
        command = commands[best] if gain >= LEAST_GAIN else ""
        found.append({"cost": solution.varied[index].key, "command": command, "gain": gain})
    return found
