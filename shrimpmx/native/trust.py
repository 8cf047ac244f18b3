"""Users trusted with this process's files: its own, root, and the caller of sudo."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_OVERFLOW_USER = Path("/proc/sys/fs/overflowuid")
_USER_MAP = Path("/proc/self/uid_map")
# An access control list in the kernel's form: a version, then entries of tag, permission and who.
_ACL, _ACL_HEADER_BYTES, _ACL_ENTRY = "system.posix_acl_access", 4, struct.Struct("<HHI")
_ACL_USER, _ACL_OWN_GROUP, _ACL_GROUP, _ACL_WRITE = 0x02, 0x04, 0x08, 0x02


class ForeignError(PermissionError):
    """Another user could put other things in the place of a file; `strerror` says who, and `remedy`
    what helps, if that is not the path as the user's word.
    """

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(errno.EACCES, why)
        self.remedy = remedy


def user_name(user: int) -> str:
    """The name of a user by number, as a sentence has it."""
    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"


def is_trusted(user: int) -> bool:
    """Whether a user's files are as good as this process's own."""
    return user in (os.geteuid(), 0) or user == _caller_of_sudo() or user == _user_outside()


def distrust(path: Path, descriptor: int) -> str:
    """Why a file or a directory, open so, may be another user's work; "" if it may not.

    In a sticky directory others may add names, but replace none that is not theirs.
    """
    found = os.fstat(descriptor)
    if not is_trusted(found.st_uid):
        return f"{path} belongs to {user_name(found.st_uid)}"
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return ""
    return who_else_writes(path, descriptor)


def who_else_writes(path: Path, descriptor: int) -> str:
    """That others than its owner may write to a file or directory, in words; "" if they may not."""
    found = os.fstat(descriptor)
    if found.st_mode & stat.S_IWOTH:
        return f"every user may write to {path}"
    # The bits of the group bound those of an access control list, too.
    who = next(_listed(descriptor, found), "") if found.st_mode & stat.S_IWGRP else ""
    return f"{who} may write to {path}" if who else ""


def _listed(descriptor: int, found: os.stat_result) -> Iterator[str]:
    """The users and groups, not trusted, to whom the group's bits let a file be written."""
    try:
        # A descriptor on the way to a file has no attributes; its name in /proc leads to them.
        listed = os.getxattr(f"/proc/self/fd/{descriptor}", _ACL)[_ACL_HEADER_BYTES:]
    except OSError:
        listed = _ACL_ENTRY.pack(_ACL_OWN_GROUP, _ACL_WRITE, found.st_gid)
    for tag, permission, who in _ACL_ENTRY.iter_unpack(listed):
        group = found.st_gid if tag == _ACL_OWN_GROUP else who
        if not permission & _ACL_WRITE:
            continue
        if tag == _ACL_USER and not is_trusted(who):
            yield user_name(who)
        elif tag in (_ACL_GROUP, _ACL_OWN_GROUP) and not _is_own_group(group, found.st_uid):
            yield f"group {_group_name(group)}"


def _caller_of_sudo() -> int | None:
    """The user who runs this process as root by sudo, and could run anything so."""
    user = os.environ.get("SUDO_UID", "")
    return int(user) if os.geteuid() == 0 and user.isascii() and user.isdigit() else None


@cache
def _user_outside() -> int | None:
    """Whom files of users outside of this process's user namespace, a container's, seem to belong
    to: these have made it. None where that is a user inside, too, as outside of containers.
    """
    try:
        user = int(_OVERFLOW_USER.read_text(encoding="ascii"))
        lines = _USER_MAP.read_text(encoding="ascii").splitlines()
        ranges = [tuple(map(int, line.split())) for line in lines]
        inside = any(first <= user < first + count for first, _, count in ranges)
    except (OSError, ValueError):
        return None
    return None if inside else user


def _is_own_group(group: int, owner: int) -> bool:
    """Whether a group may write to what a trusted `owner` has: root's group, one of those that this
    user, unless that is root, works in, or the private group of the owner or of a trusted user.
    """
    if os.geteuid() != 0 and (group == os.getegid() or group in os.getgroups()):
        return True
    try:
        found = grp.getgrgid(group)
        user = pwd.getpwnam(found.gr_name)
    except KeyError:
        return group == 0
    is_private = user.pw_gid == group and {*found.gr_mem} <= {user.pw_name}
    return group == 0 or (is_private and (user.pw_uid == owner or is_trusted(user.pw_uid)))


def _group_name(group: int) -> str:
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)
