"""This machine as a platform: from a calibration to simulated hosts, and to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shrimpmx import cli
from shrimpmx.bench import calibration, host_costs, interrupt_costs, stages
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.errors import InputError
from shrimpmx.experiment.platform_files import read_platform
from shrimpmx.experiment.this_machine import kernel_scheduler, machine_platform
from shrimpmx.native import cores

TWO = Topology.from_synthetic("package:1 l3:1 core:2 pu:1")
NS = {
    "wake_same_cpu": 2000.0,
    "wake_cross_cpu": 12_000.0,
    "interrupt_to_handler": 9000.0,
    "interrupt_after_1000us_idle": 15_000.0,
    "interrupt_after_10us_idle": 9400.0,
    "interrupt_after_90us_idle": 11_500.0,
    "context_switch": 900.0,
    "cache_line_round_trip": 120.0,
    "look": 12.0,
    "yield_alone": 200.0,
    "base_slice": 1.4e6,
    "tick": 1e6,
    "frame_copy": 150.0,
    "wake_call": 1500.0,
    "preempting_wake": 2200.0,
    "signal": 900.0,
    "handlers_wake": 3500.0,
    "interrupt_exit": 1100.0,
    "timed_exit": 6000.0,
    "timed_interrupt": 14_000.0,
    "late_timer": 14_700.0,
    "timer_stall": 15_500.0,
    "interrupt_stall": 6200.0,
    "send_packet": 340.0,
    "receive_packet": 70.0,
    "send_fragment": 340.0,
    "receive_fragment": 180.0,
    "nic_step": 90.0,
    "nic_frame": 35.0,
    "handled_packet": 130.0,
    "handler_poll": 450.0,
    "warm_up": 1200.0,
    "t_block": 11_000.0,
    "handler_per_packet": 60.0,
}


SPREAD = [0.9, 1.0, 1.25]


def document(**changes: float | None) -> dict[str, Any]:
    costs: dict[str, Any] = {
        name: {"median": ns, "ci95": [ns, ns], "meaning": name, "samples": [ns], "unit": "ns"}
        for name, ns in {**NS, **changes}.items()
        if ns is not None
    }
    if "interrupt_to_handler" in costs:
        costs["interrupt_to_handler"]["spread"] = SPREAD
    taken = {"time": "2026-01-01T00:00:00+00:00", "cpu_model": "a CPU"}
    return {"schema": 2, "environment": taken, "state": "near", "costs": costs}


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = calibration.storage_path()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(document()))
    return place


def test_a_machine_has_the_costs_of_its_calibration() -> None:
    found = machine_platform(document(), "6.12.1", TWO)
    assert {name: entry.value for name, entry in found.model.items()} == {
        "poll_ns": 12,
        "yield_ns": 200,
        "slice_ns": 1_400_000,
        "tick_ns": 1_000_000,
        "switch_ns": 700,
        "wake_ns": 8300,
        "interrupt_delivery_ns": 2800,
        "interrupt_stall_ns": 5500,
        "timer_stall_ns": 14_800,
        "preempt_ns": 0,
        "wake_call_ns": 1500,
        "wake_here_call_ns": 1500,
        "sleep_call_ns": 1300,
        "signal_ns": 900,
        "idle_after_ns": [0, 38_300, 308_300],
        "idle_exit_ns": [400, 2500, 6000],
        "wake_jitter": SPREAD,
        "interrupt_exit_ns": 1100,
        "timer_set_ns": 4900,
        "timer_cancel_ns": 5000,
        "timer_late_ns": 14_000,
        "nic_step_ns": 90,
        "nic_frame_ns": 35,
        "send_message_ns": 300,
        "receive_message_ns": 40,
        "handler_poll_ns": 450,
        "warm_up_ns": 1200,
        "reply_ns": 152,
        "line_cache_ns": 60,
        "copy_bytes_per_second": 9_680_000_000,
        "keeps_copies": True,
    }
    assert found.costs["interrupt_to_handler"].value == 9000
    assert found.costs["handler_per_packet"].value == 130
    assert found.costs["rank_event"].value == 30
    assert found.mx["send_cost_ns"].value == 40
    assert found.dilation == 1
    assert {entry.origin for _, entry in found.entries()} == {"measured", "derived"}


def test_a_machine_may_take_longer_for_a_busy_cpu_than_for_an_idle_one() -> None:
    found = machine_platform(document(interrupt_after_10us_idle=6000.0), "6.12.1", TWO)
    assert found.costs["interrupt_to_handler"].value == 6000
    names = ("wake_ns", "preempt_ns", "timer_late_ns", "idle_exit_ns")
    costs = [found.model[name].value for name in names]
    assert costs == [5300, 3000, 11_000, [0, 5500, 9000]]


def test_all_that_is_measured_after_idle_times_makes_a_platform() -> None:
    costs = {f"interrupt_after_{us}us_idle": 10_000.0 + us for us in calibration.IDLE_US}
    earlier = dict.fromkeys(name for name in NS if name.endswith("_idle"))
    found = machine_platform(document(**{**earlier, **costs}), "6.12.1", TWO).model
    assert len(found["idle_exit_ns"].value) == len(found["idle_after_ns"].value) == len(costs)


def test_a_calibration_of_a_busy_machine_makes_a_platform() -> None:
    found = machine_platform(document(context_switch=900_000.0), "6.12.1", TWO).model
    assert found["idle_after_ns"].value == [0, 30_000, 300_000]


@pytest.mark.parametrize(("release", "name"), [("6.18.4-x", "eevdf"), ("5.10", "fair")])
def test_a_kernel_has_the_scheduler_of_its_release(release: str, name: str) -> None:
    assert kernel_scheduler(release) == name


def test_an_earlier_kernel_has_turns_of_half_a_round() -> None:
    """Two processes that share a CPU have turns of 16 ms, of which the calibration has 12."""
    found = machine_platform(document(base_slice=12e6), "5.10", TWO).model
    assert (found["slice_ns"].value, found["wakeup_ns"].value) == (4_000_000, 5_333_333)


def test_fragments_that_cost_no_more_than_their_copies_leave_all_to_their_message() -> None:
    disturbed = document(send_fragment=250.0, receive_fragment=140.0)
    found = machine_platform(disturbed, "6.12.1", TWO)
    assert (found.mx["send_cost_ns"].value, found.costs["rank_event"].value) == (1, 1)
    messages = [found.model[f"{what}_message_ns"].value for what in ("send", "receive")]
    assert messages == [339, 69]


def test_a_calibration_of_an_earlier_version_lacks_a_cost() -> None:
    with pytest.raises(InputError, match=r"needs wake_call.* run shrimpmx calibrate"):
        machine_platform(document(wake_call=None), "6.12", TWO)
    earlier = dict.fromkeys(name for name in NS if name.endswith("_idle"))
    with pytest.raises(InputError, match=r"needs interrupt_after_\*_idle.* run shrimpmx calibrate"):
        machine_platform(document(**earlier), "6.12", TWO)


def test_a_calibration_of_an_earlier_version_lacks_a_spread() -> None:
    earlier = document()
    del earlier["costs"]["interrupt_to_handler"]["spread"]
    with pytest.raises(InputError, match=r"the spread of interrupt_to_handler.* run shrimpmx cal"):
        machine_platform(earlier, "6.12", TWO)


def test_a_file_of_this_machine_is_a_platform(stored: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    assert cli.main(["calibrate", "--show", "--write-platform", str(target)]) == 0
    found = read_platform(str(target))
    assert found.name == "mine"
    assert found.model["switch_ns"].value == 700


@pytest.mark.parametrize("place", ["mine.json", "nowhere/mine.toml"])
def test_a_platform_is_written_to_a_file_that_can_be(
    place: str, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["calibrate", "--show", "--write-platform", str(tmp_path / place)]
    assert cli.main(words) == 2
    assert "file.toml" in capsys.readouterr().err


def test_simulated_hosts_may_be_this_machine(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "smoke/pingpong", "--output", str(tmp_path / "found")]
    words += ["platform=this-machine", "size_bytes=0", "coalescing=disabled", "repeats=1"]
    assert cli.main([*words, "--engine", "simulated"]) == 0
    (point,) = json.loads((tmp_path / "found" / "run.json").read_text())["points"]
    assert point["host_model"]["poll_ns"] == round(12 * point["time_dilation"])
    capsys.readouterr()
    stored.unlink()
    assert cli.main([*words[:3], str(tmp_path / "other"), *words[4:], "--engine", "simulated"]) == 2
    assert "run shrimpmx calibrate" in capsys.readouterr().err


def test_a_copy_that_takes_no_time_is_refused() -> None:
    with pytest.raises(InputError, match=r"frame_copy.*calibrate again"):
        machine_platform(document(frame_copy=-0.4), "6.12.1", TWO)


def test_probes_give_figures() -> None:
    """How large they are is this machine's affair."""
    for probe in (host_costs.looks, host_costs.yields):
        assert (probe(0, 0.005) > 0).all()
    # These are differences of two rounds, each of which something may have disturbed.
    for probe in (
        host_costs.signals,
        stages.send_packets,
        stages.receive_packets,
        stages.send_fragments,
        stages.receive_fragments,
        stages.nic_frames,
        stages.nic_steps,
        stages.handled_packets,
        stages.handler_polls,
        stages.warm_ups,
        stages.frame_copies,
    ):
        figures = probe(0, 0.005)
        assert figures.size > 0
        assert np.isfinite(figures).all()
    assert host_costs.time_slices(0, 0.02).ndim == 1
    for probe in (
        interrupt_costs.late_timers,
        interrupt_costs.preempting_wakes,
        interrupt_costs.timer_stalls,
    ):
        figures = probe(0, 0.02)
        assert figures.size > 0
        assert (figures > 0).all()


