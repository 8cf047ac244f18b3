"""The calls of MPI of traced programs, as each rank has kept them (mpi/tracing.h)."""

from __future__ import annotations

import re
import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from shrimpmx.cluster.rank.session import CALLS
from shrimpmx.mpi.functions import SHOWN

TEXT_BYTES, CALLS_MOST, NO_PLACE = 1 << 16, 1 << 15, 2**32 - 1
_HEADER, _CALL = struct.Struct("=QQ"), struct.Struct("=qqQQII")
# Where a compiled program called: its file, and the address in that.
_COMPILED = re.compile(r"(?P<file>.+)\+0x(?P<address>[0-9a-f]+)")
# A program of many megabytes of debugging information (ours).
LOOK_UP_S = 20.0


class MpiCall(NamedTuple):
    """A call of a rank: its function, when it began and ended, ns of the run's clock, and its line,
    as `FILE:LINE, FUNCTION`, or the file of a program without line numbers; "" if unknown. How many
    records of the rank are in its trace before the call, and before its end.
    """

    rank: str
    begin_ns: int
    end_ns: int
    name: str
    place: str
    begin_record: int = 0
    end_record: int = 0

    @property
    def words(self) -> str:
        """Its function and line."""
        return ", ".join(filter(None, (self.name, self.place)))


def calls_in(directory: Path, ranks: Iterable[str]) -> list[MpiCall]:
    """The last calls of these ranks that are kept in a directory, by their begin."""
    found = [call for rank in ranks for call in _calls_of(rank, directory / f"{rank}{CALLS}")]
    lines = _lines_of({call.place for call in found})
    told = (call._replace(place=lines.get(call.place, call.place)) for call in found)
    return sorted(told, key=lambda call: call.begin_ns)


def _calls_of(rank: str, path: Path) -> list[MpiCall]:
    try:
        content = path.read_bytes()
    except OSError:  # it joined no run, or found no room
        return []
    start = _HEADER.size + TEXT_BYTES
    if len(content) < start + CALLS_MOST * _CALL.size:
        return []
    written, text_bytes = _HEADER.unpack_from(content)
    text = content[_HEADER.size : _HEADER.size + min(text_bytes, TEXT_BYTES)]
    found = []
    for number in range(min(written, CALLS_MOST)):
        at = start + number * _CALL.size
        begin_ns, end_ns, *records, function, place = _CALL.unpack_from(content, at)
        if function >= len(SHOWN) or end_ns < begin_ns:
            continue  # the rank has overwritten it
        words = b"" if place == NO_PLACE else text[place:].partition(b"\0")[0]
        name = SHOWN[function]
        line = words.decode("utf-8", "replace")
        found.append(MpiCall(rank, begin_ns, end_ns, name, line, *records))
    return found


def _lines_of(places: Iterable[str]) -> Mapping[str, str]:
    """The lines of places in compiled programs, where these and this machine can tell them."""
    by_file: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for place in places:
        if found := _COMPILED.fullmatch(place):
            by_file[found["file"]].append((place, found["address"]))
    lines = {}
    for file, several in by_file.items():
        told = _addr2line(file, [address for _, address in several])
        for (place, _), (function, line) in zip(several, told, strict=False):
            known = not line.startswith("??") and not line.endswith((":0", ":?"))
            lines[place] = f"{line.partition(' ')[0]}, {function}" if known else file
    return lines


def _addr2line(file: str, addresses: list[str]) -> list[tuple[str, str]]:
    """Pairs of function and FILE:LINE; none without addr2line."""
    try:
        done = subprocess.run(
            ["addr2line", "-f", "-C", "-e", file, *addresses],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=LOOK_UP_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return [("", "??") for _ in addresses]
    words = done.stdout.decode("utf-8", "replace").splitlines()
    return list(zip(words[::2], words[1::2], strict=False))
