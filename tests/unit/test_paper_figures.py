"""The papers' figures as measurements and charts, and the hosts that were fitted to them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from support.results import a_document, a_point

from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.papers.coalescing2009 import plots
from shrimpmx.papers.measured import PaperFigure, figures_of
from shrimpmx.papers.registry import PAPERS, group_name, group_of, groups, held_out_of
from shrimpmx.settings.workload import PROGRAMS
from shrimpmx.show.plot.reading import Result

CLAIMS = {claim.id: claim for known in PAPERS.values() for claim in known}
HOSTS = ("myri10g-2009", "shrimp-1996")


@pytest.fixture(scope="module")
def figures() -> dict[str, list[PaperFigure]]:
    return {host: figures_of(host) for host in HOSTS}


def test_groups_part_all_claims_and_share_no_figure() -> None:
    count = Counter(name for group in groups() for name in group)
    assert {*count} == {*CLAIMS}
    assert {*count.values()} == {1}
    for claim in CLAIMS.values():
        group = group_of(claim)
        assert all(other in group for each in claim.statistics for other in each.shares)
        assert group_name(group) in group


@pytest.mark.parametrize("host", HOSTS)
def test_each_figure_is_one_and_makes_its_runs_quickly(
    host: str, figures: dict[str, list[PaperFigure]]
) -> None:
    keys = [(one.metric, json.dumps(one.settings)) for one in figures[host]]
    assert len({*keys}) == len(keys) > 4
    for one in figures[host]:
        assert one.value > 0
        assert len(one.made) == (2 if "over" in dict(one.settings) else 1)
        assert all(each.parameters.workload.kind not in PROGRAMS for each in one.made)
        assert one.group in CLAIMS


def test_a_limit_of_a_paper_is_no_figure(figures: dict[str, list[PaperFigure]]) -> None:
    rates = [one.value for one in figures["myri10g-2009"] if one.group == "IC-1"]
    assert rates == [433.0], "less than half of it without coalescing"
    assert not any(one.value == 1.02 for one in figures["shrimp-1996"]), "at least 10 us"


def test_claims_are_judged_by_hosts_that_their_own_figures_did_not_fit(
    figures: dict[str, list[PaperFigure]],
) -> None:
    for host in HOSTS:
        platform = PLATFORMS[host]
        fitted = {key: each for key, each in platform.entries() if key.startswith("fitted.")}
        groups = {one.group for one in figures[host]}
        for each in fitted.values():
            assert {*each.fitted_by} == {*each.without} == groups
        # A value of the platform's own may be set by one group, and have another one without it.
        used = {group for _, each in platform.entries() for group in each.without}
        assert used <= groups
        for claim in CLAIMS.values():
            if claim.host != host:
                continue
            group = group_of(claim)
            assert held_out_of(claim) == (group_name(group) if group_name(group) in used else "")
            left = platform.held_out(held_out_of(claim))
            assert not any(group & {*each.fitted_by} for _, each in left.entries())


@pytest.mark.parametrize(
    ("figure", "params"),
    [
        (plots.fig4, {"platform": "none", "coalescing": "a", "idle": "b", "irq_binding": "c"}),
        (plots.by_delay, {"coalescing": "disabled", "rx_usecs": 5, "idle": 1, "irq_binding": 2}),
        (plots.pingpong, {"coalescing": "disabled", "size_bytes": 0}),
        (plots.table1, {"coalescing": "disabled", "size_bytes": 0}),
        (plots.table2, {"coalescing": "open-mx", "marks": ("notify",)}),
        (plots.table3, {"coalescing": "open-mx"}),
    ],
)
def test_a_figure_is_not_drawn_without_its_axes_or_its_metric(figure: Any, params: Any) -> None:
    for metric in ("transfer", "half_round_trip"):
        if metric == "half_round_trip" and figure is plots.pingpong:
            params = {**params, "coalescing": "timeout"}
        document = a_document("mine", [a_point(params, {metric: 1})])
        assert figure(Result(document)) is None
        assert figure(Result(a_document("mine", [a_point({"mtu": 1}, {metric: 1})]))) is None
