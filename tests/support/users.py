"""Two users of one machine, and one that hides its processes: what a child does there."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import traceback
from collections.abc import Callable

import pytest

# Neither root nor any user that has files here.
ANOTHER = 65_533
CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000

needs_two_users = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can start a process of another user"
)


def _namespaces_permitted() -> bool:
    unshare = shutil.which("unshare")
    make = [unshare or "", "-m", "-p", "-f", "mount", "-t", "proc", "proc", "/proc"]
    return unshare is not None and subprocess.run(make, capture_output=True).returncode == 0


needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not _namespaces_permitted(),
    reason="this machine lets nobody mount in a namespace of its own",
)


def in_another_process(work: Callable[[], None]) -> None:
    """Run `work` in a forked child; AssertionError with its traceback if it raises."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, said or f"ended with {code}"


def as_another_user(work: Callable[[], None], user: int = ANOTHER) -> None:
    """Run `work` in a child of `user`."""

    def change_and_work() -> None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        work()

    in_another_process(change_and_work)


def with_own_mounts(work: Callable[[], None], *mounts: tuple[str, str, str]) -> None:
    """Run `work` in a child that has a mount for each (type, options, directory), and is the first
    process of a namespace of its own."""

    def mount_and_work() -> None:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        for kind, options, directory in mounts:
            subprocess.run(["mount", "-t", kind, "-o", options, kind, directory], check=True)
        work()

    def leave() -> None:
        if ctypes.CDLL(None).unshare(CLONE_NEWNS | CLONE_NEWPID) != 0:
            raise OSError("no namespaces")
        in_another_process(mount_and_work)

    in_another_process(leave)
