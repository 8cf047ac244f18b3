"""The machines that an emulated cluster can stand for, and what that makes of its parameters.

The papers' results depend on the ratio of interrupt cost to packet cost, and a host of today has
another ratio. A profile has the times of the paper's machine. `emulated` gives the parameters with
which a run keeps the paper's ratios: every time of the hardware is longer by the dilation, and the
host is charged for what it does faster than the paper's, dilated alike. An application's own
computing is not dilated; where its ranks share CPUs it is slower, and the dilation follows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from shrimpmx.errors import InputError
from shrimpmx.settings.declared import HARDWARE_RATE, HARDWARE_TIME, Declared
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.wait import WaitParameters
from shrimpmx.study.point import PROGRAMS, PointParameters

# Costs of this machine by name, as a calibration has them: {"median": ns} or {"unavailable": why}.
Costs = Mapping[str, Mapping[str, Any]]
Origin = Literal["paper", "public", "derived", "fitted", "ours"]
Group = TypeVar("Group", bound=Declared)

# How much longer the platform's interrupt is than this machine's own at the proposed dilation: what
# differs from one of ours to the next is then small beside it, and so is the time that one takes
# on its way to a virtual CPU, in which that goes on with its rank; an interrupt of the
# platform's hosts kept their core busy (ours).
MARGIN = 4.0
# Proposals are whole multiples of this, rounded up: this machine's interrupt varies by a tenth
# from hour to hour, and a finer figure would hide that (ours).
STEP = 0.5


@dataclass(frozen=True)
class Charge:
    """How a run is charged for a cost of the platform: by `parameter`, for each `per`.

    `whole`: the parameter is how long the thing takes at least, this machine's own time included;
    else it is added, so that this machine's own is taken off.
    """

    parameter: str
    per: str
    whole: bool = False


# By the names of costs, which are those of `shrimpmx calibrate` where it measures them.
CHARGES = {
    "interrupt_to_handler": Charge("interrupt_time_ns", "interrupt", whole=True),
    "handler_per_packet": Charge("packet_cost_ns", "packet"),
    "rank_event": Charge("event_cost_ns", "event"),
    "context_switch": Charge("reschedule_cost_ns", "reschedule"),
    "notification_handler": Charge("handler_cost_ns", "notification"),
}


@dataclass(frozen=True)
class PlatformCost:
    """A cost of the platform's hosts in ns; whether its paper gives it, or how it was found.

    `calibrated_by`: the claims whose figures it was chosen by, which it says nothing about.
    """

    ns: float
    origin: Origin
    source: str
    calibrated_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Given:
    """The value of a parameter of the platform's hosts; the rest as in a PlatformCost."""

    value: Any
    origin: Origin
    source: str
    calibrated_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Platform:
    """A platform: costs by the names of CHARGES, and parameters of its NIC and host; `model` are
    those of a simulated host only.

    `dilation` is the one that every machine takes, for the reason `dilation_source`; None: as
    this machine's calibration proposes.
    """

    name: str
    title: str
    costs: Mapping[str, PlatformCost]
    nic: Mapping[str, Given] = field(default_factory=dict)
    host: Mapping[str, Given] = field(default_factory=dict)
    model: Mapping[str, Given] = field(default_factory=dict)
    dilation: float | None = None
    dilation_source: str = ""


