"""Metrics per packet: what they are made of, and the reasons why there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shrimpmx.results.metrics import METRICS, Outcome


def outcome(**agents: dict[str, int]) -> Outcome:
    counters = {name.replace("_", "."): values for name, values in agents.items()}
    return Outcome(samples=np.array([250.0]), counters=counters)


def figure(name: str, of: Outcome) -> float:
    (found,) = METRICS[name].compute(of)
    return float(found)


def test_the_time_of_a_packet_is_in_ns() -> None:
    assert figure("packet_time", outcome()) == 250
    assert METRICS["packet_time"].unit == "ns"


@pytest.mark.parametrize("name", ["message_rate", "bandwidth", "throughput"])
def test_what_took_no_time_has_no_rate(name: str) -> None:
    figures = {"bytes": np.array([4.0]), "messages": np.array([1.0])}
    of = Outcome(np.array([250.0, 0.0]), {}, message_bytes=4, figures=figures)
    words = "all messages came at the same instant: raise iterations"
    assert METRICS[name].compute(of) == words


def test_the_cpu_time_is_that_of_all_handlers_and_of_them_alone() -> None:
    used: dict[str, dict[str, float]] = {
        "node0.irq0": {"task_clock_ns": 600},
        "node0.irq1": {"task_clock_ns": 200},
        "nic": {"task_clock_ns": 10_000},
        "rank0": {"task_clock_ns": 10_000},
    }
    counters = {"node0.irq0": {"recv_packets": 3}, "node0.irq1": {"recv_packets": 1}}
    name = "handler_cpu_per_packet"
    assert figure(name, Outcome(np.empty(0), counters, usage=used)) == 200
    without: dict[str, Any] = {"node0.irq0": {"voluntary_switches": 3}}
    words = "the kernel reported no CPU time of the handlers"
    assert METRICS[name].compute(Outcome(np.empty(0), counters, usage=without)) == words
    words = "there is no interrupt handler: the NIC handles packets itself"
    assert METRICS[name].compute(Outcome(np.empty(0), counters)) == words
    assert METRICS[name].compute(outcome()) == "no handler found a packet"


def test_interrupts_are_those_of_all_nics() -> None:
    of = outcome(
        node0_nic={"irq_raised": 3, "rx_packets": 10}, node1_nic={"irq_raised": 1, "rx_packets": 6}
    )
    assert figure("interrupts_per_packet", of) == 0.25


def test_the_unmarked_share_is_of_both_directions() -> None:
    sender = {"rx_packets": 20, "rx_marked": 0}  # acknowledgements
    receiver = {"rx_packets": 80, "rx_marked": 79}
    assert figure("unmarked_share", outcome(node0_nic=sender, node1_nic=receiver)) == 21
    sunk = outcome(node0_nic=receiver, node1_generator={"sunk_packets": 20})
    assert figure("unmarked_share", sunk) == 21


def test_the_delay_of_the_other_protocol_is_a_mean_in_us() -> None:
    of = outcome(node0_irq0={"recv_other": 4, "recv_other_delay_ns": 10_000})
    assert figure("other_delay", of) == 2.5


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("interrupts_per_packet", "no packet arrived"),
        ("unmarked_share", "no packet arrived"),
        ("other_delay", "no packet of another protocol was received"),
    ],
)
def test_without_packets_there_is_a_reason(name: str, reason: str) -> None:
    assert METRICS[name].compute(outcome()) == reason
