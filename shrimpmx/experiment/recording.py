"""What runs leave beside their samples, on demand: traces, captures of their frames, what programs
print.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.engine.trace_text import trace_text
from shrimpmx.cluster.spec import CaptureRoom, ClusterSpec
from shrimpmx.errors import MachineError
from shrimpmx.experiment.point import Point
from shrimpmx.native.files import remove_file, write_whole
from shrimpmx.results.words import place_words
from shrimpmx.show import kept_trace
from shrimpmx.show.pcapng import SUFFIX, write_pcapng
from shrimpmx.show.slow_messages import untold_by
from shrimpmx.show.timeline import Seat, Timeline
from shrimpmx.wire.tables import WireGeometry, wire_geometry

# ns by part, of the critical path and of each rank.
RunParts = dict[str, dict[str, float]]


@dataclass
class Recording:
    """With `traces` the binary trace of each run is kept in that directory: as text, for Perfetto,
    as numbers. With `captures` the frames of each run are, for Wireshark, as far as they find
    `room`. MPI programs add what they print to the file `printed`; None: they print where the
    caller does; `axes` tell these runs apart there. `untold` says what a trace lacks, by sentences;
    that of the last run that lacked it. With `parts` it is noted there, by point and seed, where
    the time of a run went, in ns of the emulated hosts: of its critical path, and of each rank.
    """

    traces: Path | None = None
    captures: Path | None = None
    room: CaptureRoom = field(default_factory=CaptureRoom)
    printed: Path | None = None
    axes: Sequence[str] = ()
    untold: list[str] = field(default_factory=list)
    parts: dict[tuple[int, int], RunParts] | None = None

    @property
    def traced(self) -> bool:
        """Whether agents are to record what they do."""
        return self.traces is not None or self.parts is not None

    @property
    def capture(self) -> CaptureRoom | None:
        """What links are to keep of their frames; None: nothing."""
        return self.room if self.captures is not None else None

    def applied_to(self, spec: ClusterSpec, point: Point, seed: int) -> ClusterSpec:
        """The spec of a point, with its programs' output where it is to be."""
        if self.printed is None:
            return spec
        stdout = str(self.printed.absolute())
        places = [place_words(axis, point.shown[axis]) for axis in self.axes]
        heading = ", ".join([*places, f"seed {seed}"])
        ranks = (
            replace(rank, launch=replace(rank.launch, stdout=stdout, heading=heading))
            if rank.launch
            else rank
            for rank in spec.ranks
        )
        return replace(spec, ranks=tuple(ranks))

    def keep(self, point: Point, seed: int, spec: ClusterSpec, result: ClusterResult) -> None:
        """Write what a run has recorded, a trace in all its forms or in none. MachineError if it
        cannot be written.
        """
        name = f"point{point.index:04d}-seed{seed}"
        if self.traced:
            whole = timeline_of(point, spec, result)
            self.untold = untold_by(whole) or self.untold
            if self.parts is not None:
                self.parts[point.index, seed] = _parts_of(whole)
            if self.traces is not None:
                _keep_trace(self.traces / f"{name}.txt", whole)
        if self.captures is not None and result.captured is not None:
            write_pcapng(result.captured, self.captures / f"{name}{SUFFIX}")


def geometry_of(point: Point) -> WireGeometry:
    """That of the frames of a point's NIC."""
    return wire_geometry(point.parameters.nic.mtu, point.parameters.nic.wire_format)


def seats_of(spec: ClusterSpec) -> dict[str, Seat]:
    """Where each rank is, by its name."""
    return {
        f"rank{number}": Seat(rank.node, spec.home_core(number), spec.endpoints[number])
        for number, rank in enumerate(spec.ranks)
    }


def timeline_of(point: Point, spec: ClusterSpec, result: ClusterResult) -> Timeline:
    """All that the agents of a traced run have recorded."""
    return Timeline(
        result.records,
        result.agents,
        geometry_of(point),
        result.processes,
        seats_of(spec),
        result.overwritten,
        result.switches,
        spec.dilation,
        result.calls,
    )


def _parts_of(whole: Timeline) -> RunParts:
    # Only --what-if needs it.
    from shrimpmx.show.breakdown.breakdown import breakdown_of
    from shrimpmx.show.breakdown.spans import totals
    from shrimpmx.show.breakdown.words import CRITICAL

    found = breakdown_of(whole)
    spans = {CRITICAL: found.path, **found.ranks} if found is not None else {}
    return {
        name: {part: ns / whole.dilation for part, ns in totals(each).items()}
        for name, each in spans.items()
    }


def _keep_trace(path: Path, whole: Timeline) -> None:
    # protobuf loads slowly.
    from shrimpmx.show.perfetto import SUFFIX as PERFETTO
    from shrimpmx.show.perfetto import write_perfetto

    numbers, perfetto = path.with_suffix(kept_trace.SUFFIX), path.with_suffix(PERFETTO)
    text = trace_text(whole.records, whole.agents, whole.processes, whole.calls)
    try:
        write_whole(path, text, kept_trace.ADVICE)
        write_perfetto(whole, perfetto)
        kept_trace.keep_trace(whole, numbers)
    except MachineError:
        for each in (path, perfetto, numbers):
            with contextlib.suppress(OSError):
                remove_file(each)
        raise
