"""Simulated points against sums and slowest stages, computed from a platform's file alone.

A ping-pong of single packets takes at least the sum of what a packet meets on its way. A stream is
no faster than its slowest stage, but for the messages that are on their way when counting begins.
Small costs are left out (looks, cache lines, acknowledgements), so a simulated time lies above its
bound, and a rate below, by little. Fifteen points of the published validation are computed from
their settings, for real processes as well.
"""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tree import ROOT

from shrimpmx.experiment import platform_files
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.results.metrics import METRICS
from shrimpmx.simulation.engine import Simulated

NS_PER_S = 1e9
# Ethernet: the shortest frame without its checksum, and what stands between two frames on the line.
FRAME_LEAST, BETWEEN_FRAMES = 60, 24
# A full frame; data of a fragment in it, and of a pull reply; the headers of a small message.
FRAME, FRAGMENT, REPLY, SMALL_HEADER = 1500, 1452, 1468, 40
# The largest small message, and the largest that is sent in fragments.
SMALL_MOST, MEDIUM_MOST = 128, 32_768
# The emulated line without a platform.
LINK_BITS_PER_NS = 10
# What a spinning process and a few cache lines add to a way, ns.
LOOK_NS = 100
# An interrupt's core is not the process's, no core sleeps, and each cost is the same each time.
HOSTS = {
    "cores": 2,
    "cost_jitter": (1.0,),
    "wake_jitter": (1.0,),
    "irq_binding": "1",
    "idle": "awake",
    "tx_interrupts": False,
    "wait": "spin",
}
# Costs that depend on what came before, and are left out.
HOSTS |= dict.fromkeys(
    (
        *("reap_ns", "reuse_ns", "fragment_done_ns", "ack_packet_ns", "handler_poll_ns"),
        *("frame_line_ns", "page_ns", "handover_ns", "cold_packet_ns"),
    ),
    0,
)
MYRI, XEON, SHRIMP = "myri10g-2009", "xeon-100g", "shrimp-1996"


class Costs:
    """A platform's values by name, ns or units per second; `change` are set in their place."""

    def __init__(self, platform: str, change: dict[str, Any]) -> None:
        folder = Path(platform_files.__file__).parent / "platforms"
        files = (folder / f"{platform}.toml", folder / "fitted" / f"{platform}.toml")
        read = [tomllib.loads(path.read_text()) for path in files if path.exists()]
        self._values = {
            name: value["value"]
            for tables in read
            for table in ("costs", "nic", "mx", "model")
            for name, value in tables.get(table, {}).items()
        } | change

    def ns(self, name: str, charged: str = "") -> float:
        """A time, by the name of its parameter or of the cost that a file gives."""
        return float(self._values.get(name, self._values.get(charged, 0)))

    def bytes_ns(self, size: float, name: str) -> float:
        """What bytes take at a rate; nothing where there is none."""
        rate = self._values.get(name, 0)
        return size / rate * NS_PER_S if rate else 0.0

    def line_ns(self, frame: int) -> float:
        return self.bytes_ns(8 * (frame + BETWEEN_FRAMES), "link_bits_per_second")

    def copy_ns(self, size: int) -> float:
        return self.bytes_ns(size, "copy_bytes_per_second")

    @property
    def interrupt(self) -> float:
        return self.ns("interrupt_time_ns", "interrupt_to_handler")

    def packet(self, kind: str) -> float:
        return self.ns("packet_cost_ns", "handler_per_packet") + self.ns(f"{kind}_packet_ns")

    @property
    def event(self) -> float:
        return self.ns("event_cost_ns", "rank_event")

    @property
    def call(self) -> float:
        return self.ns("send_call_ns")

    @property
    def send(self) -> float:
        return self.ns("send_cost_ns")


def small_frame(size: int) -> int:
    return max(FRAME_LEAST, SMALL_HEADER + size)