MYRI10G_2009 = Platform(
    name="myri10g-2009",
    title="two quad-core Xeon E5345 at 2.33 GHz, Myri-10G, Linux 2.6.26 (coalescing, IV-A)",
    costs={
        "interrupt_to_handler": PlatformCost(
            4000,
            "fitted",
            "92.4 interrupts of a 234 880 B message without coalescing (table II)",
            ("IC-14",),
        ),
        "handler_per_packet": PlatformCost(
            774, "paper", "invalid packets, coalesced; 965 ns with an interrupt for each (IV-B2)"
        ),
        "rank_event": PlatformCost(
            1000, "fitted", "10 us of a ping-pong of 0 B (IV-B3)", ("IC-6",)
        ),
    },
    nic={
        "link_bits_per_second": Given(10_000_000_000, "paper", "IV-A"),
        "link_delay_ns": Given(500, "ours", "a short cable and two NICs"),
        "dma_latency_ns": Given(
            2700,
            "fitted",
            "Stream halves Open-MX's interrupts in a stream of 0 B (IV-C2)",
            ("IC-12",),
        ),
        "dma_bytes_per_second": Given(0, "ours", "a frame is written while it comes in"),
        "tx_gap_ns": Given(
            1970, "fitted", "490 k messages of 0 B per second (table I)", ("IC-9", "IC-14", "IC-18")
        ),
        "tx_gap_jitter": Given(0.5, "ours", "how evenly a host sends"),
        "rx_timer": Given(
            "free-running",
            "derived",
            "the ping-pong's 75 us (IV-B3): a timer that the first packet starts would give the 10 "
            "us of the message itself on top",
            ("IC-6",),
        ),
    },
    model={
        "host_topology": Given("package:2 l2:2 core:2 pu:1", "paper", "multiqueue, figure 4"),
        "copy_bytes_per_second": Given(
            2_380_000_000,
            "derived",
            "719 MiB/s with copies by the CPU, 1056 without (multiqueue, table I)",
            ("MQ-3",),
        ),
        "line_cache_ns": Given(
            6, "public", "14 cycles of 2.33 GHz to the L2 cache of a Xeon E5345 (CPU-Z)"
        ),
        "line_package_ns": Given(
            120,
            "public",
            "280 cycles to memory (as above): dies of a package meet at the front-side bus",
        ),
        "line_system_ns": Given(120, "public", "as line_package_ns"),
        "interrupt_exit_ns": Given(
            1620,
            "derived",
            "10.96 us with interrupt and process on one core, 9.34 on two that share a cache "
            "(multiqueue, table I)",
            ("MQ-1",),
        ),
        "idle_exit_ns": Given(
            6500,
            "derived",
            "15 to 20 us where an idle core takes the interrupt, 11 where none is (multiqueue, "
            "4.3)",
            ("MQ-4",),
        ),
    },
)

SHRIMP_1996 = Platform(
    name="shrimp-1996",
    title="DEC 560ST PCs, 60 MHz Pentium, Linux, SHRIMP NIC, Paragon backplane (waiting, 2.1)",
    costs={
        "interrupt_to_handler": PlatformCost(
            100_000,
            "derived",
            "T_block of 300 us: two context switches and this (3.2, footnote 2)",
            ("WC-4",),
        ),
        "context_switch": PlatformCost(
            100_000,
            "derived",
            "one run of the kernel's scheduler; a block has two (as above)",
            ("WC-4",),
        ),
        "notification_handler": PlatformCost(
            160_000,
            "fitted",
            "36 % above block with five pairs (figure 3): 162 us in each of five messages that "
            "take 2250; the paper says 10 us at least (3.1)",
            ("WC-3", "WC-4"),
        ),
    },
    nic={
        "link_bits_per_second": Given(
            1_600_000_000, "ours", "the backplane is far faster than what follows it"
        ),
        "link_delay_ns": Given(1000, "ours", "as link_bits_per_second"),
        "dma_bytes_per_second": Given(
            23_000_000,
            "ours",
            "the EISA bus of the receiver limits updates; the paper does not say how fast",
        ),
    },
    host={
        "time_slice_ns": Given(
            100_000_000,
            "ours",
            "Linux of that time let a process compute for 200 ms; no kernel of today gives more",
        )
    },
    dilation=1.0,
    dilation_source="what ranks compute between messages is not dilated, and its ratio to T_block "
    "is what the paper's figures are about",
)

PLATFORMS = {platform.name: platform for platform in (MYRI10G_2009, SHRIMP_1996)}


def proposed_dilation(platform: Platform, costs: Costs) -> float:
    """The dilation at which this machine's interrupts leave the platform's ratios standing.

    `costs` are a calibration's. The platform's interrupt, dilated, is at least MARGIN times this
    machine's, unless the platform has a dilation of its own. InputError if the machine's interrupt
    is needed, and was not measured.
    """
    if platform.dilation is not None:
        return platform.dilation
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


