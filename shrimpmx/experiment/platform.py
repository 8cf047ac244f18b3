"""The machines that an emulated cluster can stand for, and what that makes of its parameters.

The papers' results depend on the ratio of interrupt cost to packet cost, and a host of today has
another ratio. A platform has the times of the paper's machine. `emulated` gives the parameters with
which a run keeps the paper's ratios: every time of the hardware and of the protocol is longer by
the dilation, and the host is charged for what it does faster than the paper's, dilated alike. An
application's own computing is not dilated; where its ranks share CPUs it is slower, and the
dilation follows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from shrimpmx.cluster.nics.kind import kind_of
from shrimpmx.costs.table import CHARGED, COSTS
from shrimpmx.errors import InputError
from shrimpmx.experiment.platform_files import KnownPlatforms
from shrimpmx.experiment.point import PointParameters
from shrimpmx.native.records import dataclass, replace
from shrimpmx.settings.declared import (
    HARDWARE_RATE,
    HARDWARE_TIME,
    HOST_COST,
    HOST_RATE,
    PROTOCOL_TIME,
    Declared,
)
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import OF_SLEEP, HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.platform import Entry, Platform
from shrimpmx.settings.workload import PROGRAMS

# Costs of this machine by name, as a calibration has them: {"median": ns} or {"unavailable": why}.
Costs = Mapping[str, Mapping[str, Any]]
Group = TypeVar("Group", bound=Declared)

# How much longer the platform's interrupt is than this machine's own at the proposed dilation: what
# differs from one of ours to the next is then small beside it, and so is the time that one takes
# on its way to a virtual CPU, in which that goes on with its rank; an interrupt of the
# platform's hosts kept their core busy (ours).
MARGIN = 4.0
# Proposals are whole multiples of this, rounded up: this machine's interrupt varies by a tenth
# from hour to hour, and a finer figure would hide that (ours).
STEP = 0.5

PLATFORMS = KnownPlatforms()


def platform_of(parameters: PointParameters) -> Platform | None:
    """The platform that a point emulates: one of PLATFORMS, one of the user's own, or None."""
    wanted = parameters.platform.profile
    return wanted if isinstance(wanted, Platform) else PLATFORMS.get(wanted)


def check_draws(count: int, points: Iterable[PointParameters]) -> None:
    """InputError if the platform of some parameters has fewer draws, or there is none."""
    for parameters in points:
        platform = platform_of(parameters)
        if platform is None:
            raise InputError("--draws needs a fitted platform: --set platform=cluster.toml")
        try:
            platform.drawn(count)
        except ValueError as error:
            raise InputError(f"--draws {count}: {error}") from None


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
    wished = MARGIN * float(ours["median"]) / float(platform.costs[name].value)
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
    """What the host is charged, ns, by parameter: the platform's costs, dilated, as CHARGED says.

    A cost of this machine that was not measured counts as 0.
    """
    charged = {}
    for name, cost in platform.costs.items():
        charge = CHARGED[name]
        ours = 0.0 if charge.whole else float(costs.get(name, {}).get("median", 0.0))
        charged[charge.name] = max(0, round(dilation * cost.value - ours))
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


def emulated(parameters: PointParameters, costs: Costs | None, *, real: bool = True) -> Emulated:
    """The parameters as the run of `real` processes or of simulated hosts needs them; `costs` are
    this machine's, from its calibration.

    They are needed for a platform only. What a scenario sets itself overrides the profile.
    """
    wanted, platform = parameters.platform, platform_of(parameters)
    nic, host = parameters.nic, parameters.host
    mx, wait, model = parameters.mx, parameters.wait, parameters.model
    dilation = 1.0 if wanted.time_dilation == "auto" else float(wanted.time_dilation)
    if platform is not None:
        if costs is None and platform.costs:
            raise InputError(f"platform {platform.name} needs a calibration of this machine")
        costs = costs or {}
        try:
            platform = platform.drawn(wanted.draw).held_out(wanted.held_out)
            platform = platform.on(real=real or wanted.hosts == "as-real")
        except ValueError as error:
            raise InputError(str(error)) from None
        if wanted.time_dilation == "auto":
            # Simulated hosts have CPUs enough.
            dilation = proposed_dilation(platform, costs)
            dilation *= ranks_per_cpu(parameters) if real else 1.0
        charged = host_costs(platform, costs, dilation)
        nic = _with_defaults(nic, _values(NicParameters, platform.nic, dilation))
        of_host = _values(HostParameters, platform.host, dilation)
        if not kind_of(parameters.nic).has_queues:  # a NIC that asks for no cores
            of_host.pop("irq_binding", None)
        host = _with_defaults(host, of_host | charged)
        mx = _with_defaults(mx, _values(MxParameters, platform.mx, dilation) | charged)
        wait = _with_defaults(wait, charged)
        if wanted.hosts == "modelled":
            model = _with_defaults(model, _values(HostModelParameters, platform.model, dilation))
    try:
        model.idle_states()
    except ValueError as error:
        raise InputError(str(error)) from None
    free = {wanted.free_cost, *kind_of(nic).free_costs}
    made = Emulated(
        _dilated_nic(nic, dilation),
        _free(_dilated(host, dilation), free),
        _free(_dilated(mx, dilation), free),
        _free(wait, free),
        _free(model, free),
        dilation,
    )
    return made if real else _at_frequency(made)


