"""What Python declares of a node's limits is what the compiler has."""

from __future__ import annotations

from typing import Any

import pytest
from support.packets import SmallPacket, TinyPacket, encode

from shrimpmx.mx.binding import ENDPOINTS_MAX
from shrimpmx.settings.cluster import ClusterParameters
from shrimpmx.settings.declared import Declared
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared import sizes
from shrimpmx.wire import tables
from shrimpmx.wire.check import check


def greatest(group: type[Declared], name: str) -> Any:
    """The most that a parameter may be."""
    [most] = [rule.le for rule in group.model_fields[name].metadata if hasattr(rule, "le")]
    return most


@pytest.mark.parametrize(
    ("group", "name", "most"),
    [
        (NicParameters, "rx_queues", sizes.NODE_VECTORS_MAX),
        (HostParameters, "cores", sizes.NODE_CORES_MAX),
        (ClusterParameters, "nodes", sizes.NODE_PEERS_MAX),
        (ClusterParameters, "rank_core", sizes.NODE_CORES_MAX - 1),
    ],
)
def test_a_parameter_goes_as_far_as_a_node_does(
    group: type[Declared], name: str, most: int
) -> None:
    assert greatest(group, name) == most


def test_an_endpoint_fits_into_a_frame_beside_that_of_raw_packets() -> None:
    assert ENDPOINTS_MAX == sizes.NODE_ENDPOINTS_MAX == 0xFF


@pytest.mark.parametrize(
    ("kind", "table", "compiled"),
    [
        (TinyPacket, tables.TINY_MAX_BYTES, sizes.TINY_MAX_BYTES),
        (SmallPacket, tables.SMALL_MAX_BYTES, sizes.SMALL_MAX_BYTES),
    ],
)
def test_a_packet_holds_what_its_class_of_messages_has(
    kind: type[TinyPacket | SmallPacket], table: int, compiled: int
) -> None:
    assert table == compiled
    assert check(encode(kind(data=bytes(table)))) == ""
    assert check(encode(kind(data=bytes(table + 1)))) != ""
