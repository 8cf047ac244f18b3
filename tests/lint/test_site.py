"""The site of the documentation: it is built without a warning, and is whole by itself."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from support.tree import ROOT

from shrimpmx.cli import COMMANDS, parser_of
from shrimpmx.cli.listing import LISTS, SCENARIOS, rows
from shrimpmx.papers.registry import PAPERS

# What a browser loads by itself.
LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src"}


class _Page(HTMLParser):
    """The links of a page, what it loads, what can be linked to in it, and its words."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.words: set[str] = set()
        self.feed(path.read_text())

    def handle_data(self, data: str) -> None:
        self.words |= set(re.split(r"[\s,|]+", data))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = {key: value or "" for key, value in attributes}
        self.ids.add(known.get("id", ""))
        if tag == "a" and "href" in known:
            self.links.append(known["href"])
        if tag in LOADED and LOADED[tag] in known:
            self.loads.append(known[LOADED[tag]])


def build(sources: Path, to: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a directory as `make docs` does."""
    words = [sys.executable, "-m", "sphinx", "-M", "html", sources, to, "-c", ROOT / "docs/site"]
    strict = ["--fail-on-warning", "--keep-going", "--quiet"]
    return subprocess.run([*words, *strict], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", place)
    assert done.returncode == 0, done.stderr
    return place / "html"


def elsewhere(link: str) -> bool:
    return "://" in link or link.startswith("//")


@pytest.mark.timeout(180)
def test_links_lead_to_files_and_anchors_of_the_site(site: Path) -> None:
    pages = {path: _Page(path) for path in site.rglob("*.html")}
    assert len(pages) > len(list((ROOT / "docs").glob("*.md")))

    def leads_somewhere(path: Path, link: str) -> bool:
        file, anchor = urldefrag(link)
        target = (path.parent / unquote(file)).resolve() if file else path
        return target.exists() and (not anchor or anchor in pages[target].ids)

    broken = [
        f"{path.name}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not elsewhere(link) and not leads_somewhere(path, link)
    ]
    assert broken == []


@pytest.mark.timeout(180)
def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = {each for path in site.rglob("*.html") for each in _Page(path).loads}
    assert any("site.css" in each for each in loads)
    assert {each for each in loads if elsewhere(each)} == set()
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"@import|url\([\"']?(?:https?:)?//", styles) == []


@pytest.mark.timeout(180)
def test_the_reference_has_all_that_is_declared(site: Path) -> None:
    listed = {name: {row["name"] for row in rows(name)} for name in (*LISTS, SCENARIOS)}
    listed["parameters"] = {name.partition(".")[2] for name in listed["parameters"]}
    options = {
        word
        for name in COMMANDS
        for action in parser_of(name)._actions
        for word in action.option_strings
        if action.dest != "help" and action.help != argparse.SUPPRESS
    }
    pages = {
        **{name: name for name in LISTS},
        SCENARIOS: "scenario-list",
        "platforms": "platform-values",
        "costs": "simulation",
        "claims": "papers",
        "options": "commands",
    }
    claims = {claim.id for claims in PAPERS.values() for claim in claims}
    for of, names in {**listed, "claims": claims, "options": options}.items():
        assert len(names) > 2
        assert names - _Page(site / f"{pages[of]}.html").words == set(), of


@pytest.mark.timeout(180)
def test_mistakes_end_the_build(tmp_path: Path) -> None:
    pages = {
        "index.md": "# Index\n\n## Room\n\n- [inside](inside.md)\n",
        "inside.md": "# Inside\n\n[no page](absent.md), [no heading](index.md#missing)\n",
        "outside.md": "# Outside\n\nThe navigation does not have it.\n",
    }
    (tmp_path / "pages").mkdir()
    for name, text in pages.items():
        (tmp_path / "pages" / name).write_text(text)
    done = build(tmp_path / "pages", tmp_path / "site")
    assert done.returncode != 0
    warnings = [line for line in done.stderr.splitlines() if "WARNING" in line]
    for word in ("absent", "missing", "outside.md"):
        assert any(word in line for line in warnings), word
    assert len(warnings) == 3
