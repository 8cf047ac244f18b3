"""The kinds of link by name: a row has what makes the ends, and what else there is to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.native.records import dataclass
from shrimpmx.settings.strategies import object_at

if TYPE_CHECKING:
    from shrimpmx.link.ends import Ingress
    from shrimpmx.link.line import EmulatedLine
    from shrimpmx.settings.faults import LinkFaults
    from shrimpmx.settings.nic import NicParameters
    from shrimpmx.shared.node import Node


@dataclass(frozen=True)
class Link:
    """One kind of link.

    `implementation`: "module:function", which makes the ends as links_of() does. `maps_nodes`: they
    map each other's nodes, so that a sender can act for the far NIC. `look_every_ns`: how often a
    NIC looks for frames that no doorbell announces; 0: a doorbell wakes it.
    """

    implementation: str
    maps_nodes: bool = True
    look_every_ns: int = 0


LINKS = {"rings": Link("shrimpmx.link.rings:ring_links")}


def link_called(name: str) -> Link:
    """The kind of link of that name; InputError naming those there are."""
    if name not in LINKS:
        hint = did_you_mean(name, LINKS)
        raise InputError(f"there is no link {name!r}; there are {', '.join(LINKS)}{hint}")
    return LINKS[name]


def links_of(
    name: str,
    nodes: Sequence[Node],
    index: int,
    parameters: NicParameters,
    faults: LinkFaults | None = None,
) -> tuple[EmulatedLine, Ingress]:
    """The two ends of node `index`, to and from all `nodes`, of the kind of link of that name."""
    link = link_called(name)
    egress, ingress = object_at(link.implementation)(nodes, index, parameters, faults)
    ingress.look_every_ns = link.look_every_ns
    return egress, ingress
