"""Compiled modules: their contents pages, their stubs, and layouts declared once."""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from support.tree import PACKAGE, files, name, without_comments

from shrimpmx.native import segment
from shrimpmx.shared import control

_TOP_DEF = re.compile(r"^(?:async )?(?:def|class|cpdef\s[^(]*?)\s*\b(\w+)\s*[(:]", re.M)
_TOP_CLASS = re.compile(r"^cdef class (\w+)", re.M)
_PYTHON_METHOD = re.compile(r"^    (?:def|cpdef)\b.*?\b([a-z]\w*)\(", re.M)
_C_STRUCT = re.compile(r"struct(?: WIRE_PACKED)? (\w+) \{")
_FIELD = re.compile(r"^(?:volatile )?(?:struct )?(\w+)\s+(.*)$", re.S)

LAYOUTS = [
    path
    for path in files(".h", under="shrimpmx")
    if path.with_suffix(".pxd").exists() and "cdef struct" in path.with_suffix(".pxd").read_text()
]


def python_names(path: Path) -> set[str]:
    """Top-level functions and classes of a module that Python code may use."""
    text = path.read_text()
    names = set(_TOP_DEF.findall(text))
    for match in _TOP_CLASS.finditer(text):
        following = text[match.end() :]
        body = re.split(r"^\S", following, maxsplit=1, flags=re.M)[0]
        if _PYTHON_METHOD.search(body):
            names.add(match[1])
    return {word for word in names if not word.startswith("_")}


def stub_names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_module_that_python_uses_has_a_stub_with_its_names() -> None:
    wrong = []
    for path in files(".pyx", under="shrimpmx"):
        stub = path.with_suffix(".pyi")
        missing = python_names(path) - (stub_names(stub) if stub.exists() else set())
        if missing:
            wrong.append(f"{name(stub)}: {', '.join(sorted(missing))}")
    assert wrong == []


def test_every_stub_names_what_is_there() -> None:
    wrong = []
    for stub in files(".pyi", under="shrimpmx"):
        text = stub.with_suffix(".pyx").read_text()
        for word in stub_names(stub):
            if not re.search(rf"^(?:cdef |cpdef |def |class ).*\b{word}\b", text, re.M):
                wrong.append(f"{name(stub)}: {word}")
    assert wrong == []


def test_every_contents_page_has_contents() -> None:
    """A .pxd stands beside its .pyx or its .h, or is all inline; others are left over."""
    wrong = [
        name(path)
        for path in files(".pxd", under="shrimpmx")
        if not path.with_suffix(".pyx").exists()
        and not path.with_suffix(".h").exists()
        and not re.search(
            r"^(?:cdef inline|cdef struct|cdef enum|ctypedef)", path.read_text(), re.M
        )
    ]
    assert wrong == []


def test_counters_are_the_same_in_c_and_in_cython() -> None:
    header = without_comments((PACKAGE / "shared/counters.h").read_text())
    lists = re.findall(r"#define (\w+)_COUNTERS\(X\)((?:.*\\\n)*.*)\n", header)
    in_c = {kind.lower(): re.findall(r"X\((\w+)\)", text) for kind, text in lists}
    contents = (PACKAGE / "shared/layout.pxd").read_text()
    assert list(in_c) == ["nic", "driver", "irq", "rank", "hog", "dma"]
    assert re.findall(r"\bCOUNTER_(\w+)", contents) == list(chain(*in_c.values()))
    # The driver's code runs in three kinds of agents: its counters have the same index in all.
    for kind in control.AGENT_KINDS:
        driver = in_c["driver"] if kind in ("irq", "rank", "dma") else []
        assert control.counter_names(kind) == [*driver, *in_c[kind]]


def c_structs(path: Path) -> dict[str, list[tuple[str, str]]]:
    """(name, type) of each field of each struct in a header, padding left out."""
    text = without_comments(path.read_text())
    text = re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)
    return {
        match[1]: list(_c_fields(_in_braces(text, match.end())))
        for match in _C_STRUCT.finditer(text)
    }


def _in_braces(text: str, start: int) -> str:
    """What stands from `start`, just behind a brace, to the one that closes it."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    raise AssertionError("a brace is not closed")


def _c_fields(body: str) -> Iterator[tuple[str, str]]:
    for declaration in re.sub(r"union\s*\{|\}", "", body).split(";"):
        match = _FIELD.match(declaration.strip())
        if match is None:
            continue
        for declarator in match[2].split(","):
            word = re.sub(r"\[.*\]|\*|volatile", "", declarator).strip()
            if not word.startswith("unused"):
                yield word, match[1]


def cython_structs(path: Path) -> dict[str, list[tuple[str, str]]]:
    """The same for the extern structs of a .pxd, under their C names."""
    structs: dict[str, list[tuple[str, str]]] = {}
    fields: list[tuple[str, str]] | None = None
    for line in path.read_text().splitlines():
        start = re.match(r'^    cdef struct (\w+)(?: "(\w+)")?:', line)
        if start:
            fields = structs.setdefault(start[2] or start[1], [])
        elif fields is not None and line.startswith("        ") and line.split("#")[0].strip():
            kind, _, rest = line.split("#")[0].strip().partition(" ")
            fields += [(re.sub(r"\[.*\]|\*", "", word).strip(), kind) for word in rest.split(",")]
        elif line.strip():
            fields = None
    return structs


@pytest.mark.parametrize("header", LAYOUTS, ids=name)
def test_struct_fields_are_the_same_in_c_and_in_cython(header: Path) -> None:
    in_c, in_cython = c_structs(header), cython_structs(header.with_suffix(".pxd"))
    own_names = {"Clock": "clock"}
    assert in_cython
    for struct_name, fields in in_cython.items():
        named = {(field, own_names.get(kind, kind)) for field, kind in fields}
        assert named - set(in_c[struct_name]) == set(), f"struct {struct_name} of {name(header)}"


def test_no_field_of_the_shared_layout_is_left_out() -> None:
    in_c = c_structs(PACKAGE / "shared/layout.h")
    in_cython = cython_structs(PACKAGE / "shared/layout.pxd")
    assert len(in_c) > 10
    for struct_name, fields in in_c.items():
        words = {field for field, _ in fields} - {"bytes"}  # the union's padding
        assert words == {field for field, _ in in_cython[struct_name]}, struct_name


def test_the_segment_header_is_that_of_the_layout() -> None:
    text = (PACKAGE / "shared/layout.h").read_text()
    magic = re.search(r"SEGMENT_MAGIC (0x[0-9a-f]+)ull", text)
    version = re.search(r"SEGMENT_ABI_VERSION (\d+)", text)
    assert magic is not None
    assert version is not None
    assert int(magic[1], 16) == segment.MAGIC
    assert int(version[1]) == segment.ABI_VERSION
    assert struct.pack("<Q", segment.MAGIC) == b"SHRIMPMX"
    kinds = dict(re.findall(r"SEGMENT_([A-Z]+) = (\d)", text))
    assert {int(number): word.lower() for word, number in kinds.items()} == segment.KIND_NAMES
