"""Where a run that hangs is: the line of the program, in a stack with frames of libraries."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shrimpmx
from shrimpmx.cluster.engine.diagnosis import place_in_program
from shrimpmx.cluster.rank.settle import stack_file

HERE, PACKAGE = Path(__file__), Path(shrimpmx.__file__).parent
# What lies between a program and the call that waits.
LIBRARIES = (threading.__file__, np.__file__, PACKAGE / "cluster" / "rank" / "settle.py")


@pytest.mark.parametrize(
    ("program", "place"),
    [
        (HERE, f"{HERE.name}:1: "),
        (PACKAGE / "applications" / "nas" / "ep.py", "ep.py:1: "),
        (PACKAGE / "cluster" / "launch.py", ""),
    ],
)
def test_the_innermost_line_of_a_program_is_named(
    program: Path, place: str, tmp_path: Path
) -> None:
    frames = [f'  File "{path}", line 1 in wait' for path in (*LIBRARIES, program)]
    stack_file(tmp_path, "rank0").write_text("\n".join(["Current thread:", *frames]))
    parts: Any = SimpleNamespace(directory=tmp_path)
    found = place_in_program(parts, "rank0")
    assert found.startswith(place)
    assert bool(found) == bool(place)
