"""Places and predicates that the claims of the waiting paper are made of.

What decides are the costs of the paper's machine (platform shrimp-1996); what this machine's own
costs give stands beside it. Of WC-4, to which a cost of that platform was fitted, real processes
decide at this machine's own. A predicate follows from the paper by the rules of the coalescing
paper's statistics.
"""

from __future__ import annotations

from shrimpmx.papers.claim import REAL, SIMULATED, Statistic, effect, statistic_of
from shrimpmx.papers.coalescing2009.predicates import HIGHER, LOWER, NO_EFFECT
from shrimpmx.papers.waiting1997 import figures
from shrimpmx.results.expectation_kinds import (
    Bound,
    Equals,
    Growth,
    Near,
    Order,
    Place,
    Ratio,
    Within,
)

SHRIMP, OWN_COSTS = {"platform": figures.PLATFORM}, {"platform": "none"}
FIVE_PAIRS = {"pairs": figures.PAIRS}
SPIN, SCHED, BLOCK, NOTIFY, SPIN_SCHED, SPIN_BLOCK, SPIN_NOTIFY = (
    {"wait": name}
    for name in ("spin", "sched", "block", "notify", "spin-sched", "spin-block", "spin-notify")
)
# Message delays whose replies come within the spin limit of 300 µs, and well behind it, µs.
SHORT_DELAYS, LONG_DELAY = (0, 100, 200), 600
# What holds in the common case holds for most: more than this, %.
COMMON = 50.0
# "Next to none" is at most this share (ours).
NEXT_TO_NONE = 0.1
# A count lies within this share of the paper's.
COUNT_TOLERANCE = 0.15
# An interrupt in a hundred waits is none: another process of the machine may hold a message up
# beyond the spin limit (ours).
NO_INTERRUPTS = 0.01
# Why a waiter is woken once.
ONE_WAKE_UP = "a handler that wakes a waiter clears all of its flags' bits"
# The handler of a notification was fitted to a figure of this claim.
NOTIFIED = ("WC-3",)
# The delay of messages in the scenario of WC-4 at the costs of the paper's machine, us.
WAKE_UP_DELAY_US = 200.0

Tiers = tuple[tuple[Place, ...], ...]


def ratio(
    text: str,
    metric: str,
    of: Place,
    to: Place,
    *,
    least: float | None = None,
    most: float | None = None,
) -> Ratio:
    """The metric at `of` by that at `to`, within bounds."""
    return Ratio(text=text, metric=metric, of=of, to=to, at_least=least, at_most=most)


def ranked(
    scenario: str, text: str, metric: str, tiers: Tiers, shares: tuple[str, ...] = ()
) -> tuple[Statistic, Statistic]:
    """A ranking, the highest first, at the paper's costs; and beside it at this machine's own."""

    def at(costs: Place, words: str, decides: bool) -> Statistic:
        placed = tuple(tuple({**costs, **place} for place in tier) for tier in tiers)
        order = Order(text=f"{text}{words}", metric=metric, tiers=placed, tolerance=NO_EFFECT)
        return statistic_of(scenario, order, decides=decides, shares=shares)

    return at(SHRIMP, "", True), at(OWN_COSTS, ", at this machine's own costs", False)


def calls(wait: Place) -> tuple[Statistic, Statistic]:
    """A wait makes one system call, and that one reschedule (figure 1).

    A wait whose message is there already makes none: with five pairs some are.
    """
    of = {**SHRIMP, **wait}
    of_wait = Bound(
        text=f"system calls per wait with {wait['wait']}",
        metric="system_calls_per_wait",
        of=of,
        at_least=COMMON / 100,
        at_most=figures.CALLS_ONE * (1 + COUNT_TOLERANCE),
    )
    of_call = Near(
        text=f"reschedules per system call with {wait['wait']}",
        metric="reschedules_per_call",
        of=of,
        value=figures.RESCHEDULES_ONE,
        tolerance=COUNT_TOLERANCE,
    )
    return statistic_of(figures.FIG1, of_wait, figures.CALLS_ONE), statistic_of(
        figures.FIG1, of_call, figures.RESCHEDULES_ONE
    )


