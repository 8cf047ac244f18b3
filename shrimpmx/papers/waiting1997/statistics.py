"""Places and predicates that the claims of the waiting paper are made of.

What decides are the costs of the paper's machine (platform shrimp-1996); what this machine's own
costs give stands beside it. Where a cost of that platform was fitted to the claim itself it is the
other way round. A predicate follows from the paper by the rules of the coalescing paper's: see
`claims.coalescing_statistics`.
"""

from __future__ import annotations

from shrimpmx.papers.claim import Statistic, effect, statistic_of
from shrimpmx.papers.coalescing2009.statistics import HIGHER, LOWER, NO_EFFECT
from shrimpmx.papers.waiting1997 import figures
from shrimpmx.results.expectation_kinds import (
    Bound,
    Equals,
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
# A count lies within this share of the paper's.
COUNT_TOLERANCE = 0.15
# An interrupt in a hundred waits is none: another process of the machine may hold a message up
# beyond the spin limit (ours).
NO_INTERRUPTS = 0.01
# The spin limit of the scenarios, and how late a sleeper of the paper's machine answers, us.
SPIN_LIMIT_US, WAKE_LATENCY_US = 300, 200
FITTED = "fitted: what a notification's handler takes, to the 36 % of figure 3"
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


def ranked(scenario: str, text: str, metric: str, tiers: Tiers) -> tuple[Statistic, Statistic]:
    """A ranking, the highest first, at the paper's costs; and beside it at this machine's own."""

    def at(costs: Place, words: str, decides: bool) -> Statistic:
        placed = tuple(tuple({**costs, **place} for place in tier) for tier in tiers)
        order = Order(text=f"{text}{words}", metric=metric, tiers=placed, tolerance=NO_EFFECT)
        return statistic_of(scenario, order, decides=decides)

    return at(SHRIMP, "", True), at(OWN_COSTS, ", at this machine's own costs", False)


def calls(wait: Place) -> tuple[Statistic, Statistic]:
    """A wait makes one system call, and that one reschedule (figure 1).

    A wait whose message is there already makes none: with five pairs some are.
    """
    of_wait = Bound(
        text=f"system calls per wait with {wait['wait']}",
        metric="system_calls_per_wait",
        of=wait,
        at_least=COMMON / 100,
        at_most=figures.CALLS_ONE * (1 + COUNT_TOLERANCE),
    )
    of_call = Near(
        text=f"reschedules per system call with {wait['wait']}",
        metric="reschedules_per_call",
        of=wait,
        value=figures.RESCHEDULES_ONE,
        tolerance=COUNT_TOLERANCE,
    )
    return statistic_of(figures.FIG1, of_wait, figures.CALLS_ONE), statistic_of(
        figures.FIG1, of_call, figures.RESCHEDULES_ONE
    )


def many_yields(wait: Place) -> Statistic:
    """A wait has the scheduler run so often at least (figure 1).

    The paper counts the reschedules of a wait as those of one system call; each of ours is one.
    """
    least = figures.RESCHEDULES_LEAST[wait["wait"]]
    text = f"runs of the scheduler per wait with {wait['wait']}"
    expected = Within(text=text, metric="system_calls_per_wait", of=wait, at_least=least)
    return statistic_of(figures.FIG1, expected, least)


def sometimes(hybrid: Place, pure: Place) -> Statistic:
    """A hybrid makes fewer system calls than what it falls back to (figure 1)."""
    text = f"system calls of {hybrid['wait']} against {pure['wait']}"
    return statistic_of(
        figures.FIG1, ratio(text, "system_calls_per_wait", hybrid, pure, most=LOWER)
    )


def joins(hybrid: Place, pure: Place, delay_us: int) -> Statistic:
    """A hybrid's round trip is that of one of its halves, at a delay of messages (figure 2)."""
    of = {**SHRIMP, **hybrid, "delay_us": delay_us}
    text = f"{hybrid['wait']} against {pure['wait']}, delay {delay_us} µs"
    most = 1 + NO_EFFECT
    return statistic_of(
        figures.FIG2, ratio(text, "round_trip", of, pure, least=1 / most, most=most)
    )


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
        statistic_of(figures.WAKE_UP, on_shrimp, paper, decides=False),
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


def without_interrupts(delay_us: int) -> Statistic:
    """spin-block takes no interrupt where messages come within its spin limit (figure 2).

    Where a partner that sleeps would answer too late, two that have slept once go on doing so: the
    delay and a wake-up, an interrupt and a reschedule, then exceed the limit. That stands beside.
    """
    of = {**SPIN_BLOCK, "delay_us": delay_us}
    text = f"interrupts of spin-block, delay {delay_us} µs"
    expected = Bound(text=text, metric="interrupts_per_wait", of=of, at_most=NO_INTERRUPTS)
    return statistic_of(
        figures.FIG2, expected, 0.0, decides=delay_us + WAKE_LATENCY_US <= SPIN_LIMIT_US
    )


# What figure 4 shows of the file service with each company: of a hog's the CPU time only (5.2).
FILE_METRICS = {"alone": "block_time", "nice": "block_time", "hog": "block_cpu"}


def best_or_equal(company: str, other: Place, costs: Place) -> Statistic:
    """spin-block takes no more than another strategy with that company (figure 4)."""
    own = costs == OWN_COSTS
    words = ", at this machine's own costs" if own else ""
    text = f"spin-block against {other['wait']}, {company}{words}"
    of = {**costs, "company": company, **SPIN_BLOCK}
    expected = ratio(text, FILE_METRICS[company], of, other, most=1 + NO_EFFECT)
    return statistic_of(figures.FIG4, expected, decides=not own)


def bad_with_company(company: str, wait: Place) -> Statistic:
    """A strategy takes more with company than alone (figure 4)."""
    text = f"{wait['wait']}, {company} against alone"
    of = {**SHRIMP, "company": company, **wait}
    to = {"company": "alone"}
    return statistic_of(figures.FIG4, ratio(text, FILE_METRICS[company], of, to, least=HIGHER))


def stream_order() -> tuple[Statistic, ...]:
    """Throughput of ttcp by strategy, in the order of the micro-benchmarks (5.1): spin-notify has
    an overhead of its own there, and no place in their ranking.
    """
    tiers = ((SPIN, SPIN_BLOCK, SPIN_SCHED), (SCHED,), (BLOCK,), (NOTIFY,))
    overhead = "throughput of spin-notify against spin"
    return (
        *ranked(figures.TTCP, "throughput by strategy", "throughput", tiers),
        statistic_of(
            figures.TTCP, ratio(overhead, "throughput", {**SHRIMP, **SPIN_NOTIFY}, SPIN, most=LOWER)
        ),
    )


def each_sample(scenario: str, text: str, metric: str, of: Place, most: float) -> Statistic:
    """No sample lies above `most`, which is the paper's figure."""
    return statistic_of(scenario, Bound(text=text, metric=metric, of=of, at_most=most), most)


def equals(scenario: str, text: str, metric: str, of: Place, value: float) -> Statistic:
    """Every sample is `value`, which follows from the protocol alone."""
    return statistic_of(scenario, Equals(text=text, metric=metric, of=of, value=value), value)
