"""A supervisor for tests to pause: its rank works until a file is there, its run has a deadline.

It prints that it runs, what it logs, and in the end what its result says of pauses.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.nics.rank import Rank
from shrimpmx.cluster.spec import ClusterSpec, RankSpec


def work(rank: Rank) -> None:
    """Say that the run goes on, and end when it may."""
    print("running", flush=True)
    while not Path(sys.argv[1]).exists():
        rank.host.sleep(1_000_000)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    ranks = (RankSpec(0, "function", function=work), RankSpec(1, "idle"))
    result = Forked().run(ClusterSpec(ranks=ranks, deadline_s=float(sys.argv[2])))
    print("pauses", result.pauses, result.paused_s)
