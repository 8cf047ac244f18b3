"""A result as it lies on disk: its document, and where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shrimpmx.results.json_file import read_document
from shrimpmx.results.result import RUN_FILE, load_measured


@dataclass(frozen=True)
class Stored:
    """The result in the directory `path`, checked; `text` is its run.json."""

    path: Path
    document: Mapping[str, Any]
    text: bytes


def stored_in(path: Path) -> Stored:
    """The result in a directory. InputError if it is missing or damaged, or has no point."""
    return Stored(path, load_measured(path), read_document(path / RUN_FILE, "result"))
