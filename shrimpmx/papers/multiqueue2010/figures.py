"""What the multiqueue paper measured: its figures by binding, and the scenarios for them.

Goglin, NIC-Assisted Cache-Efficient Receive Stack for Message Passing over Ethernet, Concurrency
and Computation: Practice and Experience, 2010. Units are those of the metrics: us, MiB per second,
%, times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LATENCY = "multiqueue/table1_binding"
THROUGHPUT = "multiqueue/table1_throughput"
IDLE = "multiqueue/idle_cores"
SLEEPING = "multiqueue/sleeping_core"
CACHES = "multiqueue/table2_cache_misses"
LEDGER = "multiqueue/ledger"
MANY_RANKS = "multiqueue/one_core_many_ranks"
PLACEMENT = "multiqueue/placement_map"
STEERING = "multiqueue/steering"
ALLTOALL = "multiqueue/fig5_alltoall"
NAS = "multiqueue/table3_nas"
MX = "multiqueue/native_mx"
BUSY = "multiqueue/busy_cores"

# Where interrupts go, and how far from them the process is, as the rows and columns of Table I.
ROUND_ROBIN = {"irq_binding": "round-robin", "distance": "any"}
SAME_CORE, SHARED_CACHE, SAME_PACKAGE, OTHER_PACKAGE = (
    {"irq_binding": "0", "distance": name} for name in ("SC", "S$", "SP", "OP")
)
MULTIQUEUE = {"irq_binding": "per-queue", "distance": "SC"}
BINDINGS: Mapping[str, dict[str, str]] = {
    "round-robin": ROUND_ROBIN,
    "SC": SAME_CORE,
    "S$": SHARED_CACHE,
    "SP": SAME_PACKAGE,
    "OP": OTHER_PACKAGE,
    "multiqueue": MULTIQUEUE,
}

# Table I, in the order of BINDINGS: half round trip of an empty message, us; throughput of 4 MiB,
# MiB/s, without copy offload and with it.
HALF_ROUND_TRIP = dict(zip(BINDINGS, (11.4, 10.96, 9.34, 10.32, 10.25, 10.10), strict=True))
BANDWIDTH = {
    False: dict(zip(BINDINGS, (646.0, 719.0, 723.0, 721.0, 714.0, 707.0), strict=True)),
    True: dict(zip(BINDINGS, (905.0, 1056.0, 1059.0, 1048.0, 1026.0, 965.0), strict=True)),
}

# 4.1: half round trip of an empty message without MPI, us; throughput with copies offloaded, of
# 10 Gb/s, as MiB/s.
NATIVE_US, OFFLOADED = 8.0, round(9e9 / 8 / (1 << 20), 2)

# 4.3: half round trip of an empty message, us, with the interrupt on the core that polls, and on an
# idle one, from and to; throughput there, by that on the polling core.
POLLING_US, IDLE_US = 11.0, (15.0, 20.0)
IDLE_BANDWIDTH = 0.8

# Table II: misses of the shared cache, % of accesses in the kernel and in user mode; copies of
# 1 MiB are offloaded.
MISS_RATES: Mapping[int, Mapping[str, tuple[float, float]]] = {
    0: {"round-robin": (29.80, 13.79), "S$": (29.70, 8.34), "SC": (11.47, 0.13)},
    128: {"round-robin": (26.80, 17.90), "S$": (25.06, 23.05), "SC": (14.15, 0.51)},
    32_768: {"round-robin": (28.77, 17.71), "S$": (23.17, 29.32), "SC": (24.49, 22.56)},
    1_048_576: {"round-robin": (27.7, 6.28), "S$": (36.9, 7.97), "SC": (25.20, 5.96)},
}

# 4.2: packets that move from one cache to another on their way to the process, %: 7 of 8. 2.1: a
# descriptor that moves with each packet.
CORES = 8
EVENTS_HANDED_OVER = 100.0 * (CORES - 1) / CORES
ENDPOINT_HANDOVERS = 1.0

# The lines of figure 5, and where they lie in the scenario; it is relative to native MX.
NATIVE_MX = {"nic": "mx", "copy_offload": False, "irq_binding": "auto"}
ALLTOALL_BINDINGS: Mapping[str, dict[str, Any]] = {
    **{
        label: {"nic": "ethernet", "copy_offload": offloaded, "irq_binding": binding}
        for label, binding, offloaded in (
            ("one queue, cores in turn", "round-robin", False),
            ("one queue, core 0", "0", False),
            ("a queue each", "per-queue", False),
            ("a queue each, copies offloaded", "per-queue", True),
        )
    },
    "native MX": NATIVE_MX,
}
# 4.5: an Alltoall with one queue by that with a queue for each process, on average; the latter by
# native MX, with very large messages whose copies are offloaded, below.
ALLTOALL_GAIN = 1.3
ALLTOALL_OF_MX = 1.5

# Table III: run times of class B, s, of one queue, in turn, and of a queue each.
NAS_SECONDS = {
    "CG": (34.62, 33.68),
    "FT": (22.80, 21.34),
    "IS": (11.84, 1.25),
    "MG": (4.14, 4.02),
}
# With native MX.
NAS_SECONDS_MX = {"CG": 32.23, "FT": 19.61, "IS": 1.33, "MG": 3.93}
# 4.6: the same for the cache miss rates of IS.
NAS_MISSES = 11.0

# What the paper says of a scenario, for its plots.
SAID = {
    IDLE: "11 µs rise to 15 to 20 µs with the interrupt on an idle core, and the throughput falls "
    "by 20 % (4.3)",
    ALLTOALL: "a queue for each process is on average 1.3 times better than one for all, and "
    "one core for all gets worse with size; a queue each is within 150 % of native MX with "
    "very large messages, and ahead of it near 4 kB (4.5)",
    LEDGER: "7 of 8 packets move to another cache with interrupts to 8 cores in turn; none does "
    "with a queue per endpoint on its process's core (4.2)",
    NAS: "a queue for each process makes CG, MG and FT 3 to 7 % faster, and IS 8.5 (B) and 2.6 "
    "times (C), with about 11 times fewer cache misses (4.6)",
    MANY_RANKS: "one core that takes all interrupts becomes the limit as messages grow (4.5)",
}


def paper_value(scenario: str, metric: str, place: Mapping[str, Any]) -> float | None:
    """The figure of Table I at a place of one of its scenarios; None where it has none."""
    if (scenario, metric) == (LATENCY, "mean_half_round_trip"):
        figures = HALF_ROUND_TRIP
    elif (scenario, metric) == (THROUGHPUT, "bandwidth"):
        figures = BANDWIDTH[place["copy_offload"]]
    else:
        return None
    names = [name for name, where in BINDINGS.items() if where.items() <= place.items()]
    return figures[names[0]] if names else None
