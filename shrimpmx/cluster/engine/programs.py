"""One's own socket programs on emulated nodes; docs/sockets.md has an example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.nics.vmmc import VmmcRank
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AgentError
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.sockets.network import Network

# Gets the sockets of its process; what it returns, arrays by name, becomes its samples, or None.
Program = Callable[[Network], Any]


def with_network(program: Program) -> Callable[[VmmcRank], Any]:
    """A function for a rank that runs `program` with sockets of its own."""

    def function(rank: VmmcRank) -> Any:
        with Network(rank.process) as network:
            return program(network)

    return function


def run_programs(
    *programs: Program,
    wait: str = "spin-block",
    spin_ns: int = 300_000,
    deadline_s: float = 30.0,
    engine: Engine | None = None,
) -> ClusterResult:
    """Run each program in a process of its own, the first on node 0, the next on node 1, and so on.

    `wait` is how they wait (docs/waiting.md), `engine` runs them, real processes if it is None.
    Returns when all have returned. Raises AgentError if one of them raises, with its traceback as a
    note, dies, or has not returned after `deadline_s` seconds.
    """
    spec = ClusterSpec(
        ranks=tuple(
            RankSpec(number % 2, "function", function=with_network(program))
            for number, program in enumerate(programs)
        ),
        nic=NicParameters(nic_kind="vmmc"),
        wait=WaitParameters(strategy=wait, spin_ns=spin_ns),
        deadline_s=deadline_s,
    )
    try:
        return (engine or Forked()).run(spec)
    except AgentError as error:
        if error.traceback:
            error.add_note(error.traceback)
        raise
