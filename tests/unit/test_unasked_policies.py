"""The note that a policy of the user's own ignores the sends by which the others interrupt."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from shrimpmx.cli import main
from shrimpmx.experiment.clusters import unasked_policies
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.nic.policy import Policy

PAPER = {"platform": "myri10g-2009", "iterations": 3, "warmup": 1}


class Silent(Policy):
    def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
        return True


class Asked(Silent):
    def on_send_complete(self, now_ns: int) -> bool:
        return True


class Inheriting(Asked):
    pass


def notes_of(
    policies: Mapping[str, Callable[[], Any]], *, real: bool = False, **given: Any
) -> list[str]:
    scenario = Scenario(
        name="mine/x",
        title="One",
        parameters={**PAPER, **given},
        sweep={"coalescing": ["timeout", *policies]},
        policies=policies,
        metrics=("half_round_trip",),
    )
    return unasked_policies(scenario.points(), scenario.policies, real=real)


@pytest.mark.parametrize(
    ("policies", "named"),
    [
        ({"mine": Silent}, ["mine"]),
        ({"mine": Asked}, []),
        ({"mine": Inheriting}, []),
        ({"a": Silent, "b": Asked, "c": Silent}, ["a", "c"]),
        ({"made": lambda: Silent()}, []),
    ],
)
def test_a_policy_that_ignores_sends_is_named(
    policies: dict[str, Callable[[], Any]], named: list[str]
) -> None:
    found = notes_of(policies)
    assert [each.partition("policy ")[2].partition(" has no")[0] for each in found] == named


@pytest.mark.parametrize(
    ("given", "real", "told"),
    [
        ({}, False, True),
        ({}, True, False),  # whose platform has no such interrupts there
        ({"hosts": "as-real"}, False, False),
        ({"tx_interrupts": False}, False, False),
        ({"platform": "none"}, False, False),
        ({"platform": "none", "tx_interrupts": True}, True, True),
    ],
)
def test_nothing_is_said_where_no_strategy_hears_of_sends(
    given: dict[str, Any], *, real: bool, told: bool
) -> None:
    assert bool(notes_of({"mine": Silent}, real=real, **given)) == told


@pytest.mark.parametrize("values", [(True, False), (False, True)])
def test_it_is_said_where_one_of_its_points_hears_of_sends(values: tuple[bool, bool]) -> None:
    """In whatever order."""
    scenario = Scenario(
        name="mine/x",
        title="One",
        parameters=PAPER,
        sweep={"coalescing": ["mine"], "tx_interrupts": list(values)},
        policies={"mine": Silent},
        metrics=("half_round_trip",),
    )
    assert len(unasked_policies(scenario.points(), scenario.policies, real=False)) == 1


def test_a_run_says_so_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    own = """
        from shrimpmx.nic.policy import Policy

        class Every(Policy):
            def on_dma_complete(self, now_ns, marked, dma_pending):
                return True
        """
    Path("own.py").write_text(textwrap.dedent(own))
    settings = ["coalescing=own.py:Every", "size_bytes=0", "repeats=1", "iterations=3"]
    assert main(["run", "smoke/pingpong", *settings, "--engine", "simulated"]) == 0
    assert "policy own.py:Every has no on_send_complete" in capsys.readouterr().err
