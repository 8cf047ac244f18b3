"""Digests of a user's own code, by which a result tells whether it was measured with this one."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from shrimpmx.errors import InputError
from shrimpmx.experiment.point import Point
from shrimpmx.native.inputs import check_beside, read_input, read_trusted
from shrimpmx.native.trust import ForeignError
from shrimpmx.results.environment import code_digest, installed_digest
from shrimpmx.settings.workload import PROGRAMS

# Programs with all of their libraries in one file are some hundreds of MiB (ours).
LARGEST_PROGRAM_BYTES = 1 << 30
# Of so many files it is known what they import (ours).
FILES_KEPT = 64
# What a program loads beside its own files.
PACKAGE = "package shrimpmx"
# Folders of what is installed, whose versions a result tells beside its machine; and shrimpmx.
_INSTALLED = ("site-packages", "dist-packages")
_LIBRARIES = (
    Path(sysconfig.get_path("stdlib")).resolve(),
    Path(__file__).resolve().parent.parent,
)


def code_of(own: Mapping[str, str], points: Sequence[Point], directory: str = "") -> dict[str, str]:
    """The digests of the user's own code that the points run: of policies and strategies, if any,
    those in `own`, of programs, which start in `directory`; of shrimpmx, which these load too, that
    of this process.
    """
    used = any(point.policy or point.wait for point in points)
    code = {**(own if used else {}), **code_of_programs(points, directory)}
    return {**code, PACKAGE: code_digest()} if PACKAGE in code else code


def code_of_programs(points: Iterable[Point], directory: str = "") -> dict[str, str]:
    """The digests of the programs that the points run, and of shrimpmx, which each of them loads
    anew, as they are now.
    """
    works = [point.parameters.workload for point in points]
    commands = {
        (*(work.start if work.kind == "mpi" else (work.program,)), *work.words)
        for work in works
        if work.kind in PROGRAMS
    }
    found: dict[str, str] = {}
    for words in sorted(commands):
        found |= digests_of_command(words, directory)
    return {**found, PACKAGE: installed_digest()} if commands else {}


def digests_of(*files: Path, home: Path) -> dict[str, str]:
    """Sixteen hexadecimal digits for each file, and for each module of the user's own that one of
    them imports, by path from `home`. Files that there are not are left out.
    """
    return {name: digest_of(content) for name, content in contents_of(*files, home=home).items()}


def digest_of(content: bytes) -> str:
    """Sixteen hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:16]


def contents_of(*files: Path, home: Path) -> dict[str, bytes]:
    """The contents of the files and modules whose digests digests_of() has."""
    found = dict(_own(*files))
    return {os.path.relpath(path, home.resolve()): found[path] for path in sorted(found)}


def modules_beside(path: Path, content: bytes, *, is_word: bool) -> str:
    """The names, apart by spaces, of the modules in the directory of a Python file that it, or one
    of its modules, imports.

    ForeignError if another user may add files beside one of the modules; also if one may have
    written it, unless the path of the file is the user's word.
    """
    file = path.resolve()
    names: set[str] = set()
    for module, text in _own(file, read={file: content}):
        names |= {name.partition(".")[0] for name, place in _imports(module, text) if not place}
        if module == file:
            continue
        if not is_word:
            read_trusted(module)
        check_beside(module)
    found = (each for each in sorted(names) if PathFinder.find_spec(each, [str(file.parent)]))
    return " ".join(found)


def not_executed(what: str, path: Path, error: ForeignError) -> InputError:
    """The refusal of a file, and what to do."""
    trusted = f"if you have read it and trust it, give its full path, {path.absolute()}"
    remedy = error.remedy or trusted
    return InputError(f"{what} {path} is not executed: {error.strerror}; {remedy}")


def _own(*files: Path, read: Mapping[Path, bytes] | None = None) -> Iterator[tuple[Path, bytes]]:
    """Each of the files that is there and the user's own, and each such module that one of them
    imports, with its content; `read` are the contents of some. InputError if one cannot be read.
    """
    known = dict(read or {})
    seen: set[Path] = set()
    pending = [(file.resolve(), file.resolve().parent) for file in files]
    while pending:
        path, home = pending.pop()
        if path in seen or not (path in known or (path.is_file() and not _is_library(path))):
            continue
        seen.add(path)
        try:
            content = known.get(path) or read_input(path, LARGEST_PROGRAM_BYTES)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
        yield path, content
        if path.suffix == ".py":
            for name, place in _imports(path, content):
                places = [place] if place else [str(home), *sys.path]
                pending += [(found, home) for found in _files_of(name, places)]


def digests_of_command(words: Sequence[str], directory: str = "") -> dict[str, str]:
    """The digests of the program and of the Python files that a command names, if it starts in
    `directory`; none of a program that PATH finds.
    """
    home = Path(directory)
    files = [home / word for word in words if word.endswith(".py")]
    if os.sep in words[0]:
        files.append(home / words[0])
    if "-m" in words[:-1]:
        module = words[words.index("-m") + 1]
        files += _files_of(f"{module}.__main__", [str(home.resolve()), *sys.path])
    return digests_of(*files, home=home)


@functools.lru_cache(FILES_KEPT)
def _is_library(path: Path) -> bool:
    return any(name in path.parts for name in _INSTALLED) or any(
        path.is_relative_to(library) for library in _LIBRARIES
    )


@functools.lru_cache(FILES_KEPT)
def _imports(path: Path, content: bytes) -> tuple[tuple[str, str], ...]:
    """The names that a Python file imports, wherever in it, each with the directory of a relative
    one, else "".
    """
    return tuple(_imported(path, content))


def _imported(path: Path, content: bytes) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # too deep, the last two
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level <= len(path.parents):
            place = str(path.parents[node.level - 1]) if node.level else ""
            for alias in node.names:
                yield ".".join(filter(None, (node.module, alias.name))), place


def _files_of(name: str, places: Sequence[str]) -> Iterator[Path]:
    """The files of a module and of the packages that it lies in; `places` are searched for them."""
    whole = ""
    for part in name.split("."):
        whole = f"{whole}.{part}" if whole else part
        spec = PathFinder.find_spec(whole, list(places))
        if spec is None:
            return
        if spec.has_location and spec.origin:
            yield Path(spec.origin).resolve()
        if spec.submodule_search_locations is None:
            return
        places = list(spec.submodule_search_locations)
