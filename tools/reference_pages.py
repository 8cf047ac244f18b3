"""Write the tables of what is declared into the pages of the reference.

python tools/reference_pages.py

Options of commands are not among them: Python's versions print these differently.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from shrimpmx.native.files import write_whole

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS / "site"))
from reference import tables_of  # noqa: E402

# A part names the command that prints the same.
BEGIN = re.compile(r"<!-- tools/reference_pages\.py writes this part: (.+) -->\n")
END = "<!-- end of the part -->\n"


def pages() -> list[Path]:
    """Those that have such a part."""
    return [path for path in sorted(DOCS.glob("*.md")) if BEGIN.search(path.read_text())]


def page_with(page: str) -> str:
    """The page with the tables as they are now."""
    for begin in BEGIN.finditer(page):
        before, _, rest = page.partition(begin[0])
        _, end, behind = rest.partition(END)
        if not end:
            raise ValueError(f"the page has no line {END!r} behind {begin[0]!r}")
        page = f"{before}{begin[0]}\n{tables_of(begin[1], before)}\n\n{END}{behind}"
    return page


if __name__ == "__main__":
    argparse.ArgumentParser(description=str(__doc__).partition("\n")[0]).parse_args()
    for written in pages():
        write_whole(written, page_with(written.read_text()))
