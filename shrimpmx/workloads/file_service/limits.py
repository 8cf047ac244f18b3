"""What the file service's file may be like."""

from __future__ import annotations

BLOCK_BYTES = 4096
# A block's number and its version, by which it is told from others.
BLOCK_BYTES_MIN = 16
# The file is in memory as a whole, at the holder (ours).
FILE_BYTES_MAX = 256 << 20


def refusal(blocks: int, block_bytes: int) -> str:
    """Why a file of `blocks` blocks cannot be, in a sentence; "" if it can."""
    if block_bytes < BLOCK_BYTES_MIN:
        return (
            f"a block of the file service has at least {BLOCK_BYTES_MIN} bytes, not {block_bytes}: "
            f"size_bytes must be 0 (then it is {BLOCK_BYTES}) or more"
        )
    if blocks * block_bytes > FILE_BYTES_MAX:
        return (
            "the file service keeps its file in memory, a block for each access: with size_bytes "
            f"{block_bytes} iterations and warmup must be together at most "
            f"{FILE_BYTES_MAX // block_bytes}, not {blocks}"
        )
    return ""
