"""Directories that are held: nobody else leads a write elsewhere, and ordinary places take it."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.users import ANOTHER, as_another_user, needs_two_users

from shrimpmx.errors import MachineError
from shrimpmx.native import trust
from shrimpmx.native.files import open_anew, open_to_append, remove_file, try_place, write_whole
from shrimpmx.native.held import HeldDirectory, placed
from shrimpmx.native.inputs import read_given, read_input, read_trusted
from shrimpmx.native.trust import ForeignError

STICKY, OPEN, PRIVATE, OF_A_GROUP = 0o1777, 0o777, 0o755, 0o2775
THIRD = ANOTHER - 1
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that all users may pass through, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


def held(path: Path) -> None:
    with HeldDirectory.at(path, make=True):
        pass


def appended(path: Path) -> None:
    os.close(open_to_append(path))


WRITERS: dict[str, Callable[[Path], None]] = {
    "write": lambda path: write_whole(path, "x"),
    "grow": lambda path: open_anew(path).close(),
    "append": appended,
    "try": try_place,
    "remove": remove_file,
    "make": lambda path: held(path.parent / "new"),
}


def place_of(owner: int, mode: int, path: Path, group: int = 0) -> Path:
    path.mkdir()
    os.chown(path, owner, group)
    path.chmod(mode)
    return path


@needs_two_users
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    ("owner", "mode", "group", "why"),
    [
        (ANOTHER, PRIVATE, 0, f"belongs to user {ANOTHER}"),
        (ANOTHER, STICKY, 0, f"belongs to user {ANOTHER}"),
        (0, OPEN, 0, "every user may write"),
        (0, OF_A_GROUP, ANOTHER, f"group {ANOTHER} may write"),
    ],
)
@pytest.mark.parametrize("below", ["file", "own/file"])
def test_nothing_is_written_below_a_place_in_which_others_may_rename(
    below: str, owner: int, mode: int, group: int, why: str, writer: str, tmp_path: Path
) -> None:
    place = place_of(owner, mode, tmp_path / "place", group)
    (place / "own").mkdir()
    path = place / below
    path.write_text("old")
    with pytest.raises(Exception, match=f"{why}|{place} {why}"):
        WRITERS[writer](path)
    assert path.read_text() == "old"
    assert sorted(os.listdir(path.parent)) in (["file"], ["file", "own"], ["own"])


@needs_two_users
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    ("owner", "mode", "group"),
    [
        (0, STICKY, 0),
        (0, OF_A_GROUP, 0),
        # The groups of users, as Debian makes them, and one without members.
        (THIRD, OF_A_GROUP, THIRD),
        (THIRD, 0o700, 0),
        (0, STICKY, ANOTHER),
    ],
)
def test_ordinary_places_take_what_is_written(
    owner: int, mode: int, group: int, writer: str, tmp_path: Path
) -> None:
    place = place_of(owner, mode, tmp_path / "place", group)

    def work() -> None:
        WRITERS[writer](place / "file")
        write_whole(place / "deep" / "er" / "file", "x")

    as_another_user(work, owner) if owner else work()


@needs_two_users
def test_members_of_ones_group_work_together(tmp_path: Path) -> None:
    place = place_of(0, OF_A_GROUP, tmp_path / "place", THIRD)
    as_another_user(lambda: write_whole(place / "mine", "x"), THIRD)
    assert (place / "mine").stat().st_uid == THIRD
    with pytest.raises(ForeignError, match=f"group {THIRD} may write"):
        held(place)


@needs_two_users
def test_root_trusts_a_group_without_other_members_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(0, OF_A_GROUP, tmp_path / "place", THIRD)
    monkeypatch.setattr(
        trust.grp,
        "getgrgid",
        lambda group: trust.grp.struct_group(("project", "x", group, members)),
    )
    members: list[str] = []
    held(place)
    members = ["root"]
    held(place)
    for name in (next(each.pw_name for each in pwd.getpwall() if each.pw_uid), "nobody-known"):
        members = ["root", name]
        with pytest.raises(ForeignError, match="group project may write"):
            held(place)


@needs_two_users
def test_who_became_root_by_sudo_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(ANOTHER, PRIVATE, tmp_path / "home")
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    held(place / "new")
    monkeypatch.setenv("SUDO_UID", str(THIRD))
    with pytest.raises(ForeignError):
        held(place)

    def work() -> None:  # who is not root became nobody by sudo
        os.environ["SUDO_UID"] = str(ANOTHER)
        with pytest.raises(ForeignError):
            held(place)

    as_another_user(work, THIRD)


@needs_two_users
def test_links_of_trusted_users_are_followed_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to("far")
    (tmp_path / "whole").symlink_to(tmp_path / "near" / ".." / "far")
    for name in ("near", "whole", "far/../near"):
        write_whole(tmp_path / name / "file", name)
        assert (tmp_path / "far" / "file").read_text() == name
    os.lchown(tmp_path / "near", ANOTHER, ANOTHER)
    for name in ("near", "whole"):
        with pytest.raises(ForeignError, match=f"near is a link of user {ANOTHER}"):
            held(tmp_path / name / "new")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="Too many levels"):
        held(tmp_path / "round")


@needs_two_users
def test_what_is_swapped_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with placed(tmp_path / "place" / "file", make=True) as (directory, name):
        (tmp_path / "place").rename(tmp_path / "moved")
        (tmp_path / "place").symlink_to("target")
        directory.write_whole(name, b"x")
        directory.write_whole("other", b"y")
        directory.remove("other")
    assert os.listdir(tmp_path / "target") == []
    assert os.listdir(tmp_path / "moved") == ["file"]


@contextlib.contextmanager
def flipping(directory: Path, begin: str, flip: str) -> Iterator[None]:
    """Another user, of the group THIRD too, changes names in a directory all the time."""
    program = f"""
