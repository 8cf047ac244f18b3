"""`shrimpmx mpirun --report`: what each rank did in its work, and each core, as results have it."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.engine.silence import repeated
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.results.words import part_words
from shrimpmx.show.costs import legend, paid_lines
from shrimpmx.show.terminal import console, print_whole

# What a rank sends, by class: the counters of those to ranks of its node, and to other nodes.
CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tiny": ("shared_tiny", ("send_tiny",)),
    "small": ("shared_small", ("send_small",)),
    "medium": ("shared_medium_frag", ("send_mediumsq_frag", "send_mediumva_frag")),
    "large": ("shared_rndv", ("send_rndv",)),
}
NOTE = (
    "messages to ranks of the same node + to others, medium ones by fragments; resent ones "
    "(`again`) count twice"
)


def print_report(spec: ClusterSpec, result: ClusterResult, runs: int = 1) -> None:
    """Two tables on standard error, of the last of so many runs."""
    terminal = console(stderr=True, soft_wrap=True)
    if runs > 1:
        terminal.print(f"the last of {runs} runs:")
    print_whole(terminal, rank_table(spec, result))
    terminal.print(NOTE)
    if result.is_mpi and result.whole_ns:
        worked_ns = max(result.elapsed_ns.values(), default=0)
        share_percent = 100 * worked_ns / result.whole_ns
        terminal.print(part_words(marked=result.marked, share_percent=share_percent))
    counted = [result.worked(name) for name in result.counters]
    terminal.print(repeated(counted) or "nothing was sent again")
    if spec.kind.interrupts:
        print_whole(terminal, core_table(spec, result))


def print_costs(result: ClusterResult, dilation: float) -> None:
    """What was paid, on standard error."""
    terminal = console(stderr=True, soft_wrap=True)
    lines = [*paid_lines(result.paid(), dilation), *legend([result.paid()])]
    for line in lines or ["no cost was charged: set platform=NAME, or a cost"]:
        terminal.print(line, markup=False, highlight=False)


def rank_table(spec: ClusterSpec, result: ClusterResult) -> Table:
    """What each rank sent, how long it waited, and its CPU time."""
    table = _table("rank", "node", "core", *CLASSES, "self", "again", "waited, s", "CPU, s")
    for number, rank in enumerate(spec.ranks):
        name = f"rank{number}"
        counted = result.worked(name)
        table.add_row(
            *(str(number), str(rank.node), str(rank.core) if rank.bound else "any"),
            *(_near_and_far(counted, *names) for names in CLASSES.values()),
            str(counted.get("sent_self", 0)),
            str(counted.get("resent_messages", 0)),
            _seconds(result.accounts.get(name, {}), "waited_ns"),
            _seconds(result.usage.get(name, {}), "task_clock_ns"),
        )
    return table


def core_table(spec: ClusterSpec, result: ClusterResult) -> Table:
    """The interrupts of each core, the packets of their handler, and its CPU time."""
    table = _table("node", "core", "ranks", "interrupts", "packets", "CPU of the handler, s")
    for node in range(spec.full_nodes):
        for core in range(spec.host.cores):
            name = f"node{node}.irq{core}"
            counted = result.worked(name)
            homes = [
                str(number)
                for number, rank in enumerate(spec.ranks)
                if rank.bound and (rank.node, rank.core) == (node, core)
            ]
            table.add_row(
                *(str(node), str(core), " ".join(homes)),
                *(str(counted.get(counter, 0)) for counter in ("interrupts", "recv_packets")),
                _seconds(result.usage.get(name, {}), "task_clock_ns"),
            )
    return table


def _near_and_far(counted: Mapping[str, int], near: str, far: tuple[str, ...]) -> str:
    return f"{counted.get(near, 0)} + {sum(counted.get(name, 0) for name in far)}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _seconds(figures: Mapping[str, int], name: str) -> str:
    return f"{figures[name] / 1e9:.3f}" if name in figures else "-"
