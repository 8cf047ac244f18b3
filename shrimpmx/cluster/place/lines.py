"""How far cache lines travel between the cores of a host."""

from __future__ import annotations

from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.place.topology import Distance
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.costs.meter import LINES

_COSTS = {
    Distance.SHARED_CACHE: "line_cache_ns",
    Distance.SAME_PACKAGE: "line_package_ns",
    Distance.OTHER_PACKAGE: "line_system_ns",
}


def lines_of(spec: ClusterSpec, placement: Placement, node: int) -> list[list[int]]:
    """The lines of a node, as Prices have them; empty if none of them costs anything."""
    if not any(getattr(spec.model, name) for name in LINES):
        return []
    places = {far: 1 + LINES.index(name) for far, name in _COSTS.items()}
    cores = range(spec.host.cores)
    return [
        [places.get(placement.distance((node, to), (node, source)), 0) for source in cores]
        for to in cores
    ]
