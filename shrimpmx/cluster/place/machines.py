"""Machines by name, to ask placement about one that is not at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shrimpmx.cluster.place.topology import Topology
from shrimpmx.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Machine:
    """`synthetic` is its hwloc description, `what` says in a few words what it stands for.

    `cache_bytes`: a core's first level, for code and for data each, and the last level that it
    has (perhaps with others); None: not known, so that they cannot be simulated.
    """

    synthetic: str
    what: str
    cache_bytes: tuple[int, int] | None = None


MACHINES = {
    # hwloc's test machine 8em64t-2s2ca2c, an E5345 as in the paper, has these numbers on Linux.
    "clovertown-2007": Machine(
        "package:2 l2:2(size=4MB) core:2 pu:1(indexes=0,4,2,6,1,5,3,7)",
        "2 quad-core Xeon E5345, an L2 for each two cores (multiqueue, Figure 4)",
        cache_bytes=(32 << 10, 4 << 20),
    ),
    "one-l3-8": Machine("package:1 l3:1 core:8 pu:1", "8 cores that share an L3, no SMT"),
    "two-socket-32": Machine(
        "package:2 l3:1 core:16 pu:2(indexes=2*32:1*2)",
        "2 packages of 16 cores with SMT, an L3 each; siblings are 0 and 32, 1 and 33, ...",
    ),
    "chiplets-16": Machine(
        "package:1 l3:2 core:8 pu:2(indexes=2*16:1*2)",
        "a package of 16 cores with SMT, an L3 for each 8 of them",
    ),
}


def topology_of(text: str) -> Topology:
    """The topology of the machine of that name, or of that synthetic description.

    InputError that lists the names if it is neither.
    """
    if ":" in text:
        return Topology.from_synthetic(text)
    if text not in MACHINES:
        raise InputError(
            f"there is no machine {text!r}; there are {', '.join(MACHINES)}, or give a synthetic "
            f'topology such as "package:2 l2:2 core:2 pu:1"{did_you_mean(text, MACHINES)}'
        )
    return replace(Topology.from_synthetic(MACHINES[text].synthetic), source=text)
