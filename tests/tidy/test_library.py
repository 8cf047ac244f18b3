"""The state of an MX endpoint: each part of it is written by one module."""

from __future__ import annotations

import re

from support.tree import PACKAGE, files, name

_PART = re.compile(r"^    cdef (\w+State) (\w+)$", re.M)
_ASSIGNED = r"{}(?:\.\w+|\[[^\]]*\])+ *(?:[-+*/|&^]|//|<<|>>)?=(?!=)"
_LISTED = r"list_(?:append|clear|remove|insert_after)\(&{}\."
_ALIAS = r"^(?!.*\bconst\b).*\*\w+ = &{}\b"


def writes(text: str, what: str) -> list[str]:
    """Lines that assign to a field of `what`, or join or take a way to do so."""
    patterns = (_ASSIGNED, _LISTED, _ALIAS)
    found = re.compile("|".join(pattern.format(what) for pattern in patterns))
    return [line.strip() for line in text.splitlines() if found.search(line)]


def parts() -> dict[str, str]:
    """The parts, each with the module that its struct names."""
    text = (PACKAGE / "mx/library.pxd").read_text()
    writers = dict(re.findall(r"^cdef struct (\w+): *# (\w+)\.p[xy]", text, re.M))
    return {part: writers[struct] for struct, part in _PART.findall(text)}


def test_each_part_of_the_library_names_a_module() -> None:
    assert len(parts()) > 5
    for module in parts().values():
        assert any((PACKAGE / f"mx/{module}{end}").exists() for end in (".pyx", ".pxd")), module


def test_each_part_of_the_library_is_written_by_its_module_alone() -> None:
    wrong = [
        f"{name(path)}: {line}"
        for path in files(".pyx", ".pxd", under="shrimpmx")
        for part, module in parts().items()
        if path.stem != module
        for line in writes(path.read_text(), rf"\blibrary\.{part}")
    ]
    assert wrong == []


def test_the_fields_of_the_driver_are_written_in_its_package_alone() -> None:
    wrong = [
        f"{name(path)}: {line}"
        for path in files(".pyx", ".pxd", under="shrimpmx")
        if path.parent.name != "host"
        for line in writes(path.read_text(), r"\bdriver")
        # A property: its setter is the driver's.
        if "driver.process_core" not in line
    ]
    assert wrong == []


def test_a_write_is_recognised() -> None:
    for line in (
        "library.send.zombies += 1",
        "self.library.lock.told = 0",
        "library.large.region_owners[id] = NULL",
        "list_append(&library.send.resend, link)",
        "cdef SendState *send = &library.send",
    ):
        assert writes(line, r"\blibrary\.(?:send|lock|large)"), line
    for line in (
        "if library.send.zombies == 1:",
        "while link != &library.send.starved:",
        "cdef const SendState *send = &library.send",
    ):
        assert not writes(line, r"\blibrary\.send"), line