def test_a_slice_is_what_the_kernel_says_or_less_than_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = calibration.MEASUREMENTS["base_slice"].samples
    for told, found in ((1_400_000, 1.4e6), (0, 3e6)):
        monkeypatch.setattr(cores, "time_slice", lambda told=told: told)
        monkeypatch.setattr(host_costs, "time_slices", lambda *_: np.array([4e6]))
        assert samples(0, 1, 0.0).tolist() == [found]


@pytest.mark.skipif(len(Topology.of_this_machine().cpus) < 2, reason="needs two CPUs")
def test_probes_between_cpus_give_figures() -> None:
    first, second = Topology.of_this_machine().numbers[:2]
    assert (interrupt_costs.interrupt_exits(first, second, 0.05) > 0).all()
    assert (interrupt_costs.interrupt_exits(first, second, 0.05, 150_000) > 0).all()
    # However short, and however long the other process takes to begin.
    for busy in (True, False):
        figures = interrupt_costs.interrupt_to_handler(first, second, 0.0001, busy)
        assert figures.size > 0
        assert (figures > 0).all()
    stalls = interrupt_costs.interrupt_stalls(first, second, 0.01)
    assert stalls.size > 0
    assert (stalls > 0).all()
    assert interrupt_costs.wake_calls(first, second, 0.01).size > 0
    # A busy machine may give them no CPU for as long. What comes before does not count.
    assert any(
        0 < settled.size < all_of_it.size
        for _ in range(5)
        for settled, all_of_it in [
            [
                interrupt_costs.interrupt_to_handler(first, second, s, False, before_ns=before_ns)
                for s, before_ns in ((0.01, 390_000_000), (0.4, 0))
            ]
        ]
    )
    assert any(interrupt_costs.handlers_wakes(first, second, s).size > 0 for s in (0.1, 1, 5))
