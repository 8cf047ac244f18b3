"""The records of a traced run in a file, for `shrimpmx trace`."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from shrimpmx.errors import InputError
from shrimpmx.native.files import write_whole
from shrimpmx.native.trace import TraceRecord, kind_names
from shrimpmx.report.timeline import Seat, Timeline

SUFFIX = ".npz"
_ROW = [("time_ns", "i8"), ("agent", "u4"), ("kind", "u4"), ("a", "u8"), ("b", "u8")]


def keep_trace(timeline: Timeline, path: Path) -> None:
    """Write the records, the agents' names and the ranks' seats. MachineError as write_whole's."""
    import numpy as np

    kinds = kind_names()
    numbers = {kind: number for number, kind in enumerate(kinds)}
    rows = [(r.time_ns, r.agent, numbers[r.kind], r.a, r.b) for r in timeline.records]
    ranks = [(s.node, s.core, s.endpoint) for s in timeline.seats.values()]
    file = io.BytesIO()
    np.savez_compressed(
        file,
        records=np.array(rows, dtype=_ROW),
        kinds=np.array(kinds),
        agents=np.array(timeline.agents, dtype=str),
        ranks=np.array(list(timeline.seats), dtype=str),
        seats=np.array(ranks, dtype="i8").reshape(-1, 3),
    )
    write_whole(path, file.getvalue())


def load_trace(path: Path) -> Timeline:
    """The timeline that keep_trace() wrote. InputError if the file is missing or damaged."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as found:
            kinds = found["kinds"].tolist()
            records = [
                TraceRecord(time_ns, agent, kinds[kind], a, b)
                for time_ns, agent, kind, a, b in found["records"].tolist()
            ]
            places = [Seat(*place) for place in found["seats"].tolist()]
            seats = dict(zip(found["ranks"].tolist(), places, strict=True))
            return Timeline(records, found["agents"].tolist(), seats=seats)
    except OSError as error:
        raise InputError(f"trace {path} cannot be read: {error.strerror or error}") from error
    except (EOFError, KeyError, IndexError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(
            f"trace {path} is damaged, or of another program; run with --trace once more"
        ) from error
