"""The documents: links that lead somewhere, lines of 100 columns, a way to all from the README."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tree import ROOT, files, name

COLUMNS_MAX = 100
README_LINES_MAX = 200
PICTURE_BYTES_MAX = 60_000
_LINK = re.compile(r"\]\(([^)\s]+)")
_CODE = re.compile(r"`[^`\n]+`")
_CELL_END = re.compile(r"(?<!\\)\|")
_DELIMITERS = re.compile(r" *\|(?: -{3,} \|)+")
_FENCED = re.compile(r"^ *```.*?^ *```", re.M | re.S)


def links(document: Path) -> Iterator[tuple[Path, str]]:
    """The files that a document links to, and the anchor in each, or ""."""
    for link in _LINK.findall(_FENCED.sub("", document.read_text())):
        if "://" not in link:
            file, _, anchor = link.partition("#")
            yield (document.parent / file if file else document), anchor


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub makes of a document's headings."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", _FENCED.sub("", document.read_text()), re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", plain).strip().lower().replace(" ", "-")
        found.append(f"{anchor}-{found.count(anchor)}" if anchor in found else anchor)
    return set(found)


@pytest.mark.parametrize("document", files(".md"), ids=name)
def test_links_lead_to_files_and_headings_that_exist(document: Path) -> None:
    missing = [
        f"{file.name}#{anchor}"
        for file, anchor in links(document)
        if not file.exists() or (anchor and anchor not in anchors(file))
    ]
    assert missing == []


@pytest.mark.parametrize("document", files(".md"), ids=name)
def test_no_line_but_that_of_a_table_is_too_wide(document: Path) -> None:
    too_wide = [
        number
        for number, line in enumerate(document.read_text().splitlines(), 1)
        if len(line) > COLUMNS_MAX and not line.lstrip().startswith("|")
    ]
    assert too_wide == []


@pytest.mark.parametrize("document", files(".md"), ids=name)
def test_each_row_of_a_table_has_a_line_and_the_cells_of_the_head(document: Path) -> None:
    text = _CODE.sub("code", _FENCED.sub("", document.read_text()))
    run_together = [line for line in text.splitlines() if re.search(r"\S.*\| -{3,} \|", line)]
    assert [line for line in run_together if not _DELIMITERS.fullmatch(line)] == []
    for table in re.findall(r"(?:^ *\|.*\n)+", text, re.M):
        cells = [len(_CELL_END.findall(line)) for line in table.splitlines()]
        assert set(cells) == {cells[0]}, table


def test_the_readme_is_a_tour_and_leads_to_every_page() -> None:
    readme, index = ROOT / "README.md", ROOT / "docs/index.md"
    assert len(readme.read_text().splitlines()) <= README_LINES_MAX
    assert index in {file.resolve() for file, _ in links(readme)}
    others = set((ROOT / "docs").glob("*.md")) - {index}
    assert {file.resolve() for file, _ in links(index)} >= others


def test_pictures_are_small_and_shown() -> None:
    shown = {file.resolve() for document in files(".md") for file, _ in links(document)}
    for picture in (ROOT / "docs/images").iterdir():
        assert picture in shown
        assert picture.stat().st_size < PICTURE_BYTES_MAX
