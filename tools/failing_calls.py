"""Lets each system call of commands fail, one at a time, and shows what comes of it.

.venv/bin/python tools/failing_calls.py [--call fork] [--command mpirun] [--to 50]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.failing_calls import CALLS, COMMANDS, compiled, outcomes
from support.leaks import adopt_orphans


def main() -> int:
    """The number of outcomes that have a fault, 1 at most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--call", choices=CALLS, action="append", help="default: all")
    parser.add_argument("--command", choices=COMMANDS, action="append", help="default: all")
    parser.add_argument("--start", type=int, default=1, help="the first call that fails (1)")
    parser.add_argument("--to", type=int, default=10_000, help="the last one, if there are so many")
    options = parser.parse_args()
    adopt_orphans()
    faults = 0
    for name in options.command or COMMANDS:
        for call in options.call or CALLS:
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory)
                count = 0
                numbers = range(options.start, options.to + 1)
                for found in outcomes(compiled(path), path, name, call, numbers):
                    count += 1
                    if found.faults:
                        faults += 1
                        print(f"{name}, {found}", flush=True)
                print(f"{name}: {count} calls of {call}", flush=True)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
