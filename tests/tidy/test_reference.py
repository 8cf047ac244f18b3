"""The pages of the reference have what is declared, also where no site is built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import reference_pages

from shrimpmx.cli.listing import LISTS, rows

PAGES = reference_pages.pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_has_the_tables_as_they_are_now(path: Path) -> None:
    """If they are new: python tools/reference_pages.py."""
    page = path.read_text()
    assert reference_pages.page_with(page) == page


@pytest.mark.parametrize("name", LISTS)
def test_each_list_stands_in_a_page(name: str) -> None:
    command = f"shrimpmx list --{name}"
    [page] = [
        text
        for text in map(Path.read_text, PAGES)
        if [each[1] for each in reference_pages.BEGIN.finditer(text)] == [command]
    ]
    cells = set(re.findall(r"`([^`|]+)`|\| ([^|`]+?) (?=\|)", page))
    shown = {code or plain for code, plain in cells}
    for row in rows(name):
        own = row.get("key", row["name"]).rpartition("." if name == "parameters" else "\0")[2]
        assert not own or own in shown
