"""Small simulated runs whose figures are kept: each is the same on every machine.

`tests/support/recorded/simulated` has them; `python tools/goldens.py` writes them anew, when a
change of the engine or of its host model is meant to change them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.nic import NicParameters
from support.clusters import generator_stream, pingpong_pair, stream_pair
from support.tree import ROOT

RECORDED = ROOT / "tests" / "support" / "recorded" / "simulated"
# Counters of how often code looked, which say nothing about what it did.
IDLE = ("steps", "progress_calls", "timer_ticks")
BLOCK, SPIN, SCHED = (WaitParameters(strategy=name) for name in ("block", "spin", "sched"))
HOST = HostParameters(interrupt_time_ns=4000, packet_cost_ns=774)
# Costs of a host's model.
MODEL = HostModelParameters(
    host_topology="package:2 l2:2 core:2 pu:1",
    poll_ns=20,
    yield_ns=300,
    slice_ns=700_000,
    switch_ns=700,
    wake_ns=2000,
    wake_jitter=(0.8, 1.0, 1.5),
    preempt_ns=500,
    wake_call_ns=400,
    wake_here_call_ns=250,
    sleep_call_ns=300,
    timer_late_ns=900,
    reply_ns=130,
    copy_bytes_per_second=2_000_000_000,
    line_cache_ns=10,
    line_package_ns=50,
    line_system_ns=110,
    handover_ns=90,
    cold_packet_ns=40,
    interrupt_delivery_ns=1500,
    interrupt_exit_ns=600,
    idle_exit_ns=(400, 3000),
    idle_after_ns=(0, 20_000),
    sleeps_with="cache",
)
SCHEDULERS = ("fair", "batch", "eevdf", "goodness", "gang")
LOSS = LinkFaults(loss=0.05, duplicate=0.05, reorder=0.05, seed=3)


def _nic(coalescing: str, **more: Any) -> NicParameters:
    return NicParameters.model_validate({"coalescing": coalescing, **more})


def _four_ranks(**more: Any) -> ClusterSpec:
    options = {"iterations": 12, "warmup": 0, "size_bytes": 5000}
    ranks = tuple(RankSpec(number % 2, "pingpong", number // 2, options) for number in range(4))
    return ClusterSpec(ranks=ranks, wait=BLOCK, **{"host": HostParameters(cores=2), **more})


def _neighbours() -> ClusterSpec:
    options = {"iterations": 12, "warmup": 0, "size_bytes": 100_000}
    ranks = tuple(RankSpec(0, "pingpong", core, options) for core in (0, 1))
    return ClusterSpec(ranks=ranks, nodes=1, host=HostParameters(cores=2), wait=SPIN)


def _in_turn(size_bytes: int) -> ClusterSpec:
    """Interrupts go to six cores of two packages."""
    host = HOST.model_copy(update={"cores": 6, "irq_binding": "round-robin"})
    nic = _nic("open-mx", tx_interrupts=True)
    return pingpong_pair(12, size_bytes, nic=nic, wait=BLOCK, host=host, model=MODEL)


def _company(scheduler: str) -> ClusterSpec:
    """A rank that yields beside two processes that compute, one of them nice."""
    company = tuple(CompanionSpec(0, 0, kind) for kind in ("hog", "nice"))
    host = HostParameters.model_validate({"scheduler": scheduler})
    return pingpong_pair(6, warmup=0, wait=SCHED, companions=company, host=host, model=MODEL)


GOLDENS: Mapping[str, Callable[[], ClusterSpec]] = {
    "empty-spin": lambda: pingpong_pair(12, nic=_nic("disabled"), wait=SPIN),
    "empty-block-costs": lambda: pingpong_pair(12, nic=_nic("disabled"), wait=BLOCK, host=HOST),
    "empty-timeout": lambda: pingpong_pair(12, nic=_nic("timeout"), wait=BLOCK),
    "medium-sched": lambda: pingpong_pair(12, 20_000, nic=_nic("open-mx"), wait=SCHED),
    "large-open-mx": lambda: pingpong_pair(6, 200_000, nic=_nic("open-mx"), wait=BLOCK, host=HOST),
    "stream-stream": lambda: stream_pair(60, 5000, nic=_nic("stream"), wait=BLOCK, host=HOST),
    "stream-generator": lambda: generator_stream(300, nic=_nic("stream"), wait=BLOCK, host=HOST),
    "stream-loss": lambda: stream_pair(60, 5000, wait=BLOCK, link_faults=LOSS),
    "hog-beside": lambda: pingpong_pair(12, wait=BLOCK, companions=(CompanionSpec(0),)),
    "queue-for-each": lambda: _four_ranks(nic=_nic("open-mx", rx_queues=2)),
    "queues-follow": lambda: _four_ranks(nic=_nic("open-mx", rx_queues=2, steering="arfs")),
    "copy-offload": lambda: pingpong_pair(
        6, 200_000, nic=_nic("stream"), wait=BLOCK, host=HostParameters(copy_offload=True)
    ),
    "native-mx": lambda: pingpong_pair(12, 5000, nic=NicParameters(nic_kind="mx"), wait=SPIN),
    "one-node": _neighbours,
    "all-costs": lambda: _in_turn(0),
    "all-costs-large": lambda: _in_turn(100_000),
    "switch": lambda: _four_ranks(nic=_nic("disabled", network="switch", switch_buffer_packets=2)),
    "shrimp": lambda: pingpong_pair(12, nic=NicParameters(nic_kind="vmmc"), wait=BLOCK),
    **{f"company-{name}": partial(_company, name) for name in SCHEDULERS},
}


def golden_text(result: ClusterResult) -> str:
    """The figures of a run as the file has them, a line for each agent or process."""
    figures = {
        "elapsed_ns": result.elapsed_ns,
        "cpu_ns": {name: used["task_clock_ns"] for name, used in result.usage.items()},
        "accounts": {name: _present(account) for name, account in result.accounts.items()},
        "counters": {agent: _present(counted) for agent, counted in result.counters.items()},
        "samples": {
            rank: {name: values.tolist() for name, values in arrays.items()}
            for rank, arrays in result.samples.items()
        },
    }
    groups = [f'"{group}": {{\n{_lines(figures_of)}\n}}' for group, figures_of in figures.items()]
    return "{" + ",\n".join(groups) + "}\n"


def _present(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count and name not in IDLE}


def _lines(table: Mapping[str, Any]) -> str:
    return ",\n".join(f' "{name}": {json.dumps(value)}' for name, value in table.items())
