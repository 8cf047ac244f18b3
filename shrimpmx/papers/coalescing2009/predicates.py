"""Places and predicates that the claims of the coalescing paper are made of.

A predicate follows from the paper's figure by a rule, never from ours: a count lies within 15 %
of it; the effect of a ratio has its direction and its size (`effect`); where the paper gives a
direction only, so does the claim.
"""

from __future__ import annotations

from typing import Any

from shrimpmx.papers.claim import REAL, SIMULATED, Engine, Statistic, effect, statistic_of
from shrimpmx.papers.coalescing2009 import figures
from shrimpmx.results.expectation_kinds import Equals, Near, Order, Place, Ratio

# A share that is no effect: what the paper calls the same, or undisturbed (ours).
NO_EFFECT = 0.10
# Directions without a figure: the whole interval lies at least so far from 1 (ours).
HIGHER, LOWER = 1.01, 0.99
SMALL, MEDIUM, LARGE = 0, 32_768, 1_048_576
# A sender so slow that the receiver keeps up with it, ns per message.
SLOW_NS = 20_000
# What a sender of table I takes for each message, ns, as the platform says.
OWN_RATE_NS = 1_970

DISABLED, TIMEOUT = {"coalescing": "disabled"}, {"coalescing": "timeout"}
OPEN_MX, STREAM = {"coalescing": "open-mx"}, {"coalescing": "stream"}
ALL = {"marks": figures.ALL_MARKS}
ADAPTIVE = {"coalescing": "adaptive"}
ONE_CORE, SCATTERED = {"irq_binding": "0"}, {"irq_binding": "round-robin"}
# One core as well, where ONE_CORE has the process.
OTHER_CORE = {"irq_binding": "1"}
# A platform's interrupts take a fixed time, which hides what sleeping and scattering cost.
PLATFORM, OWN_COSTS = {"platform": "myri10g-2009"}, {"platform": "none"}
ASLEEP, AWAKE = {"idle": "sleep"}, {"idle": "awake"}
# Scattered interrupts need two cores on the receiving node, and a CPU for its peer.
SCATTERED_CPUS = 3
# Why a count of packets cannot come out otherwise.
BY_THE_PROTOCOL = "the protocol's own sizes decide it"


def ratio(
    text: str,
    scenario: str,
    metric: str,
    of: Place,
    to: Place,
    over: float,
    under: float,
    *,
    shares: tuple[str, ...] = (),
) -> Statistic:
    """The metric at `of` by that at `to`: an effect like the paper's, whose figures are these and
    those of the claims that it `shares` them with.
    """
    paper = over / under
    expected = effect(text, metric, of, to, paper)
    return statistic_of(scenario, expected, paper, absolute=(over, under), shares=shares)


def on_cores(text: str, of: Place, to: Place) -> tuple[Statistic, Statistic]:
    """A higher message rate at `of` than at `to`: on real cores at this machine's own costs, and on
    simulated ones.
    """
    on_real = Ratio(
        text=text,
        metric="message_rate",
        of={**OWN_COSTS, **of},
        to=to,
        at_least=HIGHER,
        cpus=SCATTERED_CPUS,
    )
    return statistic_of(figures.FIG4, on_real), on_simulated_cores(text, of, to)


def on_simulated_cores(text: str, of: Place, to: Place) -> Statistic:
    """The same on the eight cores of simulated hosts alone."""
    expected = Ratio(text=text, metric="message_rate", of=of, to=to, at_least=HIGHER)
    return statistic_of(figures.CORES, expected, engine=SIMULATED)


def of_dropped(
    text: str,
    of: Place,
    to: Place,
    over: float,
    under: float,
    cpus: int = 1,
    simulated: Place | None = None,
) -> tuple[Statistic, ...]:
    """Host time per dropped packet, an effect like the paper's: at this machine's own costs, and
    on the platform, beside it of real processes. `cpus`: the fewest for these; `simulated`: the
    place of simulated hosts in that of `of`.
    """
    paper, metric = over / under, "handler_cpu_per_packet"

    def at(costs: Place, words: str, engine: Engine, decides: bool, cpus: int) -> Statistic:
        place = simulated if simulated is not None and engine == SIMULATED else of
        expected = effect(f"{text}{words}", metric, {**costs, **place}, to, paper, cpus)
        return statistic_of(
            figures.OVERHEAD,
            expected,
            paper,
            absolute=(over, under),
            decides=decides,
            engine=engine,
        )

    return (
        at(OWN_COSTS, "", REAL, True, cpus),
        at(PLATFORM, ", on the platform", REAL, False, cpus),
        at(PLATFORM, ", on the platform", SIMULATED, True, 1),
    )


