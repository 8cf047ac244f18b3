"""mx_pingpong and mx_stream: messages of one size back and forth, and in one direction."""

from __future__ import annotations

import pytest
from support.clusters import on_both_engines, pingpong_pair, run, stream_pair

from shrimpmx.settings.host import WaitParameters

SIZES = [0, 32, 128, 4096, 32_768, 65_536, 1 << 20]
BLOCK = WaitParameters(strategy="block")


@pytest.mark.nightly("each size", but=5)
@on_both_engines
@pytest.mark.parametrize("size_bytes", SIZES)
def test_pingpong(size_bytes: int) -> None:
    result = run(pingpong_pair(50, size_bytes, warmup=10, wait=BLOCK))
    for rank in ("rank0", "rank1"):
        half_ns = result.samples[rank]["half_round_trip_ns"]
        assert len(half_ns) == 50
        assert half_ns.min() > 0
        assert result.counters[rank]["recv_messages"] == 60
        assert result.counters[rank]["sent_large"] == (60 if size_bytes > 32_768 else 0)


@pytest.mark.nightly("each size", but=5)
@on_both_engines
@pytest.mark.parametrize("size_bytes", SIZES)
def test_stream(size_bytes: int) -> None:
    count = 1000 if size_bytes < 65_536 else 100
    result = run(stream_pair(count, size_bytes, window=16, wait=BLOCK))
    assert result.samples["rank1"]["count"].tolist() == [count]
    stamps = result.samples["rank1"]["timestamps_ns"]
    assert (stamps[1:] >= stamps[:-1]).all()
    assert result.counters["rank1"]["recv_messages"] == count
    assert result.counters["rank0"]["sent_large"] == (count if size_bytes > 32_768 else 0)