def one_way_ns(costs: Costs, size: int, delay_ns: float) -> float:
    """From a send to its receive: each cost on the way of one packet, one after the other."""
    frame = small_frame(size)
    arrival = (
        costs.line_ns(frame)
        + costs.ns("firmware_ns")
        + costs.ns("link_delay_ns")
        + costs.ns("dma_latency_ns")
        + costs.bytes_ns(frame, "dma_bytes_per_second")
    )
    copies = costs.copy_ns(frame) + 2 * costs.copy_ns(size)
    sent, handled = costs.call + costs.send, costs.interrupt + costs.packet("small")
    return sent + arrival + delay_ns + handled + costs.event + copies


def stages_ns(costs: Costs, size: int) -> dict[str, float]:
    """What each stage of a stream takes for a message."""
    payload = REPLY if size > MEDIUM_MOST else FRAGMENT if size > SMALL_MOST else size
    packets = -(-size // payload) if payload else 1
    header = SMALL_HEADER if size <= SMALL_MOST else FRAME - payload
    frames = max(packets * FRAME_LEAST, packets * header + size)
    # Replies are sent, and their data is taken, by handlers.
    kind = "reply" if size > MEDIUM_MOST else "fragment" if size > SMALL_MOST else "small"
    events = 0 if kind == "reply" else packets
    copied = costs.copy_ns(size) if events else 0.0
    sent = {
        "small": costs.call,
        "fragment": costs.call + costs.ns("send_fragment_ns"),
        "reply": costs.ns("reply_ns"),
    }
    return {
        "sender": packets * (costs.send + sent[kind]) + copied,
        "line": costs.bytes_ns(8 * (frames + packets * BETWEEN_FRAMES), "link_bits_per_second"),
        "handler": packets * costs.packet(kind) + costs.copy_ns(frames),
        "receiver": events * costs.event + copied,
    }


def simulated(metric: str, **parameters: Any) -> float:
    """The median of a metric in one simulated run."""
    coalescing = parameters.pop("coalescing", "disabled")
    scenario = Scenario(
        name="s",
        title="t",
        parameters={**HOSTS, **parameters},
        sweep={"coalescing": (coalescing,)},
        metrics=(metric,),
    ).on(real=False)
    points = scenario.points()
    needed = {name: {"median": 0.0} for name in needed_costs(points)}
    outcome = ClusterExecutor(Simulated(), costs=needed)(points[0], 1)
    return float(np.median(METRICS[metric].compute(outcome)))


@pytest.mark.parametrize(
    ("platform", "size", "change"),
    [
        (MYRI, 0, {}),
        (MYRI, 128, {}),
        (MYRI, 0, {"send_cost_ns": 4100}),
        (MYRI, 0, {"link_delay_ns": 20_000}),
        (MYRI, 0, {"link_bits_per_second": 10**8}),
        (MYRI, 0, {"coalescing": "timeout", "rx_usecs": 75}),
        (MYRI, 128, {"coalescing": "timeout", "rx_usecs": 15}),
        (MYRI, 0, {"coalescing": "open-mx"}),
        (XEON, 0, {}),
        (XEON, 128, {"event_cost_ns": 3000}),
    ],
)
def test_a_ping_pong_takes_the_sum_of_its_way(
    platform: str, size: int, change: dict[str, Any]
) -> None:
    delay_ns = 1000.0 * change.get("rx_usecs", 0)
    bound = one_way_ns(Costs(platform, change), size, delay_ns)
    more = {"workload": "pingpong", "size_bytes": size, "iterations": 100, "warmup": 10}
    found = 1000 * simulated("half_round_trip", platform=platform, **more, **change)
    assert bound <= found <= bound + LOOK_NS


@pytest.mark.parametrize(
    ("wait", "delay_us"), [("spin", 0), ("spin", 200), ("block", 0), ("block", 600)]
)
def test_a_wait_takes_what_its_side_of_a_sleep_does(wait: str, delay_us: int) -> None:
    """On SHRIMP's NIC: an interrupt and a switch back to the process, where that has slept."""
    costs = Costs(SHRIMP, {})
    way = (
        costs.line_ns(FRAME_LEAST)
        + costs.ns("link_delay_ns")
        + costs.bytes_ns(FRAME_LEAST, "dma_bytes_per_second")
    )
    woken = costs.interrupt + costs.ns("reschedule_cost_ns", "context_switch")
    bound = 2 * (1000 * delay_us + way + (woken if wait == "block" else 0))
    more = {"cores": 1, "irq_binding": "0", "iterations": 50, "warmup": 5}
    more |= {"platform": SHRIMP, "nic": "vmmc", "workload": "pingpong"}
    found = 1000 * simulated("round_trip", delay_us=delay_us, wait=wait, **more)
    # A DMA's latency as the parameters have it, and looks.
    assert bound <= found <= bound + 2 * (500 + LOOK_NS)


@pytest.mark.nightly("each size and cost", but=4)
@pytest.mark.parametrize(
    ("size", "slowest", "change"),
    [
        (0, "sender", {}),
        (128, "sender", {"coalescing": "timeout"}),
        (128, "handler", {"packet_cost_ns": 5000}),
        (128, "receiver", {"event_cost_ns": 6000}),
        (128, "line", {"link_bits_per_second": 10**8}),
        (32_768, "sender", {"coalescing": "timeout"}),
        (32_768, "line", {"link_bits_per_second": 10**9}),
        (1 << 20, "handler", {"coalescing": "timeout"}),
        (1 << 20, "line", {"link_bits_per_second": 10**9}),
    ],
)
def test_a_stream_is_as_fast_as_its_slowest_stage(
    size: int, slowest: str, change: dict[str, Any]
) -> None:
    stages = stages_ns(Costs(MYRI, change), size)
    assert max(stages, key=lambda name: stages[name]) == slowest
    window = 256 if size <= SMALL_MOST else 8
    count = 50 * window
    more = {"workload": "stream", "iterations": count, "warmup": window, "window": window}
    found = simulated("message_rate", platform=MYRI, size_bytes=size, **more, **change)
    bound = 1e6 / stages[slowest]
    assert 0.85 * bound <= found <= bound * (1 + window / count)


def validated(metric: str, family: str) -> list[tuple[dict[str, Any], tuple[float, float]]]:
    """Settings, and the figures of real processes and of simulated hosts, as published."""
    path = ROOT / "results-archive" / "validation-this-machine" / "validation.json.gz"
    return [
        (row["params"], (row["real"], row["simulated"]))
        for row in json.loads(gzip.decompress(path.read_bytes()))["rows"]
        if (row["family"], row["metric"]) == (family, metric)
    ]


def test_both_engines_have_the_rate_of_a_paced_line() -> None:
    """The line's gap is the slowest stage: a frame each gap and its time on the line."""
    points = validated("message_rate", "message-rate")
    assert len(points) == 8
    for params, found in points:
        frame_ns = 8 * (small_frame(params["size_bytes"]) + BETWEEN_FRAMES) / LINK_BITS_PER_NS
        bound = 1e6 / (params["tx_gap_ns"] + frame_ns)
        assert found == pytest.approx((bound, bound), rel=0.005), params


def test_both_engines_add_the_delay_of_a_timer() -> None:
    """To an empty message's time without coalescing; a core may fall asleep meanwhile."""
    [without], [default] = (
        [
            found
            for params, found in validated("half_round_trip", "coalescing-block")
            if (params["size_bytes"], params["coalescing"]) == (0, rule)
        ]
        for rule in ("disabled", "timeout")
    )
    points = [
        (params["rx_usecs"], found)
        for params, found in validated("half_round_trip", "coalescing-delay")
        if params["size_bytes"] == 0
    ]
    assert len(points) == 3
    for delay_us, found in (*points, (75, default)):
        for took, least in zip(found, without, strict=True):
            assert 0.95 <= took / (least + delay_us) <= 1.2, delay_us


def test_both_engines_compute_for_most_of_a_round_trip_without_a_sleep() -> None:
    """Each of two ranks computes for half of the longest time before a message, on average; the
    messages take little of a round trip.
    """
    points = [
        found
        for params, found in validated("wall_time", "waiting")
        if params["pairs"] == 1 and params["wait"] in ("spin", "sched", "spin-block")
    ]
    assert len(points) == 3
    for real, simulated in points:
        assert 300 < simulated < 310
        assert 300 < real < 330
