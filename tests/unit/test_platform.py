"""Platforms: the dilation they take on a machine, and what that makes of a point's parameters."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shrimpmx.costs.table import CHARGED
from shrimpmx.errors import InputError
from shrimpmx.experiment import platform
from shrimpmx.experiment.platform import (
    MARGIN,
    PLATFORMS,
    STEP,
    emulated,
    host_costs,
    proposed_dilation,
)
from shrimpmx.experiment.platform_files import read_platform
from shrimpmx.experiment.point import PointParameters
from shrimpmx.settings.cluster import ClusterParameters
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.platform import KNOWN, Entry, Platform, PlatformParameters
from shrimpmx.settings.workload import WorkloadParameters

INTERRUPT_NS, PACKET_NS, EVENT_NS = 4000, 800, 1000
TOY_NIC = {
    "link_bits_per_second": 10_000_000_000,
    "link_delay_ns": 500,
    "dma_latency_ns": 1500,
    "dma_bytes_per_second": 2_000_000_000,
    "tx_gap_ns": 1000,
    "tx_gap_jitter": 0.5,
}
TOY = Platform(
    name="myri10g-2009",
    title="a machine with round figures",
    costs={
        "interrupt_to_handler": Entry(value=INTERRUPT_NS, origin="paper", source="p. 1"),
        "handler_per_packet": Entry(value=PACKET_NS, origin="derived", source="p. 2"),
        "rank_event": Entry(value=EVENT_NS, origin="fitted", source="p. 3"),
    },
    nic={
        name: Entry(value=value, origin="paper", source="p. 4") for name, value in TOY_NIC.items()
    },
)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "PLATFORMS", {TOY.name: TOY})


def costs(interrupt_ns: float, **others_ns: float) -> dict[str, dict[str, Any]]:
    known = {"interrupt_to_handler": interrupt_ns, "handler_per_packet": 50.0, **others_ns}
    return {name: {"median": ns} for name, ns in known.items()}


def on_platform(
    dilation: Any = "auto", nic: dict[str, Any] | None = None, host: dict[str, Any] | None = None
) -> PointParameters:
    return PointParameters(
        nic=NicParameters(**nic or {}),
        host=HostParameters(**host or {}),
        platform=PlatformParameters(profile="myri10g-2009", time_dilation=dilation),
    )


@pytest.mark.parametrize(
    ("interrupt_ns", "dilation"),
    [
        (50.0, 1.0),  # never faster than the platform
        (1000.0, 1.0),
        (1000.5, 1.5),
        (6000.0, 6.0),
        (6000.5, 6.5),
        (6500.0, 6.5),
        (7500.0, 7.5),
    ],
)
def test_the_proposal_is_rounded_up_to_halves(interrupt_ns: float, dilation: float) -> None:
    assert proposed_dilation(TOY, costs(interrupt_ns)) == dilation


@pytest.mark.parametrize("interrupt_ns", [500.0, 3700.0, 11_111.0, 40_000.0])
def test_at_the_proposal_our_interrupt_is_at_most_a_quarter_of_the_platforms(
    interrupt_ns: float,
) -> None:
    dilation = proposed_dilation(TOY, costs(interrupt_ns))
    assert dilation * INTERRUPT_NS >= MARGIN * interrupt_ns
    assert math.isclose(dilation % STEP, 0)
    added = host_costs(TOY, costs(interrupt_ns), dilation)
    assert added["interrupt_time_ns"] == pytest.approx(dilation * INTERRUPT_NS, abs=1)
    assert added["packet_cost_ns"] + 50 == pytest.approx(dilation * PACKET_NS)
    assert added["event_cost_ns"] == dilation * EVENT_NS


def test_a_slow_host_is_charged_nothing_and_an_unmeasured_cost_counts_as_none() -> None:
    slow = costs(12_000.0, handler_per_packet=900.0, rank_event=1001.0)
    assert host_costs(TOY, slow, 1.0) == {
        "interrupt_time_ns": INTERRUPT_NS,
        "packet_cost_ns": 0,
        "event_cost_ns": 0,
    }
    unknown = {**costs(3000.0), "handler_per_packet": {"unavailable": "no CPU time"}}
    assert host_costs(TOY, unknown, 2.0) == {
        "interrupt_time_ns": 2 * INTERRUPT_NS,
        "packet_cost_ns": 1600,
        "event_cost_ns": 2000,
    }


def test_without_an_interrupt_the_dilation_has_to_be_given() -> None:
    missing = {"interrupt_to_handler": {"unavailable": "needs two CPUs"}}
    with pytest.raises(InputError) as caught:
        emulated(on_platform(), missing)
    assert str(caught.value) == (
        "platform myri10g-2009 needs a dilation, and this machine's interrupt_to_handler is not "
        "known: needs two CPUs; give one with --set time_dilation=6"
    )
    made = emulated(on_platform(6), missing)
    assert made.dilation == 6
    assert made.host.interrupt_time_ns == 6 * INTERRUPT_NS


def test_a_platform_needs_a_calibration() -> None:
    with pytest.raises(InputError, match=r"^platform myri10g-2009 needs a calibration of this"):
        emulated(on_platform(6), None)


def test_a_platform_without_costs_needs_none() -> None:
    free = TOY.model_copy(
        update={"name": "free", "costs": {}, "dilation": 2.0, "dilation_source": "ours"}
    )
    given = PointParameters(platform=PlatformParameters(profile=free))
    made = emulated(given, None)
    assert made.dilation == 2
    assert made.nic.link_bits_per_second == TOY_NIC["link_bits_per_second"] // 2


def test_without_a_platform_nothing_changes() -> None:
    given = PointParameters(nic=NicParameters(rx_usecs=33), host=HostParameters(cores=2))
    made = emulated(given, None)
    assert (made.nic, made.host, made.mx) == (given.nic, given.host, given.mx)
    assert made.wait == given.wait
    assert made.dilation == 1.0


def test_a_dilation_alone_dilates_the_hardware_and_charges_the_host_nothing() -> None:
    given = PointParameters(platform=PlatformParameters(time_dilation=2.5))
    made = emulated(given, None)
    assert made.dilation == 2.5
    assert made.nic.link_delay_ns == 1250
    assert made.nic.link_bits_per_second == 4_000_000_000
    assert made.nic.rx_usecs == 187
    assert made.host.interrupt_time_ns == made.host.packet_cost_ns == made.mx.event_cost_ns == 0


def test_what_the_protocol_waits_for_is_dilated_as_what_it_waits_for_is() -> None:
    made = emulated(
        PointParameters(
            mx=MxParameters(resend_delay_ns=3_000, ack_delay_ns=2_000),
            host=HostParameters(pull_resend_delay_ns=1_000_000),
            platform=PlatformParameters(time_dilation=4),
        ),
        None,
    )
    assert (made.mx.resend_delay_ns, made.mx.ack_delay_ns) == (12_000, 8_000)
    assert made.host.pull_resend_delay_ns == 4_000_000


def test_the_hardware_of_the_platform_is_dilated_and_the_host_charged() -> None:
    made = emulated(on_platform(4), costs(5000.0))
    for name in ("link_delay_ns", "dma_latency_ns", "tx_gap_ns"):
        assert getattr(made.nic, name) == 4 * TOY_NIC[name]
    for name in ("link_bits_per_second", "dma_bytes_per_second"):
        assert getattr(made.nic, name) == TOY_NIC[name] // 4
    assert made.nic.tx_gap_jitter == TOY_NIC["tx_gap_jitter"]
    assert made.nic.rx_usecs == 4 * 75
    assert made.nic.mtu == NicParameters().mtu
    assert made.host.interrupt_time_ns == 4 * INTERRUPT_NS
    assert made.host.packet_cost_ns == 4 * PACKET_NS - 50
    assert made.mx.event_cost_ns == 4 * EVENT_NS
    assert made.host.gro_flush_timeout_ns == 4 * 20_000
    assert made.host.irq_suspend_timeout_ns == 4_000_000


def test_the_proposal_is_longer_where_ranks_of_a_program_share_cpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dilation(kind: str, cpus: int) -> float:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cpus)))
        point = PointParameters.model_validate(
            {
                "cluster": {"ranks": 16},
                "host": {"cores": 8},
                "workload": {"kind": kind, "program": "true" if kind == "mpi" else ""},
                "platform": {"profile": "myri10g-2009"},
            }
        )
        return emulated(point, costs(5000.0)).dilation

    alone = proposed_dilation(platform.PLATFORMS["myri10g-2009"], costs(5000.0))
    assert dilation("mpi", 2) == 8 * alone
    assert dilation("mpi", 64) == dilation("pingpong", 2) == alone


def test_what_a_scenario_sets_itself_is_kept() -> None:
    made = emulated(
        on_platform(
            2,
            nic={"tx_gap_ns": 0, "link_delay_ns": 7, "link_bits_per_second": 0, "rx_usecs": 0,
                 "coalescing": "disabled"},
            host={"interrupt_time_ns": 0, "packet_cost_ns": 11},
        ),
        costs(1000.0),
    )  # fmt: skip
    assert made.nic.tx_gap_ns == 0
    assert made.nic.link_delay_ns == 14
    assert made.nic.link_bits_per_second == 0  # without a limit, dilated or not
    assert made.nic.rx_usecs == 0
    assert made.host.interrupt_time_ns == 0
    assert made.host.packet_cost_ns == 11


def test_every_profile_has_what_a_run_takes_and_says_where_it_comes_from() -> None:
    assert tuple(PLATFORMS) == KNOWN
    for name, profile in PLATFORMS.items():
        assert profile.name == name
        assert "interrupt_to_handler" in profile.costs
        assert all(each.source for _, each in profile.entries())


def test_every_charge_is_a_parameter_of_one_group() -> None:
    groups = (HostParameters, MxParameters, WaitParameters)
    for charge in CHARGED.values():
        assert sum(charge.name in group.model_fields for group in groups) == 1


def on_shrimp(dilation: Any = "auto", **wait: Any) -> PointParameters:
    return PointParameters(
        wait=WaitParameters(**wait),
        platform=PlatformParameters(profile="shrimp-1996", time_dilation=dilation),
    )


@pytest.fixture
def shrimp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "PLATFORMS", {"shrimp-1996": PLATFORMS["shrimp-1996"]})


@pytest.fixture
def myri(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "PLATFORMS", PLATFORMS)


@pytest.mark.usefixtures("myri")
def test_simulated_hosts_have_the_cores_of_the_paper_and_a_cpu_that_sends() -> None:
    made = {real: emulated(on_platform(1), costs(1000.0), real=real) for real in (True, False)}
    hosts = {real: (each.host.cores, each.host.irq_binding) for real, each in made.items()}
    assert hosts == {True: (1, "auto"), False: (8, "round-robin")}
    assert (made[True].nic.tx_gap_ns > 0, made[True].mx.send_cost_ns) == (True, 0)
    assert (made[False].nic.tx_gap_ns, made[False].mx.send_cost_ns > 0) == (0, True)
    native = emulated(on_platform(1, nic={"nic_kind": "mx"}), costs(1000.0), real=False)
    assert native.host.irq_binding == "auto", "its NIC asks for no core"


@pytest.mark.usefixtures("shrimp")
@pytest.mark.parametrize("interrupt_ns", [2_000.0, 24_000.0, 90_000.0])
def test_shrimp_is_not_dilated_since_its_ranks_compute_undilated(interrupt_ns: float) -> None:
    made = emulated(on_shrimp(), costs(interrupt_ns, context_switch=1_500.0))
    assert made.dilation == 1.0
    assert made.nic.link_delay_ns == 1000
    assert made.nic.dma_bytes_per_second == 23_000_000
    assert made.host.interrupt_time_ns == 270_000
    assert made.host.packet_cost_ns == made.mx.event_cost_ns == 0
    assert made.wait.reschedule_cost_ns == 13_500
    # This machine's own handler is not measured, and counts as 0.
    assert made.wait.handler_cost_ns == 160_000
    assert made.host.time_slice_ns == 100_000_000


@pytest.mark.usefixtures("shrimp")
def test_shrimps_time_slice_is_one_that_a_host_takes_unless_a_scenario_sets_its_own() -> None:
    assert PLATFORMS["shrimp-1996"].host["time_slice_ns"].value == 100_000_000
    given = on_shrimp().model_copy(update={"host": HostParameters(time_slice_ns=3_000_000)})
    assert emulated(given, costs(20_000.0)).host.time_slice_ns == 3_000_000


@pytest.mark.usefixtures("shrimp")
def test_blocking_on_shrimp_costs_its_t_block() -> None:
    made = emulated(on_shrimp(), {})
    block_ns = 2 * made.wait.reschedule_cost_ns + made.host.interrupt_time_ns
    assert block_ns == WaitParameters().spin_ns == 300_000


@pytest.mark.usefixtures("shrimp")
def test_shrimp_is_dilated_if_asked_and_what_a_scenario_sets_is_kept() -> None:
    given = on_shrimp(3, reschedule_cost_ns=7, strategy="block", spin_ns=5_000)
    made = emulated(given, costs(24_000.0, context_switch=1_500.0, notification_handler=500_000.0))
    assert made.dilation == 3
    assert made.host.interrupt_time_ns == 810_000
    assert (made.wait.strategy, made.wait.spin_ns) == ("block", 5_000)
    assert made.wait.reschedule_cost_ns == 7
    assert made.wait.handler_cost_ns == 0  # never below it


def test_wait_parameters_of_a_platform_without_such_costs_stay_as_they_are() -> None:
    assert emulated(on_platform(2), costs(1000.0)).wait == WaitParameters()


def test_a_simulated_programs_dilation_asks_for_no_cpus_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0})
    work = WorkloadParameters(kind="program", program="x.py")
    point = on_platform().model_copy(
        update={"cluster": ClusterParameters(ranks=4), "workload": work}
    )
    free = {name: {"median": 0.0} for name in TOY.costs}
    assert emulated(point, free, real=False).dilation == 1.0
    assert emulated(point, costs(1000.0)).dilation == 4.0


def test_a_platforms_host_model_is_dilated_as_its_other_times() -> None:
    given = {
        "line_cache_ns": Entry(value=6, origin="public", source="p. 5"),
        "copy_bytes_per_second": Entry(value=2_000_000_000, origin="paper", source="p. 6"),
        "host_topology": Entry(value="package:1 core:8 pu:1", origin="paper", source="p. 7"),
    }
    platform.PLATFORMS[TOY.name] = TOY.model_copy(update={"model": given})  # of this test only
    model = emulated(on_platform(4), costs(5000.0)).model
    assert (model.line_cache_ns, model.copy_bytes_per_second) == (24, 500_000_000)
    assert model.host_topology == "package:1 core:8 pu:1"


def test_a_value_for_simulated_hosts_is_for_no_other() -> None:
    def entry(value: object, hosts: str) -> Entry:
        return Entry(value=value, origin="ours", source="p. 8", hosts=hosts)

    host = {
        "time_slice_ns": entry(100_000_000, "real"),
        "scheduler": entry("goodness", "simulated"),
    }
    platform.PLATFORMS[TOY.name] = TOY.model_copy(update={"host": host})  # of this test only
    here = emulated(on_platform(1), costs(5000.0)).host
    assert (here.time_slice_ns, here.scheduler) == (100_000_000, "kernel")
    there = emulated(on_platform(1), costs(0.0), real=False).host
    assert (there.time_slice_ns, there.scheduler) == (0, "goodness")


@pytest.mark.usefixtures("shrimp")
def test_simulated_hosts_of_shrimp_have_the_scheduler_of_their_time() -> None:
    made = emulated(on_shrimp(), {name: {"median": 0.0} for name in CHARGED}, real=False)
    assert (made.host.scheduler, made.host.time_slice_ns) == ("goodness", 0)
    assert made.host.interrupt_time_ns == 270_000


def test_faster_cores_take_less_for_instructions_and_as_long_for_all_else() -> None:
    wait = {"reschedule_cost_ns": 500, "handler_cost_ns": 1}
    model = {"frequency_ratio": 2, "interrupt_delivery_ns": 3000, "line_cache_ns": 60}
    point = on_platform(1).model_copy(
        update={"wait": WaitParameters(**wait), "model": HostModelParameters(**model)}
    )
    free = {name: {"median": 0.0} for name in TOY.costs}
    made = emulated(point, free, real=False)
    # Of an interrupt of 4000 ns a core has 1000.
    assert made.host.interrupt_time_ns == 3000 + 500
    assert (made.host.packet_cost_ns, made.mx.event_cost_ns) == (PACKET_NS / 2, EVENT_NS / 2)
    # A cost that there is does not become none.
    assert (made.wait.reschedule_cost_ns, made.wait.handler_cost_ns) == (250, 1)
    assert (made.model.poll_ns, made.model.line_cache_ns) == (25, 60)
    assert made.model.tick_ns == HostModelParameters().tick_ns


def test_an_interrupt_that_takes_no_longer_than_its_way_is_as_long_on_any_core() -> None:
    model = HostModelParameters(frequency_ratio=0.5, interrupt_delivery_ns=INTERRUPT_NS)
    free = {name: {"median": 0.0} for name in TOY.costs}
    made = emulated(on_platform(1).model_copy(update={"model": model}), free, real=False)
    assert made.host.interrupt_time_ns == INTERRUPT_NS
    assert made.host.packet_cost_ns == 2 * PACKET_NS


def test_real_processes_have_the_cores_of_this_machine() -> None:
    point = on_platform(1).model_copy(update={"model": HostModelParameters(frequency_ratio=2)})
    free = {name: {"median": 0.0} for name in TOY.costs}
    assert emulated(point, free).host.packet_cost_ns == PACKET_NS


def with_fitted() -> Platform:
    """The coalescing paper's hosts with one cost of each table fitted, the other as it was."""

    def entry(value: int, **without: float) -> dict[str, Any]:
        return {
            "value": value,
            "origin": "fitted",
            "source": "two groups",
            "fitted_by": tuple(without),
            "without": without,
        }

    fitted = {
        "costs": {"rank_event": entry(700, first=600, second=800)},
        "model": {"reply_ns": entry(300, first=250, second=350)},
    }
    known = PLATFORMS["myri10g-2009"].model_dump(exclude={"fitted"}, exclude_unset=True)
    return Platform.model_validate({**known, "fitted": fitted})


