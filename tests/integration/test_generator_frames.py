"""What a generator sends beside messages: packets of no valid type, and another protocol's."""

from __future__ import annotations

from typing import Any

import pytest
from support import resends
from support.clusters import on_both_engines, run

from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.point import PointParameters
from shrimpmx.results.metrics import METRICS, Outcome
from shrimpmx.settings.sentences import validation_sentence


def point(coalescing: str, **work: Any) -> PointParameters:
    return PointParameters.model_validate(
        {
            "cluster": {"mode": "generator"},
            "workload": {"kind": "stream", "size_bytes": 128, **work},
            "nic": {"coalescing": coalescing},
            # On simulated hosts it takes no time else.
            "host": {"interrupt_time_ns": 1000, "packet_cost_ns": 100},
            "wait": {"strategy": "block"},
            "mx": {"resend_delay_ns": resends.RESEND_DELAY_NS},
        }
    )


def measured(coalescing: str, **work: Any) -> Outcome:
    spec = cluster_spec(point(coalescing, **work), 1)
    return outcome_of(spec, run(spec))


@on_both_engines
@pytest.mark.parametrize("coalescing", ["disabled", "timeout"])
def test_all_invalid_packets_are_dropped_by_the_handler(coalescing: str) -> None:
    outcome = measured(coalescing, frames="invalid", iterations=18_000, warmup=2_000)
    handler, nic = outcome.counters["node0.irq0"], outcome.counters["node0.nic"]
    assert outcome.counters["node1.generator"]["generated_invalid"] == 20_000
    assert handler["drop_invalid_type"] == 20_000
    # The answer to the rank's connect besides: nothing came before the work began.
    assert handler["recv_packets"] == nic["rx_packets"] == 20_001
    assert nic["rx_drop_ring_full"] == nic["rx_marked"] == 0
    assert outcome.counters["rank0"]["recv_events"] == 1
    for name in ("packet_time", "handler_cpu_per_packet"):
        (figure,) = METRICS[name].compute(outcome)
        assert figure > 0
    (interrupts,) = METRICS["interrupts_per_packet"].compute(outcome)
    assert interrupts == nic["irq_raised"] / 20_001
    assert METRICS["unmarked_share"].compute(outcome) == 100
    assert METRICS["other_delay"].compute(outcome) == ("no packet of another protocol was received")


@on_both_engines
def test_another_protocol_beside_the_stream() -> None:
    work = {"iterations": 20_000, "other_rate": 200_000, "other_bytes": 400}
    spec = cluster_spec(point("stream", **work), 1)
    result = run(spec)
    # Of the whole run: when rank 0 begins to work, frames are under way.
    handler, generator = result.counters["node0.irq0"], result.counters["node1.generator"]
    assert handler["recv_other"] > 100
    assert handler["recv_other_bytes"] == 400 * handler["recv_other"]
    assert generator["generated_other"] >= handler["recv_other"]
    assert handler["drop_bad_ethertype"] == 0
    nic = result.counters["node0.nic"]
    assert nic["rx_marked"] + handler["recv_other"] <= nic["rx_packets"]
    outcome = outcome_of(spec, result)
    assert outcome.counters["rank0"]["recv_messages"] >= 20_000
    (delay_us,) = METRICS["other_delay"].compute(outcome)
    assert delay_us > 0


@on_both_engines
def test_a_closed_loop_of_another_protocol_beside_the_stream() -> None:
    window = 16
    work = {"iterations": 20_000, "window": 64, "other_window": window, "other_bytes": 400}
    spec = cluster_spec(point("stream", **work), 1)
    result = run(spec)
    handler, generator = result.counters["node0.irq0"], result.counters["node1.generator"]
    assert handler["recv_other"] > 10 * window
    # Nothing was lost: each packet but the last ones was answered, and let another one go.
    assert 0 <= generator["generated_other"] - handler["recv_other"] <= window
    outcome = outcome_of(spec, result)
    (rate,) = METRICS["other_packet_rate"].compute(outcome)
    elapsed_ms = outcome.elapsed_ns["rank0"] / 1e6
    assert rate == pytest.approx(outcome.counters["node0.irq0"]["recv_other"] / elapsed_ms)


@pytest.mark.parametrize("work", [{"frames": "invalid"}, {"other_rate": 1000}, {"other_window": 4}])
def test_only_a_generator_sends_them(work: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs mode 'generator'") as caught:
        PointParameters.model_validate({"workload": work})
    assert "\n" not in validation_sentence(caught.value)  # type: ignore[arg-type]


def test_another_protocol_comes_at_a_rate_or_in_a_closed_loop() -> None:
    with pytest.raises(ValueError, match="other_rate and other_window cannot both be set"):
        point("timeout", other_rate=1000, other_window=4)


def test_a_generator_does_not_send_frames_of_another_kind() -> None:
    with pytest.raises(ValueError, match="'messages' or 'invalid'"):
        point("timeout", frames="broken")
