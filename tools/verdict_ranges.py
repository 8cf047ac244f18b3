"""Do verdicts on simulated hosts depend on seeds, or on values that no source settles?

    python tools/verdict_ranges.py coalescing --seeds 1-3
    python tools/verdict_ranges.py IC-2 IC-9 --vary idle=awake --vary interrupt_delivery_ns=3800

Reproduces claims once per seed, and once for each --vary with its settings (several are joined by
commas), by the first seed. Prints a table: a row for each claim, its result in each reproduction;
a last column says whether they agree. Exit code 1 if not all of them do.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import inputs

SHRIMPMX = Path(sys.executable).with_name("shrimpmx")
# Commas within a value are part of it.
BETWEEN = re.compile(r",(?=[a-z_]+=)")
Words = dict[str, str]


def reproduced(claims: Sequence[str], seed: int, settings: Sequence[str], place: Path) -> Words:
    """The result of each claim."""
    kept = place / "claims.json"
    command = [str(SHRIMPMX), "reproduce", *claims, "--engine", "simulated", "--seed", str(seed),
               "--output", str(place / "result"), "--json", str(kept)]  # fmt: skip
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip() or f"{' '.join(command)} failed")
    return {each["id"]: each["words"] for each in json.loads(kept.read_text())["claims"]}


def table(columns: dict[str, Words]) -> list[str]:
    """The results as a table in Markdown."""
    claims = list(dict.fromkeys(claim for words in columns.values() for claim in words))
    lines = [f"| claim | {' | '.join(columns)} | |", "| --- " * (len(columns) + 2) + "|"]
    for claim in claims:
        found = [words.get(claim, "") for words in columns.values()]
        same = "the same" if len(set(found)) == 1 else "depends"
        lines.append(f"| {claim} | {' | '.join(found)} | {same} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Reproduce, print the table; the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("claims", nargs="+", help="papers or claims, as of shrimpmx reproduce")
    parser.add_argument("--seeds", type=inputs.seeds, default="1", help="A-B or one (1)")
    parser.add_argument("--vary", action="append", default=[], metavar="KEY=VALUE[,...]")
    options = parser.parse_args(arguments)
    columns: dict[str, Words] = {}
    wanted = [(f"seed {seed}", seed, ()) for seed in options.seeds]
    wanted += [(words, options.seeds[0], tuple(BETWEEN.split(words))) for words in options.vary]
    for name, seed, settings in wanted:
        with tempfile.TemporaryDirectory() as place:
            columns[name] = reproduced(options.claims, seed, settings, Path(place))
    lines = table(columns)
    print("\n".join(lines))
    return int(any(line.endswith("| depends |") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
