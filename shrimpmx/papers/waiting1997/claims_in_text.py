"""What the paper says of user and system time and of lost time: WC-11 on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from shrimpmx.papers.claim import (
    REAL,
    SIMULATED,
    Claim,
    Engine,
    Statistic,
    effect,
    statistic_of,
)
from shrimpmx.papers.coalescing2009.predicates import HIGHER, LOWER
from shrimpmx.papers.waiting1997 import figures
from shrimpmx.papers.waiting1997.predicates import (
    BLOCK,
    FILE_METRICS,
    FIVE_PAIRS,
    NEXT_TO_NONE,
    NOTIFIED,
    NOTIFY,
    OWN_COSTS,
    SCHED,
    SHRIMP,
    SPIN,
    SPIN_BLOCK,
    SPIN_SCHED,
    bad_with_company,
    best_or_equal,
    ratio,
    suffers_less,
)
from shrimpmx.results.expectation_kinds import Difference, Place

# A direction without a figure: so much less, as a share of what a block takes alone (ours).
LESS = LOWER - 1


def _shares() -> tuple[Statistic, ...]:
    """User and system time of five pairs (figure 3): spinning is user time, more than all others
    have, and makes no system call; the kernel's scheduler thrashes with sched; spin-sched has half
    of its yields, and spin-block next to none of block's sleeps.

    The costs of the paper's machine are the kernel's on simulated hosts only: real ranks burn them
    in user mode, so that this machine's own decide there.
    """
    return *_of_shares(SHRIMP, SIMULATED), *_of_shares(OWN_COSTS, REAL)


def _of_shares(costs: Place, engine: Engine) -> Iterator[Statistic]:
    user, system = "user_time", "system_time"

    def against(metric: str, of: Place, to: Place, **bounds: float) -> Statistic:
        place = {**costs, **FIVE_PAIRS, **of}
        expected = ratio(_words(metric, of, to), metric, place, to, **bounds)
        shares = NOTIFIED if to == NOTIFY else ()
        return statistic_of(figures.FIG3, expected, engine=engine, shares=shares)

    yield from (against(user, SPIN, to, least=HIGHER) for to in (SCHED, BLOCK, NOTIFY))
    yield against(system, SPIN, BLOCK, most=LOWER)
    yield against(system, SCHED, BLOCK, least=HIGHER)
    halved, place = figures.SPIN_SCHED_BY_SCHED, {**costs, **FIVE_PAIRS, **SPIN_SCHED}
    expected = effect(_words(system, SPIN_SCHED, SCHED), system, place, SCHED, halved)
    yield statistic_of(figures.FIG3, expected, halved, engine=engine)
    yield against(system, SPIN_BLOCK, BLOCK, most=NEXT_TO_NONE)


def _words(metric: str, of: Place, to: Place) -> str:
    return f"{metric.replace('_', ' ')} of {of['wait']} against {to['wait']}"


def _loses_less(company: str, other: Place, costs: Place) -> Statistic:
    """What company costs spin-block, as a difference, is less than what it costs another strategy
    (figure 4).
    """
    metric, alone = FILE_METRICS[company], {"company": "alone"}
    own_words = ", at this machine's own costs" if costs == OWN_COSTS else ""
    expected = Difference(
        text=f"extra cost of {company}, spin-block less {other['wait']}{own_words}",
        metric=metric,
        of={**costs, "company": company, **SPIN_BLOCK},
        to=alone,
        one=other,
        other={**alone, **other},
        at_most=LESS,
    )
    return statistic_of(figures.FIG4, expected, decides=costs == SHRIMP)


_claim = partial(Claim, host=figures.PLATFORM, own_costs=True)

CLAIMS: tuple[Claim, ...] = (
    _claim(
        id="WC-11",
        kind="order",
        source="5.1 and figure 3",
        setup="The five pairs of WC-3: user and system time of a rank by strategy; on real "
        "processes at this machine's own costs.",
        paper="spin spins at user level, and sched makes the scheduler thrash; spin-sched "
        "makes 50 % of sched's yields, spin-block almost none of block's sleeps",
        statistics=_shares(),
    ),
    _claim(
        id="WC-12",
        kind="order",
        source="5.2 and figure 4",
        setup="The file service of WC-7: CPU time per block beside CPU hogs, less the CPU time "
        "alone.",
        paper="the extra cost is the cost beside hogs less the cost alone; spin-block has the best "
        "performance in all cases, spin and block perform badly",
        statistics=tuple(
            _loses_less("hog", other, costs)
            for costs in (SHRIMP, OWN_COSTS)
            for other in (SPIN, BLOCK)
        ),
    ),
    _claim(
        id="WC-13",
        kind="order",
        source="5.2 and figure 4",
        setup="The file service of WC-7 at a raised priority (niceness -20) next to computing "
        "processes of normal priority: time per block, and its excess over the time alone.",
        paper="spin-block is best; spin and block perform badly next to processes of a lower "
        "priority",
        statistics=(
            *(
                judged("raised", other, costs)
                for costs in (SHRIMP, OWN_COSTS)
                for other in (SPIN, BLOCK)
                for judged in (best_or_equal, suffers_less, _loses_less)
            ),
            *(bad_with_company("raised", wait) for wait in (SPIN, BLOCK)),
        ),
    ),
)
