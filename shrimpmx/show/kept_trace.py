"""The records of a traced run in a file, for `shrimpmx trace`."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shrimpmx.cluster.engine.mpi_calls import MpiCall
from shrimpmx.cluster.engine.switches import Switches
from shrimpmx.errors import InputError
from shrimpmx.native.arrays import DAMAGES, open_arrays
from shrimpmx.native.files import write_whole
from shrimpmx.native.trace import TraceRecord, kind_names
from shrimpmx.results.result import TRACES, load_result
from shrimpmx.results.words import place_words
from shrimpmx.show.timeline import Seat, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIX = ".npz"
# Of the arrays of a file: another one means that they changed.
SCHEMA = 1
ADVICE = "free some room, or run without --trace"
_BEGIN = [("cpu", "u4"), ("time_ns", "i8"), ("process", "u4")]
_ROW = [("time_ns", "i8"), ("agent", "u4"), ("kind", "u4"), ("a", "u8"), ("b", "u8")]


def keep_trace(timeline: Timeline, path: Path) -> None:
    """Write the records, the agents' names, the ranks' seats, the context switches, and how many
    records were overwritten. MachineError as write_whole's.
    """
    import numpy as np

    kinds = kind_names()
    numbers = {kind: number for number, kind in enumerate(kinds)}
    rows = [(r.time_ns, r.agent, numbers[r.kind], r.a, r.b) for r in timeline.records]
    ranks = [(s.node, s.core, s.endpoint) for s in timeline.seats.values()]
    file = io.BytesIO()
    np.savez_compressed(
        file,
        schema=np.array(SCHEMA),
        records=np.array(rows, dtype=_ROW),
        kinds=np.array(kinds),
        agents=np.array(timeline.agents, dtype=str),
        runners=np.array(timeline.processes, dtype=str),
        ranks=np.array(list(timeline.seats), dtype=str),
        seats=np.array(ranks, dtype="i8").reshape(-1, 3),
        overwritten=np.array(list(timeline.overwritten.items()), dtype="i8").reshape(-1, 2),
        dilation=np.array(timeline.dilation),
        **_arrays(timeline.switches),
        **_call_arrays(timeline.calls),
    )
    write_whole(path, file.getvalue(), ADVICE)


def load_trace(path: Path) -> Timeline:
    """The timeline that keep_trace() wrote. InputError if the file is missing or damaged."""
    try:
        with open_arrays(path) as found:
            _check_schema(path, int(found["schema"]))
            kinds = found["kinds"].tolist()
            records = [
                TraceRecord(time_ns, agent, kinds[kind], a, b)
                for time_ns, agent, kind, a, b in found["records"].tolist()
            ]
            places = [Seat(*place) for place in found["seats"].tolist()]
            seats = dict(zip(found["ranks"].tolist(), places, strict=True))
            return Timeline(
                records,
                found["agents"].tolist(),
                processes=found["runners"].tolist() if "runners" in found else (),
                seats=seats,
                overwritten=dict(found["overwritten"].tolist()),
                switches=_switches(found),
                dilation=float(found["dilation"]),
                calls=_calls(found),
            )
    except OSError as error:
        raise InputError(f"trace {path} cannot be read: {error.strerror or error}") from error
    except DAMAGES as error:
        raise InputError(
            f"trace {path} is damaged, or of another program; run with --trace once more"
        ) from error


def traces_in(place: Path) -> dict[Path, list[str]]:
    """The traces kept in a result directory, each with the parameters that tell the point it is of
    from the others.
    """
    # Also of points that were not run.
    points: list[dict[str, Any]] = load_result(place).get("settings", {}).get("points", [])
    paths = sorted((place / TRACES).glob(f"*{SUFFIX}"))
    return {path: _place_of(path, points) for path in paths}


def _place_of(path: Path, points: Sequence[Mapping[str, Any]]) -> list[str]:
    number = re.match(r"point(\d+)", path.stem)
    index = int(number[1]) if number else len(points)
    place = points[index] if index < len(points) else {}
    return [
        place_words(name, value)
        for name, value in place.items()
        if any(repr(point.get(name)) != repr(value) for point in points)
    ]


def _check_schema(path: Path, schema: int) -> None:
    if schema > SCHEMA:
        raise InputError(
            f"trace {path} has schema {schema}, this version of shrimpmx reads schema {SCHEMA}: "
            "read it with a newer version"
        )


def _arrays(switches: Switches) -> dict[str, Any]:
    import numpy as np

    rows = [(cpu, *begin) for cpu, begins in switches.begins.items() for begin in begins]
    return {
        "begins": np.array(rows, dtype=_BEGIN),
        "cpus": np.array(list(switches.begins), dtype="u4"),
        "processes": np.array(list(switches.names), dtype="u4"),
        "names": np.array(list(switches.names.values()), dtype=str),
        "process_of": np.array(list(switches.process_of.items()), dtype=str).reshape(-1, 2),
        "lost": np.array(switches.lost),
        "absent": np.array(switches.absent),
    }


def _call_arrays(calls: Sequence[MpiCall]) -> dict[str, Any]:
    """Nothing where there are none."""
    import numpy as np

    if not calls:
        return {}
    number: dict[str, int] = {}
    rows = [
        [number.setdefault(each, len(number)) if isinstance(each, str) else each for each in call]
        for call in calls
    ]
    return {"calls": np.array(rows, dtype="i8"), "call_texts": np.array(list(number), dtype=str)}


def _calls(found: Mapping[str, NDArray[Any]]) -> list[MpiCall]:
    if "calls" not in found:
        return []
    texts = found["call_texts"].tolist()
    return [
        MpiCall(texts[rank], begin_ns, end_ns, texts[name], texts[place], *records)
        for rank, begin_ns, end_ns, name, place, *records in found["calls"].tolist()
    ]


def _switches(found: Mapping[str, NDArray[Any]]) -> Switches:
    begins: dict[int, list[tuple[int, int]]] = {cpu: [] for cpu in found["cpus"].tolist()}
    for cpu, time_ns, process in found["begins"].tolist():
        begins[cpu].append((time_ns, process))
    names = dict(zip(found["processes"].tolist(), found["names"].tolist(), strict=True))
    process_of = dict(found["process_of"].tolist())
    return Switches(begins, names, process_of, int(found["lost"]), str(found["absent"]))
