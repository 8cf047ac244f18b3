"""What the paper says in passing, and of native MX: MQ-12 on."""

from __future__ import annotations

from functools import partial

from shrimpmx.papers.claim import SIMULATED, Claim, Statistic, effect, statistic_of
from shrimpmx.papers.coalescing2009.predicates import HIGHER, LOWER, NO_EFFECT
from shrimpmx.papers.multiqueue2010 import figures, nas
from shrimpmx.papers.multiqueue2010.predicates import (
    IDLE_CORE,
    IDLE_US,
    LARGE,
    LARGEST,
    MEDIUM,
    OFFLOAD_CPUS,
    SMALL,
    TWO_CORES_CPUS,
    idle_bounds,
)
from shrimpmx.results.expectation_kinds import Near, Ratio
from shrimpmx.results.words import size_words

# Why native MX cannot come out slower.
BY_CONSTRUCTION = "emulated MX takes neither interrupts nor its host's time for packets"
# CPUs for each core of two nodes of eight and one for their NICs.
EIGHT_CORES_CPUS = 17


def _line_rate() -> Statistic:
    """The throughput of the best binding with copies offloaded is 9 of 10 Gb/s (4.1)."""
    expected = Near(
        text="throughput of 4 MiB, copies offloaded, shared cache",
        metric="bandwidth",
        of={"copy_offload": True, **figures.SHARED_CACHE},
        value=figures.OFFLOADED,
    )
    return statistic_of(figures.THROUGHPUT, expected, figures.OFFLOADED, shares=("MQ-2", "MQ-3"))


def _queues_cost(copy_offload: bool) -> Statistic:
    """A queue of one's own is slower than the best binding of one interrupt, since several queues
    are more work for the NIC (4.2).
    """
    row, offloaded = figures.BANDWIDTH[copy_offload], ", copies offloaded" * copy_offload
    paper = row["multiqueue"] / row["S$"]
    expected = effect(
        f"throughput of 4 MiB{offloaded}, multiqueue against a shared cache",
        "bandwidth",
        {"copy_offload": copy_offload, **figures.MULTIQUEUE},
        figures.SHARED_CACHE,
        paper,
        OFFLOAD_CPUS if copy_offload else TWO_CORES_CPUS,
    )
    absolute = row["multiqueue"], row["S$"]
    return statistic_of(
        figures.THROUGHPUT, expected, paper, absolute=absolute, shares=("MQ-2", "MQ-3")
    )


def _native() -> Statistic:
    """Half a round trip of Open-MX itself takes 8 us, where MPI takes 10 (4.1)."""
    expected = Near(
        text="half round trip of an empty message without MPI, multiqueue",
        metric="mean_half_round_trip",
        of=figures.MULTIQUEUE,
        value=figures.NATIVE_US,
    )
    return statistic_of(figures.LATENCY, expected, figures.NATIVE_US)


def _idle_cores(size: int) -> Statistic:
    """What a pair takes that has its hosts to itself, by what it takes where processes wait in a
    barrier on all other cores: as an interrupt to an idle core against the polling one (4.3).
    """
    words = f"round trips of {size_words(size)}, other cores idle against in a barrier"
    of, to = {"size_bytes": size, "ranks": 2}, {"ranks": 2 * figures.CORES}
    if size:
        paper = 1 / figures.IDLE_BANDWIDTH
        expected = effect(words, "run_time", of, to, paper, EIGHT_CORES_CPUS)
        return statistic_of(figures.BUSY, expected, paper, shares=("MQ-4",))
    expected = Ratio(
        text=words, metric="run_time", of=of, to=to, cpus=EIGHT_CORES_CPUS, **idle_bounds()
    )
    paper = IDLE_US / figures.POLLING_US  # of half round trips, where ours is of whole programs
    return statistic_of(figures.BUSY, expected, paper, shares=("MQ-4",))


def _next_core() -> tuple[Statistic, Statistic]:
    """An interrupt to the core that shares a cache with the polling one finds it awake; one to a
    core of another die does not (4.3, footnote).
    """

    def ratio(words: str, distance: str, **bounds: float) -> Statistic:
        expected = Ratio(
            text=f"half round trip of an empty message, interrupts to {words}: free to sleep "
            "against kept awake",
            metric="half_round_trip",
            of={"size_bytes": SMALL, **IDLE_CORE, "distance": distance},
            to={"idle": "awake"},
            **bounds,
        )
        return statistic_of(figures.IDLE, expected, engine=SIMULATED)

    return (
        ratio("the core that shares its cache", "S$", at_most=1 + NO_EFFECT),
        ratio("a core of another die", "any", at_least=HIGHER),
    )


