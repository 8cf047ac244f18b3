"""Two endpoints in one process: messages both ways, and nothing left behind."""

from __future__ import annotations

from shrimpmx.mx.sandbox import join, sandbox


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
