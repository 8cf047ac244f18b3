"""Runs of the file service."""

from __future__ import annotations

from typing import Any

from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.nic import NicParameters

OPTIONS = ("iterations", "warmup", "threads", "size_bytes", "delay_ns", "mixed_blocks")


def file_service_pair(pairs: int = 1, **settings: Any) -> ClusterSpec:
    """Two nodes with `pairs` ranks each; `settings`: the workload's options, and fields of spec."""
    options = {name: settings.pop(name) for name in OPTIONS if name in settings}
    ranks = tuple(
        RankSpec(node, "file-service", options=options) for _ in range(pairs) for node in (0, 1)
    )
    return ClusterSpec(ranks=ranks, nic=NicParameters(nic_kind="vmmc"), **settings)
