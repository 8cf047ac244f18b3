"""Memory that can be mapped, but not used."""

from __future__ import annotations

import ctypes
import mmap


def protected(length: int, rights: int) -> mmap.mmap:
    """`length` bytes for which mprotect gives `rights`: mmap.PROT_READ, or 0 for none."""
    memory = mmap.mmap(-1, length)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    assert protect(ctypes.c_void_p(start), ctypes.c_size_t(length), rights) == 0
    return memory
