"""Compiled modules: their contents pages, their stubs, and layouts that C and Cython share."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tree import PACKAGE, files, name

from shrimpmx.native import segment
from shrimpmx.shared.control import counter_names

LAYOUTS = [
    path
    for path in files(".pxd", under="shrimpmx")
    if path.with_suffix(".h").exists() and "cdef struct" in path.read_text()
]


def python_names(module_name: str) -> set[str]:
    """Functions of a compiled module, and classes with methods, that Python code may use."""
    own = {
        word: found
        for word, found in vars(importlib.import_module(module_name)).items()
        if getattr(found, "__module__", None) == module_name and not word.startswith("_")
    }
    return {
        word
        for word, found in own.items()
        if not inspect.isclass(found)
        or any(inspect.isroutine(member) for word, member in vars(found).items() if word[0] != "_")
    }


def stub_names(path: Path) -> set[str]:
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_a_stub_names_all_that_python_uses_of_a_module_and_nothing_else() -> None:
    wrong = []
    for path in files(".pyx", under="shrimpmx"):
        module_name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        stub = stub_names(path.with_suffix(".pyi"))
        if missing := python_names(module_name) - stub:
            wrong.append(f"{name(path)}: no stub of {sorted(missing)}")
        if absent := stub - set(vars(importlib.import_module(module_name))):
            wrong.append(f"{name(path)}: has no {sorted(absent)}")
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


def test_the_drivers_counters_come_first_in_the_agents_that_run_its_code() -> None:
    irq, rank, dma = (counter_names(kind) for kind in ("irq", "rank", "dma"))
    alike = [one for one, *others in zip(irq, rank, dma, strict=False) if {one} == set(others)]
    assert irq[: len(alike)] == rank[: len(alike)] == dma[: len(alike)] == alike
    assert {"send_tiny", "pull_done", "shared_tiny", "dma_ring_full"} <= set(alike)
    assert "interrupts" not in alike


# -- layouts: what Cython declares, C has ------------------------------------------


def declared(path: Path) -> Iterator[tuple[str, str, str]]:
    """(struct, type, declarator) of each field of the extern structs of a .pxd, in C's names."""
    text = path.read_text()
    struct, structs = "", dict(re.findall(r'cdef struct (\w+)(?: "(\w+)")?:', text))
    for line in text.splitlines():
        code = line.split("#")[0].rstrip()
        if start := re.match(r'    cdef struct (\w+)(?: "(\w+)")?:', code):
            struct = start[2] or start[1]
        elif struct and code.startswith("        "):
            kind, _, declarators = code.strip().partition(" ")
            kind = f"struct {structs[kind] or kind}" if kind in structs else kind
            for declarator in declarators.split(","):
                yield struct, kind, declarator.strip()
        elif code:
            struct = ""


def asserted(struct: str, kind: str, declarator: str) -> str:
    """A line that compiles if C's field has this type."""
    field = re.sub(r"\[.*\]", "", declarator).strip("* ")
    place = f"((struct {struct} *)0)->{field}" + "[0]" * declarator.count("[")
    # Types of other headers are declared elsewhere; of pointers the field's name will do.
    same = f"__builtin_types_compatible_p(__typeof__({place}), {kind})"
    test = same if kind.endswith("_t") and "*" not in declarator else f"sizeof({place}) > 0"
    return f'_Static_assert({test}, "{kind} {struct}.{declarator}");\n'


def compile_lines(lines: str, header: str) -> str:
    """What the compiler says against the lines."""
    done = subprocess.run(
        ["gcc", "-fsyntax-only", "-D_GNU_SOURCE", f"-I{PACKAGE}", "-xc", "-"],
        input=f'#include "{header}"\n{lines}',
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


@pytest.mark.parametrize("path", LAYOUTS, ids=name)
def test_the_compiler_finds_each_field_with_the_type_that_cython_is_told(path: Path) -> None:
    fields = list(declared(path))
    assert fields
    header = str(path.with_suffix(".h").relative_to(PACKAGE))
    assert compile_lines("".join(asserted(*field) for field in fields), header) == ""


def test_a_wrong_field_or_type_is_found() -> None:
    for field in (("segment_header", "uint64_t", "kind"), ("segment_header", "uint32_t", "size")):
        assert field[2] in compile_lines(asserted(*field), "shared/layout.h")


def test_the_segment_header_is_that_of_the_layout() -> None:
    values = {
        "SEGMENT_MAGIC": segment.MAGIC,
        "sizeof(struct segment_header)": segment.HEADER_BYTES,
        **{f"SEGMENT_{word.upper()}": kind for kind, word in segment.KIND_NAMES.items()},
    }
    lines = "".join(
        f'_Static_assert({word} == {value}u, "{word}");\n' for word, value in values.items()
    )
    assert compile_lines(lines, "shared/layout.h") == ""
    assert segment.MAGIC.to_bytes(8, "little") == b"SHRIMPMX"
