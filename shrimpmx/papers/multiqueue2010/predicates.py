"""Places and predicates that the claims of the multiqueue paper are made of.

Differences between bindings are those of caches, so real processes have this machine's own costs,
and simulated hosts those of the platform.
Of an empty message two CPUs can show what decides: interrupts to all cores in turn, to the
process's core, to one that shares a cache with it, and a queue of its own; the other two distances
stand beside it. Of a large one, where both nodes' handlers work at once, interrupts in turn need a
CPU for each core, or handlers of two nodes meet on one. A predicate follows from the paper by the
rules of the coalescing paper's: see `claims.coalescing_statistics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shrimpmx.papers.claim import Statistic, effect, statistic_of
from shrimpmx.papers.coalescing2009.predicates import HIGHER, LOWER, NO_EFFECT, same
from shrimpmx.papers.effects import SAME_SIZE
from shrimpmx.papers.multiqueue2010 import figures
from shrimpmx.results.expectation_kinds import (
    Between,
    Equals,
    Near,
    Order,
    Place,
    Ratio,
)
from shrimpmx.results.words import size_words

# Distances of CPUs without a cache in common: what is found there decides nothing.
NO_SHARED_CACHE = ("SP", "OP")
# CPUs for each core of two nodes and one for their NICs, with two cores each, three and four.
TWO_CORES_CPUS, THREE_CORES_CPUS, FOUR_CORES_CPUS = 5, 7, 9
# With a dma agent for each of two nodes of two cores: only then has each of them a CPU, since from
# six on each NIC has one.
OFFLOAD_CPUS = 8
# A count that follows from the number of cores: another process of the machine may have two
# packets handled together (ours).
COUNT_TOLERANCE = 0.01
# Why a hand-over cannot be counted otherwise.
BY_BINDING = "it follows from where interrupts are sent"
SMALL, MEDIUM, LARGE, LARGEST = 0, 32_768, 1 << 20, 4 << 20
IN_TURN, QUEUES, ONE_CORE = ({"irq_binding": name} for name in ("round-robin", "per-queue", "0"))
ONE_PAIR = {"pairs": 1}
# Halfway through what an idle core takes, us.
IDLE_US = sum(figures.IDLE_US) / 2
POLLING_CORE, IDLE_CORE = (
    {"irq_binding": core, "idle": "sleep", "distance": "any"} for core in ("0", "2")
)


def latencies() -> tuple[Statistic, ...]:
    """Half round trips of an empty message by binding (Table I)."""
    table = _Table(figures.LATENCY, "mean_half_round_trip", figures.HALF_ROUND_TRIP)
    return table.statistics(table.ranked("SC", "S$"))


def throughputs(copy_offload: bool) -> tuple[Statistic, ...]:
    """Throughput of 4 MiB by binding, copies offloaded or not (Table I).

    The distances of one core hardly differ there: a shared cache is as good as the same core, and
    so is a queue of one's own.
    """
    row, place = figures.BANDWIDTH[copy_offload], {"copy_offload": copy_offload}
    table = _Table(
        figures.THROUGHPUT, "bandwidth", row, place, more_is_better=True, cpus=TWO_CORES_CPUS
    )
    return table.statistics(
        *(table.same(name, "SC") for name in ("S$", "multiqueue")),
    )


@dataclass(frozen=True)
class _Table:
    """A row of Table I: its figures by binding, and where they lie in a scenario; `cpus`: the
    fewest to judge interrupts in turn with.
    """

    scenario: str
    metric: str
    figures: Mapping[str, float]
    place: Place = field(default_factory=dict)
    more_is_better: bool = False
    cpus: int = 1

    def statistics(self, *of_one_core: Statistic) -> tuple[Statistic, ...]:
        """The paper's three key results: in turn is slower than any other, of one core a shared
        cache is best, a queue of one's own lies between (4.2).
        """
        return (
            *(self.ranked("round-robin", name) for name in ("SC", "S$", "multiqueue")),
            *of_one_core,
            *(
                self._between(name, "round-robin", "S$")
                for name in ("multiqueue", *NO_SHARED_CACHE)
            ),
        )

    def ranked(self, worse: str, better: str) -> Statistic:
        """One binding is worse than another."""
        names = (better, worse) if self.more_is_better else (worse, better)
        tiers = tuple((self._at(name),) for name in names)
        expected = Order(
            text=f"{worse} worse than {better}",
            metric=self.metric,
            tiers=tiers,
            cpus=self._cpus(worse),
        )
        return statistic_of(self.scenario, expected, *(self.figures[name] for name in names))

    def same(self, of: str, to: str) -> Statistic:
        """One binding is as good as another, neither in turn."""
        text = f"{of} against {to}"
        expected = same(text, self.metric, self._at(of), figures.BINDINGS[to])
        absolute = self.figures[of], self.figures[to]
        return statistic_of(self.scenario, expected, absolute[0] / absolute[1], absolute=absolute)

    def _between(self, of: str, one: str, other: str) -> Statistic:
        names = of, one, other
        expected = Between(
            text=f"{of} between {one} and {other}",
            metric=self.metric,
            of=self._at(of),
            one=self._at(one),
            other=self._at(other),
            tolerance=0,
            cpus=self._cpus(one),
        )
        paper = (self.figures[name] for name in names)
        return statistic_of(self.scenario, expected, *paper, decides=of not in NO_SHARED_CACHE)

    def _cpus(self, binding: str) -> int:
        return self.cpus if binding == "round-robin" else 1

    def _at(self, binding: str) -> Place:
        return {**self.place, **figures.BINDINGS[binding]}


def idle_bounds() -> dict[str, float]:
    """The bounds of what an idle core takes by a polling one: the paper gives a range (4.3)."""
    least, most = (us / figures.POLLING_US - 1 for us in figures.IDLE_US)
    return {"at_least": 1 + least / SAME_SIZE, "at_most": 1 + most * SAME_SIZE}


def idle_core() -> tuple[Statistic, ...]:
    """An interrupt to an idle core against one to the core that polls (4.3)."""
    longer = Ratio(
        text="half round trip of an empty message, idle core against polling core",
        metric="half_round_trip",
        of={"size_bytes": SMALL, **IDLE_CORE},
        to=POLLING_CORE,
        cpus=THREE_CORES_CPUS,
        **idle_bounds(),
    )
    less = effect(
        "throughput of 4 MiB, idle core against polling core",
        "bandwidth",
        {"size_bytes": LARGEST, **IDLE_CORE},
        POLLING_CORE,
        figures.IDLE_BANDWIDTH,
        THREE_CORES_CPUS,
    )
    later = Ratio(
        text="delay of another protocol's packets, sleeping core against polling core",
        metric="other_delay",
        of={"wait": "block", "idle": "sleep"},
        to={"wait": "spin"},
        at_least=HIGHER,
    )
    return (
        statistic_of(
            figures.IDLE,
            longer,
            IDLE_US / figures.POLLING_US,
            absolute=(IDLE_US, figures.POLLING_US),
        ),
        statistic_of(figures.IDLE, less, figures.IDLE_BANDWIDTH),
        statistic_of(figures.SLEEPING, later, decides=False),
    )


def cache_misses() -> tuple[Statistic, ...]:
    """Misses by binding: what small messages save on one core decides; that copies hide it stands
    beside, as do misses of the first level, which no two cores share, and what the ledger counts
    (4.4).
    """

    def at(part: int, size: int) -> tuple[str, str, Place, Place, float]:
        """Words, metric, both places, and the paper's ratio, of handlers (0) or ranks (1)."""
        part_of, metric = (
            ("handler", "cache_misses_handler"),
            ("process", "cache_misses_rank"),
        )[part]
        rates = figures.MISS_RATES[size]
        text = f"misses of the {part_of}, {size_words(size)}, its core against in turn"
        of = {"size_bytes": size, **ONE_CORE}
        return text, metric, of, IN_TURN, rates["SC"][part] / rates["round-robin"][part]

    text, metric, of, to, paper = at(1, MEDIUM)
    no_less = Ratio(text=text, metric=metric, of=of, to=to, at_least=LOWER, cpus=TWO_CORES_CPUS)
    fewer = (
        Ratio(
            text=f"first-level misses per packet, {size_words(size)}, its core against in turn",
            metric="l1_misses_per_packet",
            of={"size_bytes": size, **ONE_CORE},
            to=IN_TURN,
            at_most=LOWER,
            cpus=TWO_CORES_CPUS,
        )
        for size in (SMALL, 128)
    )
    nothing_moves = Equals(
        text="hand-overs per packet, same core", metric="handovers_per_packet", of=ONE_CORE, value=0
    )
    return (
        *(
            statistic_of(
                figures.CACHES, effect(*at(part, size), TWO_CORES_CPUS), at(part, size)[-1]
            )
            for size in (SMALL, 128)
            for part in (0, 1)
        ),
        statistic_of(figures.CACHES, no_less, paper, decides=False),
        *(statistic_of(figures.CACHES, each, decides=False) for each in fewer),
        statistic_of(figures.CACHES, nothing_moves, decides=False, invariant=BY_BINDING),
    )


