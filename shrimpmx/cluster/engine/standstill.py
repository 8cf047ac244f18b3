"""Runs that are late since nothing in them moves any more."""

from __future__ import annotations

from shrimpmx.cluster.engine.diagnosis import place_in_program, unreported
from shrimpmx.cluster.engine.mpi_ranks import MpiRanks
from shrimpmx.cluster.engine.parts import RunParts
from shrimpmx.cluster.engine.silence import LINES_MAX
from shrimpmx.errors import NeverReportedError, StandstillError

# All ranks wait for so long, and no message moves: more time would not help (ours).
STILL_S = 1.0


def check_hope(parts: RunParts, mpi: MpiRanks, told: str, late: str, agent: str, dump: str) -> None:
    """StandstillError if more time would not help a run that is late, in which no interrupt is
    under way: `told` in words with what blamed processes do, `late` without.
    """
    if words := unreported(parts.memory.nodes, parts.spec):
        raise NeverReportedError(told + words, agent, dump)
    still_s = mpi.still_s()
    if still_s < STILL_S:
        return
    places = {name: place_in_program(parts, name) for name in list(mpi.doing())[:LINES_MAX]}
    calls = "; ".join(
        f"{name}: {mpi.doing()[name]}{' at ' * bool(place)}{place}"
        for name, place in places.items()
    )
    raise StandstillError(
        f"{late}: every rank waits, and no message has moved for {still_s:.0f} s: {calls}",
        agent,
        dump,
    )
