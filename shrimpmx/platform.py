"""The machines that an emulated cluster can stand for, and what that makes of its parameters.

A host of today charges something else for an interrupt, beside the time of a packet, than the hosts
of the papers did; and that ratio is what their results rest on. A profile has the times of
the paper's machine. `emulated` gives what a run has to be made with so that the ratios hold: every
time of the hardware is longer by the dilation, and the host is charged for what it does faster than
that, dilated alike. Nothing else changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from shrimpmx.errors import InputError
from shrimpmx.params import HostParameters, MxParameters, NicParameters
from shrimpmx.point import PointParameters

# Costs of this machine by name, as a calibration has them: {"median": ns} or {"unavailable": why}.
Costs = Mapping[str, Mapping[str, Any]]
Origin = Literal["paper", "derived", "fitted"]

# How much longer the platform's interrupt is than this machine's own at the proposed dilation: what
# differs from one of ours to the next is then small beside it, and so is the time that one takes
# on its way to a virtual CPU, in which that goes on with its rank; an interrupt of the
# platform's hosts kept their core busy (ours).
MARGIN = 4.0
# Proposals are whole multiples of this, rounded up: this machine's interrupt varies by a tenth
# from hour to hour, and a finer figure would hide that (ours).
STEP = 0.5
# Times of NicParameters, multiplied, and rates, divided; and those software timers of the
# host that stand for hardware's.
TIMES = ("link_delay_ns", "dma_latency_ns", "tx_gap_ns")
RATES = ("link_bits_per_second", "dma_bytes_per_second")


@dataclass(frozen=True)
class PlatformCost:
    """A cost of the platform's hosts in ns; whether its paper gives it, or how it was found."""

    ns: float
    origin: Origin
    source: str


@dataclass(frozen=True)
class Platform:
    """A platform: costs by the names of `shrimpmx calibrate`, and parameters of its NIC."""

    name: str
    title: str
    costs: Mapping[str, PlatformCost]
    nic: Mapping[str, Any] = field(default_factory=dict)


MYRI10G_2009 = Platform(
    name="myri10g-2009",
    title="two quad-core Xeon E5345 at 2.33 GHz, Myri-10G, Linux 2.6.26 (coalescing, IV-A)",
    costs={
        "interrupt_to_handler": PlatformCost(
            4000, "fitted", "92.4 interrupts of a 234 880 B message without coalescing (table II)"
        ),
        "handler_per_packet": PlatformCost(
            774, "paper", "invalid packets, coalesced; 965 ns with an interrupt for each (IV-B2)"
        ),
        "rank_event": PlatformCost(1000, "fitted", "10 us of a ping-pong of 0 B (IV-B3)"),
    },
    nic={
        "link_bits_per_second": 10_000_000_000,  # the paper
        "link_delay_ns": 500,  # ours
        # Fitted: Stream halves Open-MX's interrupts in a stream of 0 B (IV-C2). A frame is written
        # to memory while it comes in.
        "dma_latency_ns": 2700,
        "dma_bytes_per_second": 0,
        # Fitted: 490 k messages of 0 B per second (table I). How evenly a host sends is ours.
        "tx_gap_ns": 1970,
        "tx_gap_jitter": 0.5,
        # Derived: the ping-pong's 75 us (IV-B3). A timer that the first packet starts would give
        # the 10 us of the message itself on top.
        "rx_timer": "free-running",
    },
)

PLATFORMS = {platform.name: platform for platform in (MYRI10G_2009,)}


def proposed_dilation(platform: Platform, costs: Costs) -> float:
    """The dilation at which this machine's interrupts leave the platform's ratios standing.

    `costs` are a calibration's. The platform's interrupt, dilated, is at least MARGIN times this
    machine's. InputError if the machine's was not measured.
    """
    name = "interrupt_to_handler"
    ours = costs.get(name, {})
    if "median" not in ours:
        reason = ours.get("unavailable", "no calibration has it")
        raise InputError(
            f"platform {platform.name} needs a dilation, and this machine's {name} is not known: "
            f"{reason}; give one with --set time_dilation=6"
        )
    wished = MARGIN * float(ours["median"]) / platform.costs[name].ns
    return max(1.0, math.ceil(wished / STEP) * STEP)


def host_costs(
    platform: Platform, costs: Mapping[str, Mapping[str, Any]], dilation: float
) -> dict[str, int]:
    """What the host is charged, ns, by parameter: the platform's costs, dilated.

    An interrupt takes at least so long. Of the others this machine's own are taken off; one that
    was not measured counts as 0.
    """

    def missing(name: str) -> int:
        ours = float(costs.get(name, {}).get("median", 0.0))
        return max(0, round(dilation * platform.costs[name].ns - ours))

    return {
        "interrupt_time_ns": round(dilation * platform.costs["interrupt_to_handler"].ns),
        "packet_cost_ns": missing("handler_per_packet"),
        "event_cost_ns": missing("rank_event"),
    }


@dataclass(frozen=True)
class Emulated:
    """What a run is made with: the parameters as they are after dilation and host costs."""

    nic: NicParameters
    host: HostParameters
    mx: MxParameters
    dilation: float


def emulated(parameters: PointParameters, costs: Costs | None) -> Emulated:
    """The parameters as the run needs them; `costs` are this machine's, from its calibration.

    They are needed for a platform only. What a scenario sets itself overrides the profile.
    """
    wanted = parameters.platform
    platform = PLATFORMS.get(wanted.profile)
    nic, host, mx = parameters.nic, parameters.host, parameters.mx
    dilation = 1.0 if wanted.time_dilation == "auto" else float(wanted.time_dilation)
    if platform is not None:
        if costs is None:
            raise InputError(f"platform {platform.name} needs a calibration of this machine")
        if wanted.time_dilation == "auto":
            dilation = proposed_dilation(platform, costs)
        nic = _with_defaults(nic, platform.nic)
        charged = host_costs(platform, costs, dilation)
        host, mx = _with_defaults(host, charged), _with_defaults(mx, charged)
    return Emulated(_dilated(nic, dilation), _dilated_timers(host, dilation), mx, dilation)


def _with_defaults(given: Any, defaults: Mapping[str, Any]) -> Any:
    """`given` with those of `defaults` that are its fields and that nobody has set."""
    unset = type(given).model_fields.keys() - given.model_fields_set
    return given.model_copy(update={name: v for name, v in defaults.items() if name in unset})


def _dilated(nic: NicParameters, dilation: float) -> NicParameters:
    if dilation == 1.0:
        return nic
    changed: dict[str, Any] = {name: round(getattr(nic, name) * dilation) for name in TIMES}
    changed |= {name: round(getattr(nic, name) / dilation) for name in RATES}
    # 0 means none; a delay never becomes that, nor longer than it is.
    changed["rx_usecs"] = max(min(nic.rx_usecs, 1), int(nic.rx_usecs * dilation))
    return nic.model_copy(update=changed)


def _dilated_timers(host: HostParameters, dilation: float) -> HostParameters:
    if dilation == 1.0:
        return host
    timers = ("gro_flush_timeout_ns", "irq_suspend_timeout_ns")
    return host.model_copy(update={n: round(getattr(host, n) * dilation) for n in timers})
