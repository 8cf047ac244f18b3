"""The command that an interrupted one names."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrimpmx.cli.resuming import going_on


@pytest.mark.parametrize("there", [False, True])
def test_what_is_not_there_is_not_resumed(tmp_path: Path, *, there: bool) -> None:
    """An interrupt may come before the first file, or while the directory is made."""
    output = tmp_path / "a result"
    if there:
        output.mkdir()
    told = going_on(output, f"shrimpmx run smoke/pingpong --output '{output}' --resume --set a=1")
    assert ("--resume" in told) == there
    assert f"--output '{output}'" in told
    assert told.endswith("--set a=1")
