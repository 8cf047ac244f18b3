"""Classes of one's own in a script: `shrimpmx.run` takes them as they are, others from modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from support.mpi_programs import mpi_program

import shrimpmx
from shrimpmx.errors import InputError
from shrimpmx.nic.policy import Policy
from shrimpmx.wait.waiting_strategy import WaitingStrategy

SHORT: dict[str, Any] = {
    "tx_interrupts": False,
    "size_bytes": 0,
    "repeats": 1,
    "iterations": 3,
    "warmup": 1,
}
MODULE = """
from shrimpmx.nic.policy import Policy

class OnEach(Policy):
    def on_dma_complete(self, now_ns, marked, dma_pending):
        return True
"""


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


def medians(found: shrimpmx.Result, axis: str) -> dict[str, float]:
    return {
        point["params"][axis]: point["metrics"]["half_round_trip"]["median"]
        for point in found.document["points"]
    }


def test_a_scenario_is_run_with_classes(tmp_path: Path) -> None:
    found = shrimpmx.run(
        "smoke/pingpong",
        engine="simulated",
        output=tmp_path / "r",
        coalescing=[OnEach, "disabled"],
        wait=Yields,
        **SHORT,
    )
    times = medians(found, "coalescing")
    assert list(times) == ["OnEach", "disabled"]
    assert times["OnEach"] == times["disabled"]


@pytest.mark.parametrize("wrong", [Yields, int])
def test_what_is_no_policy_is_refused(wrong: type, tmp_path: Path) -> None:
    place = tmp_path / "r"
    with pytest.raises(InputError, match="must derive from"):
        shrimpmx.run("smoke/pingpong", engine="simulated", output=place, coalescing=wrong, **SHORT)
    assert not place.exists()


def test_a_program_has_the_class_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_policies.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("my_policies")
    monkeypatch.setitem(sys.modules, "my_policies", module)
    program = mpi_program(tmp_path, "finalize()")
    found = shrimpmx.mpirun(
        program, 2, engine="simulated", output=tmp_path / "r", coalescing=module.OnEach
    )
    [point] = found.document["points"]
    assert point["params"]["coalescing"] == f"{tmp_path / 'my_policies.py'}:OnEach"


def test_a_program_finds_no_class_of_a_script_or_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Local(OnEach):
        """Of this function."""

    monkeypatch.setattr(OnEach, "__module__", "__main__")
    for own in (Local, OnEach):
        with pytest.raises(InputError, match=f"move {own.__name__} into a module"):
            shrimpmx.mpirun("true", 2, output=tmp_path / "r", coalescing=own)
        with pytest.raises(InputError, match=f"move {own.__name__} into a module"):
            shrimpmx.explore("true", 2, output=tmp_path / "r", coalescing=[own, "timeout"])
    assert not (tmp_path / "r").exists()
