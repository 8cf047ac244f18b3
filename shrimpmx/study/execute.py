"""Running points of a sweep, and drawing what happened in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import CaptureRoom, ClusterSpec
from shrimpmx.errors import AgentError
from shrimpmx.native.files import write_whole
from shrimpmx.report import kept_trace
from shrimpmx.report.pcapng import SUFFIX, write_pcapng
from shrimpmx.report.timeline import Seat, Timeline, message_timeline
from shrimpmx.results.metrics import Outcome
from shrimpmx.study.clusters import Clusters, never_joined
from shrimpmx.study.outcome import outcome_of
from shrimpmx.study.platform import Costs
from shrimpmx.study.point import Point
from shrimpmx.study.ranks import needs_t_block, t_block_ns
from shrimpmx.wait.waiting_strategy import WaitingStrategy
from shrimpmx.wire.tables import WireGeometry, wire_geometry

# Messages of a run whose last one is shown: the first one connects, and finds cold caches.
TIMELINE_MESSAGES = 4


class ClusterExecutor(Clusters):
    """Runs points on emulated clusters, by an engine.

    With `traces` the binary trace of each run is kept there: as text, for Perfetto, as numbers.
    With `captures` the frames of each run are, for Wireshark, as far as they find `room`.
    """

    def __init__(
        self,
        engine: Engine,
        policies: Mapping[str, Callable[[], Any]] | None = None,
        traces: Path | None = None,
        costs: Costs | None = None,
        waits: Mapping[str, Callable[[], WaitingStrategy]] | None = None,
        captures: Path | None = None,
        room: CaptureRoom | None = None,
    ) -> None:
        super().__init__(engine, policies, costs, waits)
        self._traces = traces
        self._captures = captures
        self._room = (room or CaptureRoom()) if captures else None

    def __call__(self, point: Point, seed: int) -> Outcome:
        """Run one point in fresh processes. Raises AgentError, MachineError or InputError."""
        spec = self.spec_of(point, seed, traced=self._traces is not None, capture=self._room)
        result = self._engine.run(spec)
        if result.absent:
            raise AgentError(never_joined(spec), result.absent[0])
        if self._traces is not None:
            self._keep_trace(point, seed, spec, result)
        if self._captures is not None and result.captured is not None:
            write_pcapng(result.captured, self._captures / f"{_run_name(point, seed)}{SUFFIX}")
        return outcome_of(spec, result, self._t_block_ns(point))

    def _t_block_ns(self, point: Point) -> float | None:
        """Of a point that depends on it, whatever else the costs are for."""
        if not needs_t_block(point.parameters):
            return None
        return t_block_ns(self.emulated(point), self._costs)

    def _keep_trace(
        self, point: Point, seed: int, spec: ClusterSpec, result: ClusterResult
    ) -> None:
        # protobuf loads slowly.
        from shrimpmx.report.perfetto import SUFFIX as PERFETTO
        from shrimpmx.report.perfetto import write_perfetto

        assert self._traces is not None
        path = self._traces / f"{_run_name(point, seed)}.txt"
        write_whole(path, result.trace)
        whole = Timeline(
            result.records,
            result.agents,
            _geometry(point),
            result.processes,
            _seats(spec),
            result.overwritten,
        )
        write_perfetto(whole, path.with_suffix(PERFETTO))
        kept_trace.keep_trace(whole, path.with_suffix(kept_trace.SUFFIX))

    def timeline(self, point: Point, seed: int) -> Timeline:
        """The timeline of one message of a point, in a run of its own: tracing takes time."""
        few = {"iterations": TIMELINE_MESSAGES, "warmup": 0}
        work = point.parameters.workload.model_copy(update=few)
        parameters = point.parameters.model_copy(update={"workload": work})
        short = dataclasses.replace(point, parameters=parameters)
        spec = self.spec_of(short, seed, traced=True)
        result = self._engine.run(spec)
        return message_timeline(
            result.records,
            result.agents,
            _geometry(point),
            processes=result.processes,
            seats=_seats(spec),
        )


def _run_name(point: Point, seed: int) -> str:
    """How the files of one run are called."""
    return f"point{point.index:04d}-seed{seed}"


def _geometry(point: Point) -> WireGeometry:
    return wire_geometry(point.parameters.nic.mtu, point.parameters.nic.wire_format)


def _seats(spec: ClusterSpec) -> dict[str, Seat]:
    return {
        f"rank{number}": Seat(rank.node, spec.home_core(number), spec.endpoints[number])
        for number, rank in enumerate(spec.ranks)
    }
