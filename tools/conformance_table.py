"""What the ranks' records of a conformance run come to: an outcome for each case, and the document
that `shrimpmx report` makes a page of.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shrimpmx.results.environment import environment

# What a case comes to is the last one of these that it came to on any rank.
OUTCOMES = ("skipped", "passed", "unsupported", "failed", "not ended")
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+")


@dataclass
class FileResult:
    """How a file's cases ended on so many ranks; `why` of those that did not pass."""

    file: str
    ranks: int
    outcomes: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    end: str = ""  # "hung", or how its processes died

    def counts(self) -> Counter[str]:
        return Counter(self.outcomes.values())


def file_result(file: str, ranks: int, directory: Path, end: str) -> FileResult:
    """Join the records of all ranks. A rank without one has ended no case."""
    result = FileResult(file, ranks, end=end)
    records = [_record(directory / f"rank{rank}.jsonl") for rank in range(ranks)]
    cases = dict.fromkeys(case for planned, _ in records for case in planned)
    for case in cases:
        entries = [_entry(case, ended) for _, ended in records]
        worst = max(entries, key=lambda entry: OUTCOMES.index(entry[0]))
        result.outcomes[case], result.why[case] = worst
    if not cases:
        result.outcomes[file] = "not ended"
    return result


def _record(path: Path) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """The cases that a rank knows, and how those that it began have ended."""
    planned: list[str] = []
    ended: dict[str, tuple[str, str]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:  # the line in which it died
            continue
        if "cases" in entry:
            planned = entry["cases"]
            continue
        before = ended.pop(entry["case"], ("not ended", ""))
        outcome = "unsupported" if entry["refused"] else entry["outcome"]
        now = (outcome, entry["refused"] or without_paths(entry["text"]))
        # A case with parts ends once for each one that failed.
        is_worse = before[0] == "not ended" or OUTCOMES.index(outcome) > OUTCOMES.index(before[0])
        ended[entry["case"]] = now if is_worse else before
    return planned, ended


def _entry(case: str, ended: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """How a case ended on a rank: by itself, or with its class, or not at all."""
    fixtures = (f"setUpClass ({case.rpartition('.')[0]})", f"setUpModule ({case.split('.')[0]})")
    for name in (case, *fixtures):
        if name in ended:
            return ended[name]
    return ("not ended", "")


def without_paths(text: str) -> str:
    """Only the last part of each path of this machine."""
    return _PATH.sub("", text.replace("\n", " "))


# By MPI and number of ranks, then by file.
Results = dict[tuple[str, int], dict[str, FileResult]]


def document_of(
    source: str, mpis: Sequence[str], results: Results, programs: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """What is kept of the tests of `source` under some MPIs, and of each program under each."""
    return {
        "schema": 1,
        "environment": environment(),
        "source": source,
        "mpis": [_mpi(name, results) for name in mpis],
        "programs": {name: list(found) for name, found in programs.items()},
    }


def _mpi(name: str, results: Results) -> dict[str, Any]:
    mine = {ranks: found for (mpi, ranks), found in sorted(results.items()) if mpi == name}
    every = [one for found in mine.values() for one in found.values()]
    return {
        "name": name,
        "files": {
            ranks: {file: {"outcomes": one.counts(), "end": one.end} for file, one in of.items()}
            for ranks, of in mine.items()
        },
        "refused": _reasons(every, "unsupported"),
        "skipped": _reasons(every, "skipped"),
        "failed": list(_failures(every)),
    }


def _failures(results: Sequence[FileResult]) -> Iterator[dict[str, Any]]:
    """Each case that failed or did not end: on how many ranks, and why."""
    found: dict[tuple[str, str], list[int]] = {}
    for result in results:
        for case, outcome in result.outcomes.items():
            if outcome in ("failed", "not ended"):
                why = result.why.get(case) or result.end or outcome
                found.setdefault((case, why), []).append(result.ranks)
    for (case, why), ranks in found.items():
        yield {"case": case, "ranks": ranks, "why": why[:200]}


def _reasons(results: Sequence[FileResult], outcome: str) -> dict[str, int]:
    """Why cases ended so, each reason with its number of cases, the most frequent first."""
    found: dict[str, set[str]] = {}
    for result in results:
        for case, came_to in result.outcomes.items():
            if came_to == outcome:
                found.setdefault(result.why[case], set()).add(case)
    most = sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return {why: len(cases) for why, cases in most}
