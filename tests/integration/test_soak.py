"""The soak in short: real processes, faults, both paths, every byte checked."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from support.tree import ROOT
from support.virtual_cluster import VirtualCluster

from shrimpmx.errors import MxError
from shrimpmx.workloads.soak import Contents, Plan, Soak

MESSAGES = 6000


@pytest.mark.parametrize("faults", ["0", "0.02"])
def test_every_byte_of_thousands_of_messages_arrives(faults: str) -> None:
    program = [sys.executable, "tools/soak.py", "--messages", str(MESSAGES), "--faults", faults]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{MESSAGES} messages with" in done.stdout
    told = dict(line.split() for line in done.stdout.splitlines()[1:])
    assert int(told["recv_messages"]) == MESSAGES
    assert int(told["sent_shared"]) > 0
    assert int(told["sent_large"]) > 0
    assert (int(told["link_lost"]) > 0) == (faults != "0")
    assert int(told["partners_dead"]) == int(told["pulls_failed"]) == 0


def test_both_sides_agree_on_contents_that_differ() -> None:
    noise = np.random.default_rng(1).integers(0, 256, 1 << 21, dtype=np.uint8)
    plan = Plan(seed=3, messages=10_000)
    one, same, other = (Contents(plan, sender, noise) for sender in (0, 0, 1))
    sizes = [len(one[number]) for number in range(10_000)]
    assert sizes == [len(same[number]) for number in range(10_000)]
    assert sizes != [len(other[number]) for number in range(10_000)]
    assert min(sizes) == 0
    assert max(sizes) > 500_000
    assert not np.array_equal(one[9_998][:8], one[9_999][:8])


@dataclass
class Arrival:
    """What the soak looks at of a status."""

    match: int
    length: int


@pytest.mark.parametrize(
    ("spoilt", "match", "length", "words"),
    [(True, 0, 100, "at byte 77"), (False, 0, 99, "99 bytes, not 100"), (False, 1, 100, "place")],
)
def test_the_soak_sees_what_is_wrong(spoilt: bool, match: int, length: int, words: str) -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair()
    soak = Soak(one, partner, 0, Plan(seed=1, messages=1, window=1))
    content = np.arange(100, dtype=np.uint8)
    soak.incoming = {0: content.copy()}  # type: ignore[assignment]
    content[77] ^= spoilt
    with pytest.raises(MxError, match=words):
        soak._check(0, Arrival(match, length), content)  # type: ignore[arg-type]
