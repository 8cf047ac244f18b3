"""Metrics of an MPI program's work: none divides what is of the whole run by what is of that."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.point import PointParameters
from shrimpmx.results.metrics import METRICS, Outcome

HARDWARE = {"cache_references_user": 50, "cache_misses_user": 10, "l1d_read_misses_user": 20}
WAITS = {"waits": 4, "blocks": 2, "while_spinning": 1, "system_calls": 2, "yields": 1}
USAGE = {"task_clock_ns": 9000, "voluntary_switches": 3, "involuntary_switches": 1}
COUNTERS = {
    "node0.irq0": {"interrupts": 6, "recv_packets": 8, "recv_messages": 5},
    "rank0": {"recv_messages": 5},
}


def outcome(is_mpi: bool) -> Outcome:
    return Outcome(
        np.empty(0),
        COUNTERS,
        accounts={"rank0": WAITS},
        usage={"rank0": USAGE, "node0.irq0": USAGE},
        hardware={"rank0": HARDWARE, "node0.irq0": HARDWARE},
        ranks=("rank0",),
        elapsed_ns={"rank0": 7000},
        is_mpi=is_mpi,
    )


@pytest.mark.parametrize(
    "name",
    ["cache_misses_rank", "cache_misses_per_packet", "l1_misses_per_packet"],
)
def test_what_is_of_the_whole_run_makes_no_figure_of_the_work(name: str) -> None:
    metric = METRICS[name]
    assert not isinstance(metric.compute(outcome(is_mpi=False)), str)
    reason = metric.compute(outcome(is_mpi=True))
    assert isinstance(reason, str)
    assert "whole run" in reason


@pytest.mark.parametrize(
    "name",
    [
        *("run_time", "run_cpu_time", "run_handler_cpu_time", "cpu_per_message"),
        *("handler_cpu_per_packet", "host_cpu_per_message", "packets_per_interrupt"),
        *("system_calls_per_wait", "switches_per_wait", "interrupts_per_wait", "sleeps_per_wait"),
        *("wakes_per_wait", "wakes_per_sleep", "reschedules_per_call"),
        *("taken_spinning", "found_spinning", "cache_misses_handler"),
    ],
)
def test_what_is_of_the_work_or_of_handlers_alone_stays(name: str) -> None:
    found = METRICS[name].compute(outcome(is_mpi=True))
    assert not isinstance(found, str), found


def test_a_run_tells_that_its_program_marks_sections() -> None:
    spec = cluster_spec(PointParameters.model_validate({}), 1)
    nowhere: Any = SimpleNamespace(as_dict=dict)
    assert not outcome_of(spec, ClusterResult(nowhere)).marked
    assert outcome_of(spec, ClusterResult(nowhere, is_mpi=True, marked=True)).marked


def test_the_share_of_the_work_is_that_of_the_longest_rank() -> None:
    whole = replace(outcome(is_mpi=True), whole_ns=28000)
    assert METRICS["work_share"].compute(whole) == [25.0]
    assert isinstance(METRICS["work_share"].compute(outcome(is_mpi=False)), str)
