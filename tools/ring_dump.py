"""Look into the rings of a running cluster: how many frames wait where, and which.

    python tools/ring_dump.py            # every live run of this machine
    python tools/ring_dump.py --frames   # with the frames, one line each

Also the pulls that each endpoint has under way. Reads only. A ring that is in use moves on
meanwhile, so a frame may be shown half new.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shrimpmx.errors import ShrimpmxError
from shrimpmx.host.pull import active
from shrimpmx.native.segment import SEGMENT_CONTROL, SEGMENT_NODE, Segment, list_segments
from shrimpmx.shared.control import Control
from shrimpmx.shared.node import Node, peek_frames

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.packets import one_line


def attach_runs() -> dict[str, list[Node]]:
    """The nodes of every live run, by run id."""
    live = [(name, owner, what) for name, owner, what in list_segments() if owner.is_alive()]
    runs: dict[str, list[Node]] = {}
    for name, owner, what in live:
        if what == "control":
            control = Control.attach(Segment.attach(name, SEGMENT_CONTROL))
            runs[owner.run_id] = [
                Node.attach(Segment.attach(other, SEGMENT_NODE), control)
                for other, its_owner, its_what in live
                if its_owner == owner and its_what.startswith("node")
            ]
    return runs


def dump(node: Node, with_frames: bool) -> list[str]:
    """One line for each ring and endpoint of `node`, and with frames one for each frame."""
    lines = []
    for (which, index), depth in node.ring_depths().items():
        lines.append(f"  node {node.index} {which}[{index}]: {depth}")
        if with_frames:
            lines += [f"    {one_line(frame)}" for _, frame in peek_frames(node, which, index)]
    for endpoint in range(node.endpoints_count):
        lines.append(f"  node {node.index} pulls[{endpoint}]: {active(node, endpoint)}")
    return lines


def main() -> int:
    """Print the rings of every live run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", action="store_true", help="show each frame")
    options = parser.parse_args()
    try:
        runs = attach_runs()
        for run_id, nodes in sorted(runs.items()):
            print(f"run {run_id}")
            for node in sorted(nodes, key=lambda one: one.index):
                print("\n".join(dump(node, options.frames)))
    except ShrimpmxError as error:
        print(f"ring_dump: {error}")
        return error.exit_code
    if not runs:
        print("no run is live on this machine")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