def handed_over() -> tuple[Statistic, ...]:
    """What each packet moves from core to core: nearly all in turn, nothing with queues (4.2)."""
    first = {**ONE_PAIR, "size_bytes": SMALL}

    def near(text: str, metric: str, value: float) -> Statistic:
        expected = Near(
            text=text,
            metric=metric,
            of={**first, **IN_TURN},
            value=value,
            tolerance=COUNT_TOLERANCE,
            exact=True,
        )
        return statistic_of(figures.LEDGER, expected, value, invariant=BY_BINDING)

    return (
        near("events to another core, in turn", "events_handed_over", figures.EVENTS_HANDED_OVER),
        near(
            "endpoint descriptors per packet, in turn",
            "endpoint_handovers",
            figures.ENDPOINT_HANDOVERS,
        ),
        *(
            nothing(f"{words}, multiqueue", metric, {**ONE_PAIR, **QUEUES, **sizes})
            for words, metric, sizes in (
                ("events to another core", "events_handed_over", {}),
                ("endpoint descriptors per packet", "endpoint_handovers", {}),
                ("pull handles per reply", "pull_handovers", {"size_bytes": LARGE}),
            )
        ),
    )


def all_in_one_queue() -> tuple[Statistic, ...]:
    """Of several pairs too: an endpoint's packets come by one queue to one core, where its process
    was moved to (3.1 and 3.2).
    """
    return tuple(
        nothing(words, metric, QUEUES)
        for words, metric in (
            ("packets that change their queue", "queue_changes"),
            ("packets that change their core", "endpoint_handovers"),
            ("events for a process on another core", "events_handed_over"),
        )
    )


