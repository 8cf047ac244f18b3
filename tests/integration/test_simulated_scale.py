"""tools/simulated_scale.py: its patterns on a few nodes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "simulated_scale.py"
# Two packets connect a rank to each partner on another node. With them a pattern ends later, when
# some more acknowledgements may have been sent.
CONNECTS = {"ring": 2 * 4, "allreduce": 2 * 8 * 2, "alltoall": 2 * 8 * 6}


@pytest.mark.parametrize("pattern", CONNECTS)
def test_a_pattern_runs_with_and_without_packets_that_connect(pattern: str) -> None:
    known, connected = (packets(pattern, *options) for options in ([], ["--connect"]))
    assert connected - known >= CONNECTS[pattern]


def test_a_thousand_nodes_pass_a_message_round() -> None:
    nodes = 1024
    assert packets("ring", nodes=nodes, ranks=1) >= nodes


def packets(pattern: str, *options: str, nodes: int = 4, ranks: int = 2) -> int:
    """What the ranks send, of which nothing is lost."""
    of = ("--nodes", str(nodes), "--ranks", str(ranks))
    words = [sys.executable, TOOL, pattern, *of, *options]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    told = re.search(r"(\d+) packets, 0 lost", done.stdout)
    assert told, done.stdout
    return int(told[1])
