"""Captures of links under test, and what tshark reads in them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shrimpmx.cluster.engine.result import Captured
from shrimpmx.native.segment import SEGMENT_CAPTURE, Segment
from shrimpmx.native.trace import Capture
from support.conditions import patient
from support.tree import ROOT

DISSECTOR = ROOT / "tools" / "wireshark" / "shrimpmx.lua"
END_BYTES, SNAP_BYTES = 1 << 20, 1500
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


def new_capture(ends: int = 2, end_bytes: int = END_BYTES, snap_bytes: int = SNAP_BYTES) -> Capture:
    """An empty one, in memory of this process."""
    size_bytes = Capture.size_bytes(ends, end_bytes, snap_bytes)
    segment = Segment.anonymous(size_bytes, SEGMENT_CAPTURE)
    return Capture.create(segment, ends, end_bytes, snap_bytes)


def captured(capture: Capture, ends: Sequence[str] = ("node0", "node1")) -> Captured:
    """What it holds."""
    passed = [capture.written(end) for end in range(len(ends))]
    return Captured(ends, capture.frames(), passed, capture.snap_bytes)


def decoded(path: Path, *options: str) -> list[dict[str, Any]]:
    """The layers of each frame of a file, as tshark and the dissector have them."""
    command = ["tshark", "-X", f"lua_script:{DISSECTOR}", *options, "-r", str(path)]
    done = subprocess.run(
        [*command, "-T", "json", "--no-duplicate-keys"],
        capture_output=True,
        text=True,
        timeout=patient(100),
        check=True,
    )
    assert "Lua" not in done.stderr, done.stderr
    return [each["_source"]["layers"] for each in json.loads(done.stdout)]