def _faster_mx(size: int) -> Statistic:
    """Native MX takes less than Open-MX: the gap remains substantial (section 1)."""
    expected = Ratio(
        text=f"half round trip of {size_words(size)}, native MX against Open-MX",
        metric="half_round_trip",
        of={"nic": "mx", "size_bytes": size},
        to={"nic": "ethernet"},
        at_most=LOWER,
    )
    return statistic_of(figures.MX, expected, invariant=BY_CONSTRUCTION)


# On real processes the costs of a binding are those of this machine's caches.
_claim = partial(Claim, host="myri10g-2009", own_costs=True)

CLAIMS: tuple[Claim, ...] = (
    _claim(
        id="MQ-12",
        kind="ratio",
        source="4.1",
        setup="Ping-pong of 4 MiB, copies offloaded, with the best binding: throughput as a "
        "fraction of the line rate.",
        paper="9 of 10 Gb/s: 1072.88 MiB/s",
        cpus=OFFLOAD_CPUS,
        statistics=(_line_rate(),),
    ),
    _claim(
        id="MQ-13",
        kind="ratio",
        source="4.2 and table I",
        setup="Ping-pong of 4 MiB: a queue for each endpoint against the best binding of one "
        "interrupt, copies by the CPU and offloaded.",
        paper="a bit slower, 707 against 723 MiB/s, 965 against 1059 offloaded: several queues "
        "are more work in the NIC",
        statistics=(_queues_cost(copy_offload=False), _queues_cost(copy_offload=True)),
        note="the emulated NIC's processor takes no time, neither for a packet nor to choose its "
        "queue",
    ),
    _claim(
        id="MQ-14",
        kind="ratio",
        source="4.1",
        setup="Ping-pong of an empty message by Open-MX itself, without MPI, as in MQ-1: half a "
        "round trip.",
        paper="8 µs, with MPI close to 10",
        statistics=(_native(),),
        own_costs=False,
    ),
    _claim(
        id="MQ-15",
        kind="ratio",
        source="4.3",
        setup="MPI's ping-pong of an empty message and of 4 MiB between two processes, interrupts "
        "to all eight cores of a node in turn: the other cores idle, against processes on them "
        "that wait in a barrier.",
        paper="11 µs in the barrier, 15 to 20 µs idle; throughput 20 % less",
        cpus=EIGHT_CORES_CPUS,
        statistics=(_idle_cores(SMALL), _idle_cores(LARGEST)),
    ),
    Claim(
        id="MQ-16",
        kind="ratio",
        source="4.3, footnote",
        host="myri10g-2009",
        setup="One polling process per node; interrupts to the core that shares a cache with its "
        "core, or to a core of another die: half round trip with cores free to sleep against kept "
        "awake.",
        paper="a core only sleeps if both cores of its dual-core sub-chip are idle: binding to the "
        "very next core works well, too",
        statistics=_next_core(),
    ),
    Claim(
        id="MQ-17",
        kind="order",
        source="1, 2.1 and 2.2",
        host="myri10g-2009",
        setup="Ping-pong of an empty message, of 32 KiB and of 1 MiB over native MX and over "
        "Open-MX, on the platform.",
        paper="the gap between message-handling NICs and regular Ethernet's remains substantial",
        statistics=tuple(map(_faster_mx, (SMALL, MEDIUM, LARGE))),
        note="the paper's only figures of native MX are those of MQ-7 and MQ-18",
    ),
    _claim(
        id="MQ-18",
        kind="ratio",
        source="4.6 and table III",
        setup="NAS kernels, 16 ranks on 2 nodes: a queue for each process against native MX.",
        paper="slower by 4.5 % (CG), 2.3 % (MG) and 8.8 % (FT); IS takes 1.25 s instead of 1.33",
        cpus=nas.CPUS,
        statistics=nas.against_mx(),
        note=nas.CLASSES,
    ),
)
