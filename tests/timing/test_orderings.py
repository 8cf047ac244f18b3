"""Which of two ways is faster, or interrupts less: the orderings that the papers tell of.

Medians of whole runs, and the best of a few, so that what else the machine does is not what
decides. Run them with `pytest --timing tests/timing` on a quiet machine.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.clusters import generator_stream, pingpong_pair, run

from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.nic import NicParameters

pytestmark = pytest.mark.timing

TRIES = 5
# Two medians that differ by less are the same.
TOLERANCE = 1.15


def half_round_trip_ns(coalescing: str, wait: str) -> float:
    """The median of a 0 B ping-pong."""
    spec = pingpong_pair(
        300,
        warmup=50,
        nic=NicParameters(coalescing=coalescing),
        wait=WaitParameters(strategy=wait),
    )
    return float(np.median(run(spec).samples["rank0"]["half_round_trip_ns"]))


def best(*ways: tuple[str, str]) -> list[float]:
    """For each pair of coalescing and waiting the best median of a few runs, taken in turn."""
    figures = [[half_round_trip_ns(*way) for way in ways] for _ in range(TRIES)]
    return [min(column) for column in zip(*figures, strict=True)]


def interrupts_per_message(coalescing: str) -> float:
    """Of a stream of 128 B messages from the generator, as fast as it goes."""
    count = 20_000
    nic = NicParameters(coalescing=coalescing, link_bits_per_second=0)
    result = run(generator_stream(count, 128, wait=WaitParameters(strategy="block"), nic=nic))
    return result.counters["node0.nic"]["irq_raised"] / count


@pytest.mark.parametrize("wait", ["spin", "block"])
def test_at_0_bytes_a_timeout_is_slow_and_open_mx_is_fast(wait: str) -> None:
    """Coalescing paper, figure 5: the timeout's 75 us are in every message."""
    disabled, timeout, open_mx = best(("disabled", wait), ("timeout", wait), ("open-mx", wait))
    assert timeout > 1.5 * disabled
    assert timeout > 1.5 * open_mx
    assert open_mx < 1.3 * disabled


def test_stream_coalescing_interrupts_less_than_open_mx() -> None:
    """Coalescing paper, section IV-C: a stream's interrupts are put off while more come."""
    pairs = [
        (interrupts_per_message("stream"), interrupts_per_message("open-mx")) for _ in range(TRIES)
    ]
    stream, open_mx = np.median(np.array(pairs), axis=0)
    assert stream < open_mx


@pytest.mark.parametrize("fallback", ["sched", "block", "notify"])
def test_a_hybrid_lies_between_its_pure_parts(fallback: str) -> None:
    """Waiting paper, figure 2: what arrives within the spin limit costs what spinning costs."""
    waits = ("spin", f"spin-{fallback}", fallback)
    spin, hybrid, pure = best(*(("disabled", wait) for wait in waits))
    assert min(spin, pure) / TOLERANCE < hybrid < max(spin, pure) * TOLERANCE
