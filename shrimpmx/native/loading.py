"""Loading of compiled modules, and of modules that load NumPy."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import resource
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, TracebackType

from shrimpmx.errors import InputError
from shrimpmx.native.streams import tell

# -- What is wrong where modules cannot be loaded: they were not compiled, or with older sources.

PACKAGE = Path(__file__).parent.parent
# Has all compiled modules.
LIBRARY = f"{PACKAGE.name}.native.compiled"
# Of a package.
ABSENT = "cannot import name '(?P<name>[^']*)'"
# Cython's name of the code that fills a compiled module.
FILLING = f"init {PACKAGE.name}."


class BuildError(InputError):
    """A module of shrimpmx, or one that it needs, is missing or does not fit the others."""


@contextlib.contextmanager
def whole_build() -> Iterator[None]:
    """BuildError for what cannot be loaded because of how shrimpmx was compiled or installed."""
    try:
        yield
    except (ImportError, TypeError, ValueError, AttributeError) as error:
        words = build_words(error)
        if not words:
            raise
        raise BuildError(words) from None


@contextlib.contextmanager
def whole_build_of_script() -> Iterator[None]:
    """The same around the imports of what a script begins with: one that ends by the error prints
    its sentence alone, and has its exit code.
    """
    try:
        with whole_build():
            yield
    except BuildError:
        sys.excepthook = _end
        raise


def build_words(error: BaseException) -> str:
    """What is wrong with the build or the installation, and what mends it; "" if the error is
    another one.
    """
    if isinstance(error, ModuleNotFoundError):
        return _missing(error.name or "")
    if isinstance(error, ImportError) and error.name and error.path:
        absent = re.match(ABSENT, str(error)) if Path(error.path).stem == "__init__" else None
        if absent and error.name.split(".")[0] == PACKAGE.name:
            return _missing(f"{error.name}.{absent['name']}")
    own = isinstance(error, ImportError) and Path(error.path or "").is_relative_to(PACKAGE)
    if not own and not _fills_module(error):
        return ""
    return f"the compiled modules and the sources are not of one version ({error}): {_advice()}"


def _missing(name: str) -> str:
    package, _, inner = name.partition(".")
    if package != PACKAGE.name:
        needs = f"{sys.executable} has no module {name!r}, which shrimpmx needs"
        what = shlex.quote(str(PACKAGE.parent)) if _is_clone() else "--force-reinstall shrimpmx"
        return f"{needs}: install it, {shlex.quote(sys.executable)} -m pip install {what}"
    place = PACKAGE.joinpath(*inner.split("."))
    libraries = list(place.parent.glob(f"{place.name}.*.so"))
    if LIBRARY not in sys.modules:
        libraries += Path(__file__).parent.glob(f"{LIBRARY.rpartition('.')[2]}.*.so")
    others = sorted(each.name for each in libraries)
    whose = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    if others:
        return f"{name} is compiled for another Python ({others[0]}), not for {whose}: {_advice()}"
    return f"{name} is missing, or not compiled for {whose}: {_advice()}"


def _fills_module(error: BaseException) -> bool:
    """Whether a compiled module of shrimpmx was about to take what it needs from others."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name.startswith(FILLING)


def _is_clone() -> bool:
    return (PACKAGE.parent / "setup.py").is_file()


def _advice() -> str:
    home, python = PACKAGE.parent, shlex.quote(sys.executable)
    if not _is_clone():
        return f"install it again, {python} -m pip install --force-reinstall shrimpmx"
    return f"compile it, cd {shlex.quote(str(home))} && {python} setup.py build_ext --inplace"


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, BuildError):
        sys.__excepthook__(kind, error, trace)
        return
    tell(f"{PACKAGE.name}: {error}")
    os._exit(error.exit_code)


# -- Loading of modules that load NumPy. Its linear algebra exits, or sends SIGINT, where a limit
# leaves it too few addresses or no thread.

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
