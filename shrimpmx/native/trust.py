"""Users trusted with this process's files: its own, root, and the caller of sudo."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from functools import cache
from pathlib import Path

_OVERFLOW_USER = Path("/proc/sys/fs/overflowuid")
_USER_MAP = Path("/proc/self/uid_map")
# Where no user namespace has been made.
_ALL_USERS = ["0", "0", "4294967295"]


class ForeignError(PermissionError):
    """Another user could put other things in the place of a file; `strerror` says who."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EACCES, why)


def user_name(user: int) -> str:
    """The name of a user by number, as a sentence has it."""
    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"


def is_trusted(user: int) -> bool:
    """Whether a user's files are as good as this process's own."""
    return user in (os.geteuid(), 0) or user == _caller_of_sudo() or user == _user_outside()


def distrust(path: Path, found: os.stat_result) -> str:
    """Why a file or a directory, of this status, may be another user's work; "" if it may not.

    In a sticky directory others may add names, but replace none that is not theirs.
    """
    if not is_trusted(found.st_uid):
        return f"{path} belongs to {user_name(found.st_uid)}"
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return ""
    if found.st_mode & stat.S_IWOTH:
        return f"every user may write to {path}"
    if found.st_mode & stat.S_IWGRP and not _is_own_group(found.st_gid):
        return f"group {_group_name(found.st_gid)} may write to {path}"
    return ""


def _caller_of_sudo() -> int | None:
    """The user who runs this process as root by sudo, and could run anything so."""
    user = os.environ.get("SUDO_UID", "")
    return int(user) if os.geteuid() == 0 and user.isascii() and user.isdigit() else None


@cache
def _user_outside() -> int | None:
    """Whom files of users outside of this process's user namespace, a container's, seem to belong
    to: these have made it. None outside of containers.
    """
    try:
        mapped = _USER_MAP.read_text(encoding="ascii").split()
        return None if mapped == _ALL_USERS else int(_OVERFLOW_USER.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _is_own_group(group: int) -> bool:
    """Whether a group's members work together with this user: it is one of the user's groups; for
    root, it has no members whom root does not trust.
    """
    if os.geteuid() != 0:
        return group == os.getegid() or group in os.getgroups()
    try:
        named = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return group == 0
    users = pwd.getpwall()
    members = [each.pw_uid for each in users if each.pw_gid == group or each.pw_name in named]
    known = named <= {each.pw_name for each in users}
    return group == 0 or (known and all(map(is_trusted, members)))


def _group_name(group: int) -> str:
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)
