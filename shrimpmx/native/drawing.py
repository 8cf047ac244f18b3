"""A run's random numbers come from streams, one for each purpose and agent.

A stream depends on the run's seed, its purpose and its agent alone: not on strategies, nor on what
else is drawn. So runs with the same seed that are to be compared meet the same arrivals, computing
times, faults, phases and wake-ups, however they wait or coalesce ("common random numbers").
"""

from __future__ import annotations

from shrimpmx.native.records import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


def stream_of(purpose: str, seed: int, *agent: int) -> Random:
    """The stream of a purpose and an agent, such as a node or a rank, in a run with this seed."""
    from random import Random

    return Random(" ".join(map(str, (purpose, seed, *agent))))


def seed_of(purpose: str, seed: int, *agent: int) -> int:
    """The seed of such a stream in compiled code, 64 bits."""
    return stream_of(purpose, seed, *agent).getrandbits(64)
