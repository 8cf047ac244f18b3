"""The plan that ranks read: what is written is what they get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shrimpmx.cluster.engine.memory import ranks_plan
from shrimpmx.cluster.nics.plan import RanksPlan, plan_bytes, plan_of
from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.settings.host import HostParameters


def plan(options: dict[str, Any]) -> RanksPlan:
    ranks = (RankSpec(0, "idle"), RankSpec(1, "idle", options=options))
    spec = ClusterSpec(ranks=ranks, host=HostParameters(marks=("tiny", "medium")))
    return ranks_plan(spec, place(spec, Topology.from_synthetic("core:4 pu:1")), Path("/nowhere"))


def test_a_plan_comes_back_as_it_was() -> None:
    given = plan({"sizes": [1, 2], "by": {"a": 0.5}, "peer": 1})
    found = plan_of(plan_bytes(given))
    assert found.host.marks == ("tiny", "medium")
    assert parts_of(found) == parts_of(given)


def parts_of(plan: RanksPlan) -> tuple[Any, ...]:
    """All that a plan says; a rank has its groups of parameters by their attributes."""
    groups = [vars(group) for group in (plan.nic, plan.host, plan.mx)]
    ranks = [{**rank._asdict(), "wait": vars(rank.wait)} for rank in plan.ranks]
    empty: dict[str, Any] = dict.fromkeys(("nic", "host", "mx", "ranks"))
    return {**plan._asdict(), **empty}, groups, ranks


@pytest.mark.parametrize("value", [{1: 2}, float("inf"), b"xy", {3}, (1, 2), object()])
def test_an_option_that_would_change_on_its_way_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="option 'odd' of rank1 must be a number, a text, or a"):
        plan_bytes(plan({"odd": value}))