@pytest.mark.parametrize(
    ("held_out", "real", "rank_event", "reply"),
    [
        ("", False, 700, 300),
        ("first", False, 600, 250),
        ("second", False, 800, 350),
        ("", True, 1000, None),
        ("first", True, 1000, None),
    ],
)
def test_simulated_hosts_have_the_values_that_were_fitted_without_the_group_held_out(
    held_out: str, real: bool, rank_event: int, reply: int | None
) -> None:
    found = with_fitted().held_out(held_out).on(real=real)
    assert found.costs["rank_event"].value == rank_event
    assert (found.model["reply_ns"].value if "reply_ns" in found.model else None) == reply
    groups = {"first", "second"} - {held_out}
    assert real or {*found.costs["rank_event"].chosen_by} == groups


@pytest.mark.parametrize(
    ("given", "words"),
    [(with_fitted, "fits without first, second"), (PLATFORMS["xeon-100g"].model_copy, "no fits")],
)
def test_a_group_that_no_fit_left_out_is_refused(given: Callable[[], Platform], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        given().held_out("third")


def test_an_entry_of_ones_own_replaces_a_fitted_one_of_its_base(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    own = '[costs.rank_event]\nvalue = 5\norigin = "measured"\nsource = "here"\n'
    path.write_text(f'name = "own"\ntitle = "mine"\nbase = "myri10g-2009"\n{own}')
    found = read_platform(str(path))
    assert found.on(real=False).costs["rank_event"].value == 5
    base = PLATFORMS["myri10g-2009"].on(real=False)
    assert found.on(real=False).model == base.model
