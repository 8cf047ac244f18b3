"""A node's memory for file blocks: one frame for each that it is home of, a cache for the rest."""

from __future__ import annotations

import mmap
from collections import OrderedDict
from collections.abc import Iterator


class BlockMemory:
    """Frames of `block_bytes` for `blocks` blocks, of which `cached` others than its own fit.

    A block whose number has the parity of `node` has a frame for ever, others while they are
    cached.
    """

    def __init__(self, node: int, blocks: int, cached: int, block_bytes: int) -> None:
        own = (blocks + 1 - node) // 2
        # There from the beginning: a first touch in the middle of an access would cost a fault.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        memory = mmap.mmap(-1, (own + cached) * block_bytes, flags)
        self._memory = memoryview(memory)
        self._node, self._block_bytes = node, block_bytes
        self._free = list(range(own + cached - 1, own - 1, -1))
        # Frames of the cached blocks; the least recently used comes first.
        self._frames: OrderedDict[int, int] = OrderedDict()

    def frame(self, block: int) -> memoryview:
        """The memory of `block`, which must have some."""
        place = block >> 1 if block & 1 == self._node else self._frames[block]
        start = place * self._block_bytes
        return self._memory[start : start + self._block_bytes]

    def reserve(self, block: int) -> bool:
        """Give `block` a frame if it has none; False if all are taken."""
        if block & 1 == self._node or block in self._frames:
            return True
        if not self._free:
            return False
        self._frames[block] = self._free.pop()
        return True

    def use(self, block: int) -> None:
        """Note that `block` is being used."""
        if block & 1 != self._node:
            self._frames.move_to_end(block)

    def release(self, block: int) -> None:
        """Take its frame from `block`, if it has one that is not for ever."""
        place = self._frames.pop(block, None)
        if place is not None:
            self._free.append(place)

    def cached(self) -> Iterator[int]:
        """The cached blocks, the least recently used first."""
        return iter(self._frames)