def many_yields(wait: Place, costs: Place = SHRIMP) -> Statistic:
    """A wait has the scheduler run so often at least (figure 1).

    The paper counts the reschedules of a wait as those of one system call; each of ours is one.
    """
    least = figures.RESCHEDULES_LEAST[wait["wait"]]
    text = f"runs of the scheduler per wait with {wait['wait']}{_own_words(costs)}"
    of = {**costs, **wait}
    expected = Within(text=text, metric="system_calls_per_wait", of=of, at_least=least)
    return statistic_of(figures.FIG1, expected, least, decides=costs == SHRIMP)


def _own_words(costs: Place) -> str:
    return ", at this machine's own costs" if costs == OWN_COSTS else ""


def sometimes(hybrid: Place, pure: Place) -> Statistic:
    """A hybrid makes fewer system calls than what it falls back to (figure 1)."""
    text = f"system calls of {hybrid['wait']} against {pure['wait']}"
    of = {**SHRIMP, **hybrid}
    return statistic_of(figures.FIG1, ratio(text, "system_calls_per_wait", of, pure, most=LOWER))


def joins(hybrid: Place, pure: Place, delay_us: int, shares: tuple[str, ...] = ()) -> Statistic:
    """A hybrid's round trip is that of one of its halves, at a delay of messages (figure 2)."""
    of = {**SHRIMP, **hybrid, "delay_us": delay_us}
    text = f"{hybrid['wait']} against {pure['wait']}, delay {delay_us} µs"
    most = 1 + NO_EFFECT
    expected = ratio(text, "round_trip", of, pure, least=1 / most, most=most)
    return statistic_of(figures.FIG2, expected, shares=shares)


def five_pairs(
    text: str, metric: str, of: Place, to: Place, paper: float, *, decides: bool = True
) -> Statistic:
    """An effect like the paper's on five pairs at its costs (figure 3)."""
    expected = effect(text, metric, {**SHRIMP, **FIVE_PAIRS, **of}, to, paper)
    return statistic_of(figures.FIG3, expected, paper, decides=decides)


def tips() -> tuple[Statistic, ...]:
    """Where reschedules are as dear as on the paper's machine block and sched fall behind, and
    where they cost nothing they do not: the order of figure 3 depends on that cost. Beside WC-3.
    """

    def row(text: str, metric: str, of: Place, to: Place, **bounds: float) -> Statistic:
        return statistic_of(
            figures.TIPPING_ROW, ratio(text, metric, of, to, **bounds), decides=False
        )

    free, dear = {"reschedule_cost_ns": 0}, {"reschedule_cost_ns": 100_000}
    return tuple(
        row(f"{of['wait']} against {to['wait']}, {words}", "wall_time", {**at, **of}, to, **side)
        for at, words, side in (
            (free, "free reschedules", {"most": LOWER}),
            (dear, "reschedules of 100 µs", {"least": HIGHER}),
        )
        for of, to in ((BLOCK, SPIN_BLOCK), (SCHED, BLOCK))
    )


def of_handlers() -> tuple[Statistic, ...]:
    """A user-level handler costs more than a wake-up by the interrupt handler (3.1).

    This machine's own costs decide, and in direction only: the paper's 10 µs are a Pentium's of
    60 MHz. On the paper's machine as a platform a handler takes what it was fitted to.
    """
    paper = 1 + figures.HANDLER_US / (WAKE_UP_DELAY_US + figures.T_BLOCK_US)
    of_cpu, of_time = "CPU time with notify against block", "round trip with notify against block"

    def own(text: str, metric: str, decides: bool) -> Statistic:
        expected = ratio(text, metric, {**OWN_COSTS, **NOTIFY}, BLOCK, least=HIGHER)
        return statistic_of(figures.WAKE_UP, expected, decides=decides)

    on_shrimp = ratio(
        f"{of_time}, platform {figures.PLATFORM}",
        "round_trip",
        {**SHRIMP, **NOTIFY},
        BLOCK,
        least=paper,
    )
    return (
        own(of_cpu, "host_cpu_per_message", True),
        own(of_time, "round_trip", False),
        statistic_of(figures.WAKE_UP, on_shrimp, paper, decides=False, engine=REAL),
        statistic_of(figures.WAKE_UP, on_shrimp, paper, engine=SIMULATED),
    )


