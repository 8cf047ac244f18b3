"""What a rank measured, on its way to the supervisor: arrays by name, in a file.

numpy is loaded where there are samples, as it takes most of the start of a program that has none:
its file says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from shrimpmx.errors import AgentError, InputError
from shrimpmx.native.records import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, BinaryIO

    from numpy.typing import NDArray

# Before each name in the file: numpy takes some names for options of its own.
PREFIX = "samples."
# The file of a rank without samples.
NONE = b"none"


def arrays_of(samples: Mapping[Any, Any]) -> dict[str, NDArray[Any]]:
    """The samples as arrays. InputError naming one that is neither finite numbers nor texts."""
    return {_name(name): _array(name, values) for name, values in samples.items()}


def save_samples(path: Path, samples: Mapping[Any, Any]) -> None:
    """Write the samples. InputError as arrays_of()."""
    arrays = {PREFIX + name: array for name, array in arrays_of(samples).items()}
    with whole(path) as file:
        if not arrays:
            file.write(NONE)
            return
        import numpy as np

        np.savez(file, allow_pickle=False, **arrays)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file that has its name when all of it is written: the rank may die on the way."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        yield file
    part.replace(path)


def load_samples(path: Path) -> dict[str, NDArray[Any]]:
    """The samples that save_samples() wrote. FileNotFoundError if there are none, AgentError if the
    program of a rank wrote others.
    """
    if path.stat().st_size == len(NONE) and path.read_bytes() == NONE:
        return {}
    from shrimpmx.native.arrays import DAMAGES, open_arrays

    try:
        with open_arrays(path) as arrays:
            return arrays_of({name.removeprefix(PREFIX): arrays[name] for name in arrays.files})
    except FileNotFoundError:
        raise
    except (OSError, InputError, *DAMAGES) as error:
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> AgentError:
    """What to raise for a file of a run that its ranks do not write so."""
    why = f" ({error.strerror})" if isinstance(error, OSError) else ""
    return AgentError(
        f"the run's file {path.name} is damaged{why}: a program of the run wrote to it"
    )


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(f"names of samples are texts, not {name!r}")
    return name


def _array(name: Any, values: Any) -> NDArray[Any]:
    import numpy as np

    try:
        array = np.atleast_1d(np.asarray(values))
    except ValueError as error:
        raise InputError(f"samples[{name!r}] is not an array: {error}") from None
    numbers = array.dtype.kind in "biuf" and bool(np.isfinite(array).all())
    if not numbers and array.dtype.kind not in "US":
        raise InputError(
            f"samples[{name!r}] must be real, finite numbers, or texts, not {values!r}"[:300]
        )
    return array
