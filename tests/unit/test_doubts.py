"""A parameter that is set and that nothing heeds is told, and no other one."""

from __future__ import annotations

import pytest

from shrimpmx.cli import main
from shrimpmx.experiment.doubts import unheeded
from shrimpmx.experiment.scenario import Scenario


def points(**parameters: object) -> list:  # type: ignore[type-arg]
    sweep = {name: values for name, values in parameters.items() if isinstance(values, tuple)}
    fixed = {name: value for name, value in parameters.items() if name not in sweep}
    return Scenario(
        name="x", title="-", parameters=fixed, sweep=sweep, metrics=("half_round_trip",)
    ).points()


@pytest.mark.parametrize(
    ("parameters", "setting", "told"),
    [
        ({"coalescing": "disabled"}, "rx_usecs=20", "coalescing=disabled"),
        ({"coalescing": "disabled"}, "nic.rx-usecs=20", "coalescing=disabled"),
        ({"coalescing": "dim"}, "rx_frames=8", "coalescing=dim"),
        ({"coalescing": "timeout"}, "gro_flush_timeout_ns=1000", "coalescing=timeout"),
        ({"coalescing": "napi-defer"}, "irq_suspend_timeout_ns=1000", "coalescing=napi-defer"),
        ({"wait": "block"}, "spin_ns=5", "wait=block"),
        (
            {"coalescing": ("dim", "disabled")},
            "rx_frames=8",
            "coalescing=dim or coalescing=disabled",
        ),
        ({}, "hosts=as-real", "platform=none"),
        ({}, "tx_gap_jitter=0.5", "tx_gap_ns=0"),
        ({"idle": "awake"}, "idle_exit_ns=500", "idle=awake"),
        ({"platform": "myri10g-2009"}, "hosts=as-real", ""),
        ({"tx_gap_ns": 900}, "tx_gap_jitter=0.5", ""),
        ({"coalescing": "timeout"}, "rx_usecs=20", ""),
        ({"coalescing": ("disabled", "timeout")}, "rx_usecs=20", ""),
        ({"wait": ("spin", "spin-block")}, "spin_ns=5", ""),
        ({"coalescing": "disabled"}, "coalescing=disabled", ""),
    ],
)
def test_only_what_no_point_heeds_is_told(
    parameters: dict[str, object], setting: str, told: str
) -> None:
    found = unheeded(points(**parameters), [setting])
    assert [told in each for each in found] == ([True] if told else [])


@pytest.mark.parametrize("command", [["mpirun", "-n", "1"], ["explore", "-n", "2"]])
def test_commands_tell_it(
    command: list[str], capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    settings = ["coalescing=disabled"] if command[0] == "mpirun" else []
    words = [word for each in ("rx_usecs=20", *settings) for word in ("--set", each)]
    more = [] if settings else ["--coalescing", "disabled", "--output", f"{tmp_path}/result"]
    main([*command, *words, *more, "true"])
    assert "rx_usecs has no effect" in capsys.readouterr().err
