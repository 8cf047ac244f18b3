"""omx_endpoint_addr_context_test.

The context of an address is empty at first; what is set is what is got, for every way to come
by the address, and no other address has it.
"""

from __future__ import annotations

import pytest
from support.peer import PATHS, ends


@pytest.mark.parametrize("path", PATHS)
def test_a_context_belongs_to_its_address(path: str) -> None:
    cluster, one, other, partner = ends(path)
    assert one.get_endpoint_addr_context(partner) is None
    mine: object = {"number": 1}
    one.set_endpoint_addr_context(partner, mine)
    assert one.get_endpoint_addr_context(partner) is mine
    assert cluster.connect(one, partner.node, partner.endpoint) is partner
    assert one.get_endpoint_addr_context(partner) is mine
    back = cluster.connect(other, 0, 0)
    if path != "self":
        assert other.get_endpoint_addr_context(back) is None
    other.isend(b"x", back, 1)
    status = cluster.wait(one, one.irecv(bytearray(1), 1))
    assert status.source is not None
    assert one.get_endpoint_addr_context(status.source) is mine
    one.set_endpoint_addr_context(partner, None)
    assert one.get_endpoint_addr_context(partner) is None


def test_a_message_names_its_sender_before_any_connect() -> None:
    cluster, one, other, partner = ends("native")
    one.isend(b"x", partner, 1)
    source = cluster.wait(other, other.irecv(bytearray(1), 1)).source
    assert source is not None
    assert other.get_endpoint_addr_context(source) is None
    other.set_endpoint_addr_context(source, 7)
    assert cluster.connect(other, 0) is source
    assert other.get_endpoint_addr_context(source) == 7
