"""How often an early mark's interrupt was put off to the end of its message: from counters."""

from __future__ import annotations

import numpy as np
import pytest

from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.experiment.outcome import mis_ordering
from shrimpmx.results.metrics import METRICS, Outcome
from shrimpmx.results.statistics import Samples
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters

BRIDGED = np.array([3.0, 0.0, 2.0, 3.0])
COUNTED = {"node1.nic": {"irq_deferred_packets": BRIDGED}, "node0.nic": {"irq_raised": BRIDGED}}


def success(outcome: Outcome) -> Samples | str:
    return METRICS["deferral_success"].compute(outcome)


def test_success_is_that_all_behind_the_mark_came_meanwhile() -> None:
    outcome = Outcome(np.ones(4), {}, per_message=COUNTED, mis_ordering=3)
    assert list(success(outcome)) == [50.0]


def test_no_deferral_at_all_is_no_success() -> None:
    counted = {"node1.nic": {"rx_packets": BRIDGED}}
    outcome = Outcome(np.ones(4), {}, per_message=counted, mis_ordering=1)
    assert list(success(outcome)) == [0.0]


def test_why_there_is_no_figure() -> None:
    assert "only the workload anatomy" in success(Outcome(np.ones(4), {}, mis_ordering=1))
    in_order = Outcome(np.ones(4), {}, per_message=COUNTED)
    assert success(in_order) == "no packet comes behind a mark: mark_early and overtake are 0"


@pytest.mark.parametrize(
    ("early", "overtake", "behind"),
    [(0, 0, 0), (3, 0, 3), (0, 3, 3), (1, 3, 0), (3, 3, 2), (4, 3, 4)],
)
def test_packets_behind_the_mark(early: int, overtake: int, behind: int) -> None:
    count = 23
    # The order of arrival, by hand: the last one stands before the `overtake` ahead of it.
    order = list(range(count - 1))
    order.insert(count - 1 - overtake, count - 1)
    assert count - 1 - order.index(count - 1 - early) == behind
    faults = LinkFaults(overtake=overtake) if overtake else None
    host = HostParameters(mark_early=early)
    spec = ClusterSpec(ranks=(RankSpec(0, "idle"),), host=host, link_faults=faults)
    assert mis_ordering(spec) == behind