def rate_order(size: int, *tiers: tuple[Place, ...]) -> Statistic:
    """A ranking of strategies by message rate at one size; figures in thousands per second."""
    placed = tuple(tuple(sized(place, size) for place in tier) for tier in tiers)
    paper = [figures.MESSAGE_RATES[size][place["coalescing"]] for tier in tiers for place in tier]
    return statistic_of(
        figures.TABLE1,
        Order(text="ranking by message rate", metric="message_rate", tiers=placed),
        *paper,
    )


def rate_kept(size: int) -> Statistic:
    """What remains of the message rate without coalescing, at one size."""
    rates = figures.MESSAGE_RATES[size]
    return ratio(
        "message rate without coalescing against 75 µs",
        *(figures.TABLE1, "message_rate", sized(DISABLED, size), TIMEOUT),
        *(rates["disabled"], rates["timeout"]),
    )


def interrupts(text: str, place: Place) -> Statistic:
    """Interrupts of the 234 880 B message, summed over both hosts."""
    of, paper = {**place, **ALL}, figures.INTERRUPTS[place["coalescing"]]
    return statistic_of(
        figures.TABLE2, Near(text=text, metric="interrupts_per_message", of=of, value=paper), paper
    )


def packets(text: str, metric: str) -> Statistic:
    """Packets of each 234 880 B message, whatever the strategy."""
    paper = figures.PACKETS[metric]
    return statistic_of(
        figures.TABLE2,
        Equals(text=text, metric=metric, of=ALL, value=paper),
        paper,
        invariant=BY_THE_PROTOCOL,
    )


def without(mark: str) -> Place:
    """Open-MX coalescing, all kinds of packet marked but one."""
    return {**OPEN_MX, "marks": [each for each in figures.ALL_MARKS if each != mark]}


def unmarked_words(mark: str) -> str:
    """What is compared where a kind of packet has no mark."""
    return f"transfer time without the mark of {mark} against that with all marks"


def saved(mark: str) -> Statistic:
    """What a mark saves of the transfer time with Open-MX, which has all marks."""
    full = figures.TRANSFER["open-mx"]
    of, slower = without(mark), full + figures.SAVED_BY_MARK[mark]
    return ratio(
        unmarked_words(mark), figures.TABLE2, "transfer", of, ALL, slower, full, shares=("IC-15",)
    )


def misordered(text: str, of: Place, to: Place) -> Statistic:
    """An effect on the transfer time of a 32 KiB message, at degrees of a moved mark."""
    over, under = (
        figures.MISORDERED[place["mark_early"]][place["coalescing"]] for place in (of, {**of, **to})
    )
    return ratio(text, figures.TABLE3, "transfer", of, to, over, under)


def deferred(degree: int) -> dict[str, Any]:
    """What is expected of Stream's deferrals with the mark so many fragments early: of what."""
    return {
        "text": f"deferred to the end, mark {degree} early",
        "metric": "deferral_success",
        "of": {**STREAM, **moved(degree)},
    }


def moved(degree: int) -> dict[str, Any]:
    """The mark so many fragments before the last, and no packet out of order."""
    return {"mark_early": degree, "overtake": 0}


def overtaken(degree: int) -> dict[str, Any]:
    """The mark on the last fragment, which overtakes so many."""
    return {"mark_early": 0, "overtake": degree}


def at_most(text: str, metric: str, of: Place, to: Place, most: float) -> Ratio:
    """The metric at `of` by that at `to` is at most so much."""
    return Ratio(text=text, metric=metric, of=of, to=to, at_most=most)


def same(text: str, metric: str, of: Place, to: Place, share: float = NO_EFFECT) -> Ratio:
    """The metric at `of` is that at `to`, but for so large a share of either."""
    return Ratio(
        text=text, metric=metric, of=of, to=to, at_least=1 / (1 + share), at_most=1 + share
    )


def sized(place: Place, size_bytes: int) -> Place:
    """A place with a message size."""
    return {**place, "size_bytes": size_bytes}
