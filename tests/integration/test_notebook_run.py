"""`shrimpmx.run` on real processes."""

from __future__ import annotations

import shlex
from pathlib import Path

import shrimpmx
from shrimpmx.cli import main
from shrimpmx.nic.policy import Policy
from shrimpmx.results.result import load_result
from shrimpmx.wait.waiting_strategy import WaitingStrategy


class OnEach(Policy):
    """An interrupt for each packet."""

    def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
        """Always."""
        return True


class Yields(WaitingStrategy):
    """Never sleeps."""

    def idle(self, waited_ns: int) -> str:
        """Always."""
        return "yield"


def test_it_takes_classes_of_the_caller(tmp_path: Path) -> None:
    found = shrimpmx.run(
        "smoke/pingpong",
        output=tmp_path / "r",
        coalescing=[OnEach, "disabled"],
        wait=Yields,
        platform="none",
        time_dilation=1,
        size_bytes=0,
        repeats=1,
        iterations=3,
        warmup=1,
    )
    points = [point["params"] for point in found.document["points"]]
    assert [point["coalescing"] for point in points] == ["OnEach", "disabled"]
    assert {point["wait"] for point in points} == {"Yields"}
    # What it tells as its command does the same.
    again = tmp_path / "again"
    assert main([*shlex.split(found.document["command"])[1:], "--output", str(again)]) == 0
    assert len(load_result(again)["points"]) == 2
    from_cell = type("FromCell", (OnEach,), {"__module__": "__main__"})
    assert (
        shrimpmx.run(
            "smoke/pingpong",
            output=tmp_path / "cell",
            engine="simulated",
            coalescing=from_cell,
            size_bytes=0,
            repeats=1,
            iterations=3,
        ).document["command"]
        == ""
    )
