"""Keep what `shrimpmx validate --json` gave, and write docs/validation.md's tables from it.

python tools/validated.py validated.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import inputs
import parts

from shrimpmx.experiment.validation.comparison import COUNTS_WITHIN, TIMES_WITHIN
from shrimpmx.native.files import write_whole

DOCUMENTS = Path(__file__).resolve().parents[1] / "docs"
PAGE, KEPT = DOCUMENTS / "validation.md", DOCUMENTS / "validated" / "validate.json"
BEGIN, END = "<!-- tools/validated.py writes this part -->\n", "<!-- end of the part -->\n"
MACHINE_KEYS = ("cpu_model", "system", "time")
KEPT_KEYS = ("repeats", "summary", "failed", "rows")


def lines_of(document: dict[str, Any]) -> Iterator[str]:
    """What a validation gave, as lines of the page."""
    found, machine = document["summary"], document["environment"]
    yield f"{machine['cpu_model']}, {machine['system']}, {machine['time'][:10]};"
    yield f"{document['repeats']} runs of each point; {found['disturbed']} are kept although"
    yield "they were disturbed from outside."
    aside = sum(found["left_aside"].values())
    yield f"The CPUs were {found['state']} in the calibration; {aside} real runs with the CPUs at"
    few = found["not_compared"]
    yield f"another distance are left aside, and {few} points with too few others."
    yield ""
    yield "| points | how many | counts within 5 % | median error of times |"
    yield "| --- | --- | --- | --- |"
    for name, each in (*found["families"].items(), ("all", found)):
        error = each["median_error"]
        yield (
            f"| {name if name == 'all' else f'`{name}`'} | {each['points']} "
            f"| {each['counts_within']} of {each['counts']} "
            f"| {'' if error is None else f'{error * 100:.3g} %'} |"
        )
    yield ""
    median = found["median_error"]
    if median is not None:
        words = "met" if median <= TIMES_WITHIN else "not met"
        yield f"- The aim for times, {TIMES_WITHIN * 100:.0f} % in the median, is {words}."
    words = "met" if found["counts_within"] == found["counts"] else "not met"
    yield f"- The aim for counts, each within {COUNTS_WITHIN * 100:.0f} %, is {words}."
    yield "- How many frames a message takes, the protocol says, and a count of 0 says little."
    timed, within = found["timed_counts"], found["timed_counts_within"]
    yield f"  Of the other {timed}, {within} are within {COUNTS_WITHIN * 100:.0f} %."
    certain, within = found["certain_counts"], found["certain_counts_within"]
    yield f"- Real runs agree on {certain} of these: the 95 % interval of their median is within"
    yield f"  {COUNTS_WITHIN * 100:.0f} % of it. {within} of them are within that."
    if again := found.get("real_again"):
        points, within = again["points"], again["counts_within"]
        certain, certain_within = again["certain_counts"], again["certain_counts_within"]
        yield f"- Real runs of an earlier validation, of {points} of these points, in place of the"
        yield f"  simulated ones have {within} of {again['counts']} counts within that, and"
        yield f"  {certain_within} of {certain} certain ones."
        if again["median_error"] is not None:
            yield f"  Their times differ by {again['median_error'] * 100:.3g} % in the median."
    reversed_words = found["orders_reversed"]
    yield f"- Of {found['orders_certain']} certain orders {len(reversed_words)} are reversed."
    failed = [f"{each['family']}: {each['reason']}" for each in document["failed"]]
    yield f"- {len(failed)} points failed." if failed else "- No point failed."
    yield from _column("reversed order", reversed_words)
    yield from _column("failed point", failed)


def _column(head: str, cells: Sequence[str]) -> Iterator[str]:
    """A table of one column; nothing without a cell."""
    if cells:
        yield from ("", f"| {head} |", "| --- |", *(f"| {cell} |" for cell in cells))


def kept() -> dict[str, Any]:
    """What is kept of the last validation."""
    document: dict[str, Any] = json.loads(KEPT.read_text())
    return document


def page_with(document: dict[str, Any], page: str) -> str:
    """The page with the part that this document makes."""
    return parts.page_with(page, BEGIN, END, lines_of(document))


def keep(path: Path) -> None:
    """Keep a validation in place of the last one."""
    document = inputs.document(path, "what `validate --json` writes", (*KEPT_KEYS, "environment"))
    machine = {key: document["environment"][key] for key in MACHINE_KEYS}
    parts = {key: document[key] for key in KEPT_KEYS}
    text = json.dumps({"environment": machine, **parts}, ensure_ascii=False, indent=1)
    write_whole(KEPT, f"{text}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep, and write the page; returns 0."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("result", type=Path, help="what `shrimpmx validate --json` has written")
    keep(parser.parse_args(arguments).result)
    write_whole(PAGE, page_with(kept(), PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
