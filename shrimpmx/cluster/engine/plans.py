"""The plan that a run's ranks read, from its spec and its placement."""

from __future__ import annotations

from pathlib import Path

from shrimpmx.cluster.nics.plan import RankPlan, RanksPlan
from shrimpmx.cluster.place.lines import lines_of
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.costs.table import COSTS
from shrimpmx.settings.user_code import OwnClass


def ranks_plan(
    spec: ClusterSpec, placement: Placement, directory: Path, position: str = ""
) -> RanksPlan:
    """What the ranks of `spec` are told, and onlookers: the run's `position` in a sweep."""
    lines = [lines_of(spec, placement, node) for node in range(spec.full_nodes)]
    return RanksPlan(
        ranks=tuple(rank_plans(spec, placement)),
        nodes=spec.nodes,
        cpus=tuple(
            tuple(placement.core_cpus[node, core] for core in range(spec.host.cores))
            for node in range(spec.full_nodes)
        ),
        nic=spec.nic,
        host=spec.host,
        mx=spec.mx,
        directory=str(directory),
        deadline_s=spec.deadline_s,
        seed=spec.seed,
        traced=spec.trace_entries > 0,
        captured=spec.capture is not None,
        position=position,
        link=spec.link,
        lends=placement.lends,
        generated=spec.mode == "generator",
        hardware_counters=spec.hardware_counters,
        survive=spec.survive,
        model={name: value for name, value in vars(spec.model).items() if name in COSTS},
        lines=lines if any(lines) else [],
        keeps_copies=spec.model.keeps_copies,
        compute=spec.compute,
        compute_factor=spec.compute_factor,
        own_waits={
            name: vars(own) for name, own in spec.waits.items() if isinstance(own, OwnClass)
        },
    )


def rank_plans(spec: ClusterSpec, placement: Placement) -> list[RankPlan]:
    """A plan for each rank."""
    plans = []
    for number, rank in enumerate(spec.ranks):
        name = f"rank{number}"
        agent, runner = placement.records[name]
        plans.append(
            RankPlan(
                number=number,
                name=name,
                runner=runner,
                agent=agent,
                node=rank.node,
                endpoint=spec.endpoints[number],
                core=rank.core,
                cpu=placement.processes[runner].cpu,
                home_cores=spec.home_cores(number),
                workload=rank.workload,
                wait=placement.processes[runner].wait,
                options=rank.options,
                niceness=rank.niceness,
            )
        )
    return plans


def program_processes(spec: ClusterSpec, placement: Placement) -> dict[int, str]:
    """The names of the processes that become programs, by their index."""
    return {
        index: plan.name
        for index, plan in enumerate(placement.processes)
        if plan.role == "rank" and spec.ranks[plan.agents[0].number].command
    }
