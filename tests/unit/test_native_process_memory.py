"""Copies between processes: whole, in parts, refused, and whether they may be made at all."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.forked import in_child

from shrimpmx.native.copy import (
    allow_process_memory,
    memory_allows,
    process_memory_permitted,
    read_process,
    write_process,
)

PAGE_BYTES = mmap.PAGESIZE
PR_SET_DUMPABLE = 4
UNPRIVILEGED = 65534


def address_of(buffer: bytearray | mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


@contextmanager
def child() -> Iterator[int]:
    """A child that waits, its memory a copy of ours; gone in the end."""
    stay, leave = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(leave)
        os.read(stay, 1)
        os._exit(0)
    try:
        yield pid
    finally:
        os.close(leave)
        os.close(stay)
        os.waitpid(pid, 0)


def test_own_memory_can_be_read_and_written() -> None:
    data = bytearray(b"what lies here")
    assert read_process(os.getpid(), address_of(data), 4) == b"what"
    write_process(os.getpid(), address_of(data) + 5, b"was ")
    assert data == b"what was  here"


def test_another_process_has_its_own_memory() -> None:
    data = bytearray(b"before")
    with child() as pid:
        write_process(pid, address_of(data), b"after!")
        assert read_process(pid, address_of(data), 6) == b"after!"
    assert data == b"before"


def test_nothing_to_copy_touches_nothing() -> None:
    assert read_process(os.getpid(), 0, 0) == b""
    write_process(os.getpid(), 0, b"")


def test_a_copy_that_meets_a_hole_fails() -> None:
    memory = mmap.mmap(-1, 2 * PAGE_BYTES)
    start = address_of(memory)
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + PAGE_BYTES), PAGE_BYTES, 0)
    assert read_process(os.getpid(), start, PAGE_BYTES) == bytes(PAGE_BYTES)
    with pytest.raises(OSError, match="cannot read 4097 bytes at 0x"):
        read_process(os.getpid(), start, PAGE_BYTES + 1)
    with pytest.raises(OSError, match="cannot write 8 bytes at 0x"):
        write_process(os.getpid(), start + PAGE_BYTES - 4, bytes(8))
    with pytest.raises(OSError, match="cannot read 1 bytes at 0x0 "):
        read_process(os.getpid(), 0, 1)


# Of the longer one the kernel is asked by mapping, where it answers, and of the other by page.
@pytest.mark.parametrize("pages", [8, 128])
@pytest.mark.parametrize("of_a_file", [False, True])
def test_one_page_of_a_buffer_decides_whether_a_copy_may_touch_it(
    pages: int, of_a_file: bool
) -> None:
    length = pages * PAGE_BYTES
    libc = ctypes.CDLL(None)
    kind = mmap.MAP_PRIVATE | (0 if of_a_file else mmap.MAP_ANONYMOUS)
    with tempfile.TemporaryFile() as file:
        file.truncate(length)
        memory = mmap.mmap(file.fileno() if of_a_file else -1, length, flags=kind)
        start = address_of(memory)
        assert memory_allows(start + 1, length - 1, False)
        assert memory_allows(start + 1, length - 1, True)
        for page in (0, pages // 2, pages - 1):
            bad = ctypes.c_void_p(start + page * PAGE_BYTES)
            for rights, expected in (
                (0, (False, False)),
                (mmap.PROT_READ, (True, False)),
                (mmap.PROT_READ | mmap.PROT_WRITE, (True, True)),
            ):
                libc.mprotect(bad, PAGE_BYTES, rights)
                found = [memory_allows(start, length, written) for written in (False, True)]
                assert tuple(found) == expected, (page, rights)
        file.truncate(length - PAGE_BYTES)
        assert memory_allows(start, length, False) == (not of_a_file)
    assert not memory_allows(0, length, False)


def test_a_process_that_is_gone_cannot_be_read() -> None:
    data = bytearray(8)
    with child() as pid:
        pass
    with pytest.raises(OSError, match=f"of process {pid}"):
        read_process(pid, address_of(data), 8)


def test_the_try_agrees_with_what_a_child_can_do() -> None:
    data = bytearray(b"x" * 8)
    parent, start = os.getpid(), address_of(data)

    def copy() -> bool:
        try:
            return read_process(parent, start, 8) == b"x" * 8
        except OSError:
            return False

    allow_process_memory()
    assert process_memory_permitted() == in_child(copy)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_process_that_may_not_be_read_finds_out() -> None:
    def work() -> bool:
        os.setuid(UNPRIVILEGED)
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        refused = not process_memory_permitted()
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        repeated = not process_memory_permitted()
        return refused and repeated and in_child(process_memory_permitted)

    assert in_child(work)


def test_the_try_leaves_no_child() -> None:
    def work() -> bool:
        process_memory_permitted()
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        return False

    assert in_child(work)
