"""shrimpmx: an emulator of the receive path of message passing over Ethernet."""

from __future__ import annotations

import _imp
import marshal
import posix
import sys
from _frozen_importlib_external import EXTENSION_SUFFIXES, MAGIC_NUMBER, SourceFileLoader

# Each rank loads this: `typing` would take it as long as five modules.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType
    from typing import Any, Literal

    from shrimpmx.cluster.rank.session import RankSession
    from shrimpmx.experiment.scenario import Scenario
    from shrimpmx.notebook.results import Explored, Fitted, Result

assert __spec__ is not None

# The library of the compiled modules.
_LIBRARY = f"{__name__}.native.compiled"
# How the name of a file with a module's bytecode ends, and how such a file begins if it has the
# source's time and size.
_BYTECODE = (__spec__.cached or "").rpartition("__init__")[2]
_TIMED = MAGIC_NUMBER + bytes(4)
# Of such a file; the standard loader reads a longer one.
_MOST_BYTES = 1 << 16


class _Source(SourceFileLoader):
    """Loads a module in Python as the standard loader does, with a third of its system calls."""

    def __init__(self, name: str, path: str, bytecode: str, head: bytes) -> None:
        super().__init__(name, path)
        self._bytecode, self._head = bytecode, head

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            file = posix.open(self._bytecode, posix.O_RDONLY | posix.O_CLOEXEC)
        except OSError:
            return super().get_code(fullname)
        try:
            data = posix.read(file, _MOST_BYTES)
        finally:
            posix.close(file)
        if len(data) == _MOST_BYTES or not data.startswith(self._head):
            return super().get_code(fullname)
        code: CodeType = marshal.loads(memoryview(data)[len(self._head) :])
        # The directory may have been moved.
        _imp._fix_co_filename(code, self.path)  # type: ignore[attr-defined]
        return code


class _OwnModules:
    """Finds this package's modules, in Python and in the library of the compiled ones. To the
    standard finders half of a start would go. A module compiled by itself comes first.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, *_: object) -> ModuleSpec | None:
        if path is None or not name.startswith(f"{__name__}."):
            return None
        directory, own = path[0], name.rpartition(".")[2]
        library = sys.modules.get(_LIBRARY)
        if library is None or not library.has(name):
            spec = _in_python(name, directory, own)
            if spec is not None or _LIBRARY.startswith(name):
                return spec
        return _compiled(name, f"{directory}/{own}{EXTENSION_SUFFIXES[0]}")


def _in_python(name: str, directory: str, own: str) -> ModuleSpec | None:
    if sys.pycache_prefix is not None:
        return None
    file = f"{directory}/{own}.py"
    status = _status(file)
    package = None
    if status is None:
        package, own = f"{directory}/{own}", "__init__"
        directory, file = package, f"{package}/__init__.py"
        status = _status(file)
        if status is None:
            return None
    bytecode = f"{directory}/__pycache__/{own}{_BYTECODE}"
    head = _TIMED + _word(int(status.st_mtime)) + _word(status.st_size)
    spec = _spec(name, _Source(name, file, bytecode, head), file)
    spec.cached = bytecode
    if package is not None:
        spec.submodule_search_locations = [package]
    return spec


def _compiled(name: str, itself: str) -> ModuleSpec | None:
    try:
        import shrimpmx.native.compiled as library
    except ModuleNotFoundError:
        return None
    if not library.has(name) or _status(itself) is not None:
        return None
    return _spec(name, library, library.__file__)


def _spec(name: str, loader: Any, file: str) -> ModuleSpec:
    spec = type(__spec__)(name, loader, origin=file)
    spec.has_location = True
    return spec


def _status(file: str) -> posix.stat_result | None:
    try:
        return posix.stat(file)
    except OSError:
        return None


def _word(number: int) -> bytes:
    return (number & 0xFFFF_FFFF).to_bytes(4, "little")


sys.meta_path.insert(0, _OwnModules)


def join() -> RankSession:
    """This process as the rank that it was started as: `with shrimpmx.join() as rank:`.

    See shrimpmx.cluster.rank.joining for what a rank has.
    """
    # Loaded on use: no command but a rank's program needs it.
    from shrimpmx.cluster.rank import joining

    return joining.join()


def mpirun(program: str | Sequence[str], n: int, **options: Any) -> Result:
    """Run an MPI program on `n` ranks, keep its result, and return it.

    `shrimpmx.mpirun("python ring.py", 4, coalescing="stream")`; see shrimpmx.notebook.mpirun.
    """
    from shrimpmx import notebook

    return notebook.mpirun(program, n, **options)


def explore(program: str | Sequence[str], n: int, **options: Any) -> Explored:
    """Find out which coalescing, placement and waiting suits an MPI program, and keep the result.

    `shrimpmx.explore("python ring.py", 4, engine="simulated")`; see shrimpmx.notebook.explore.
    """
    from shrimpmx import notebook

    return notebook.explore(program, n, **options)


def fit(
    measurements: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    **options: Any,
) -> Fitted:
    """Find the costs of hosts that explain measurements, keep them as a platform, and return both.

    `shrimpmx.fit("cluster.csv", "cluster.toml")`; see shrimpmx.notebook.fit.
    """
    from shrimpmx import notebook

    return notebook.fit(measurements, output, **options)


def load(path: str | os.PathLike[str]) -> Result:
    """A stored result, from its directory or its run.json, for a script or a notebook.

    See shrimpmx.notebook for what it has. InputError if it is missing or damaged.
    """
    from shrimpmx import notebook

    return notebook.load(path)


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    engine: Literal["forked", "simulated"] = "forked",
    seed: int = 1,
    output: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Result:
    """Run a scenario, keep its result below ./results or in `output`, and return it.

    `shrimpmx.run("smoke/pingpong", size_bytes=[0, 128], repeats=5)`; see shrimpmx.notebook.run.
    """
    from shrimpmx import notebook

    return notebook.run(scenario, engine=engine, seed=seed, output=output, **settings)
