"""What the coalescing paper measured: its figures by strategy, and where they lie in a sweep.

Goglin and Furmento, Finding a Tradeoff between Host Interrupt Load and MPI Latency over Ethernet,
Cluster 2009. Its plots have no tables behind them, so of figures 4 to 6 there is only what its text
says. Units are those of the metrics: us, thousand messages per second, interrupts per message, %;
run times of applications are in s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shrimpmx.show.plot.reading import PaperFigure

FIG4 = "coalescing/fig4_message_rate"
CORES = "coalescing/scattered_cores"
OVERHEAD = "coalescing/interrupt_overhead"
FIG5 = "coalescing/fig5_pingpong"
FIG6 = "coalescing/fig6_openmx_pingpong"
TABLE1 = "coalescing/table1_message_rate"
UNMARKED = "coalescing/unmarked_share"
TABLE2 = "coalescing/table2_anatomy"
TABLE3 = "coalescing/table3_misordering"
MTU = "coalescing/mtu"
BOUNCES = "coalescing/fragment_bounces"
PHASES = "coalescing/phases"
OTHER = "coalescing/other_protocol"
CLOSED_LOOP = "coalescing/closed_loop"
TRADE_OFF = "coalescing/trade_off"
TABLE4 = "coalescing/table4_nas"
TABLE5 = "coalescing/table5_interrupts"

# The coalescing delay, us.
DELAY_US = 75.0

# IV-B1: 128 B messages, thousands per second, with that delay; less than this share without.
STREAM_RATE = 433.0
LESS_WITHOUT = 0.5

# IV-B2: host time per invalid packet, ns, and how much less with interrupts of one core.
PER_PACKET = {"disabled": 965.0, "timeout": 774.0}
SAVED_BY_BINDING_NS = 40.0

# IV-B3: half round trip of small messages, us.
HALF_ROUND_TRIP = {"disabled": 10.0, "timeout": 75.0}

# Table I: thousand messages per second, by size.
MESSAGE_RATES: dict[int, dict[str, float]] = {
    0: {"timeout": 490, "disabled": 252, "open-mx": 423, "stream": 435},
    32_768: {"timeout": 14.507, "disabled": 6.476, "open-mx": 14.533, "stream": 14.691},
    1_048_576: {"timeout": 0.452, "disabled": 0.334, "open-mx": 0.451, "stream": 0.447},
}
# IV-C2: interrupts with Stream by those with Open-MX; packets without a mark, at most, %.
STREAM_INTERRUPTS = 0.5
UNMARKED_SHARE = 20.0

# Table II and IV-C3: a 234 880 B message, with all marks: us, and interrupts of both hosts.
ALL_MARKS = ["rndv", "pull-request", "pull-reply", "notify"]
TRANSFER = {"disabled": 705.0, "timeout": 762.0, "open-mx": 708.0}
# Nearer to the time without coalescing than to that at 75 us: by this share.
AS_DISABLED = (TRANSFER["timeout"] / TRANSFER["disabled"]) ** 0.5 - 1
INTERRUPTS = {"disabled": 92.4, "timeout": 14.4, "open-mx": 13.7}
PACKETS = {
    "packets_per_message": 167.0,
    "pull_requests_per_message": 5.0,
    "pull_replies_per_message": 160.0,
}
# What marking a kind of packet saves of that time with Open-MX, us (IV-C3).
SAVED_BY_MARK = {"rndv": 20.0, "pull-request": 5.0, "pull-reply": 2.0, "notify": 0.0}
SAVED_SOURCE = "time saved by each mark: 20, 5, 2 and 0 µs (IV-C3)"

# Table III: transfer time by mis-ordering degree, us, which the paper made by moving the mark.
MISORDERED: dict[int, dict[str, float]] = {
    0: {"open-mx": 156, "stream": 156},
    1: {"open-mx": 177, "stream": 171},
    3: {"open-mx": 177, "stream": 174},
}
# IV-C4: early interrupts that Stream deferred to the end, by that degree, %.
DEFERRED = {1: 30.0, 3: 15.0}

# Table IV: run times of NAS, class C (FT: class B), s, by benchmark.
NAS_SECONDS: dict[str, dict[str, float]] = {
    "BT": {"timeout": 271.2, "disabled": 272.8, "open-mx": 273.3, "stream": 272.6},
    "CG": {"timeout": 90.04, "disabled": 91.50, "open-mx": 90.76, "stream": 90.70},
    "EP": {"timeout": 31.30, "disabled": 31.45, "open-mx": 31.49, "stream": 31.36},
    "FT": {"timeout": 24.24, "disabled": 24.86, "open-mx": 24.21, "stream": 24.20},
    "IS": {"timeout": 32.75, "disabled": 37.03, "open-mx": 30.51, "stream": 31.96},
    "LU": {"timeout": 203.8, "disabled": 202.4, "open-mx": 203.2, "stream": 206.6},
    "MG": {"timeout": 43.91, "disabled": 43.63, "open-mx": 43.75, "stream": 43.72},
    "SP": {"timeout": 549.1, "disabled": 551.1, "open-mx": 546.8, "stream": 546.1},
}
# Table V: interrupts of IS, class B, whose ratios are those of class C.
IS_INTERRUPTS = {
    "timeout": 22_400.0,
    "disabled": 496_000.0,
    "open-mx": 26_700.0,
    "stream": 27_200.0,
}


def _by_strategy(
    scenario: str,
    metric: str,
    source: str,
    figures: Mapping[str, float],
    place: Mapping[str, Any],
) -> tuple[PaperFigure, ...]:
    return tuple(
        PaperFigure(scenario, metric, {**place, "coalescing": name}, value, source)
        for name, value in figures.items()
    )


# Where they are emulated, an interrupt costs the same whichever core it goes to.
_DEFAULT_HOSTS = {"platform": "myri10g-2009", "idle": "sleep", "irq_binding": "0"}

PAPER_FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        FIG4,
        "message_rate",
        {"coalescing": "timeout", **_DEFAULT_HOSTS},
        STREAM_RATE,
        "up to 433 thousand messages/s with 75 µs, interrupts to all cores, sleeping cores (IV-B1)",
    ),
    PaperFigure(
        FIG4,
        "message_rate",
        {"coalescing": "disabled", **_DEFAULT_HOSTS},
        STREAM_RATE * LESS_WITHOUT,
        "less than half of that with 0 µs (IV-B1)",
        bound=True,
    ),
    *(
        PaperFigure(
            CORES,
            "message_rate",
            {"coalescing": name, "rx_usecs": 75, "idle": "sleep", "irq_binding": "round-robin"},
            rate,
            words,
            bound=name == "disabled",
        )
        for name, rate, words in (
            ("timeout", STREAM_RATE, "up to 433 thousand messages/s on default hosts (IV-B1)"),
            ("disabled", STREAM_RATE * LESS_WITHOUT, "less than half of that with 0 µs (IV-B1)"),
        )
    ),
    *_by_strategy(
        OVERHEAD,
        "handler_cpu_per_packet",
        "965 ns per packet without coalescing, 774 ns with it (IV-B2)",
        PER_PACKET,
        {"platform": "myri10g-2009", "irq_binding": "round-robin"},
    ),
    *(
        figure
        for scenario in (FIG5, FIG6)
        for figure in _by_strategy(
            scenario,
            "half_round_trip",
            "small messages: about 10 µs without coalescing, up to 75 µs with it (IV-B3)",
            HALF_ROUND_TRIP,
            {"size_bytes": 0},
        )
    ),
    *(
        figure
        for size_bytes, rates in MESSAGE_RATES.items()
        for figure in _by_strategy(TABLE1, "message_rate", "", rates, {"size_bytes": size_bytes})
    ),
    *_by_strategy(TABLE2, "transfer", "", TRANSFER, {"marks": ALL_MARKS}),
    *_by_strategy(TABLE2, "interrupts_per_message", "", INTERRUPTS, {"marks": ALL_MARKS}),
    *(
        figure
        for degree, times in MISORDERED.items()
        for figure in _by_strategy(
            TABLE3, "transfer", "", times, {"mark_early": degree, "overtake": 0}
        )
    ),
    *(
        PaperFigure(
            TABLE3,
            "deferral_success",
            {"coalescing": "stream", "mark_early": degree, "overtake": 0},
            percent,
            "30 % of the early interrupts deferred at degree 1, 15 % at degree 3 (IV-C4)",
        )
        for degree, percent in DEFERRED.items()
    ),
)
