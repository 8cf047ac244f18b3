"""Imports go one way, so that what is below can be understood and tested alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tree import PACKAGE, files, name

# Each may import what stands in its own line or above.
ORDER = [
    {"errors", "core_lists", "params", "sentences"},
    {"native"},
    {"wire", "shared"},
    {"nic", "host", "wait"},
    {"mx", "vmmc"},
    {"sockets"},
    {"workloads"},
    {"cluster", "measure"},
    {"point", "platform", "ranks", "scenario", "claims", "loading", "sweep", "execute"},
    {"cli", "commands", "__main__"},
]
LEVELS = {part: level for level, parts in enumerate(ORDER) for part in parts}

_CIMPORT = re.compile(r"^\s*(?:from\s+shrimpmx\.(\w+)|c?import\s+shrimpmx\.(\w+))", re.M)
_FROM_TOP = re.compile(r"^\s*from\s+shrimpmx\s+c?import\s+\(?([\w, ]+)", re.M)
_HEADER = re.compile(r'^\s*(?:#include|cdef extern from) "(\w+)/', re.M)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].split(".")[0]


def python_imports(text: str) -> Iterator[str]:
    """Parts imported anywhere in a Python file, inside functions too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (
                alias.name.split(".")[1]
                for alias in node.names
                if "." in alias.name and alias.name.startswith("shrimpmx.")
            )
        elif isinstance(node, ast.ImportFrom) and node.module:
            words = node.module.split(".")
            if words[0] == "shrimpmx":
                yield from words[1:2] or [alias.name for alias in node.names]


def compiled_imports(text: str) -> Iterator[str]:
    """Parts imported or cimported by Cython text, and those whose headers it or C includes."""
    for match in _CIMPORT.finditer(text):
        yield match[1] or match[2]
    for match in _FROM_TOP.finditer(text):
        yield from (word.strip() for word in match[1].split(","))
    for match in _HEADER.finditer(text):
        yield match[1]


def imports(path: Path) -> set[str]:
    text = path.read_text()
    found = python_imports(text) if path.suffix in (".py", ".pyi") else compiled_imports(text)
    return {part for part in found if part != "__init__"}


SOURCES = [path for path in files(under="shrimpmx") if path != PACKAGE / "__init__.py"]


def test_every_part_has_its_place_in_the_order() -> None:
    assert {part_of(path) for path in SOURCES} - set(LEVELS) == set()


def test_nothing_imports_what_stands_below_it() -> None:
    wrong = [
        f"{name(path)} imports {part}"
        for path in SOURCES
        for part in sorted(imports(path))
        if LEVELS.get(part, len(ORDER)) > LEVELS[part_of(path)]
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("from shrimpmx.mx.endpoint cimport Endpoint", {"mx"}),
        ("    cimport shrimpmx.wire.link", {"wire"}),
        ("from shrimpmx cimport nic", {"nic"}),
        ('cdef extern from "native/ring.h" nogil:', {"native"}),
        ('#include "shared/layout.h"', {"shared"}),
        ('#include <poll.h>\ncdef extern from "<sched.h>":', set()),
    ],
)
def test_the_scan_finds_every_kind_of_import(text: str, parts: set[str]) -> None:
    assert set(compiled_imports(text)) == parts
