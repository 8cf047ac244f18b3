"""The ranks of a run and their company, as a point describes them."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shrimpmx.cluster.launch import ELF, Launch
from shrimpmx.cluster.spec import CompanionSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.experiment.platform import Costs, Emulated
from shrimpmx.experiment.point import PointParameters
from shrimpmx.native.inputs import check_beside, is_users_word, read_given
from shrimpmx.native.trust import ForeignError
from shrimpmx.settings.cluster import ClusterParameters
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.workload import WorkloadParameters

# Of a calibration: what a wait that blocks costs all in all, and the interrupt in it.
# The highest priority beside real-time ones.
RAISED = -20
T_BLOCK, INTERRUPT = "t_block", "interrupt_to_handler"


def ranks_of(parameters: PointParameters, wait: WaitParameters) -> tuple[RankSpec, ...]:
    """The ranks of a point: one on each node, or on each of two `pairs` of them, 2p on node 0 and
    2p + 1 on node 1; or the one that a generator sends to. `wait` is how the run's ranks wait.
    """
    cluster, work = parameters.cluster, parameters.workload
    command = _command(work)
    if work.kind == "mpi":
        return tuple(_mpi_ranks(parameters, command))
    return tuple(
        RankSpec(
            number % cluster.nodes,
            "invalid" if work.frames == "invalid" else work.kind,
            (cluster.rank_core + number // cluster.nodes) % parameters.host.cores,
            work.options,
            _own_wait(work, number, wait),
            command=command,
            niceness=_niceness(cluster),
        )
        for number in range(1 if cluster.mode == "generator" else cluster.nodes * cluster.pairs)
    )


def ranks_of_node(parameters: PointParameters) -> int:
    """How many ranks of a user's program the fullest node has. Its file is not read."""
    cluster, work = parameters.cluster, parameters.workload
    if work.kind == "mpi":
        ranks = _mpi_ranks(parameters, ())
        return max(Counter(rank.node for rank in ranks if not rank.spare).values())
    return 1 if cluster.mode == "generator" else cluster.pairs


def _mpi_ranks(parameters: PointParameters, command: tuple[str, ...]) -> Iterator[RankSpec]:
    """The ranks of an MPI program, by `map_by`, and spare ones on the nodes in turn; on each
    node they go round the cores."""
    cluster, cores = parameters.cluster, parameters.host.cores
    most = -(-cluster.ranks // cluster.nodes)
    if cluster.map_by == "core":
        most = max(most, cores)
    taken: Counter[int] = Counter()
    for number in range(max(cluster.ranks, cluster.slots)):
        spare = number >= cluster.ranks
        if spare or cluster.map_by == "node":
            node = number % cluster.nodes
        else:
            node = _block_of(number, cluster) if cluster.map_by == "slot" else number // most
        core = taken[node] % cores
        taken[node] += 1
        yield RankSpec(
            node,
            "program",
            core,
            parameters.workload.options,
            command=command,
            launch=Launch(),
            bound=cluster.bind_to == "core",
            niceness=_niceness(cluster),
            spare=spare,
        )


def _block_of(number: int, cluster: ClusterParameters) -> int:
    """The node of a rank where blocks differ by one rank at most, the larger ones first."""
    size, larger = divmod(cluster.ranks, cluster.nodes)
    if number < larger * (size + 1):
        return number // (size + 1)
    return larger + (number - larger * (size + 1)) // size


def _command(work: WorkloadParameters) -> tuple[str, ...]:
    """The command that ranks become, if they run a program."""
    if work.kind == "mpi":
        return work.command
    if work.kind != "program":
        return ()
    if _declares_scenario(_source(work.program)):
        quoted = shlex.quote(work.program)
        raise InputError(f"{work.program} is a scenario, not a program: shrimpmx run {quoted}")
    return (sys.executable, str(Path(work.program).resolve()), *work.words)


def _own_wait(work: WorkloadParameters, number: int, wait: WaitParameters) -> WaitParameters | None:
    """A sender of arrivals spins, whatever the waiter does: it has to send in time."""
    if work.kind != "arrivals" or number % 2:
        return None
    return wait.model_copy(update={"strategy": "spin"})


def _niceness(cluster: ClusterParameters) -> int:
    return RAISED if cluster.company == "raised" else 0


def companions_of(parameters: PointParameters) -> tuple[CompanionSpec, ...]:
    """What burns CPU beside the ranks: one on each core of each node that has ranks."""
    cluster = parameters.cluster
    if cluster.company == "alone":
        return ()
    nodes = 1 if cluster.mode == "generator" else cluster.nodes
    return tuple(
        CompanionSpec(node, core, "nice" if cluster.company == "nice" else "hog")
        for node in range(nodes)
        for core in range(parameters.host.cores)
    )


def needs_t_block(parameters: PointParameters) -> bool:
    """Whether a run depends on what blocking costs: its spin limit, or its cost at best."""
    return parameters.wait.spin_t_block > 0 or parameters.workload.kind == "arrivals"


def t_block_ns(made: Emulated, costs: Costs | None) -> float | None:
    """What blocking costs all in all in a run: this machine's T_block, as in its calibration, and
    what the run's host is charged beside it. None if `costs` do not have it.
    """
    known: Costs = costs or {}
    ours = known.get(T_BLOCK, {})
    if "median" not in ours:
        return None
    own_interrupt_ns = float(known.get(INTERRUPT, {}).get("median", 0.0))
    longer_ns = max(0.0, made.host.interrupt_time_ns - own_interrupt_ns)
    return float(ours["median"]) + 2 * made.wait.reschedule_cost_ns + longer_ns


def resolved_wait(made: Emulated, costs: Costs | None) -> WaitParameters:
    """How a run's ranks wait, with spin_ns from spin_t_block, if that is given.

    `costs` are a calibration's. InputError if T_block is needed and not known.
    """
    wait = made.wait
    if wait.spin_t_block == 0:
        return wait
    block_ns = t_block_ns(made, costs)
    if block_ns is None:
        absent: Mapping[str, Any] = (costs or {}).get(T_BLOCK, {})
        reason = absent.get("unavailable", "no calibration has it")
        raise InputError(
            f"spin_t_block needs T_block of this machine, which is not known: {reason}; give the "
            "spin limit in ns with --set spin_ns=300000 --set spin_t_block=0"
        )
    return wait.model_copy(update={"spin_ns": round(wait.spin_t_block * block_ns)})


def _source(given: str) -> bytes:
    """The Python file that ranks are to execute. InputError if it cannot be read, or another user
    could have written it or one of its modules, unless its path begins with / or ., the user's
    word; in any case if others may add modules beside it.
    """
    from shrimpmx.experiment.own_code import modules_beside, not_executed  # of no MPI program

    path = Path(given)
    try:
        source = read_given(given)
        check_beside(path)
        modules_beside(path, source, is_word=is_users_word(given))
    except ForeignError as error:
        raise not_executed("program", path, error) from error
    except OSError as error:
        raise InputError(
            f"there is no file {given!r} that can be read: set program to a Python file"
        ) from error
    if source.startswith(ELF):
        raise InputError(f"{given!r} is an executable, not a Python file: set workload=mpi, too")
    return source


def _declares_scenario(source: bytes) -> bool:
    """Whether Python code, which is not run, makes a `scenario` of shrimpmx.experiment."""
    made = re.search(rb"^scenario\s*[:=]", source, re.MULTILINE)
    return made is not None and b"shrimpmx.experiment" in source
