"""The examples of docs/mx.md run as they stand, and there is one for each call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.tree import ROOT

from shrimpmx.errors import InputError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request, Status, strerror

PAGE = ROOT / "docs/mx.md"
TEXT = PAGE.read_text()
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
# Public attributes that are no calls.
FIELDS = {"control", "host", "index", "node", "waiter"}


def blocks() -> Iterator[tuple[int, str]]:
    """The line of the page on which a block begins, and its code."""
    for match in BLOCK.finditer(TEXT):
        yield TEXT.count("\n", 0, match.start()) + 2, match[1]


@pytest.mark.timeout(60)
def test_every_example_runs() -> None:
    names: dict[str, Any] = {"__name__": "mx"}
    try:
        for line, code in blocks():
            # Blank lines in front, so that an error names the line of the page.
            exec(compile("\n" * (line - 1) + code, str(PAGE), "exec"), names)
    finally:
        names["stack"].close()


def test_every_call_has_an_example() -> None:
    code = "\n".join(code for _, code in blocks())
    calls = [name for name in dir(Endpoint) if not name.startswith("_") and name not in FIELDS]
    assert len(calls) > 40
    assert [name for name in calls if not re.search(rf"\.{name}\b", code)] == []
    assert [name for name in calls if f"**{name}**" not in TEXT] == []


def test_every_field_is_named() -> None:
    fields = [name for kind in (Partner, Request, Status) for name in dir(kind)]
    fields = [name for name in fields if not name.startswith("_")]
    assert [name for name in fields if f"`{name}`" not in TEXT] == []


def test_the_table_has_every_status() -> None:
    section = TEXT.split("## Errors")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| ([a-z-]*[a-z]) \| ([^|]+) \|", section, re.M))
    del rows["status"]
    with pytest.raises(InputError) as caught:
        strerror("?")
    known = str(caught.value).split("there are ")[1].split(", ")
    assert sorted(rows) == sorted(known)
    assert [status for status in known if not rows[status].startswith(strerror(status))] == []
