"""`shrimpmx calibrate`: what it prints, stores and proposes, and what it cannot use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import assert_refused

from shrimpmx.bench import calibration
from shrimpmx.cli import calibrate as calibrate_command
from shrimpmx.cli import main
from shrimpmx.settings.platform import Entry, Platform


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def quick_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    def host(_cpus: list[int], _seconds: float) -> tuple[str, dict[str, dict[str, Any]]]:
        costs = {
            name: calibration.metric(np.array([5000.0, 5100.0]), name)
            for name in calibration.MEASUREMENTS
        }
        return "near", {**costs, "t_block": calibration.t_block(costs)}

    monkeypatch.setattr(calibration, "measure_host", host)
    monkeypatch.setattr(
        calibrate_command,
        "path_costs",
        lambda _engine, _s: {"handler_per_packet": {"unavailable": "no time", "meaning": "h"}},
    )


def test_a_place_that_takes_no_figure_is_told_before_they_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibration, "calibrate", lambda *_: pytest.fail("it measured"))
    assert main(["calibrate", "--write-platform", "/proc/mine.toml"]) == 2
    assert "/proc/mine.toml cannot be written" in capsys.readouterr().err
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert main(["calibrate", "--json", "c.json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "/proc/nowhere/shrimpmx/calibration-" in captured.err
    assert "XDG_CACHE_HOME" in captured.err
    assert "--output" not in captured.err


@pytest.mark.usefixtures("quick_calibration")
def test_calibrate_stores_for_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--json", "c.json"]) == 0
    out = capsys.readouterr().out
    assert "t_block" in out
    assert "15.15" in out
    assert "h: no time" in out
    stored = calibration.load()
    written = json.loads(Path("c.json").read_text())
    assert stored == {name: value for name, value in written.items() if name != "platforms"}
    assert main(["calibrate", "--show", "--json", "shown.json"]) == 0
    assert "t_block" in capsys.readouterr().out
    assert json.loads(Path("shown.json").read_text()) == written


@pytest.mark.usefixtures("quick_calibration")
def test_calibrate_keeps_what_a_quieter_machine_gave(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = calibration.calibrate
    shares = iter((0.0, 0.6, 0.6))
    monkeypatch.setattr(
        calibration, "calibrate", lambda *given: {**measure(*given), "others": next(shares)}
    )
    assert main(["calibrate"]) == 0
    place = calibration.storage_path()
    quiet = place.read_bytes()
    capsys.readouterr()
    assert main(["calibrate"]) == 0
    assert place.read_bytes() == quiet
    out = capsys.readouterr().out
    assert "t_block" in out
    assert "60%" in out
    assert "--force" in out
    assert main(["calibrate", "--force"]) == 0
    assert json.loads(place.read_text())["others"] == 0.6


@pytest.mark.usefixtures("quick_calibration")
def test_calibrate_tells_what_a_platform_takes_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = {
        "interrupt_to_handler": Entry(value=4000, origin="fitted", source="so many [a]"),
        "handler_per_packet": Entry(value=800, origin="paper", source="p. 1"),
        "rank_event": Entry(value=1000, origin="derived", source="p. 2"),
    }
    toy = Platform(name="toy", title="a toy", costs=costs)
    monkeypatch.setattr(calibrate_command, "PLATFORMS", {"toy": toy})
    assert main(["calibrate", "--json", "c.json"]) == 0
    # Four times 5.05 us is 5.05 of the toy's 4 us, rounded up 5.5.
    assert json.loads(Path("c.json").read_text())["platforms"]["toy"] == {
        "time_dilation": 5.5,
        "interrupt_time_ns": 22000,
        "packet_cost_ns": 4400,
        "event_cost_ns": 5500,
    }
    words = capsys.readouterr().out.split()
    told = ("fitted:", "[a]", "(paper)", "time_dilation=5.5;", "22.00", "4.40", "5.50")
    assert [word for word in told if word not in words] == []
    assert words.count("4.00") == words.count("0.800") == 2


@pytest.mark.usefixtures("quick_calibration")
def test_calibrate_says_why_a_platform_has_a_dilation_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = {
        "interrupt_to_handler": Entry(value=100_000, origin="derived", source="p. 1"),
        "context_switch": Entry(value=100_000, origin="derived", source="p. 2"),
        "notification_handler": Entry(value=160_000, origin="fitted", source="p. 3"),
    }
    toy = Platform(
        name="toy", title="a toy", costs=costs, dilation=1.0, dilation_source="it computes"
    )
    monkeypatch.setattr(calibrate_command, "PLATFORMS", {"toy": toy})
    assert main(["calibrate", "--json", "c.json"]) == 0
    # A switch takes 5.05 us here.
    assert json.loads(Path("c.json").read_text())["platforms"]["toy"] == {
        "time_dilation": 1.0,
        "interrupt_time_ns": 100_000,
        "reschedule_cost_ns": 94_950,
        "handler_cost_ns": 160_000,
    }
    out = capsys.readouterr().out
    assert "it computes" in out
    assert {"94.95", "160.0"} <= set(out.split())


@pytest.mark.usefixtures("quick_calibration")
def test_calibrate_without_an_interrupt_proposes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, measured = calibration.measure_host([0], 1.0)
    missing = {"unavailable": "needs two CPUs", "meaning": "m"}
    costs = {**measured, "interrupt_to_handler": missing}
    monkeypatch.setattr(calibration, "measure_host", lambda *_: ("near", costs))
    assert main(["calibrate", "--json", "c.json"]) == 0
    reason = json.loads(Path("c.json").read_text())["platforms"]["myri10g-2009"]["unavailable"]
    assert "needs two CPUs" in reason
    assert "--set time_dilation=6" in reason
    assert reason in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("{", "damaged: JSON line 1, column 2;"),
        ({"schema": 1}, "schema 1, 2;"),
        ({"costs": {}}, "damaged:"),
        ({"costs": [1]}, "damaged:"),
        ({"environment": None}, "damaged:"),
        ({"others": "many"}, "damaged:"),
        ({"median": "fast"}, "damaged:"),
        ({"median": -1}, "damaged:"),
        ({"ci95": [1]}, "damaged:"),
        ({"unavailable": 7}, "damaged:"),
        ({"meaning": None}, "damaged:"),
        ({"spread": 1.0}, "damaged:"),
        ({"spread": []}, "damaged:"),
        ({"spread": [1.0, "long"]}, "damaged:"),
        ({"spread": [1.0, 0.0]}, "damaged:"),
        ({"spread": [1.0, 1001.0]}, "damaged:"),
        ({"spread": [1.0] * 33}, "damaged:"),
    ],
)
@pytest.mark.usefixtures("quick_calibration")
def test_a_calibration_that_cannot_be_used_is_one_sentence(
    change: Any, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate"]) == 0
    place = calibration.storage_path()
    document = json.loads(place.read_text())
    if isinstance(change, str):
        place.write_text(change)
    elif set(change) <= set(document):
        place.write_text(json.dumps({**document, **change}))
    else:
        document["costs"]["context_switch"].update(change)
        place.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["calibrate", "--show"]) == 2
    assert_refused(capsys, f"{place} {words} calibrate")
