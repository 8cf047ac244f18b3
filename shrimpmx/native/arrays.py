"""Files of arrays that are read, whatever another program has made of them."""

from __future__ import annotations

import errno
import io
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from shrimpmx.native.inputs import read_input

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile

# What numpy and zipfile raise of files that are none of theirs.
DAMAGES = (
    *(AttributeError, EOFError, KeyError, IndexError, MemoryError),
    *(OverflowError, RuntimeError, SyntaxError, TypeError, ValueError),
    *(struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
# Of a file, and of its contents unpacked, whatever size a small file claims (ours).
LARGEST_BYTES = 4 << 30


def open_arrays(path: Path, most: int = LARGEST_BYTES) -> NpzFile:
    """The arrays of a file, to be closed. OSError as read_input(), also for a file that unpacks to
    more than `most` bytes; one of DAMAGES, here or for an array, if another program made it.
    """
    packed = io.BytesIO(read_input(path, most))
    with zipfile.ZipFile(packed) as arrays:
        if sum(each.file_size for each in arrays.infolist()) > most:
            raise OSError(errno.EFBIG, f"it has more than {most >> 20} MiB unpacked")
    import numpy as np

    packed.seek(0)
    return np.load(packed, allow_pickle=False)  # type: ignore[no-any-return]
