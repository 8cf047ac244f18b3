"""`shrimpmx place`: where a scenario's processes run, here or on another machine; runs none."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from shrimpmx.cli.options import SCENARIO_WORDS, add_engine_option, add_words, take_scenario
from shrimpmx.cluster.place.topology import MACHINES, Distance, Topology, topology_of
from shrimpmx.errors import InputError, PlacementError
from shrimpmx.experiment.engines import ENGINES, chosen_engine
from shrimpmx.experiment.execute import (
    ANY_COSTS,
    ClusterExecutor,
    check_possible,
    checked_points,
    executor_for,
)
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.point import Point
from shrimpmx.native.streams import put
from shrimpmx.papers.registry import check_claims
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.settings.core_lists import format_core_list


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "place",
        description="Print the distances between CPUs, and the CPU of each agent of a scenario.",
    )
    add_words(parser, *SCENARIO_WORDS)
    parser.add_argument(
        "--machine",
        metavar="NAME|SYNTHETIC",
        help=f"another machine: {', '.join(MACHINES)}, or hwloc's synthetic form, such as "
        '"package:2 l2:2 core:2 pu:1"',
    )
    add_engine_option(parser)
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write everything there")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print the distances and the maps; returns 0, also where one of the points has none.

    Raises InputError, and PlacementError where none of them has one.
    """
    name = take_scenario(options)
    if options.machine is not None and options.engine != ENGINES[0]:
        raise InputError("--machine places real processes: leave --engine out")
    topology = topology_of(options.machine) if options.machine is not None else None
    engine = chosen_engine(options.engine)
    scenario = load_scenario(find_scenario(name)).on(real=engine.is_real).changed(options.settings)
    points = checked_points(scenario)
    check_claims(points)
    executor = executor_for(scenario, ANY_COSTS, engine)
    shown = topology or Topology.of_this_machine()
    if not engine.is_real:
        shown = executor.placement_of(points[0]).topology
    maps = executor.placement_maps(points, topology)
    document = _document(executor, points, topology, shown)
    if options.json:
        write_json(options.json, document)
    print(f"distances between {shown.describe()}")
    print(distance_table(shown))
    for lines in maps:
        put(f"\n{lines}")
    check_possible(document)
    return 0


def far_from(topology: Topology, number: int) -> dict[str, list[int]]:
    """The CPUs at each distance from CPU `number`, by the distance's name."""
    found: dict[str, list[int]] = {distance.value: [] for distance in Distance}
    for other in topology.numbers:
        found[topology.distance(number, other).value].append(other)
    return found


def distance_table(topology: Topology) -> str:
    """For each CPU those at each distance from it, a line each."""
    names = [distance.value for distance in Distance if distance is not Distance.SAME_CORE]
    rows = [["SC", *names]]
    for number in topology.numbers:
        found = far_from(topology, number)
        rows.append([str(number), *(format_core_list(found[name]) or "-" for name in names)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _document(
    executor: ClusterExecutor,
    points: Sequence[Point],
    topology: Topology | None,
    shown: Topology,
) -> dict[str, Any]:
    placed = []
    for point in points:
        found: dict[str, Any]
        try:
            found = {"placement": executor.placement_of(point, topology).as_dict()}
        except PlacementError as error:
            found = {"impossible": str(error)}
        placed.append({"params": point.shown, **found})
    return {
        "topology": shown.describe(),
        "distances": {str(number): far_from(shown, number) for number in shown.numbers},
        "points": placed,
    }
