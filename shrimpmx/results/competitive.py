"""What waiting would have cost with other spin limits, told from a trace of arrival delays.

The cost model of competitive spinning (Karlin et al. 1991; waiting paper, 3.2): a wait that finds
its message after `delay` costs `delay` if it spins so long, else the limit and the cost of
blocking, T_block. All times are ns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shrimpmx.errors import InputError

Delays = Sequence[float]

# The spin limit that costs least in the worst case of its kind of delays, in T_block, and how much
# more than the optimum it then costs on average (Lim and Agarwal 1993).
LIM_AGARWAL: dict[str, tuple[float, float]] = {
    "exponential": (math.log(math.e - 1), math.e / (math.e - 1)),
    "uniform": ((math.sqrt(5) - 1) / 2, (math.sqrt(5) + 1) / 2),
}


def offline_cost(delays: Delays, t_block: float) -> float:
    """The least that waiting can cost: with each delay known, by spinning for short ones only."""
    _check(delays, t_block)
    return math.fsum(min(delay, t_block) for delay in delays)


def cost_of_limit(delays: Delays, limit: float, t_block: float) -> float:
    """What spin-block with this limit costs; 0 is `block`, infinity is `spin`."""
    _check(delays, t_block)
    if not limit >= 0:
        raise InputError(f"a spin limit is 0 or more, not {limit}")
    return math.fsum(_cost(delay, limit, t_block) for delay in delays)


def competitive_ratio(delays: Delays, limit: float, t_block: float) -> float:
    """cost_of_limit by offline_cost: 1 is optimal; infinity if the optimum is free."""
    cost, optimum = cost_of_limit(delays, limit, t_block), offline_cost(delays, t_block)
    if optimum == 0:
        return 1.0 if cost == 0 else math.inf
    return cost / optimum


def best_fixed_limit(delays: Delays, t_block: float) -> float:
    """The limit that would have cost least for the whole trace, the shortest of several.

    It is 0 or one of the delays: any other limit spins longer than it finds messages.
    """
    _check(delays, t_block)
    best, least = 0.0, len(delays) * t_block
    found, spun = 0, 0.0
    for delay in sorted(delays):
        found, spun = found + 1, spun + delay
        cost = spun + (len(delays) - found) * (delay + t_block)
        if cost < least:
            best, least = delay, cost
    return best


def _cost(delay: float, limit: float, t_block: float) -> float:
    return delay if delay <= limit else limit + t_block


def _check(delays: Delays, t_block: float) -> None:
    if not 0 <= t_block < math.inf:
        raise InputError(f"T_block is 0 or more, not {t_block}")
    if any(not 0 <= delay < math.inf for delay in delays):
        raise InputError("an arrival delay is 0 or more")
