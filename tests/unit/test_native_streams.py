"""Standard output and error whose readers go away."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from shrimpmx.native.streams import on_terminal, put, shown, shown_name, tell, while_read
from shrimpmx.show.terminal import console


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


def test_without_standard_output_nothing_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with while_read():
        print("one")
    with pytest.raises(OSError, match="No space left"), while_read():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


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


# Prefixes of numbers, and signs of Egyptian hieroglyphs: visible, whatever their category.
VISIBLE = [*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD]
VISIBLE += range(0x13430, 0x13440)


def test_no_invisible_character_is_shown_as_it_is() -> None:
    kept = [
        f"{code:x}"
        for code, letter in ((code, chr(code)) for code in range(sys.maxunicode + 1))
        if code not in VISIBLE
        and letter not in "\t\n"
        and (
            unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
            or unicodedata.bidirectional(letter) == "BN"
            or 0xE0000 <= code < 0xE0080
        )
        and shown(letter) == letter
    ]
    assert kept == []
    assert shown("aµ±—é世\u00a0\t\n") == "aµ±—é世\u00a0\t\n"


@pytest.mark.parametrize("name", ["x\nshrimpmx: all is well", "a\rb", "a\x0bb\x85c\u2028d", "\t"])
def test_a_foreign_name_stays_in_its_line(name: str) -> None:
    assert len(shown_name(name).splitlines()) == 1
    assert shown_name(name).isprintable()
    assert shown_name("rank 0, µ") == "rank 0, µ"
