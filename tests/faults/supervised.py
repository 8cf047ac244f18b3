"""A supervisor for tests to kill or interrupt: says when its cluster runs, then runs for ever."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.clusters import ENDLESS, pingpong_pair

from shrimpmx.cluster.engine.ending import FirstInterrupt
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.mx_workloads import WORKLOADS
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.errors import ShrimpmxError
from shrimpmx.settings.host import WaitParameters


def announced(context: MxRank) -> RankSamples:
    """A ping-pong that says on standard output when it begins."""
    if context.number == 0:
        print("running", flush=True)
    return pingpong(context)


pingpong = WORKLOADS["pingpong"]

if __name__ == "__main__":
    WORKLOADS["pingpong"] = announced
    strategy = sys.argv[1]
    # "listening": it heeds SIGTERM and SIGHUP as well, as the command line does.
    also = (signal.SIGTERM, signal.SIGHUP) if "listening" in sys.argv else ()
    with FirstInterrupt(also, keep=True):
        try:
            Forked().run(pingpong_pair(ENDLESS, wait=WaitParameters(strategy=strategy)))
        except ShrimpmxError as error:
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
