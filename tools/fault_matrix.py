"""Every packet type lost, doubled, reordered and corrupted: does every message arrive once?

    python tools/fault_matrix.py
    python tools/fault_matrix.py --quick --seed 7
    python tools/fault_matrix.py --json > matrix.json

Two nodes with the real firmware, links, handlers and library run under a virtual clock and
send each other messages of all size classes, while one fault hits one packet type. The library
alone repairs it. Prints a table per fault and ends with exit code 1 if any message was lost,
doubled, damaged or matched out of order. The same seed gives the same table.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.fault_matrix import FAULTS, RATES, TYPES, Cell, Matrix  # noqa: E402

MESSAGES = 100  # each way, in each cell
QUICK_MESSAGES = 20
WANTED_FAULTS = 3  # a cell goes on until the fault has happened so often, within limits
CELL_WIDTH = 27


def table(fault: str, cells: Sequence[Cell], rates: Sequence[float]) -> str:
    """The cells of one fault as text: a row for each type, a column for each rate."""
    by_place = {(cell.ptype, cell.rate): cell for cell in cells if cell.fault == fault}
    lines = [f"{fault}: messages sent / received / resent (frames hit)"]
    lines.append("  " + " " * 14 + "".join(f"{rate:>{CELL_WIDTH}.0%}" for rate in rates))
    for ptype in dict.fromkeys(cell.ptype for cell in cells):
        row = "".join(f"{text(by_place[ptype, rate]):>{CELL_WIDTH}}" for rate in rates)
        lines.append(f"  {ptype:14}{row}")
    return "\n".join(lines) + "\n"


def text(cell: Cell) -> str:
    """One cell, with an exclamation mark if a message fared badly."""
    figures = f"{cell.sent} / {cell.received} / {cell.resent} ({cell.faults})"
    return f"! {figures}" if cell.bad else figures


def summary(cells: Sequence[Cell], seconds: float) -> str:
    """The verdict in a line, and a line for each cell that is not well."""
    lines = [
        f"{cell.ptype} {cell.fault} at {cell.rate:.0%}: {cell.lost} lost, {cell.doubled} doubled, "
        f"{cell.damaged} damaged, {cell.disordered} out of order"
        + "".join(f"; {end}" for end in cell.wrong_ends[:3])
        for cell in cells
        if cell.bad
    ]
    sums = {
        name: sum(getattr(cell, name) for cell in cells)
        for name in ("sent", "received", "faults", "lost", "doubled", "damaged", "disordered")
    }
    ends = sum(len(cell.wrong_ends) for cell in cells)
    lines.append(
        f"{len(cells)} cells, {sums['faults']} frames hit: {sums['sent']} messages sent, "
        f"{sums['received']} received; {sums['lost']} lost, {sums['doubled']} doubled, "
        f"{sums['damaged']} damaged, {sums['disordered']} out of order, {ends} ended wrongly "
        f"({seconds:.0f} s)"
    )
    return "\n".join(lines)


def main() -> int:
    """Print the matrix; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of all draws (1)")
    parser.add_argument("--quick", action="store_true", help="only 30 %%, and fewer messages")
    parser.add_argument("--json", action="store_true", help="print the cells as JSON")
    options = parser.parse_args()
    rates = RATES[-1:] if options.quick else RATES
    messages = QUICK_MESSAGES if options.quick else MESSAGES
    matrix = Matrix(options.seed, messages, 1 if options.quick else WANTED_FAULTS)
    begin = time.monotonic()
    cells: list[Cell] = []
    for fault in FAULTS:
        cells += [matrix.cell(ptype, fault, rate) for ptype in TYPES for rate in rates]
        if not options.json:
            print(table(fault, cells, rates), flush=True)
    if options.json:
        print(json.dumps([dataclasses.asdict(cell) for cell in cells], indent=1))
    else:
        print(summary(cells, time.monotonic() - begin))
    return 1 if any(cell.bad for cell in cells) else 0


if __name__ == "__main__":
    raise SystemExit(main())
