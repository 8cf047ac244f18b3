"""The names that parameters are set by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.settings.cluster import ClusterParameters
from shrimpmx.settings.declared import Declared
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.platform import PlatformParameters
from shrimpmx.settings.workload import WorkloadParameters

GROUPS: dict[str, type[Declared]] = {
    "cluster": ClusterParameters,
    "workload": WorkloadParameters,
    "nic": NicParameters,
    "host": HostParameters,
    "mx": MxParameters,
    "wait": WaitParameters,
    "faults": LinkFaults,
    "platform": PlatformParameters,
    "model": HostModelParameters,
}


def _parameter_names() -> dict[str, tuple[str, str]]:
    """Every name a parameter can be set by, and its group and field.

    'rx_usecs' and 'nic.rx_usecs' mean the same; 'wait' is the waiting strategy, and the
    seed of the faults is 'faults.seed' only, since `--seed` is the sweep's.
    """
    names: dict[str, tuple[str, str]] = {}
    for group, model in GROUPS.items():
        for field in model.fields:
            names[f"{group}.{field}"] = (group, field)
            if field not in ("seed", "kind", "strategy", "profile"):
                names[field] = (group, field)
    names["wait"] = ("wait", "strategy")
    names["nic"] = ("nic", "nic_kind")
    names["workload"] = ("workload", "kind")
    names["platform"] = ("platform", "profile")
    return names


PARAMETER_NAMES = _parameter_names()
# The one name that a parameter is kept by: the last, and shortest, of those it can be set by.
_OWN_NAMES = {known: name for name, known in PARAMETER_NAMES.items()}
# Fields that go by another name where they are set.
SHOWN_NAMES = {"strategy": "wait", "nic_kind": "nic", "kind": "workload", "profile": "platform"}

# So many parameters that a word begins are named (ours).
NAMED_MAX = 4


def own_name(given: str) -> str:
    """The name by which a parameter is kept: 'rx_usecs' for 'rx-usecs' and for 'nic.rx_usecs';
    `given` itself if it names none.
    """
    known = PARAMETER_NAMES.get(given.strip().replace("-", "_"))
    return given if known is None else _OWN_NAMES[known]


def by_own_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values by their parameters' own names; ValueError if one parameter is named twice."""
    found: dict[str, str] = {}
    for name in given:
        own = own_name(name)
        if own in found:
            raise ValueError(f"{own} is set twice, as {found[own]!r} and as {name!r}")
        found[own] = name
    return {own: given[name] for own, name in found.items()}


def parameter_name(given: str) -> str:
    """The own name of the parameter that `given` names; InputError if it names none."""
    own = own_name(given)
    if own in PARAMETER_NAMES:
        return own
    name = given.strip().replace("-", "_")
    full = next((full for full in PARAMETER_NAMES if full.endswith(f".{name}")), name)
    begun = [each for each in PARAMETER_NAMES if each.startswith(f"{name}_")]
    hint = did_you_mean(full, PARAMETER_NAMES)
    if 0 < len(begun) <= NAMED_MAX:
        hint = f"; there {'is' if len(begun) == 1 else 'are'} {', '.join(begun)}"
    raise InputError(
        f"there is no parameter {given!r}{hint} (shrimpmx list --parameters shows them)"
    )
