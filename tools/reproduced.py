"""Keep what reproductions gave, and write the tables of docs/reproduction.md and of
docs/claim-figures.md from it.

    python tools/reproduced.py results/reproduce-*/claims.json
    python tools/reproduced.py                  # of what is kept, when the rules have changed

Reproductions of one engine, by the same rules, are taken together: a claim from the last one that
has it. The second table compares what each of them gave; `made` says how and where each was made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import claim_figures
import inputs
import parts

from shrimpmx.native.files import write_whole
from shrimpmx.papers.causes import CAUSES
from shrimpmx.papers.claim import NEEDS, class_words
from shrimpmx.papers.claims_report import overview
from shrimpmx.papers.digests import rule_digests
from shrimpmx.papers.registry import PAPERS
from shrimpmx.results.expectation_kinds import INCONCLUSIVE, NOT_RUN

DOCUMENTS = Path(__file__).resolve().parents[1] / "docs"
PAGE, KEPT = DOCUMENTS / "reproduction.md", DOCUMENTS / "reproduced"
FIGURES = DOCUMENTS / "claim-figures.md"
TABLE = "<!-- tools/reproduced.py writes this table -->\n", "<!-- end of the table -->\n"
COMPARISON = (
    "<!-- tools/reproduced.py writes this comparison -->\n",
    "<!-- end of the comparison -->\n",
)
CAUSES_TABLE = (
    "<!-- tools/reproduced.py writes these causes -->\n",
    "<!-- end of the causes -->\n",
)
FIGURES_TABLES = (
    "<!-- tools/reproduced.py writes these tables -->\n",
    "<!-- end of the tables -->\n",
)
CLAIM_KEYS = ("id", "class", "outcome", "needs", "measured", "ci95", "unit", "reason")
# How and where a reproduction was made.
MADE_KEYS = ("seed", "settings", "costs", "environment")
PART_KEYS = ("text", "class", "paper", "paper_figures", "measured", "ci95", "unit", "figures")


def kept() -> list[dict[str, Any]]:
    """What is kept of reproductions, a document for each engine."""
    return [json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))]


def page_with(documents: Sequence[dict[str, Any]], page: str) -> str:
    """The page with the tables of these documents."""
    page = parts.page_with(page, *TABLE, overview(PAPERS, documents))
    page = parts.page_with(page, *CAUSES_TABLE, causes())
    return parts.page_with(page, *COMPARISON, comparison(documents))


def figures_with(documents: Sequence[dict[str, Any]], page: str) -> str:
    """The page of figures with those of these documents."""
    return parts.page_with(page, *FIGURES_TABLES, claim_figures.tables(PAPERS, documents))


def causes() -> Iterator[str]:
    """Why claims do not hold, with the commands that show it."""
    yield "| claims | on | why | shown by |"
    yield "| --- | --- | --- | --- |"
    for each in CAUSES:
        claims, where = ", ".join(each.claims), each.engine or "both"
        yield f"| {claims} | {where} | {each.why} | `shrimpmx {each.command}` |"


def comparison(documents: Sequence[dict[str, Any]]) -> Iterator[str]:
    """By which rules each engine's reproductions were judged, and where several differ."""
    present = rule_digests({})
    for document in documents:
        engine, claims = document["engine"], document["claims"]
        rules = "present rules" if document["frozen"] == present else "rules of an earlier version"
        yield f"- `{engine}` was judged by the {rules}."
        judged = {each["id"]: _outcomes(each) for each in claims}
        several = [each for each in claims if len(judged[each["id"]]) > 1]
        apart = [each for each in several if len(set(judged[each["id"]])) > 1]
        if several:
            count = max(len(each["outcomes"]) for each in several)
            same = f"{len(several) - len(apart)} of {len(several)} claims that they judged"
            settled = {each["id"]: {*judged[each["id"]]} - {INCONCLUSIVE} for each in apart}
            words = ", ".join(name for name, found in settled.items() if len(found) > 1) or "none"
            yield f"  {count} reproductions gave the same for {same}."
            yield f"  Claims with different outcomes, none of them inconclusive: {words}."
        if apart:
            yield ""
            yield f"| claim | {' | '.join(map(str, range(1, count + 1)))} |"
            yield f"| --- {'| --- ' * count}|"
            yield from (f"| {each['id']} | {' | '.join(each['came_out'])} |" for each in apart)
            yield ""


def _outcomes(claim: dict[str, Any]) -> list[str]:
    """What came out in the reproductions that could judge a claim."""
    return [each for each in claim["outcomes"] if each not in ("", NEEDS, NOT_RUN)]


def keep(paths: Sequence[Path]) -> None:
    """Keep the claims of these reproductions in place of those of their engines."""
    by_engine: dict[str, list[dict[str, dict[str, Any]]]] = {}
    made: dict[str, list[dict[str, Any]]] = {}
    rules: dict[str, Any] = {}
    for path in paths:
        keys = ("engine", "claims", "frozen")
        document = inputs.document(path, "the claims.json of a reproduction", keys)
        engine = document["engine"]
        if rules.setdefault(engine, document["frozen"]) != document["frozen"]:
            inputs.refuse(
                f"{path} was judged by other rules or values of platforms than the ones before it"
            )
        claims = {each["id"]: each for each in document["claims"]}
        by_engine.setdefault(engine, []).append(claims)
        made.setdefault(engine, []).append(
            {key: document[key] for key in MADE_KEYS if key in document}
        )
    for engine, given in by_engine.items():
        names = dict.fromkeys(name for claims in given for name in claims)
        kept_claims = [_kept_of([claims.get(name) for claims in given]) for name in names]
        document = {
            "engine": engine,
            "frozen": rules[engine],
            "made": made[engine],
            "claims": kept_claims,
        }
        text = json.dumps(document, indent=1, ensure_ascii=False)
        write_whole(KEPT / f"{engine}.json", f"{text}\n")


def _kept_of(given: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    """What is kept of a claim: of the last reproduction that has it, and what came out of each;
    None: that has it not.
    """
    last = next(claim for claim in reversed(given) if claim)
    return {
        **{key: last[key] for key in CLAIM_KEYS},
        "outcomes": [claim["outcome"] if claim else "" for claim in given],
        "came_out": [
            class_words(claim["class"], claim["outcome"], claim["needs"]) if claim else "—"
            for claim in given
        ],
        "parts": [{key: part[key] for key in PART_KEYS} for part in last["parts"]],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep, and write the pages; returns 0."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("claims", nargs="*", type=Path, help="claims.json of reproductions")
    keep(parser.parse_args(arguments).claims)
    write_whole(PAGE, page_with(kept(), PAGE.read_text()))
    write_whole(FIGURES, figures_with(kept(), FIGURES.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
