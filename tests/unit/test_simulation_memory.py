"""A simulated run that is over keeps no memory, though nothing collects garbage meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.clusters import pingpong_pair
from support.goldens import GOLDENS

from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.errors import DeadlineError
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation.engine import Simulated

NOTIFY = WaitParameters(strategy="notify")


def _vmmc() -> ClusterSpec:
    ranks = tuple(RankSpec(node, "pingpong", options={"iterations": 5}) for node in (0, 1))
    return ClusterSpec(ranks=ranks, nic=NicParameters(nic_kind="vmmc"), wait=NOTIFY)


def _switched() -> ClusterSpec:
    nic = NicParameters(network="fat-tree", leaf_nodes=1)
    return pingpong_pair(5, nic=nic, host=HostParameters(scheduler="gang"))


SPECS = {
    **{name: GOLDENS[name] for name in ("stream-loss", "hog-beside", "copy-offload", "native-mx")},
    "notify": lambda: pingpong_pair(5, wait=NOTIFY),
    "gang": _switched,
    "vmmc": _vmmc,
}


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def mappings() -> int:
    """How many segments without a name this process maps."""
    return Path("/proc/self/maps").read_text().count("/dev/zero (deleted)")


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_run_that_is_over_is_unmapped(spec: Callable[[], ClusterSpec]) -> None:
    before = mappings()
    result = Simulated().run(spec())
    assert mappings() == before
    assert result.counters


def test_a_run_that_failed_is_unmapped_when_its_error_is() -> None:
    before = mappings()
    hogged = pingpong_pair(10**6, companions=(CompanionSpec(0),), deadline_s=0.001)
    with pytest.raises(DeadlineError):
        Simulated().run(hogged)
    assert mappings() == before
