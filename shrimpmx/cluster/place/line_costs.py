"""What a cache line from another core costs the cores of a host, by where they are."""

from __future__ import annotations

from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.place.topology import Distance
from shrimpmx.cluster.spec import ClusterSpec


def line_costs(spec: ClusterSpec, placement: Placement, node: int) -> list[list[int]]:
    """For each core of a node, what a line costs it from each of the cores, ns; empty: nothing."""
    cores = range(spec.host.cores)
    by_distance = {
        Distance.SAME_CORE: 0,
        Distance.SHARED_CACHE: spec.model.line_cache_ns,
        Distance.SAME_PACKAGE: spec.model.line_package_ns,
        Distance.OTHER_PACKAGE: spec.model.line_system_ns,
    }
    if not any(by_distance.values()):
        return []
    return [
        [by_distance[placement.distance((node, to), (node, source))] for source in cores]
        for to in cores
    ]
