"""Keep what reproductions gave, and write docs/reproduction.md's first table from it.

    python tools/reproduced.py results/reproduce-*/claims.json

Reproductions of one engine are taken together, a claim from the last one that has it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import inputs
import parts

from shrimpmx.native.files import write_whole
from shrimpmx.papers.known import PAPERS
from shrimpmx.papers.overview import overview

DOCUMENTS = Path(__file__).resolve().parents[1] / "docs"
PAGE, KEPT = DOCUMENTS / "reproduction.md", DOCUMENTS / "reproduced"
BEGIN, END = "<!-- tools/reproduced.py writes this table -->\n", "<!-- end of the table -->\n"
CLAIM_KEYS = ("id", "class", "outcome", "needs", "measured", "ci95", "unit", "reason")


def kept() -> list[dict[str, Any]]:
    """What is kept of reproductions, a document for each engine."""
    return [json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))]


def page_with(documents: Sequence[dict[str, Any]], page: str) -> str:
    """The page with the table of these documents."""
    return parts.page_with(page, BEGIN, END, overview(PAPERS, documents))


def keep(paths: Sequence[Path]) -> None:
    """Keep the claims of these reproductions in place of those of their engines."""
    by_engine: dict[str, dict[str, dict[str, Any]]] = {}
    for path in paths:
        document = inputs.document(path, "the claims.json of a reproduction", ("engine", "claims"))
        claims = by_engine.setdefault(document["engine"], {})
        claims |= {
            each["id"]: {key: each[key] for key in CLAIM_KEYS} for each in document["claims"]
        }
    for engine, claims in by_engine.items():
        document = {"engine": engine, "claims": list(claims.values())}
        text = json.dumps(document, indent=1, ensure_ascii=False)
        write_whole(KEPT / f"{engine}.json", f"{text}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep, and write the page; returns 0."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("claims", nargs="+", type=Path, help="claims.json of reproductions")
    keep(parser.parse_args(arguments).claims)
    write_whole(PAGE, page_with(kept(), PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
