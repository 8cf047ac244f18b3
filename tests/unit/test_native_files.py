"""Files are written whole or not at all, and never through another user's link."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.users import ANOTHER, needs_namespaces, needs_two_users, with_own_mounts

from shrimpmx.cli import main
from shrimpmx.errors import MachineError
from shrimpmx.native.files import remove_tree, write_whole
from shrimpmx.native.held import HeldDirectory, placed
from shrimpmx.native.trace import TraceRecord
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.show.perfetto import write_perfetto
from shrimpmx.show.timeline import Timeline
from shrimpmx.wire.tables import wire_geometry

LARGE = "x" * 300_000


def remove_unfinished(path: Path) -> None:
    with HeldDirectory.at(path) as directory:
        directory.remove_unfinished()


# The directory is flushed behind the file.
WRITER = """
import os, signal
from pathlib import Path
from shrimpmx.native import files

def flush(file):
    if not os.path.isdir(f"/proc/self/fd/{{file}}"):
        os.kill(os.getpid(), signal.{signal})

os.fsync = flush
files.write_whole(Path({path!r}), "new")
"""


def timeline(records: int) -> Timeline:
    made = [TraceRecord(1, 0, "note", 1, 2) for _ in range(records)]
    return Timeline(made, ["rank0"], wire_geometry(), ["rank0"])


WRITERS: dict[str, Callable[[Path], None]] = {
    "text": lambda path: write_whole(path, LARGE, "make room"),
    "result": lambda path: write_json(path, [LARGE]),
    "timeline": lambda path: write_perfetto(timeline(5_000), path),
}


@pytest.fixture(params=[0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_umask_decides_who_reads_a_file(writer: str, umask: int, tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    for _ in range(2):
        WRITERS[writer](path)
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_write_that_fails_leaves_the_old_file(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MachineError, match="file cannot be written: No space left") as caught:
        WRITERS[writer](path)
    assert caught.value.exit_code == 2
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("called", ["open", "flock", "fsync", "replace"])
def test_an_interrupt_leaves_nothing_unfinished(
    called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fcntl if called == "flock" else os
    real = getattr(module, called)

    def interrupted(*arguments: Any, **named: Any) -> Any:
        found = real(*arguments, **named)
        if called == "open" and not arguments[1] & os.O_CREAT:
            return found
        if called == "open":
            os.close(found)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, called, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", LARGE)
    assert [path for path in tmp_path.iterdir() if path.name != "file"] == []


def test_what_a_killed_writer_leaves_is_removed_and_what_one_that_lives_writes_is_not(
    tmp_path: Path,
) -> None:
    def write(signal_name: str) -> subprocess.Popen[bytes]:
        words = WRITER.format(path=str(tmp_path / "f"), signal=signal_name)
        return subprocess.Popen([sys.executable, "-c", words])

    with write("SIGKILL") as writer:
        assert writer.wait() == -signal.SIGKILL
    [unfinished] = tmp_path.iterdir()
    remove_unfinished(tmp_path)
    assert not unfinished.exists()
    with write("SIGSTOP") as writer:
        try:
            os.waitpid(writer.pid, os.WUNTRACED)
            remove_unfinished(tmp_path)
            [unfinished] = tmp_path.iterdir()
        finally:
            writer.send_signal(signal.SIGCONT)
    others = [tmp_path / f".shrimpmx-{number}" for number in ("0123456789abcdef", "notes")]
    others[0].symlink_to(tmp_path / "f")
    others[1].touch()
    remove_unfinished(tmp_path)
    assert sorted(tmp_path.iterdir()) == [*others, tmp_path / "f"]


@needs_namespaces
def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    def work() -> None:
        for writer, write in WRITERS.items():
            path = tmp_path / writer
            path.write_text("old")
            with pytest.raises(MachineError, match="No space left"):
                write(path)
            assert path.read_text() == "old"
        assert (
            main(["list", "--parameters", "--quiet", "--json", str(tmp_path / "parameters")]) == 2
        )
        assert sorted(os.listdir(tmp_path)) == sorted(WRITERS)

    with_own_mounts(work, ("tmpfs", "size=16k", str(tmp_path)))


def test_a_link_of_ones_own_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_json(tmp_path / "link", [1])
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "file").read_text()) == [1]


@needs_two_users
@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_of_another_user_is_not_followed(writer: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("precious")
    os.lchown(link, ANOTHER, ANOTHER)
    WRITERS[writer](link)
    assert (tmp_path / "precious").read_text() == "old"
    assert not link.is_symlink()


@needs_two_users
@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_of_another_user_leads_to_no_device(writer: str, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    os.lchown(link, ANOTHER, ANOTHER)
    WRITERS[writer](link)
    assert link.is_file()
    assert not link.is_symlink()


@needs_two_users
def test_a_place_behind_a_link_of_another_user_is_not_tried(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("absent/file")
    os.lchown(link, ANOTHER, ANOTHER)
    assert json_place(str(link)) == link


def test_a_name_may_be_as_long_as_names_may_be(tmp_path: Path) -> None:
    path = tmp_path / ("\N{CJK UNIFIED IDEOGRAPH-5B57}" * 84)
    write_whole(path, "x")
    assert path.read_text() == "x"


def test_a_pipe_takes_what_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        write_json(pipe, {"a": 1})
        assert reader.communicate()[0] == '{"a":1}\n'
    assert pipe.is_fifo()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_is_one_sentence(bad: float, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="infinite or not a number"):
        write_json(tmp_path / "result", {"bad": bad})
    assert not list(tmp_path.iterdir())


def test_a_directory_is_removed_though_it_cannot_be_opened_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "file").write_text("x")
    (tmp_path / "tree" / "deep" / "link").symlink_to(tmp_path)
    tries: list[Path] = []

    @contextlib.contextmanager
    def opened(path: Path) -> Iterator[tuple[HeldDirectory, str]]:
        tries.append(path)
        if len(tries) == 1:
            raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))
        with placed(path) as found:
            yield found

    monkeypatch.setattr("shrimpmx.native.files.placed", opened)
    remove_tree(tmp_path / "tree")
    assert os.listdir(tmp_path) == []
    remove_tree(tmp_path / "tree")  # there is nothing
