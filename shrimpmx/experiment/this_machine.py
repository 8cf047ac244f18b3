"""This machine as a platform: simulated hosts with the costs that its calibration has.

Each cost was measured by a small loop apart from any run. What a real run takes beside these is in
no parameter: docs/validation.md names it.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shrimpmx.cluster.place.topology import LINE_COSTS, Topology
from shrimpmx.costs.cost import Cost
from shrimpmx.costs.table import CHARGED, COSTS
from shrimpmx.errors import InputError
from shrimpmx.settings.platform import KNOWN, THIS_MACHINE, Entry, Platform
from shrimpmx.wire.tables import wire_geometry

# Data of a full packet of an eager message, and of a pull reply, at MTU 1500.
FULL_BYTES = wire_geometry(1500).medium_frag_bytes
REPLY_BYTES = wire_geometry(1500).pull_frame_bytes
# The first Linux that schedules by virtual deadlines.
EEVDF_SINCE = (6, 6)
LEAST_NS = 1.0
# A protocol's costs: at least LEAST_NS.
OF_PROTOCOL = ("event_cost_ns", "send_cost_ns")
# Interrupts to a CPU that has been idle for so long, as the calibration calls them.
AFTER_IDLE = r"interrupt_after_(\d+)us_idle"
FAST_INTERRUPT, REPLY_COPY = "fast_interrupt", "reply_copy"
FAST = "the shortest one of interrupt_to_handler and interrupt_after_*_idle"
# What several measurements give, in words.
WORDS = {FAST_INTERRUPT: FAST, REPLY_COPY: f"the copy of {REPLY_BYTES} bytes by frame_copy"}
# Of a parameter: ns, origin and source.
Derived = tuple[float, str, str]


def this_machine() -> Platform:
    """The platform of this machine's stored calibration; InputError without one."""
    return calibrated_machine()[0]


def calibrated_machine() -> tuple[Platform, str]:
    """The same, and how far apart the CPUs were then."""
    document = stored_calibration()
    platform = machine_platform(document, os.uname().release, Topology.of_this_machine())
    return platform, str(document["state"])


def stored_calibration() -> dict[str, Any]:
    """What is stored for this machine; InputError if it is nothing, or cannot be used."""
    # Here, as it needs numpy, whose import takes longer than mpirun has.
    from shrimpmx.bench import calibration

    try:
        document = calibration.load()
    except InputError as error:
        raise InputError(f"{error}; run shrimpmx calibrate") from error
    if document is None:
        raise InputError("this machine has no stored calibration; run shrimpmx calibrate")
    return document


def named_after(path: Path, document: Mapping[str, Any]) -> Platform:
    """This machine as a platform that is called as its file; InputError if a cost is missing."""
    own = machine_platform(document, os.uname().release, Topology.of_this_machine())
    name = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("._-") or "measured"
    if name in (*KNOWN, "none", THIS_MACHINE):
        name = f"measured-{name}"
    return own.model_copy(update={"name": name})


def machine_platform(document: Mapping[str, Any], release: str, topology: Topology) -> Platform:
    """A machine as a platform: of its calibration, its kernel's release and its CPUs.

    InputError if the calibration lacks a cost that it needs, or has a copy that takes no time.
    """
    costs = _Costs(document["costs"])
    if costs["frame_copy"] <= 0:
        raise InputError(
            "the calibration has no time of a copy (frame_copy), since it was disturbed; run "
            "shrimpmx calibrate again"
        )
    scheduler = kernel_scheduler(release)
    derived = _kernel(costs) | _lines(costs, topology)
    if scheduler == "fair":
        derived |= _fair(costs)
    entries = {
        name: costs.entry(cost)
        for name, cost in COSTS.items()
        if cost.calibration and not cost.charged and name not in OF_PROTOCOL
    }
    entries |= {
        name: Entry(value=max(0, round(ns)), origin=origin, source=f"shrimpmx calibrate: {source}")
        for name, (ns, origin, source) in derived.items()
    }
    entries["copy_bytes_per_second"] = Entry(
        value=round(1e9 * FULL_BYTES / costs["frame_copy"]),
        origin="measured",
        source="shrimpmx calibrate: frame_copy",
    )
    entries |= _idle_states(costs)
    entries["wake_jitter"] = Entry(
        value=costs.spread("interrupt_to_handler"),
        origin="measured",
        source="shrimpmx calibrate: quantiles of interrupt_to_handler, as multiples of its median",
    )
    if "system_call" in document["costs"]:
        entries["cost_jitter"] = Entry(
            value=costs.scatter("system_call"),
            origin="measured",
            source="shrimpmx calibrate: quantiles of system_call, as multiples of their mean",
        )
    entries["keeps_copies"] = Entry(
        value=True, origin="derived", source="ranks of real runs copy their messages for a resend"
    )
    return Platform(
        name=THIS_MACHINE,
        title=f"{document['environment'].get('cpu_model', 'a machine')}, Linux {release}",
        dilation=1.0,
        dilation_source="its times are those of the machine itself",
        costs={name: costs.entry(cost, 1) for name, cost in CHARGED.items() if cost.calibration},
        host={"scheduler": Entry(value=scheduler, origin="derived", source=f"Linux {release}")},
        mx={"send_cost_ns": costs.entry(COSTS["send_cost_ns"])},
        model=entries,
    )


def kernel_scheduler(release: str) -> str:
    """The scheduler of a Linux of that release, by the names of HostParameters."""
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else EEVDF_SINCE
    return "eevdf" if version >= EEVDF_SINCE else "fair"


