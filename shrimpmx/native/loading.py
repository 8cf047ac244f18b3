"""Loading of modules that load NumPy. Its linear algebra exits, or sends SIGINT, where a limit
leaves it too few addresses or no thread.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import signal
from collections.abc import Iterator
from types import ModuleType

_THREADS = "OPENBLAS_NUM_THREADS"


def loaded(name: str) -> ModuleType:
    """The module of this name; MemoryError if this process may not have the addresses for it."""
    with _one_thread_of_linear_algebra():
        if not _fits(name):
            raise MemoryError
        return importlib.import_module(name)


@contextlib.contextmanager
def _one_thread_of_linear_algebra() -> Iterator[None]:
    """This process has no use for more; programs that it starts may have."""
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]


def _fits(name: str) -> bool:
    """Whether a child of this process can load the module, if addresses are limited."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return True
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(nowhere, stream)
            importlib.import_module(name)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0
