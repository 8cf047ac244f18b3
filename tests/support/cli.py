"""What a command says when it refuses."""

from __future__ import annotations

import pytest


def assert_refused(capsys: pytest.CaptureFixture[str], words: str) -> None:
    """One sentence on stderr that has all these words and values, and nothing on stdout."""
    captured = capsys.readouterr()
    [line] = captured.err.strip().splitlines()
    assert line.startswith("shrimpmx: ")
    assert [word for word in words.split() if word not in line] == [], line
    assert captured.out == ""
