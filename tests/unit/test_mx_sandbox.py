"""Two endpoints in one process: messages both ways, and nothing left behind."""

from __future__ import annotations

import ctypes

import pytest

from shrimpmx.mx.sandbox import join, sandbox
from shrimpmx.settings.mx import MxParameters


class Allocated(ctypes.Structure):
    """The C library's `struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def allocated_bytes() -> int:
    """Bytes that malloc has given out in this process, by the main thread or as mappings."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Allocated
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize("to_itself", [False, True])
def test_closing_frees_kept_messages_beyond_the_arena(to_itself: bool) -> None:
    parameters = MxParameters(unexpected_bytes=65536, shared_rndv_threshold=32768)
    before = []
    for _ in range(3):
        before.append(allocated_bytes())
        with sandbox(parameters) as (one, other):
            partner = one.connect(0, 0) if to_itself else join(one, other)[0]
            for _ in range(200):
                one.forget(one.isend(bytes(30_000), partner, 1))
                other.progress()
                one.progress()
            grown = (one if to_itself else other).counters()["pool_grown"]
            assert grown > 150
            assert allocated_bytes() - before[-1] > 150 * 30_000
    assert allocated_bytes() - before[1] < 100 * 30_000


def test_a_pair_talks_without_a_cluster() -> None:
    with sandbox() as (one, other):
        to_other, to_one = join(one, other)
        buffer = bytearray(8)
        for turn in range(200):
            one.send(turn.to_bytes(8, "big"), to_other, match=turn)
            assert other.recv(buffer, match=turn).transferred == 8
            other.send(buffer, to_one, match=turn)
            one.recv(buffer, match=turn)
            assert int.from_bytes(buffer, "big") == turn
        request = other.irecv(bytearray(20000), 7)
        one.isend(bytes(20000), to_other, 7)
        status = other.wait(request, timeout_ns=5_000_000_000)
        assert status is not None
        assert status.length == 20000
