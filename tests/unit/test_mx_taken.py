"""Messages that MPI has matched and not yet received, whose sender is given up meanwhile."""

from __future__ import annotations

import ctypes

import pytest
from support.mpi_worlds import COMM_WORLD, TYPES, Calls
from support.virtual_cluster import MILLISECOND, VirtualCluster, frame_type, perfect_wire

from shrimpmx.mpi.joining import Joined
from shrimpmx.mpi.world import begin
from shrimpmx.settings.mx import MxParameters

ERRORS_RETURN, ERR_OTHER, STATUS_IGNORE = 0x54000001, 15, 1
TAG = 7  # the match bits of rank 0's messages in the world
PARTIAL, LARGE = 20_000, 500_000


@pytest.mark.parametrize("length", [PARTIAL, LARGE])
def test_the_message_ends_with_an_error(length: int) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(resends_max=2))
    back = cluster.connect(other, 0)
    calls = Calls(
        begin(Joined(1, other, [back, back], [0, 1], cluster.control)), 1, 2, cluster.control
    )
    calls.Comm_set_errhandler(COMM_WORLD, ERRORS_RETURN)
    fragments = 0

    def lose_all_but_one_fragment(frame: bytes) -> list[tuple[int, bytes]]:
        nonlocal fragments
        fragments += frame_type(frame) == "medium_frag"
        return perfect_wire(frame) if frame_type(frame) != "medium_frag" or fragments == 1 else []

    cluster.wire = lose_all_but_one_fragment
    one.isend(bytes(length), partner, TAG)
    cluster.advance(MILLISECOND)
    flag, message, request = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    calls.Improbe(0, TAG, COMM_WORLD, flag, message, STATUS_IGNORE)
    assert flag.value == 1

    cluster.wire = lambda frame: []
    # MPI gives no partner up by itself.
    other.set_request_timeout(other.isend(b"", back, 1), MILLISECOND)
    cluster.advance(2000 * MILLISECOND)
    assert other.counters()["partners_dead"] == 1
    # These would take its record if that had been given back.
    receives = [other.irecv(bytearray(8), 100 + number) for number in range(4)]
    buffer = ctypes.create_string_buffer(length)
    calls.Imrecv(buffer, length, TYPES["u1"], message, request)
    with pytest.raises(AssertionError, match=f"MPI_Test returned {ERR_OTHER}"):
        calls.Test(request, flag, STATUS_IGNORE)
    assert [receive.status for receive in receives] == [None] * 4
    assert all(other.cancel(receive) for receive in receives)