class _Costs:
    """The medians of a calibration, ns, and how costs differ from one time to the next."""

    def __init__(self, costs: Mapping[str, Mapping[str, Any]]) -> None:
        self._costs = costs
        found = sorted(
            (int(match[1]), name) for name in costs if (match := re.fullmatch(AFTER_IDLE, name))
        )
        self.after_idle = dict(found) or {0: "interrupt_after_*_idle"}

    def __getitem__(self, name: str) -> float:
        """A measurement, a cost of the table, or one of those that several measurements give."""
        if name in COSTS:
            return self.derived(COSTS[name])
        if name == FAST_INTERRUPT:
            # To a CPU that is at work, or has been idle for the time that makes it the shortest.
            return min(
                self["interrupt_to_handler"], *map(self.__getitem__, self.after_idle.values())
            )
        if name == REPLY_COPY:
            return self["frame_copy"] * REPLY_BYTES / FULL_BYTES
        found = self._costs.get(name, {"unavailable": "an earlier version of shrimpmx made it"})
        if "median" not in found:
            raise InputError(
                f"platform {THIS_MACHINE} needs {name}, which the calibration lacks: "
                f"{found['unavailable']}; run shrimpmx calibrate on two CPUs"
            )
        return float(found["median"])

    def spread(self, name: str) -> list[float]:
        """What a cost takes from one time to the next, as multiples of its median."""
        found = self._costs[name].get("spread")
        if found is None:
            raise InputError(
                f"platform {THIS_MACHINE} needs the spread of {name}, which the calibration lacks: "
                "an earlier version of shrimpmx made it; run shrimpmx calibrate again"
            )
        return list(found)

    def scatter(self, name: str) -> list[float]:
        """The same as multiples of the mean, which prices are."""
        ratios = self.spread(name)
        mean = sum(ratios) / len(ratios)
        return [round(ratio / mean, 3) for ratio in ratios]

    def derived(self, cost: Cost) -> float:
        """What the table of costs says that it is calibrated by, ns."""
        ns = sum(factor * self[name] for factor, name in cost.calibration)
        # What a run says is free has no cost at all.
        return max(LEAST_NS if cost.name in OF_PROTOCOL else 0.0, ns)

    def entry(self, cost: Cost, digits: int | None = None) -> Entry:
        """The same as a platform has it."""
        return Entry(
            value=round(self.derived(cost), digits),
            origin="measured"
            if cost.calibrated_by in (FAST_INTERRUPT, *self._costs)
            else "derived",
            source=f"shrimpmx calibrate: {calibration_words(cost)}",
        )


def calibration_words(cost: Cost) -> str:
    """The sum by which a cost is calibrated, such as "context_switch less yield_alone"; '' if
    nothing measures it.
    """
    names = [
        f"{-factor} {name}" if factor < -1 else WORDS.get(name, name)
        for factor, name in cost.calibration
    ]
    return " less ".join(filter(None, (*names[:1], " and ".join(names[1:]))))


def _kernel(costs: _Costs) -> dict[str, Derived]:
    """The times of its kernel that are no costs."""
    return {
        "slice_ns": (costs["base_slice"], "measured", "base_slice"),
        "tick_ns": (costs["tick"], "measured", "tick"),
        "interrupt_delivery_ns": (
            costs[FAST_INTERRUPT] - costs["interrupt_stall"],
            "derived",
            f"{FAST}, less interrupt_stall: the CPU continues its work until then",
        ),
    }


def _fair(costs: _Costs) -> dict[str, Derived]:
    """What scheduler fair has in place of a time slice that the kernel tells."""
    turn_ns = costs["base_slice"] / 0.75
    return {
        "slice_ns": (
            turn_ns / 4,
            "derived",
            "base_slice, three quarters of a turn of two processes, which is half of a round of "
            "eight slices",
        ),
        "wakeup_ns": (turn_ns / 3, "derived", "base_slice; four thirds of slice_ns, as in Linux"),
    }


def _idle_states(costs: _Costs) -> dict[str, Entry]:
    """How long a CPU takes to wake up, by how long it has been idle when it does.

    The calibration has the time when the interrupt is raised, which then is on its way. Between two
    measured times their geometric mean is the border.
    """
    way_ns = max(0.0, costs[FAST_INTERRUPT] - costs["switch_ns"])
    ends_us = [math.sqrt(one * other) for one, other in itertools.pairwise(costs.after_idle)]
    exits = [costs[name] - costs[FAST_INTERRUPT] for name in costs.after_idle.values()]
    return {
        "idle_after_ns": Entry(
            value=[0, *(round(1000 * us + way_ns) for us in ends_us)],
            origin="derived",
            source="shrimpmx calibrate: wake_ns, and the geometric means of the idle times of "
            "interrupt_after_*_idle",
        ),
        "idle_exit_ns": Entry(
            value=[max(0, round(ns)) for ns in exits],
            origin="derived",
            source=f"shrimpmx calibrate: interrupt_after_*_idle, less {FAST}",
        ),
    }


def _lines(costs: _Costs, topology: Topology) -> dict[str, Derived]:
    """Half a cache line's round trip, for the distance of the CPUs between which it was measured;
    the others are absent.
    """
    first, second = sorted(topology.numbers)[:2]
    name = LINE_COSTS.get(topology.distance(first, second))
    one_way = costs["cache_line_round_trip"] / 2
    return {name: (one_way, "derived", "half of cache_line_round_trip")} if name else {}