import ctypes, os
libc = ctypes.CDLL(None)
os.setgroups([{THIRD}]); os.setgid({ANOTHER}); os.setuid({ANOTHER})
os.chdir({str(directory)!r})
{begin}
print(flush=True)
while True:
    {flip}
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as attacker:
        assert attacker.stdout is not None
        attacker.stdout.readline()
        try:
            yield
        finally:
            attacker.kill()


@needs_two_users
@pytest.mark.parametrize("below", ["r/f", "r/deep/f"])
@pytest.mark.parametrize(
    ("victim", "owner", "mode", "group"),
    [(0, ANOTHER, PRIVATE, 0), (THIRD, 0, OF_A_GROUP, THIRD)],
    ids=["root", "member"],
)
def test_who_flips_names_all_the_time_leads_no_write_elsewhere(
    victim: int, owner: int, mode: int, group: int, below: str, tmp_path: Path
) -> None:
    """Between the victim's directory and a link to another one of the victim, which is precious."""
    precious = place_of(victim, PRIVATE, tmp_path / "precious")
    attacked = place_of(owner, mode, tmp_path / "attacked", group)
    place_of(victim, PRIVATE, attacked / "r")

    def work() -> None:
        for _ in range(50):
            for writer in WRITERS.values():
                with contextlib.suppress(OSError, MachineError):
                    writer(attacked / below)

    begin = f'os.symlink({str(precious)!r}, "link")'
    exchange = f'libc.renameat2({AT_FDCWD}, b"r", {AT_FDCWD}, b"link", {RENAME_EXCHANGE})'
    with flipping(attacked, begin, exchange):
        as_another_user(work, victim) if victim else work()
    assert os.listdir(precious) == []


@needs_two_users
def test_a_link_that_flips_never_has_another_users_file_read(tmp_path: Path) -> None:
    place = place_of(0, STICKY, tmp_path / "place")
    for name, owner in (("own", 0), ("foreign", ANOTHER)):
        (place / name).write_text(name)
        os.chown(place / name, owner, owner)
    flip = 'for name in ("own", "foreign"): os.symlink(name, "new"); os.rename("new", "x.py")'
    with flipping(place, "", flip):
        for _ in range(500):
            with pytest.raises(OSError, match=r"belongs to user|symbolic link|No such file"):
                read_trusted(place / "x.py")


@needs_two_users
def test_only_a_path_is_the_users_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    assert read_given("file") == b"x"
    os.chown(tmp_path / "file", ANOTHER, ANOTHER)
    with pytest.raises(ForeignError, match=f"file belongs to user {ANOTHER}"):
        read_given("file")
    for given in ("./file", str(tmp_path / "file")):
        assert read_given(given) == b"x"


def test_a_file_that_grows_is_read_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    assert len(read_input(tmp_path / "file", 1 << 20)) == 1 << 20
    assert read_input(Path("/proc/self/status"))
    with pytest.raises(OSError, match="it has more than 0 MiB"):
        read_input(Path("/proc/self/status"), 10)
    for path in (Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(OSError, match="no regular file"):
            read_input(path)


def test_a_lock_is_that_of_its_process(tmp_path: Path) -> None:
    with HeldDirectory.at(tmp_path) as first, HeldDirectory.at(tmp_path) as second:
        with first.locked():
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(writing, b"x")
                signal.pause()  # it lives longer than the lock
            os.read(reading, 1)
            for end in (reading, writing):
                os.close(end)
            with pytest.raises(BlockingIOError), second.locked():
                pass
        try:
            with second.locked():
                pass
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
