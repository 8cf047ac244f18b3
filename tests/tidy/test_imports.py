"""Imports go one way, so that what is below can be understood and tested alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from support.tree import PACKAGE, files, name

# Every package and every module outside one, in the order in which they may import: each from
# those above it and from itself.
ORDER = (
    # Programs for any MPI: they know nothing of the emulator.
    "applications",
    *("errors", "native", "costs", "settings", "wire", "shared", "link"),
    *("host", "nic", "wait", "mx", "vmmc", "sockets", "workloads"),
    *("cluster.nics", "cluster.rank", "mpi", "cluster.rules", "cluster.launch", "cluster.spec"),
    "cluster.place",
    *("cluster.engine", "cluster.live", "simulation"),
    *("results", "bench", "show", "experiment", "papers", "page", "notebook"),
    # The package itself: the names that a user's program imports.
    "",
    # The command line: nothing but the program itself imports it.
    *("cli", "__main__"),
)
LEVELS = {part: level for level, part in enumerate(ORDER)}

_IMPORT = re.compile(r"^\s*c?import\s+shrimpmx\.([\w.]+)", re.M)
_FROM = re.compile(r"^\s*from\s+shrimpmx(?:\.([\w.]+))?\s+c?import\s+(\([^)]*\)|[^\n]*)", re.M)
_HEADER = re.compile(r'^\s*(?:#include|cdef extern from) "(\w+)/', re.M)


def part_of(module: str) -> str:
    """The package or single module of ORDER that a module, named from shrimpmx on, is in."""
    words = module.split(".")
    inner = ".".join(words[:2])
    return inner if inner in LEVELS else words[0]


def module_of(path: Path) -> str:
    """Its name, from shrimpmx on."""
    words = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


def python_imports(text: str) -> Iterator[str]:
    """Modules imported anywhere in a Python file, inside functions too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the module from shrimpmx on"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def compiled_imports(text: str) -> Iterator[str]:
    """Modules imported or cimported by Cython text, and packages whose headers it or C includes."""
    for match in _IMPORT.finditer(text):
        yield f"shrimpmx.{match[1]}"
    for match in _FROM.finditer(text):
        package = ".".join(filter(None, ("shrimpmx", match[1])))
        for word in match[2].strip("()").split(","):
            yield f"{package}.{word.split(' as ')[0].strip()}"
    for match in _HEADER.finditer(text):
        yield f"shrimpmx.{match[1]}"


@cache
def imports(path: Path) -> set[str]:
    """The modules of this package that a file imports, named from shrimpmx on."""
    text = path.read_text()
    found = python_imports(text) if path.suffix in (".py", ".pyi") else compiled_imports(text)
    return {module.partition(".")[2] for module in found if module.startswith("shrimpmx.")}


SOURCES = files(under="shrimpmx")
# A package that holds parts of ORDER and nothing else.
HOLDERS = {part.partition(".")[0] for part in ORDER if "." in part}


def test_every_module_has_its_place_in_the_order() -> None:
    parts = {part_of(module_of(path)) for path in SOURCES} - HOLDERS
    assert parts - set(LEVELS) == set()
    assert set(LEVELS) - parts == set()


def test_the_order_is_the_one_that_the_architecture_shows() -> None:
    text = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    shown = text.partition("A package imports only")[2].split("```")[1]
    assert shown.split() == " → ".join(filter(None, ORDER[:-1])).replace(".", "/").split()


def test_nothing_imports_what_stands_below_it() -> None:
    wrong = [
        f"{name(path)} imports {module}"
        for path in SOURCES
        for module in sorted(imports(path))
        if LEVELS.get(part_of(module), len(ORDER)) > LEVELS.get(part_of(module_of(path)), -1)
    ]
    assert wrong == []


def test_no_python_modules_import_each_other_in_a_circle() -> None:
    modules = {module_of(path): path for path in SOURCES if path.suffix == ".py"}
    graph = {
        module: {
            found if found in modules else found.rpartition(".")[0]
            for found in imports(path)
            if found in modules or found.rpartition(".")[0] in modules
        }
        - {module}
        for module, path in modules.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) >= len(modules)


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("from shrimpmx.mx.endpoint cimport Endpoint", {"shrimpmx.mx.endpoint.Endpoint"}),
        ("    cimport shrimpmx.link.ends", {"shrimpmx.link.ends"}),
        ("from shrimpmx cimport nic", {"shrimpmx.nic"}),
        ("from shrimpmx.a cimport (\n    b, c as d,\n)", {"shrimpmx.a.b", "shrimpmx.a.c"}),
        ('cdef extern from "native/ring.h" nogil:', {"shrimpmx.native"}),
        ('#include "shared/layout.h"', {"shrimpmx.shared"}),
        ('#include <poll.h>\ncdef extern from "<sched.h>":', set()),
    ],
)
def test_the_scan_finds_every_kind_of_import(text: str, modules: set[str]) -> None:
    assert {module for module in compiled_imports(text) if module[-1] != "."} == modules
