"""Writes the kept figures of small simulated runs anew; `git diff` then shows what changed.

    python tools/goldens.py              # all of them
    python tools/goldens.py stream-loss  # some, by their names

tests/unit/test_simulation_goldens.py asserts that runs give them. Say in the commit why they
changed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.goldens import GOLDENS, RECORDED, golden_text  # noqa: E402

from shrimpmx.native.files import write_whole  # noqa: E402
from shrimpmx.simulation.engine import Simulated  # noqa: E402


def main() -> int:
    """Write them; 0."""
    parser = argparse.ArgumentParser(prog="goldens.py", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(GOLDENS))
    names = parser.parse_args().names or list(GOLDENS)
    if unknown := [name for name in names if name not in GOLDENS]:
        parser.error(f"there is no {unknown[0]!r}; there are {', '.join(GOLDENS)}")
    for name in names:
        path = RECORDED / f"{name}.json"
        text = golden_text(Simulated().run(GOLDENS[name]()))
        changed = not path.exists() or path.read_text() != text
        write_whole(path, text)
        print(f"{name}: {'written' if changed else 'as it was'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