def ranks_per_cpu(parameters: PointParameters) -> float:
    """How many ranks share a CPU, at least 1: a program computes so much slower than on cores of
    its own. 1 for the workloads that come with shrimpmx, which compute nothing.
    """
    if parameters.workload.kind not in PROGRAMS:
        return 1.0
    cpus = parameters.cluster.cpus or tuple(os.sched_getaffinity(0))
    return max(1.0, parameters.cluster.ranks / len(cpus))


def host_costs(platform: Platform, costs: Costs, dilation: float) -> dict[str, int]:
    """What the host is charged, ns, by parameter: the platform's costs, dilated, as CHARGES says.

    A cost of this machine that was not measured counts as 0.
    """
    charged = {}
    for name, cost in platform.costs.items():
        charge = CHARGES[name]
        ours = 0.0 if charge.whole else float(costs.get(name, {}).get("median", 0.0))
        charged[charge.parameter] = max(0, round(dilation * cost.ns - ours))
    return charged


@dataclass(frozen=True)
class Emulated:
    """What a run is made with: the parameters as they are after dilation and host costs."""

    nic: NicParameters
    host: HostParameters
    mx: MxParameters
    wait: WaitParameters
    model: HostModelParameters
    dilation: float


def emulated(parameters: PointParameters, costs: Costs | None) -> Emulated:
    """The parameters as the run needs them; `costs` are this machine's, from its calibration.

    They are needed for a platform only. What a scenario sets itself overrides the profile.
    """
    wanted = parameters.platform
    platform = PLATFORMS.get(wanted.profile)
    nic, host = parameters.nic, parameters.host
    mx, wait, model = parameters.mx, parameters.wait, parameters.model
    dilation = 1.0 if wanted.time_dilation == "auto" else float(wanted.time_dilation)
    if platform is not None:
        if costs is None:
            raise InputError(f"platform {platform.name} needs a calibration of this machine")
        if wanted.time_dilation == "auto":
            dilation = proposed_dilation(platform, costs)
            # Simulated hosts cost nothing of their own, and have CPUs enough.
            if any(cost.get("median") for cost in costs.values()):
                dilation *= ranks_per_cpu(parameters)
        nic = _with_defaults(nic, _values(platform.nic))
        host = _with_defaults(host, _values(platform.host))
        charged = host_costs(platform, costs, dilation)
        host, mx = _with_defaults(host, charged), _with_defaults(mx, charged)
        wait = _with_defaults(wait, charged)
        model = _with_defaults(model, _dilated_values(platform.model, dilation))
    return Emulated(
        _dilated_nic(nic, dilation), _dilated(host, dilation), mx, wait, model, dilation
    )


def _values(given: Mapping[str, Given]) -> dict[str, Any]:
    return {name: each.value for name, each in given.items()}


def _dilated_values(given: Mapping[str, Given], dilation: float) -> dict[str, Any]:
    """The values of a host model, as host_costs() has those that every engine charges."""
    values = _values(given)
    for name, value in values.items():
        if name.endswith("_ns"):
            values[name] = round(value * dilation)
        elif name.endswith("_per_second"):
            values[name] = round(value / dilation)
    return values


def _with_defaults(given: Any, defaults: Mapping[str, Any]) -> Any:
    """`given` with those of `defaults` that are its fields and not set in it."""
    unset = type(given).model_fields.keys() - given.model_fields_set
    return given.model_copy(update={name: v for name, v in defaults.items() if name in unset})


def _dilated(group: Group, dilation: float) -> Group:
    """The group with times of the hardware, and of what stands for it, longer by `dilation`."""
    changed: dict[str, Any] = {}
    for name, declared in type(group).model_fields.items():
        if HARDWARE_TIME in declared.metadata:
            changed[name] = round(getattr(group, name) * dilation)
        if HARDWARE_RATE in declared.metadata:
            changed[name] = round(getattr(group, name) / dilation)
    return group.model_copy(update=changed)


def _dilated_nic(nic: NicParameters, dilation: float) -> NicParameters:
    # 0 means none; a delay never becomes that, nor longer than it is.
    rx_usecs = max(min(nic.rx_usecs, 1), int(nic.rx_usecs * dilation))
    return _dilated(nic, dilation).model_copy(update={"rx_usecs": rx_usecs})
