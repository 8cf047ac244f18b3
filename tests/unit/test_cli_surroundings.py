"""The command line where paths cannot be looked at, and where there is nothing to write to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import assert_refused

from shrimpmx import cli
from shrimpmx.cli import main
from shrimpmx.native.streams import tell

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.parametrize(
    "words", [["export", "--csv", "-"], ["counters"], ["report"], ["compare", "b"]]
)
def test_a_name_that_is_too_long_is_one_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([words[0], "a" * 300, *words[1:]]) == 2
    assert_refused(capsys, "a" * 300)


def test_without_standard_error_the_exit_code_tells() -> None:
    closed = 'exec "$@" 2>&-'
    words = ["sh", "-c", closed, "sh", sys.executable, "-m", "shrimpmx", "run", "no/such"]
    assert subprocess.run(words, env=ENVIRONMENT, check=False).returncode == 2


@pytest.mark.parametrize("sentence", cli.LIMITS.values())
def test_a_limit_is_told_without_memory_for_expressions(
    sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("re._compiler.compile", no_memory)
    re.purge()
    tell(f"shrimpmx: {sentence}")
    assert_refused(capsys, sentence)


@pytest.mark.nightly("each command", but=4)
@pytest.mark.parametrize("limit_kib", range(60_000, 200_000, 20_000))
@pytest.mark.parametrize("words", [["list"], ["run", "no/such"]])
def test_a_limit_of_addresses_is_one_sentence(limit_kib: int, words: list[str]) -> None:
    """NumPy would exit, or say that the user interrupted it."""
    shell = f'ulimit -v {limit_kib}; exec "$@"'
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "shrimpmx", *words]
    done = subprocess.run(command, env=ENVIRONMENT, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        assert done.returncode == 2
        [line] = done.stderr.strip().splitlines()
        assert line.startswith("shrimpmx: ")