def nothing(text: str, metric: str, of: Place) -> Statistic:
    """The count is 0 in every run of the ledger."""
    expected = Equals(text=text, metric=metric, of=of, value=0)
    return statistic_of(figures.LEDGER, expected, 0.0, invariant=BY_BINDING)


def one_core_limits() -> tuple[Statistic, ...]:
    """Many ranks whose packets one core handles take longer (4.5): what decides. Beside it: with
    small messages they do not yet; that the core has all packets, and queues share them out, which
    can be counted anywhere.
    """
    cores = 4
    place = {"pairs": cores, "size_bytes": LARGE}

    def ratio(size: int, **bounds: float) -> Ratio:
        return Ratio(
            text=f"wall time of {cores} pairs with {size_words(size)}, one core against a queue "
            "each",
            metric="wall_time",
            of={**place, "size_bytes": size, **ONE_CORE},
            to=QUEUES,
            cpus=FOUR_CORES_CPUS,
            **bounds,
        )

    shares = (
        ("one core", ONE_CORE, 100.0, COUNT_TOLERANCE),
        # A round trip more or less of one pair, and its control packets (ours).
        ("a queue each", QUEUES, 100.0 / cores, 0.05),
    )
    return (
        statistic_of(figures.MANY_RANKS, ratio(LARGE, at_least=HIGHER)),
        statistic_of(figures.MANY_RANKS, ratio(128, at_most=1 + NO_EFFECT), decides=False),
        *(
            statistic_of(
                figures.MANY_RANKS,
                Near(
                    text=f"packets that the busiest core handles, {words}",
                    metric="busiest_core",
                    of={**place, **where},
                    value=share,
                    tolerance=tolerance,
                ),
                decides=False,
                invariant=BY_BINDING,
            )
            for words, where, share, tolerance in shares
        ),
    )
