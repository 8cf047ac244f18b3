"""Directories that are held: nobody else leads a write elsewhere, and ordinary places take it."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.conditions import patient
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
@pytest.mark.parametrize(
    ("user", "group", "members", "trusted"),
    [
        (0, 0, [], True),
        (0, 0, ["other"], True),
        # The private group of a user, as Debian makes them, and others.
        ("caller", "caller", [], True),
        ("caller", "caller", ["caller"], True),
        ("caller", "caller", ["caller", "other"], False),
        ("caller", "project", [], False),
        ("caller", "project", ["caller"], False),
        ("other", "other", [], False),
        # A directory service may not list who is in a group.
        (0, "project", [], False),
        (0, "project", ["root"], False),
        (0, "nameless", [], False),
    ],
)
def test_root_trusts_its_group_and_private_ones_only(
    user: int | str,
    group: int | str,
    members: list[str],
    trusted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users, groups = {"caller": ANOTHER, "other": THIRD}, {"caller": 4001, "other": 4002}
    numbers = {**groups, "project": 4003, "nameless": 4004, 0: 0}
    names = {number: str(name or "root") for name, number in numbers.items() if name != "nameless"}

    def user_of(name: str) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", users[name], groups[name], "", "/", "/bin/sh"))

    def group_of(number: int) -> trust.grp.struct_group:
        return trust.grp.struct_group((names[number], "x", number, members))

    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    monkeypatch.setattr(trust.grp, "getgrgid", group_of)
    monkeypatch.setattr(trust.pwd, "getpwnam", user_of)
    place = place_of(0, OF_A_GROUP, tmp_path / "place", numbers[group])
    if trusted:
        held(place)
    else:
        with pytest.raises(ForeignError, match=f"group {names.get(numbers[group], '4004')} may"):
            held(place)


def acl_of(*entries: tuple[int, int, int]) -> bytes:
    """An access control list of (tag, permission, who), as the kernel keeps it."""
    nobody = 0xFFFFFFFF
    whole = [(0x01, 7, nobody), *entries, (0x10, 7, nobody), (0x20, 5, nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in whole)


OWN_GROUP = 0x04, 5, 0xFFFFFFFF


@needs_two_users
@pytest.mark.parametrize("below", ["file", "own/file"])
@pytest.mark.parametrize(
    ("entries", "who"),
    [
        ([(0x02, 7, ANOTHER), OWN_GROUP], f"user {ANOTHER}"),
        ([(0x02, 2, ANOTHER), OWN_GROUP], f"user {ANOTHER}"),
        ([OWN_GROUP, (0x08, 7, ANOTHER)], f"group {ANOTHER}"),
        ([(0x02, 5, ANOTHER), OWN_GROUP, (0x08, 5, ANOTHER)], ""),
        ([(0x02, 7, 0), OWN_GROUP], ""),
    ],
)
def test_a_list_lets_others_write_like_the_bits(
    entries: list[tuple[int, int, int]], who: str, below: str, tmp_path: Path
) -> None:
    place = place_of(0, PRIVATE, tmp_path / "place")
    (place / "own").mkdir()
    with contextlib.suppress(OSError):
        os.setxattr(place, "system.posix_acl_access", acl_of(*entries))
    if not place.stat().st_mode & 0o20:
        pytest.skip("the file system has no access control lists")
    if who:
        with pytest.raises(MachineError, match=f"{who} may write to {place}"):
            write_whole(place / below, "x")
    else:
        write_whole(place / below, "x")


@pytest.mark.parametrize(
    ("ranges", "outside"),
    [
        ("0 0 4294967295", None),
        ("0 1000 1\n1 100000 65536", None),
        ("0 1000 1", 65534),
        ("0 1000 1\n1 100000 1000", 65534),
        ("65534 1000 1", None),
        ("nonsense", None),
    ],
)
def test_nobody_is_a_user_outside_only_where_no_user_inside_is_nobody(
    ranges: str, outside: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("_USER_MAP", ranges), ("_OVERFLOW_USER", "65534")):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(trust, name, tmp_path / name)
    assert trust._user_outside.__wrapped__() == outside


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
        with pytest.raises(ForeignError, match=f"near is a symbolic link of user {ANOTHER}"):
            held(tmp_path / name / "new")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="Too many levels"):
        held(tmp_path / "round")


@pytest.mark.parametrize("name", ["place", ".", "..", "link"])
@pytest.mark.parametrize("inner", ["link", "directory", "round", "file"])
def test_a_directory_that_has_a_name_like_its_own_in_it_is_itself(
    inner: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "precious" / "points").mkdir(parents=True)
    place = tmp_path / "place"
    (place / "points").mkdir(parents=True)
    (tmp_path / "link").symlink_to(place)
    for own in ("place", "link"):
        if inner == "link":
            (place / own).symlink_to(tmp_path / "precious" / "points")
        elif inner == "round":
            (place / own).symlink_to(own)
        elif inner == "file":
            (place / own).touch()
        else:
            (place / own).mkdir()
    given = {"..": place / "points" / ".."}.get(name, tmp_path / name)
    with contextlib.chdir(place), HeldDirectory.at(Path() if name == "." else given) as directory:
        assert os.path.samestat(os.fstat(directory.descriptor), place.stat())
        directory.remove_tree("points")
    assert not (place / "points").exists()
    assert (tmp_path / "precious" / "points").exists()


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


# Another user's name x.py is by turns a link to either file.
LINKS = 'for name in ("own", "foreign"): os.symlink(name, "new"); os.rename("new", "x.py")'
# The name x.py is by turns the user's own file and the other's.
NAMES = f'libc.renameat2({AT_FDCWD}, b"x.py", {AT_FDCWD}, b"foreign", {RENAME_EXCHANGE})'


@needs_two_users
def test_a_link_that_flips_is_never_followed(tmp_path: Path) -> None:
    place = two_files(tmp_path)
    with flipping(place, "", LINKS):
        for _ in range(500):
            with pytest.raises(OSError, match=r"belongs to user|symbolic link|No such file"):
                read_trusted(place / "x.py")
    (place / "x.py").unlink()
    (place / "x.py").symlink_to("own")
    assert read_trusted(place / "x.py") == b"own"


@needs_two_users
def test_a_name_that_flips_has_the_own_file_read_and_no_other(tmp_path: Path) -> None:
    """One who may write to the directory, as a member of its group, exchanges two files in it."""
    place = two_files(tmp_path)
    os.link(place / "own", place / "x.py")
    place.chmod(0o2775)
    os.chown(place, THIRD, THIRD)
    found: Counter[str] = Counter()

    def work() -> None:
        limit = time.monotonic() + patient(20.0)
        while len(found) < 2 and time.monotonic() < limit:
            try:
                found[read_trusted(place / "x.py").decode()] += 1
            except ForeignError:
                found["refused"] += 1
        assert set(found) == {"own", "refused"}

    with flipping(place, "", NAMES):
        as_another_user(work, THIRD)


def two_files(tmp_path: Path) -> Path:
    """A sticky directory with a file of root and one of another user."""
    place = place_of(0, STICKY, tmp_path / "place")
    for name, owner in (("own", 0), ("foreign", ANOTHER)):
        (place / name).write_text(name)
        os.chown(place / name, owner, owner)
    return place


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
    with pytest.raises(OSError, match="it has more than 10 bytes"):
        read_input(Path("/proc/self/status"), 10)
    for path in (Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(OSError, match="not a regular file"):
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
