"""The gap behind each frame: what the sending host takes for a packet."""

from __future__ import annotations

import itertools

import numpy as np
from support.nic import Nodes, frame

from shrimpmx.link.rings import RingEgress
from shrimpmx.shared.node import take_frames

FRAMES = 2_000


def gaps(mean_ns: int, jitter: float, seed: int = 1, rate: int = 0) -> list[int]:
    """Between the arrivals of frames that were all there at once, ns."""
    nodes = Nodes(link_ring_entries=4096)
    link = RingEgress(nodes[1], rate, 100)
    link.add_node(nodes[0])
    link.use_gap(mean_ns, jitter, seed)
    for number in range(FRAMES):
        assert link.send(0, 0, frame(number % 256))
    link.flush_at(0)
    times = [time_ns for time_ns, _ in take_frames(nodes[0], "link", 1)]
    assert times[0] >= 100
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def test_without_a_gap_frames_follow_each_other() -> None:
    assert set(gaps(0, 0.0)) == {0}


def test_a_fixed_gap_is_added_to_the_frame_s_own_time() -> None:
    assert set(gaps(1_970, 0.0)) == {1_970}
    # 60 + 24 bytes at 1 Gb/s are 672 ns.
    assert set(gaps(1_970, 0.0, rate=1_000_000_000)) == {1_970 + 672}


def test_jitter_keeps_the_mean_and_the_fixed_part() -> None:
    found = np.array(gaps(2_000, 0.5))
    assert found.min() >= 1_000
    assert abs(found.mean() - 2_000) < 60
    # An exponential distribution's standard deviation is its mean.
    assert abs(found.std() - 1_000) < 80


def test_the_seed_decides() -> None:
    assert gaps(2_000, 1.0, seed=7) == gaps(2_000, 1.0, seed=7)
    assert gaps(2_000, 1.0, seed=7) != gaps(2_000, 1.0, seed=8)


def test_an_idle_line_does_not_wait() -> None:
    nodes = Nodes()
    link = RingEgress(nodes[1], 0, 0)
    link.add_node(nodes[0])
    link.use_gap(1_000, 0.0, 1)
    for now_ns in (0, 5_000):
        link.send(now_ns, 0, frame(1))
    link.flush_at(5_000)
    assert [time_ns for time_ns, _ in take_frames(nodes[0], "link", 1)] == [0, 5_000]