def costs_of(made: Emulated) -> dict[str, Any]:
    """All that a run is charged, by the names of COSTS."""
    groups = (made.host, made.mx, made.wait, made.model)
    return {
        name: getattr(group, name)
        for name in COSTS
        for group in groups
        if name in type(group).fields and getattr(group, name) not in (0, (0,))
    }


def _free(group: Group, names: set[str]) -> Group:
    """The group without those costs that are its own."""
    return group.model_copy(update=dict.fromkeys(names & type(group).fields.keys(), 0))


def charged_apart(parameters: PointParameters) -> dict[str, dict[str, Any]]:
    """Costs and structure of a point's platform that only simulated hosts have, "only_simulated",
    or only real processes, "only_real": undilated, by parameter.
    """
    modelled, as_real = (_undilated(parameters, hosts) for hosts in ("modelled", "as-real"))
    apart: dict[str, dict[str, Any]] = {"only_simulated": {}, "only_real": {}}
    for group in ("nic", "host", "mx", "wait", "model"):
        here, there = getattr(modelled, group), getattr(as_real, group)
        for name, field in type(here).model_fields.items():
            if name in OF_SLEEP and parameters.host.idle != "sleep":
                continue
            charged, other = getattr(here, name), getattr(there, name)
            if charged != other:
                is_real = charged == field.default
                side = apart["only_real" if is_real else "only_simulated"]
                side[name] = other if is_real else charged
    return apart


def _undilated(parameters: PointParameters, hosts: str) -> Emulated:
    platform = parameters.platform.model_copy(update={"hosts": hosts, "time_dilation": 1.0})
    return emulated(parameters.model_copy(update={"platform": platform}), {}, real=False)


def _at_frequency(made: Emulated) -> Emulated:
    """What simulated hosts take with cores of their model's frequency."""
    ratio, delivery_ns = made.model.frequency_ratio, made.model.interrupt_delivery_ns
    # The interrupt is on its way first.
    handled_ns = max(0, made.host.interrupt_time_ns - delivery_ns)
    interrupt_ns = made.host.interrupt_time_ns - handled_ns + _shorter(handled_ns, ratio)
    host = _of_cores(made.host, ratio).model_copy(update={"interrupt_time_ns": interrupt_ns})
    return replace(
        made,
        host=host,
        mx=_of_cores(made.mx, ratio),
        wait=_of_cores(made.wait, ratio),
        model=_of_cores(made.model, ratio),
    )


def _of_cores(group: Group, ratio: float) -> Group:
    """The group with costs of cores whose frequency is higher by that."""
    return group.model_copy(
        update={
            name: _shorter(getattr(group, name), ratio)
            for name in type(group).fields
            if name in COSTS and COSTS[name].by_clock
        }
    )


def _shorter(cost_ns: int, ratio: float) -> int:
    """A cost by that ratio; one that there is does not become none."""
    return max(min(cost_ns, 1), round(cost_ns / ratio))


def _values(group: type[Declared], entries: Mapping[str, Entry], dilation: float) -> dict[str, Any]:
    """What a platform gives of a group; costs and rates of the host dilated, as host_costs() has
    those that every engine charges. Times of the hardware are dilated with those of a scenario.
    """
    values = {name: each.value for name, each in entries.items()}
    for name, value in values.items():
        marks = group.model_fields[name].metadata
        is_cost = HOST_COST in marks
        if isinstance(value, list):
            values[name] = tuple(round(each * dilation) if is_cost else each for each in value)
        elif is_cost:
            values[name] = round(value * dilation)
        elif HOST_RATE in marks:
            values[name] = round(value / dilation)
    return values


def _with_defaults(given: Any, defaults: Mapping[str, Any]) -> Any:
    """`given` with those of `defaults` that are its fields and not set in it."""
    unset = type(given).fields.keys() - given.model_fields_set
    return given.model_copy(update={name: v for name, v in defaults.items() if name in unset})


def _dilated(group: Group, dilation: float) -> Group:
    """The group with times of the hardware and of the protocol, and of what stands for them, longer
    by `dilation`.
    """
    if dilation == 1:
        return group
    changed: dict[str, Any] = {}
    for name, declared in type(group).model_fields.items():
        if HARDWARE_TIME in declared.metadata or PROTOCOL_TIME in declared.metadata:
            changed[name] = round(getattr(group, name) * dilation)
        if HARDWARE_RATE in declared.metadata:
            changed[name] = round(getattr(group, name) / dilation)
    return group.model_copy(update=changed)


def _dilated_nic(nic: NicParameters, dilation: float) -> NicParameters:
    # 0 means none; a delay never becomes that, nor longer than it is.
    rx_usecs = max(min(nic.rx_usecs, 1), int(nic.rx_usecs * dilation))
    return _dilated(nic, dilation).model_copy(update={"rx_usecs": rx_usecs})


def proposal(platform: Platform, costs: Costs) -> dict[str, Any]:
    """What a run takes to stand for the platform: dilation and added costs, or why it cannot."""
    try:
        dilation = proposed_dilation(platform, costs)
    except InputError as error:
        from shrimpmx.results.environment import unavailable

        return unavailable(str(error))
    return {"time_dilation": dilation, **host_costs(platform, costs, dilation)}
