"""One idea per file, small: lines of a file, of a function, of a scenario; columns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.tree import files, name

# A compiled module may be longer: a subject stays in one file.
FILE_LINES_MAX, COMPILED_LINES_MAX = 500, 800
FUNCTION_LINES_MAX = 60
SCENARIO_LINES_MAX = 100
COLUMNS_MAX = 100

Function = tuple[str, int, int]  # name, first line, number of lines

_PYX_START = re.compile(r"^( *)(?:async )?(?:def|cdef|cpdef)\b(?! class)[^=:]*?(\w+)\(")
_C_START = re.compile(r"^(?:static |inline )*\w[\w\s*]*?(\w+)\([^;]*$")


def statements(block: ast.AST) -> Iterator[ast.AST]:
    """All statements in it, however deep; much faster than to walk through expressions too."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        for node in getattr(block, part, ()):
            yield node
            yield from statements(node)


def python_functions(path: Path) -> Iterator[Function]:
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def cython_functions(path: Path) -> Iterator[Function]:
    """Functions by indentation: from the signature to the last line that is deeper."""
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        match = _PYX_START.match(line)
        if match is None:
            continue
        body = _after_signature(lines, number)
        if body is None:
            continue
        last = body
        for later in range(body, len(lines)):
            if not lines[later].strip():
                continue
            if len(lines[later]) - len(lines[later].lstrip()) <= len(match[1]):
                break
            last = later + 1
        yield match[2], number + 1, last - number


def _after_signature(lines: list[str], number: int) -> int | None:
    """Index of the line behind the signature that starts at `number`; None for a declaration."""
    depth = 0
    for later in range(number, len(lines)):
        code = lines[later].split("#")[0].rstrip()
        depth += code.count("(") - code.count(")")
        if depth == 0:
            return later + 1 if code.endswith(":") else None
    return None


def c_functions(path: Path) -> Iterator[Function]:
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        match = _C_START.match(line)
        if match is None:
            continue
        last = next((at for at in range(number, len(lines)) if lines[at].startswith("}")), number)
        yield match[1], number + 1, last - number + 1


def functions(path: Path) -> Iterator[Function]:
    if path.suffix == ".py":
        yield from python_functions(path)
    elif path.suffix in (".pyx", ".pxd"):
        yield from cython_functions(path)
    elif path.suffix == ".h":
        yield from c_functions(path)


def test_no_file_is_too_long() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in files()}
    assert {file: length for file, length in lengths.items() if length > most(file)} == {}


def most(file: str) -> int:
    return COMPILED_LINES_MAX if file.endswith((".pyx", ".pxd")) else FILE_LINES_MAX


def test_no_scenario_is_too_long() -> None:
    lengths = {
        name(path): len(path.read_text().splitlines()) for path in files(".py", under="scenarios")
    }
    assert {file: length for file, length in lengths.items() if length > SCENARIO_LINES_MAX} == {}


def test_no_function_is_too_long() -> None:
    too_long = [
        f"{name(path)}:{line} {function}: {length} lines"
        for path in files()
        for function, line, length in functions(path)
        if length > FUNCTION_LINES_MAX
    ]
    assert too_long == []


def test_no_line_is_too_wide() -> None:
    too_wide = [
        f"{name(path)}:{number}: {len(line)} columns"
        for path in files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > COLUMNS_MAX
    ]
    assert too_wide == []


def test_the_scans_find_functions_of_each_language(tmp_path: Path) -> None:
    cython = tmp_path / "a.pyx"
    cython.write_text(
        "cdef int one(int a,\n             int b) noexcept nogil:  # why\n    return a\n\n\n"
        "cdef class C(B):\n    def two(self):\n        x = (1,\n             2)\n\n"
        "        return x\n"
        "    cdef int declared(self) noexcept nogil\n"
    )
    assert list(functions(cython)) == [("one", 1, 3), ("two", 7, 5)]
    python = tmp_path / "a.py"
    python.write_text(
        "class C:\n    def one(self):\n        return 1\n\n"
        "try:\n    pass\nexcept E:\n    def two():\n        pass\n"
    )
    assert list(functions(python)) == [("one", 2, 2), ("two", 8, 2)]
    header = tmp_path / "a.h"
    header.write_text("static inline int three(int a,\n        int b) {\n    return a;\n}\n")
    assert list(functions(header)) == [("three", 1, 4)]
