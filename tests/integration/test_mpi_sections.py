"""MPI_Pcontrol marks what counts of an MPI program: metrics of its run are those of that part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import resends
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

pytest.importorskip("mpi4py")

HEAD = """
import time

small = np.zeros(100, np.uint8)

def pass_on(turns):
    for _ in range(turns):
        world.Sendrecv_replace(small, right, source=left)

def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
"""


def point_of(directory: Path, text: str, ranks: int = 2, wait: str = "block") -> dict[str, Any]:
    """The result of a program, each of whose ranks is on a node of its own."""
    result = directory / "result.json"
    program = mpi_program(directory, text, MPI4PY + HEAD)
    words = (
        "-n",
        f"{ranks}",
        "--nodes",
        f"{ranks}",
        "--set",
        f"wait={wait}",
        "--set",
        "coalescing=disabled",
        *(word for setting in resends.SETTINGS for word in ("--set", setting)),
    )
    assert main(["mpirun", *words, "--json", str(result), *program]) == 0
    (point,) = json.loads(result.read_text())["points"]
    return dict(point)


def small_messages(point: dict[str, Any]) -> list[int]:
    """How many each rank has sent; no barrier sends such."""
    counters = point["counters"]
    return [counters[agent]["send_small"] for agent in counters if agent.startswith("rank")]


def metric(point: dict[str, Any], name: str) -> float:
    [sample] = point["metrics"][name]["samples"]
    return float(sample)


def test_only_what_is_marked_counts(tmp_path: Path) -> None:
    point = point_of(
        tmp_path,
        """
        began, burnt = time.monotonic(), time.process_time()
        burn(0.1)
        pass_on(20)
        world.Barrier()
        outside = time.process_time() - burnt
        for _ in range(2):
            MPI.Pcontrol(1)
            MPI.Pcontrol(1)          # it has begun
            pass_on(3)
            world.Barrier()
            MPI.Pcontrol(0)
            MPI.Pcontrol(0)          # it is over
            world.Barrier()
            pass_on(5)
            world.Barrier()
        if rank == 0:
            with open(__file__ + ".figures", "w") as file:
                print(time.process_time() - burnt - outside, time.monotonic() - began, file=file)
        """,
    )
    assert small_messages(point) == [6, 6]
    # Each was one packet with an interrupt of its own, at most; beside it are those of barriers.
    packets = sum(
        counted["rx_packets"]
        for agent, counted in point["counters"].items()
        if agent.endswith(".nic")
    )
    assert 12 <= packets < 60
    # An interrupt for packets of before a section may be raised in it.
    assert metric(point, "run_interrupts") <= packets + 2
    inside_s, whole_s = map(float, (tmp_path / "program.py.figures").read_text().split())
    assert 0 < metric(point, "run_time") <= whole_s * 1e6
    usage = point["usage"]["rank0"]
    assert usage["task_clock_ns"] == usage["user_ns"] + usage["system_ns"]
    # getrusage counts in microseconds, each end of each section.
    assert usage["task_clock_ns"] <= inside_s * 1e9 + 10_000
    assert "elapsed_ns" not in usage


def test_ranks_that_begin_and_end_at_once_lose_nothing(tmp_path: Path) -> None:
    point = point_of(
        tmp_path,
        """
        for _ in range(50):
            world.Barrier()
            MPI.Pcontrol(1)
            pass_on(5)
            MPI.Pcontrol(0)
            world.Barrier()
        """,
        ranks=8,
        wait="sched",
    )
    assert small_messages(point) == [250] * 8


def test_a_section_ends_with_the_program(tmp_path: Path) -> None:
    point = point_of(
        tmp_path,
        """
        pass_on(9)
        world.Barrier()
        if rank == 0:
            MPI.Pcontrol(2)
        world.Barrier()
        pass_on(4)
        """,
    )
    assert small_messages(point) == [4, 4]
    used = point["usage"]
    # The section of the run is that of rank 0; rank 1 has none, and none of its time counts.
    assert used["rank0"]["task_clock_ns"] > 0
    assert used["rank1"]["task_clock_ns"] == 0
    assert metric(point, "run_cpu_time") == used["rank0"]["task_clock_ns"] / 1000


def test_without_a_beginning_all_counts(tmp_path: Path) -> None:
    point = point_of(tmp_path, "MPI.Pcontrol(0)\npass_on(9)\nMPI.Pcontrol(0)")
    assert small_messages(point) == [9, 9]
    assert point["usage"]["rank1"]["task_clock_ns"] > 0
