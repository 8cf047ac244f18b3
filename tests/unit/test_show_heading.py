"""The lines above a result's tables: whose times its figures are, on either engine."""

from __future__ import annotations

from typing import Any

from shrimpmx.show.report import emulation_words, heading_lines


def lines(engine: str, **point: Any) -> str:
    """The lines of a result with one point."""
    params = {"platform": "myri10g-2009", "workload": "pingpong", **point.pop("params", {})}
    layout = {"rows": "", "columns": "", "axes": []}
    measured = {"params": params, "metrics": {}, "time_dilation": 24.0, **point}
    return "\n".join(heading_lines({"engine": engine, "layout": layout, "points": [measured]}))


def test_times_of_a_virtual_clock_are_not_called_measured() -> None:
    assert "hosts: measured times divided by 24" in lines("forked")
    assert "hosts: virtual times divided by 24" in lines("simulated")


def test_what_a_program_computes_is_not_called_dilated() -> None:
    assert "computing is not dilated" in lines("forked", params={"workload": "mpi"})
    assert "computing" not in lines("forked")


def test_what_keeps_real_cores_awake_is_not_said_of_simulated_ones() -> None:
    assert "are kept awake by PM QoS" in lines("forked", idle="pm-qos")
    assert "PM QoS" not in lines("simulated", idle="pm-qos")
    assert "Idle cores do not sleep where idle=awake." in lines("simulated", idle="pm-qos")


def test_what_a_simulated_core_takes_to_wake_up_is_said() -> None:
    told = "A sleeping core takes {} µs to wake up, on simulated hosts only."
    for exits, words in ((156_000, "6.50"), ([48_000, 240_000], "2.00 to 10.00")):
        model = {"idle_exit_ns": exits}
        assert told.format(words) in lines("simulated", host_model=model, idle="sleep")
        assert "wake up" not in lines("simulated", host_model=model, idle="pm-qos")
    assert "wake up" not in lines("simulated", host_model={"idle_exit_ns": 0}, idle="sleep")


def test_that_simulated_wake_ups_differ_is_said() -> None:
    told = "Interrupts and wake-ups take 0.900 to 1.50 times their costs, drawn each time"
    assert told in lines("simulated", host_model={"wake_jitter": [1.0, 0.9, 1.5]})
    assert "drawn" not in lines("simulated", host_model={"wake_jitter": [1.0]})


def test_a_line_on_hosts_says_which_ones_it_is_about_where_there_are_several() -> None:
    def point(**params: Any) -> dict[str, Any]:
        interrupt = {"interrupt": 4000 / params.get("frequency_ratio", 1)}
        return {"params": {"workload": "pingpong", **params}, "host_costs_ns": interrupt}

    def told(*points: dict[str, Any]) -> list[str]:
        return emulation_words(points, simulated=True)

    one = point(platform="mine", frequency_ratio=1)
    assert told(one, one) == ["An interrupt takes 4.00 µs."]
    ratios = told(one, point(platform="mine", frequency_ratio=2))
    assert ratios[1] == "With frequency_ratio 2: An interrupt takes 2.00 µs."
    platforms = told(one, point(platform="none", frequency_ratio=1))
    assert platforms[0].startswith("With platform mine: ")


def test_what_hosts_of_one_engine_alone_are_charged_is_said() -> None:
    apart = {
        "only_simulated": {"send_cost_ns": 2040, "cores": 8},
        "only_real": {"tx_gap_ns": 1970},
    }
    for engine in ("simulated", "forked"):
        told = lines(engine, **apart)
        assert "Charged on simulated hosts only: send_cost_ns 2040 ns." in told
        assert "Set on simulated hosts only: cores 8." in told
        assert "Set on real processes only: tx_gap_ns 1970 ns." in told
        assert "hosts=as-real" in told
    assert "only" not in lines("simulated", **apart, params={"hosts": "as-real"})
    assert "only" not in lines("forked")
