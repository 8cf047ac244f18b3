"""The kinds of NIC by the names that the parameter `nic` has."""

from __future__ import annotations

import functools
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from shrimpmx.cluster.nics.kind import NicKind

if TYPE_CHECKING:
    from shrimpmx.settings.nic import NicParameters

# Loaded on use: each brings its agents, its library and its workloads.
KINDS = {
    "ethernet": "shrimpmx.cluster.nics.ethernet:Ethernet",
    "mx": "shrimpmx.cluster.nics.native_mx:NativeMx",
    "vmmc": "shrimpmx.cluster.nics.vmmc:Vmmc",
}


@functools.cache
def kind_called(name: str) -> NicKind:
    """The kind of NIC of that name."""
    kind: NicKind = resolve_name(KINDS[name])()
    return kind


def kind_of(nic: NicParameters) -> NicKind:
    """The kind of NIC that the parameters name."""
    return kind_called(nic.nic_kind)
