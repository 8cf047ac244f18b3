"""This machine as a platform: simulated hosts with the costs that its calibration has.

Each cost was measured by a small loop apart from any run. What a real run takes beside these is in
no parameter: docs/validation.md names it.
"""

from __future__ import annotations

import platform as machine
import re
from collections.abc import Mapping
from typing import Any

from shrimpmx.cluster.place.topology import Distance, Topology
from shrimpmx.errors import InputError
from shrimpmx.settings.platform import THIS_MACHINE, Entry, Platform
from shrimpmx.wire.tables import wire_geometry

# Bytes that the calibration copies at a time.
COPY_BYTES = 1500
# Data of a full pull reply at MTU 1500.
REPLY_BYTES = wire_geometry(1500).pull_frame_bytes
# The first Linux that schedules by virtual deadlines.
EEVDF_SINCE = (6, 6)
# The platform's costs, and what the calibration calls them.
CHARGED = {
    "interrupt_to_handler": "interrupt_to_handler",
    "handler_per_packet": "handler_per_packet",
    "rank_event": "rank_per_message",
}
# Of a parameter: ns, origin and source.
Derived = tuple[float, str, str]
LINES = {
    Distance.SHARED_CACHE: "line_cache_ns",
    Distance.SAME_PACKAGE: "line_package_ns",
    Distance.OTHER_PACKAGE: "line_system_ns",
}


def this_machine() -> Platform:
    """The platform of this machine's stored calibration; InputError without one."""
    # Here, as it needs numpy, whose import takes longer than mpirun has.
    from shrimpmx.bench import calibration

    document = calibration.load()
    if document is None:
        raise InputError("this machine has no stored calibration; run shrimpmx calibrate")
    return machine_platform(document, machine.release(), Topology.of_this_machine())


def machine_platform(document: Mapping[str, Any], release: str, topology: Topology) -> Platform:
    """A machine as a platform: of its calibration, its kernel's release and its CPUs.

    InputError if the calibration lacks a cost that it needs.
    """
    costs = _Costs(document["costs"])
    entries = {
        name: Entry(value=max(0, round(ns)), origin=origin, source=f"shrimpmx calibrate: {source}")
        for name, (ns, origin, source) in (_model(costs) | _lines(costs, topology)).items()
    }
    entries["copy_bytes_per_second"] = Entry(
        value=round(1e9 * COPY_BYTES / costs["copy_frame"]),
        origin="measured",
        source="shrimpmx calibrate: copy_frame",
    )
    entries["keeps_copies"] = Entry(
        value=True, origin="derived", source="ranks of real runs keep what they send for a resend"
    )
    return Platform(
        name=THIS_MACHINE,
        title=f"{document['environment'].get('cpu_model', 'a machine')}, Linux {release}",
        dilation=1.0,
        dilation_source="its times are those of the machine itself",
        costs={
            name: Entry(
                value=round(costs[source], 1),
                origin="measured",
                source=f"shrimpmx calibrate: {source}",
            )
            for name, source in CHARGED.items()
        },
        host={
            "scheduler": Entry(
                value=kernel_scheduler(release), origin="derived", source=f"Linux {release}"
            )
        },
        mx={
            "send_cost_ns": Entry(
                value=round(costs["send_packet"]),
                origin="measured",
                source="shrimpmx calibrate: send_packet",
            )
        },
        model=entries,
    )


def kernel_scheduler(release: str) -> str:
    """The scheduler of a Linux of that release, by the names of HostParameters."""
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else EEVDF_SINCE
    return "eevdf" if version >= EEVDF_SINCE else "fair"


class _Costs:
    """The medians of a calibration, ns."""

    def __init__(self, costs: Mapping[str, Mapping[str, Any]]) -> None:
        self._costs = costs

    def __getitem__(self, name: str) -> float:
        found = self._costs.get(name, {"unavailable": "an earlier version has measured"})
        if "median" not in found:
            raise InputError(
                f"platform {THIS_MACHINE} needs {name}, which the calibration has not: "
                f"{found['unavailable']}; run shrimpmx calibrate on two CPUs"
            )
        return float(found["median"])

    def switch(self) -> float:
        """From one process to another, without the call by which the first one yields."""
        return max(0.0, self["context_switch"] - self["yield_alone"])


def _model(costs: _Costs) -> dict[str, Derived]:
    """The times of the host model, but for lines of caches."""
    busy, idle, switch = costs["interrupt_to_handler"], costs["interrupt_to_idle"], costs.switch()
    copy_ns = costs["copy_frame"] / COPY_BYTES
    return {
        "poll_ns": (costs["look"], "measured", "look"),
        "yield_ns": (costs["yield_alone"], "measured", "yield_alone"),
        "slice_ns": (costs["base_slice"], "measured", "base_slice"),
        "switch_ns": (switch, "derived", "context_switch less yield_alone"),
        "wake_ns": (
            min(busy, idle) - switch,
            "derived",
            "the shorter one of interrupt_to_handler and interrupt_to_idle, less switch_ns",
        ),
        "interrupt_delivery_ns": (
            min(busy, idle) - switch,
            "derived",
            "as wake_ns: until the handler runs, its CPU goes on with its work",
        ),
        "preempt_ns": (busy - idle, "derived", "interrupt_to_handler less interrupt_to_idle"),
        "wake_call_ns": (costs["wake_call"], "measured", "wake_call"),
        "sleep_call_ns": (
            costs["wake_same_cpu"] - switch,
            "derived",
            "wake_same_cpu less switch_ns: both calls on one CPU",
        ),
        "idle_after_ns": (costs["idle_after"], "measured", "idle_after"),
        "idle_exit_ns": (idle - busy, "derived", "interrupt_to_idle less interrupt_to_handler"),
        "interrupt_exit_ns": (costs["interrupt_exit"], "measured", "interrupt_exit"),
        "timer_late_ns": (costs["late_timer"] - switch, "derived", "late_timer less switch_ns"),
        "nic_frame_ns": (costs["nic_frame"], "measured", "nic_frame"),
        "reply_ns": (
            REPLY_BYTES * copy_ns,
            "derived",
            f"the copy of {REPLY_BYTES} bytes by copy_frame",
        ),
    }


def _lines(costs: _Costs, topology: Topology) -> dict[str, Derived]:
    """Half a cache line's round trip, for the distance of the CPUs between which it was measured;
    the others are absent.
    """
    first, second = sorted(topology.numbers)[:2]
    name = LINES.get(topology.distance(first, second))
    one_way = costs["cache_line_round_trip"] / 2
    return {name: (one_way, "derived", "half of cache_line_round_trip")} if name else {}
