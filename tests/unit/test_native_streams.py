"""Standard output and error whose readers go away."""

from __future__ import annotations

import contextlib
import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from shrimpmx.commands.terminal import console
from shrimpmx.native.streams import on_terminal, put, shown, tell, while_read


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_what_is_printed_without_a_reader_is_lost_and_no_error(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe() if kind == "pipe" else pty.openpty()
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        os.close(reader)
        done = []
        with while_read():
            print("one")
            sys.stdout.flush()
            done.append("not reached")
        print("two", flush=True)
        tell("three")
    assert not done


@contextmanager
def full_disk() -> Iterator[TextIO]:
    file = Path("/dev/full").open("w")  # noqa: SIM115 - its close fails, too
    yield file
    with contextlib.suppress(OSError):
        file.close()


def test_what_is_no_reader_that_went_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with full_disk() as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(OSError, match="No space left"), while_read():
            print("one")


def test_a_notice_that_finds_no_room_leaves_the_stream_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with full_disk() as full:
        monkeypatch.setattr(sys, "stderr", full)
        tell("one")
        assert Path(f"/proc/self/fd/{full.fileno()}").readlink() == Path("/dev/full")


def test_without_standard_error_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    tell("one")
    assert not on_terminal()
    assert capsys.readouterr().out == ""


COMMANDS = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202eabc\ud800\x00"


def test_texts_of_programs_command_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"a µ±\u00a0—\t{COMMANDS}\nb"
    tell(text)
    put(text)
    printer = console(width=400, force_terminal=True)
    printer.print(text, markup=False, soft_wrap=True)
    captured = capsys.readouterr()
    for printed in (captured.err, captured.out):
        assert not set(COMMANDS) & set(printed) - set("]0;title[2J31mabc")
        assert r"\x1b]0;title\x07\x1b[2J\r\x9b31m\u202eabc\ud800\x00" in printed
        assert "a µ±\u00a0—" in printed
    assert shown(shown(text)) == shown(text)
    printer.print("[bold]bold[/bold]")  # its own commands are printed
    assert "\x1b[1m" in capsys.readouterr().out
