"""Dask's pickles, read as data.

A pickle runs any function that it names, with the rights of its reader, and Dask unpickles the
answers of schedulers and workers. After `read_data_only`, no pickle that Dask reads in this process
reaches a class or function: each name becomes an inert exception class. Strings, bytes, numbers and
containers, the form of our own messages, pass unchanged ("Restricting Globals" in the documentation
of Python's pickle).
"""

from __future__ import annotations

import contextlib
import io
import pickle
import re
import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from distributed import Client, client, core


class NamedError(Exception):
    """Stands for an object of a class that a pickle names; its own class has that name."""

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values)

    def __setstate__(self, state: Any) -> None:
        """Drop the state that a pickle would set."""


# Types of data that Dask names in its messages.
_BYTES: dict[str, type] = {kind.__name__: kind for kind in (bytes, bytearray, memoryview)}


class _Data(pickle.Unpickler):
    """Reads data; every other class or function that a pickle names is a subclass of NamedError."""

    def find_class(self, module: str, name: str) -> type:
        if module == "builtins" and name in _BYTES:
            return _BYTES[name]
        return type(name, (NamedError,), {"__module__": module})


def loads(data: Any, *, buffers: Iterable[Any] = ()) -> Any:
    """The data of a pickle. An exception keeps the name of its class, and its words."""
    found = _Data(io.BytesIO(data), buffers=buffers).load()
    match found:
        case NamedError(args=(type() as kind, tuple(words) | {"args": tuple(words)}, *_)):
            return kind(*words)  # tblib's form of an exception
    return found


def told_error(
    exception: object, traceback: object = None, **_: object
) -> tuple[type, BaseException | None, None]:
    """In place of Dask's `clean_exception`, which asserts that an answer has a traceback: a run
    whose answer has another form would never end.
    """
    found = exception
    if isinstance(exception, bytes | bytearray):
        with contextlib.suppress(Exception):
            found = loads(exception)
    if found is not None and not isinstance(found, BaseException):
        found = NamedError(found)
    return type(found), found, None


# Stands for Python's pickle in Dask's modules: writes anything, reads data.
_READS_DATA = SimpleNamespace(
    **{name: each for name, each in vars(pickle).items() if not re.search("load|Unpickler", name)},
    loads=loads,
)


def read_data_only() -> None:
    """From now on Dask reads nothing but data in this process; its threads may outlive a client."""
    for name in [each for each in sys.modules if each.partition(".")[0] == "distributed"]:
        found = vars(sys.modules[name])
        found.update({key: _READS_DATA for key, each in found.items() if each is pickle})
    for module in (client, core):
        vars(module)["clean_exception"] = told_error
    # Workers' prints and warnings are for their own logs.
    Client._default_event_handlers = {}
