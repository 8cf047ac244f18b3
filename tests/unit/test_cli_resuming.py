"""The command that an interrupted one names."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrimpmx.cli.resuming import going_on
from shrimpmx.results.result import RUN_FILE


@pytest.mark.parametrize("there", [False, True])
def test_what_is_not_there_is_not_resumed(tmp_path: Path, *, there: bool) -> None:
    """A directory in which nothing is kept goes with the command that has made it."""
    output = tmp_path / "a result"
    output.mkdir()
    if there:
        (output / RUN_FILE).write_text('{"schema": 1, "complete": false}')
    told = going_on(output, f"shrimpmx run smoke/pingpong --output '{output}' --resume --set a=1")
    assert ("--resume" in told) == there
    assert f"--output '{output}'" in told
    assert told.endswith("--set a=1")
