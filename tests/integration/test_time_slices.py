"""Ranks and their company run with the time slice and the priority that they are given."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from support.clusters import run
from support.vmmc_programs import VMMC, ranks

from shrimpmx.cluster.nics.vmmc import VmmcRank
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec
from shrimpmx.native import cores
from shrimpmx.settings.host import HostParameters, WaitParameters

SLICE_NS = 20_000_000


def tell_slices(context: VmmcRank) -> dict[str, list[int]]:
    """The slices of all processes of the run, by runner; all have settled when ranks work."""
    control = context.control
    pids = [control.runner_info(runner)["pid"] for runner in range(control.runners_count)]
    return {"slices": [cores.time_slice(pid) for pid in pids]}


@pytest.mark.skipif(
    not cores.time_slices_settable(), reason="this kernel gives all processes the same time slice"
)
@pytest.mark.parametrize("slice_ns", [0, SLICE_NS])
def test_ranks_have_the_slice_that_was_asked_for(slice_ns: int) -> None:
    spec = ClusterSpec(
        ranks=ranks(tell_slices),
        nic=VMMC,
        host=HostParameters(time_slice_ns=slice_ns),
        wait=WaitParameters(strategy="block"),
    )
    result = run(spec)
    found = result.samples["rank0"]["slices"].tolist()
    for process, given_ns in zip(result.placement.processes, found, strict=True):
        assert (given_ns == SLICE_NS) == (slice_ns != 0 and process.role == "rank")


@pytest.mark.parametrize("slice_ns", [1, 99_999])
def test_a_slice_that_no_kernel_gives_is_refused(slice_ns: int) -> None:
    with pytest.raises(ValueError, match="time_slice_ns must be 0 or at least 100000"):
        HostParameters(time_slice_ns=slice_ns)


@pytest.mark.parametrize("slice_ns", [-1, 100_000_001])
def test_a_slice_out_of_range_is_refused(slice_ns: int) -> None:
    with pytest.raises(ValueError, match="time_slice_ns"):
        HostParameters(time_slice_ns=slice_ns)


@pytest.mark.parametrize("slice_ns", [0, 100_000, 100_000_000])
def test_slices_within_the_bounds_are_taken(slice_ns: int) -> None:
    assert HostParameters(time_slice_ns=slice_ns).time_slice_ns == slice_ns


def tell_niceness(context: VmmcRank) -> dict[str, list[int]]:
    """That of all processes of the run, by runner."""
    control = context.control
    pids = [control.runner_info(runner)["pid"] for runner in range(control.runners_count)]
    return {"niceness": [os.getpriority(os.PRIO_PROCESS, pid) for pid in pids]}


@pytest.mark.skipif(
    not cores.niceness_permitted(-20)[0], reason="no right to a priority above the normal one"
)
def test_ranks_have_the_priority_that_was_asked_for() -> None:
    raised = tuple(replace(rank, niceness=-20) for rank in ranks(tell_niceness))
    spec = ClusterSpec(
        ranks=raised,
        nic=VMMC,
        wait=WaitParameters(strategy="block"),
        companions=(CompanionSpec(0),),
    )
    result = run(spec)
    found = result.samples["rank0"]["niceness"].tolist()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for process, niceness in zip(result.placement.processes, found, strict=True):
        assert niceness == max(-20, own + process.niceness)
