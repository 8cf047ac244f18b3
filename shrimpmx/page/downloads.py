"""A result as it lies on disk, and its data as files inside a page: each a link that holds
all of its content.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shrimpmx.results.json_file import read_document
from shrimpmx.results.result import RUN_FILE, load_measured
from shrimpmx.results.sample_table import csv_of


@dataclass(frozen=True)
class Stored:
    """The result in the directory `path`, checked; `text` is its run.json."""

    path: Path
    document: Mapping[str, Any]
    text: bytes


def stored_in(path: Path) -> Stored:
    """The result in a directory. InputError if it is missing or damaged, or has no point."""
    return Stored(path, load_measured(path), read_document(path / RUN_FILE, "result"))


# Files of all results of a page together, as they stand in it: a page is sent by mail (ours).
ROOM_BYTES = 2_000_000
# From this size on a file is compressed: less would not be worth a second step (ours).
GZIP_BYTES = 50_000
# From this size on it has no room, however well it may be compressed: a tenth remains (ours).
TRIED_BYTES = 10 * ROOM_BYTES
# Samples of a CSV: more would take seconds, and most of the room (ours).
CSV_SAMPLES = 100_000
TABLE_FILE = "samples.csv"


@dataclass(frozen=True)
class Download:
    """A file with a `name`; without an `address`, which holds its content, it has no room in the
    page, and `instead` says where it is.
    """

    name: str
    what: str
    size: str
    address: str = ""
    instead: str = ""


class Room:
    """The room that is left in a page for files."""

    def __init__(self, left_bytes: int = ROOM_BYTES) -> None:
        self.left_bytes = left_bytes

    def downloads(self, stored: Stored) -> Iterator[Download]:
        """The data of a result: run.json, and the samples as a table."""
        lies = f"it lies in {stored.path}"
        yield self._take(RUN_FILE, "everything, as JSON", stored.text, "application/json", lies)
        what, command = "one row per sample", f"shrimpmx export {stored.path} --csv {TABLE_FILE}"
        metrics = [
            each for point in stored.document["points"] for each in point["metrics"].values()
        ]
        count = sum(len(metric.get("samples", ())) for metric in metrics)
        if count > CSV_SAMPLES:
            yield Download(TABLE_FILE, what, f"{count:,} samples", instead=f"{command} writes it")
            return
        table = csv_of(stored.document).encode()
        yield self._take(TABLE_FILE, what, table, "text/csv", f"{command} writes it")

    def _take(self, name: str, what: str, content: bytes, kind: str, instead: str) -> Download:
        size = f"{len(content) / 1000:,.0f} kB"
        if len(content) >= TRIED_BYTES:
            return Download(name, what, size, instead=instead)
        if len(content) >= GZIP_BYTES:
            # No time: the same result gives the same page.
            content = gzip.compress(content, mtime=0)
            name, kind = f"{name}.gz", "application/gzip"
            size = f"{len(content) / 1000:,.0f} kB of {size}"
        address = f"data:{kind};base64,{base64.b64encode(content).decode()}"
        if len(address) > self.left_bytes:
            return Download(name.removesuffix(".gz"), what, size, instead=instead)
        self.left_bytes -= len(address)
        return Download(name, what, size, address)
