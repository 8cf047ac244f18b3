"""Simulated runs of many seeds: nothing is lost or made on the way (tools/seeds.py runs more)."""

from __future__ import annotations

import pytest
from support.simulated_seeds import draw_simulated, problems_of

CHUNK, CHUNKS = 50, 4


@pytest.mark.nightly("make seeds runs them all", but=1)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_holds_of_every_seed(chunk: int) -> None:
    seeds = range(1 + chunk * CHUNK, 1 + (chunk + 1) * CHUNK)
    assert [f"seed {seed}: {words}" for seed in seeds for words in problems_of(seed)] == []


def test_a_drawn_cluster_is_that_of_its_seed() -> None:
    assert draw_simulated(3).ranks == draw_simulated(3).ranks
    assert len({draw_simulated(seed).nic.coalescing for seed in range(30)}) > 4
