"""Timelines and counts by message in a sweep: what a scenario asks for is kept and printed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from rich.console import Console
from support.perfetto import instants, trace_of

from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Equals, Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.native.trace import TraceRecord
from shrimpmx.results.disturbance import QUIET
from shrimpmx.results.metrics import METRICS, Outcome
from shrimpmx.show.report import print_report
from shrimpmx.show.timeline import Timeline

DECLARED: dict[str, Any] = {
    "name": "x",
    "title": "A title",
    "parameters": {"workload": "anatomy"},
    "sweep": {"coalescing": ("timeout", "open-mx"), "marks": (("rndv", "notify"), ("rndv",))},
    "metrics": ("transfer", "interrupts_per_message", "packets_per_message", "acks_per_message"),
    "expectations": (Equals(text="3 packets", metric="packets_per_message", of={}, value=3),),
    "sections": ("interrupts", "timeline"),
    "timelines": ({"coalescing": "open-mx", "marks": ["rndv"]}, {"coalescing": "timeout"}),
}


def outcome(point: Point, seed: int) -> Outcome:
    counts = {
        "node0.nic": {"irq_raised": np.array([1.0, 2.0]), "rx_marked": np.array([1.0, 1.0])},
        "node1.irq0": {"recv_rndv": np.array([1.0, 1.0]), "recv_pull_reply": np.array([2.0, 2.0])},
    }
    return Outcome(np.array([700_000.0, 710_000.0]), {}, per_message=counts, ranks=("rank0",))


class Tracer:
    """Gives a timeline of one record, and remembers of which points."""

    def __init__(self) -> None:
        self.points: list[int] = []

    def __call__(self, point: Point, seed: int) -> Timeline:
        self.points.append(point.index)
        return Timeline([TraceRecord(5, 0, "isend", 1 << 32 | 9, 100)], ["rank0"])


def run(output: Path | None = None, dilation: float = 1.0) -> tuple[dict[str, Any], Tracer]:
    tracer = Tracer()
    sweep = Sweep(
        Scenario(**DECLARED),
        outcome,
        output=output,
        prober=lambda _cpus: ("near", 100.0),
        figures=QUIET,
        tracer=tracer,
        dilation_of=lambda _point: dilation,
    )
    return sweep.run(), tracer


def test_counts_by_message_become_metrics_and_means() -> None:
    document, _ = run()
    point = document["points"][0]
    assert point["metrics"]["transfer"]["samples"] == [700, 710]
    assert point["metrics"]["interrupts_per_message"]["samples"] == [1.5]
    assert point["metrics"]["packets_per_message"]["samples"] == [3, 3]
    assert point["metrics"]["acks_per_message"]["samples"] == [0]
    assert point["per_message"]["node0.nic"] == {"irq_raised": 1.5, "rx_marked": 1.0}
    assert [verdict["verdict"] for verdict in document["expectations"]] == ["as expected"]


def test_a_workload_that_does_not_count_by_message_says_so() -> None:
    found = METRICS["packets_per_message"].compute(Outcome(np.array([1.0]), {}))
    assert found == "only the workload anatomy counts message by message"


def test_the_points_asked_for_are_traced_in_their_order(tmp_path: Path) -> None:
    document, tracer = run(tmp_path / "r")
    assert tracer.points == [3, 0, 1]
    found = [Path(timeline["perfetto"]).name for timeline in document["timelines"]]
    assert found == ["point0003.pftrace", "point0000.pftrace", "point0001.pftrace"]
    for timeline in document["timelines"]:
        assert instants(trace_of(Path(timeline["perfetto"])), "isend")
        assert "isend: message 9" in Path(timeline["full"]).read_text()
    assert json.loads((tmp_path / "r" / "run.json").read_text())["timelines"]


def test_the_report_prints_the_sections_that_were_asked_for() -> None:
    document, _ = run()
    text = io.StringIO()
    print_report(document, Console(file=text, width=80))
    assert "Why each interrupt was raised" in text.getvalue()
    assert "node1: 1 rendezvous, 2 pull replies arrived" in text.getvalue()
    assert "isend: message 9" in text.getvalue()


@pytest.mark.parametrize(
    ("dilation", "heading"),
    [
        (1.0, "us since the send, agent, event"),
        (
            24.0,
            "us since the send, agent, event; times are 24 times those of the emulated hosts",
        ),
    ],
)
def test_a_timeline_says_whose_times_it_has(dilation: float, heading: str, tmp_path: Path) -> None:
    document, _ = run(tmp_path / "r", dilation)
    text = io.StringIO()
    print_report(document, Console(file=text, width=80))
    assert f"marks rndv; {heading}\n" in text.getvalue()
    for timeline in document["timelines"]:
        first, second, *_ = Path(timeline["full"]).read_text().splitlines()
        assert first == heading
        assert "isend: message 9" in second


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sections": ("nonsense",)}, "sections names 'nonsense'"),
        ({"timelines": ({"rx_usecs": 3},)}, "timelines names 'rx_usecs'"),
    ],
)
def test_a_wrong_name_is_told(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Scenario(**{**DECLARED, **changes})
