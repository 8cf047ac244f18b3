"""A rank that overwrites its run's memory, its control channel or its files spoils its own run and
nothing else: the run ends well or with a sentence, and leaves nothing. tools/spoiled_runs.py has
more of them.
"""

from __future__ import annotations

import pytest
from support.conditions import patient
from support.spoiled_runs import ENGINES, KINDS, Spoiled, faults_of

pytest.importorskip("mpi4py")

CASES = [
    (kind, way, engine)
    for engine in ENGINES
    for kind in KINDS
    for way in ("mpi", "join")
    if kind != "wishes" or engine == "simulated"
]


@pytest.mark.nightly("each word of a segment", but=1)
@pytest.mark.timeout(patient(120))
@pytest.mark.parametrize(("kind", "way", "engine"), CASES)
def test_a_spoiled_run_ends_with_a_sentence(kind: str, way: str, engine: str) -> None:
    assert faults_of(Spoiled(5, kind, way, engine)) == []