def share_found() -> tuple[Statistic, Statistic]:
    """spin-block takes more messages before it gives up its CPU than block, and most of them while
    it spins (5.1).
    """
    of = {**SHRIMP, **FIVE_PAIRS, **SPIN_BLOCK}
    more = ratio(
        "waits without giving up the CPU, spin-block against block",
        "taken_spinning",
        of,
        BLOCK,
        least=HIGHER,
    )
    text = "messages found while spinning with spin-block"
    return statistic_of(figures.FIG3, more), statistic_of(
        figures.FIG3, Within(text=text, metric="found_spinning", of=of, at_least=COMMON)
    )


def without_interrupts(delay_us: int, costs: Place) -> Statistic:
    """spin-block takes no interrupt where messages come within its spin limit (figure 2)."""
    of = {**costs, **SPIN_BLOCK, "delay_us": delay_us}
    text = f"interrupts of spin-block, delay {delay_us} µs{_own_words(costs)}"
    expected = Bound(text=text, metric="interrupts_per_wait", of=of, at_most=NO_INTERRUPTS)
    return statistic_of(figures.FIG2, expected, 0.0, decides=costs == SHRIMP)


# What figure 4 shows of the file service with each company: of a hog's the CPU time only (5.2).
FILE_METRICS = {**dict.fromkeys(("alone", "nice", "raised"), "block_time"), "hog": "block_cpu"}


def best_or_equal(company: str, other: Place, costs: Place) -> Statistic:
    """spin-block takes no more than another strategy with that company (figure 4)."""
    text = f"spin-block against {other['wait']}, {company}{_own_words(costs)}"
    of = {**costs, "company": company, **SPIN_BLOCK}
    expected = ratio(text, FILE_METRICS[company], of, other, most=1 + NO_EFFECT)
    return statistic_of(figures.FIG4, expected, decides=costs == SHRIMP)


def suffers_less(company: str, other: Place, costs: Place) -> Statistic:
    """What company costs spin-block, by what it costs another strategy (figure 4)."""
    alone = {"company": "alone"}
    expected = Growth(
        text=f"cost of {company} to spin-block against {other['wait']}{_own_words(costs)}",
        metric=FILE_METRICS[company],
        of={**costs, "company": company, **SPIN_BLOCK},
        to=alone,
        one=other,
        other={**alone, **other},
        at_most=LOWER,
    )
    return statistic_of(figures.FIG4, expected, decides=costs == SHRIMP)


def bad_with_company(company: str, wait: Place) -> Statistic:
    """A strategy takes more with company than alone (figure 4)."""
    text = f"{wait['wait']}, {company} against alone"
    of = {**SHRIMP, "company": company, **wait}
    to = {"company": "alone"}
    return statistic_of(figures.FIG4, ratio(text, FILE_METRICS[company], of, to, least=HIGHER))


def similar() -> tuple[Statistic, ...]:
    """Throughput of ttcp is similar to the micro-benchmarks' (5.1): of two strategies the one that
    is slower there carries no more here.
    """

    def no_more(slower: Place, faster: Place, costs: Place) -> Statistic:
        text = f"throughput of {slower['wait']} against {faster['wait']}{_own_words(costs)}"
        expected = ratio(text, "throughput", {**costs, **slower}, faster, most=1 + NO_EFFECT)
        shares = NOTIFIED if slower in (NOTIFY, SPIN_NOTIFY) else ()
        return statistic_of(figures.TTCP, expected, decides=costs == SHRIMP, shares=shares)

    return tuple(
        no_more(slower, faster, costs)
        for costs in (SHRIMP, OWN_COSTS)
        for slower, faster in (
            *((SCHED, SPIN), (BLOCK, SCHED), (NOTIFY, BLOCK)),
            *((BLOCK, SPIN_BLOCK), (NOTIFY, SPIN_NOTIFY), (SPIN_NOTIFY, SPIN)),
        )
    )


def each_sample(scenario: str, text: str, metric: str, of: Place, most: float) -> Statistic:
    """No sample lies above `most`, which is the paper's figure, and could not."""
    expected = Bound(text=text, metric=metric, of=of, at_most=most)
    return statistic_of(scenario, expected, most, invariant=ONE_WAKE_UP)


def equals(
    scenario: str, text: str, metric: str, of: Place, value: float, invariant: str
) -> Statistic:
    """Every sample is `value`, and could not be anything else."""
    expected = Equals(text=text, metric=metric, of=of, value=value)
    return statistic_of(scenario, expected, value, invariant=invariant)
