"""What a user may name as an input that is none: devices, pipes, files without an end."""

from __future__ import annotations

import os
from pathlib import Path

BAD_INPUTS = ("device", "pipe", "large", "directory")


def make_bad_input(kind: str, path: Path) -> Path:
    """One of BAD_INPUTS in the place of `path`."""
    path.unlink(missing_ok=True)
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        path.touch()
        os.truncate(path, 30 << 30)
    else:
        path.mkdir()
    return path
