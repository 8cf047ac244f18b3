"""The kinds of NIC by the names that the parameter `nic` has."""

from __future__ import annotations

from shrimpmx.cluster.nics.ethernet import Ethernet
from shrimpmx.cluster.nics.kind import NicKind
from shrimpmx.cluster.nics.native_mx import NativeMx
from shrimpmx.cluster.nics.vmmc import Vmmc
from shrimpmx.settings.nic import NicParameters

KINDS: dict[str, NicKind] = {kind.name: kind for kind in (Ethernet(), NativeMx(), Vmmc())}


def kind_of(nic: NicParameters) -> NicKind:
    """The kind of NIC that the parameters name."""
    return KINDS[nic.nic_kind]
