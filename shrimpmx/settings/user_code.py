"""A user's own Python files: executed in this process, with the modules in their directory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.native.records import dataclass

MODULE_NAME = "shrimpmx_user_file"


class _Beside:
    """Finds certain modules, unknown to other finders, beside the file that was executed last."""

    def __init__(self) -> None:
        self._directory = ""
        self._found: set[str] = set()
        self._names: list[str] = []

    def look_in(self, directory: Path, names: str) -> None:
        """Modules of another directory are forgotten: here the same name may mean another."""
        self._names = names.split()
        if str(directory) != self._directory:
            for name in [each for each in sys.modules if each.partition(".")[0] in self._found]:
                del sys.modules[name]
            self._found.clear()
            self._directory = str(directory)
        if self not in sys.meta_path:
            sys.meta_path.append(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As a finder's."""
        is_ours = path is None and name in self._names
        spec = PathFinder.find_spec(name, [self._directory]) if is_ours else None
        if spec is not None:
            self._found.add(name)
        return spec


_BESIDE = _Beside()


def execute(code: CodeType, path: Path, name: str, modules: str) -> ModuleType:
    """The module `name` that the compiled text of the file `path` makes; raises what that does.
    `modules` are the names, apart by spaces, of modules in its directory that it may import.
    """
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__doc__ = None
    # A class of the file must be found again by its module's name.
    sys.modules[name] = module
    _BESIDE.look_in(path.resolve().parent, modules)
    exec(code, module.__dict__)
    return module


@dataclass(frozen=True)
class OwnClass:
    """The class `name` of a user's own file, whose text is `source`: called, it makes an object of
    it. It goes to other processes as it is. `modules` as those of execute().
    """

    file: str
    source: str
    name: str
    modules: str = ""

    def __call__(self) -> Any:
        return self.kind()()

    def kind(self) -> type:
        """The class. InputError, in one sentence, if the file does not give it."""
        return _kind_of(self)


def names_class(value: object) -> bool:
    """Whether a value names a class of a user's own file: FILE.py:CLASS."""
    return isinstance(value, str) and value.rpartition(":")[0].endswith(".py")


@cache
def _kind_of(own: OwnClass) -> type:
    path = Path(own.file)
    try:
        code = compile(own.source, own.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"file {own.file} does not parse: {error}") from error
    try:
        module = execute(code, path, MODULE_NAME, own.modules)
    except Exception as error:
        line = line_of(error, path)
        raise InputError(f"file {own.file} fails{line}: {type(error).__name__}: {error}") from error
    found = vars(module).get(own.name)
    if not isinstance(found, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        hint = did_you_mean(own.name, classes) or f"; it has {', '.join(classes) or 'none'}"
        raise InputError(f"file {own.file} has no class {own.name!r}{hint}")
    return found


def line_of(error: Exception, path: Path) -> str:
    """Where in a user's file an error was raised, in words; "" if nowhere."""
    import traceback

    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == str(path):
            return f" at line {frame.lineno}"
    return ""
