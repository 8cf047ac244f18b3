"""Memory between pages that may not be touched, and children that may crash."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import traceback
from collections.abc import Callable

PROT_NONE = 0
PROT_READ_WRITE = 3
MAP_PRIVATE_ANONYMOUS = 0x22
GUARD_BYTES = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
]  # fmt: skip
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class GuardedSegment:
    """What a Segment is to a Node, with a mebibyte before and behind it whose use kills."""

    def __init__(self, size_bytes: int) -> None:
        assert size_bytes % mmap.PAGESIZE == 0
        self.name = ""
        self.size_bytes = size_bytes
        self._whole_bytes = size_bytes + 2 * GUARD_BYTES
        start = _LIBC.mmap(None, self._whole_bytes, PROT_NONE, MAP_PRIVATE_ANONYMOUS, -1, 0)
        assert start not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
        self._start: int = start
        self.address = start + GUARD_BYTES
        assert _LIBC.mprotect(self.address, size_bytes, PROT_READ_WRITE) == 0

    def view(self) -> memoryview:
        return memoryview((ctypes.c_char * self.size_bytes).from_address(self.address)).cast("B")

    def close(self) -> None:
        """The memory may not be used after this."""
        _LIBC.munmap(self._start, self._whole_bytes)


def run_in_child(work: Callable[[Callable[[bytes], None]], None]) -> str:
    """Run `work` in a forked child; "" if it ended well, else what went wrong.

    `work` gets a function that notes the input it is about to use, and a crash is told with it.
    """
    shared = mmap.mmap(-1, 1 << 20)

    def note(data: bytes) -> None:
        shared[:4] = len(data).to_bytes(4, "big")
        shared[4 : 4 + len(data)] = data

    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        code = 1
        try:
            work(note)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    size = int.from_bytes(shared[:4], "big")
    last = bytes(shared[4 : 4 + size]).hex()
    shared.close()
    if os.WIFSIGNALED(status):
        return f"{signal.Signals(os.WTERMSIG(status)).name} at frame {last}"
    return "" if os.WEXITSTATUS(status) == 0 else f"failed at frame {last} (see stderr)"
