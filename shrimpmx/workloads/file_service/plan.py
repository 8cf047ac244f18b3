"""What the processes of the file service's benchmark agree on: the file, and each access."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from shrimpmx.errors import InputError
from shrimpmx.workloads.file_service.limits import BLOCK_BYTES, refusal
from shrimpmx.workloads.file_service.service import CacheShape

# The node whose cache holds the file at first; the other one accesses it.
HOLDER = 1
# One access of so many is a write (ours). Their places in a group of so many wander, so that both
# nodes are home of some.
WRITE_EVERY = 8
# So many blocks that were written are read back by the holder at the end: enough to see that writes
# come through, few beside the accesses (ours).
READ_BACK_MAX = 8
# Of the accesses to a mixed file so many are writes (ours).
MIXED_WRITES = 0.4


@dataclass(frozen=True)
class Access:
    """One access: its number among its node's, the block, and whether it writes."""

    number: int
    block: int
    write: bool


@dataclass(frozen=True)
class Plan:
    """The benchmark of the waiting paper's section 5.2, or a stress of the protocol.

    The node that is not the holder accesses `warmup` + `iterations` blocks in sequence, each once.
    With `mixed_blocks` both nodes do as many accesses to a file of that many blocks, in an order
    drawn from `seed`. InputError if the file is too large or its blocks too short.
    """

    iterations: int
    warmup: int = 0
    threads: int = 4
    block_bytes: int = BLOCK_BYTES
    mixed_blocks: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InputError(f"threads must be at least 1, not {self.threads}")
        if problem := refusal(self.blocks, self.block_bytes):
            raise InputError(problem)

    @property
    def accesses_count(self) -> int:
        """Accesses of a node that makes any."""
        return self.warmup + self.iterations

    @property
    def blocks(self) -> int:
        """Blocks of the file."""
        return self.mixed_blocks or self.accesses_count

    def shape(self, node: int) -> CacheShape:
        """The holder's cache has room for all; the other's for half, so that it gives some up.

        Each thread may need two frames at a time: for what it reads and for what it gives up.
        """
        others = (self.blocks + node) // 2
        least = 2 * self.threads + 1
        return CacheShape(
            self.blocks, others if node == HOLDER else max(least, others // 2), HOLDER
        )

    def is_active(self, node: int) -> bool:
        """Whether the node accesses blocks of its own accord."""
        return self.mixed_blocks > 0 or node != HOLDER

    def accesses(self, node: int) -> Iterator[Access]:
        """What an active node does, in this order, by all its threads together."""
        if self.mixed_blocks:
            draw = random.Random(f"{self.seed} {node}")
            for number in range(self.accesses_count):
                write = draw.random() < MIXED_WRITES
                yield Access(number, draw.randrange(self.mixed_blocks), write)
        else:
            for block in range(self.blocks):
                yield Access(block, block, self.is_written(block))

    def is_written(self, block: int) -> bool:
        """Whether a block of the sequence is written, not only read."""
        group, place = divmod(block, WRITE_EVERY)
        return place == group % WRITE_EVERY

    def version(self, block: int) -> int:
        """A block's version when the sequence is over."""
        return 2 if self.is_written(block) else 1

    def read_back(self) -> list[int]:
        """Blocks that the holder reads when the sequence is over: the last of those written."""
        written = [block for block in range(self.blocks) if self.is_written(block)]
        return written[-READ_BACK_MAX:]
