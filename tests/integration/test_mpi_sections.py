"""Metrics of an MPI program are of its work, or of what it marks of it by MPI_Pcontrol."""

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


# Burns 0.3 s before MPI_Init, and when its interpreter ends. It notes its figures behind the work,
# which ends first when the interpreter does.
AROUND = """
import atexit
import os
import time

def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass

place = __file__

def note():
    with open(f"{place}.{rank}", "w") as file:
        print(time.process_time() - before[0], before[1], time.monotonic(), file=file)

burn(0.3)
atexit.register(burn, 0.3)
atexit.register(note)
before = time.process_time(), time.monotonic()
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size
"""
PASS_ON = """
small = np.zeros(100, np.uint8)
for _ in range(9):
    world.Sendrecv_replace(small, right, source=left)
burn(0.05)
"""


def point_of(
    directory: Path,
    text: str,
    ranks: int = 2,
    wait: str = "block",
    head: str = MPI4PY + HEAD,
    simulated: bool = False,
    coalescing: str = "disabled",
) -> dict[str, Any]:
    """The result of a program, each of whose ranks is on a node of its own."""
    result = directory / "result.json"
    program = mpi_program(directory, text, head)
    words = (
        *(("--engine", "simulated", "--set", "platform=myri10g-2009") if simulated else ()),
        "-n",
        f"{ranks}",
        "--nodes",
        f"{ranks}",
        "--set",
        f"wait={wait}",
        "--set",
        f"coalescing={coalescing}",
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


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("end", ["", "MPI.Finalize()\nnote()\natexit.unregister(note)\nburn(0.3)"])
def test_what_comes_before_the_work_and_behind_it_counts_nowhere(tmp_path: Path, end: str) -> None:
    point = point_of(tmp_path, PASS_ON + end, head=AROUND)
    assert small_messages(point) == [9, 9]
    figures = [
        [float(word) for word in (tmp_path / f"program.py.{rank}").read_text().split()]
        for rank in range(2)
    ]
    for rank, (used_s, _, _) in enumerate(figures):
        # The rest of the import of mpi4py is in neither of these bounds.
        assert 0.05 <= point["usage"][f"rank{rank}"]["task_clock_ns"] * 1e-9 <= used_s
    # From no earlier than when the last rank came to MPI_Init.
    longest_s = max(ended for _, _, ended in figures) - max(came for _, came, _ in figures)
    assert 0.05 <= metric(point, "run_time") * 1e-6 <= longest_s
    assert 0 < metric(point, "run_handler_cpu_time") < 1e6 * longest_s
    assert 0 < metric(point, "work_share") < 100


def test_the_work_lasts_until_the_last_rank_is_done(tmp_path: Path) -> None:
    point = point_of(tmp_path, "if rank == 1:\n    time.sleep(0.4)\n    burn(0.1)")
    assert metric(point, "run_time") >= 0.5e6
    assert point["usage"]["rank1"]["task_clock_ns"] >= 0.1e9
    assert point["usage"]["rank0"]["task_clock_ns"] < 0.1e9


def test_on_simulated_hosts_the_work_is_what_the_program_times(tmp_path: Path) -> None:
    """The loop is all of it: from the last rank's begin to the last one's end, its own time and the
    run's differ by looks at a clock.
    """
    text = """
        begin = MPI.Wtime()
        pass_on(50)
        with open(f"{__file__}.{rank}", "w") as file:
            print(begin, MPI.Wtime(), file=file)
        """
    for coalescing in ("disabled", "timeout"):
        point = point_of(tmp_path, text, simulated=True, coalescing=coalescing)
        own = [(tmp_path / f"program.py.{rank}").read_text().split() for rank in range(2)]
        begin_s, end_s = (max(map(float, times)) for times in zip(*own, strict=True))
        assert metric(point, "run_time") == pytest.approx(1e6 * (end_s - begin_s), abs=1)
        assert small_messages(point) == [50, 50]
        handled = sum(
            counted["recv_packets"]
            for agent, counted in point["counters"].items()
            if ".irq" in agent
        )
        assert handled >= 100
        # Each packet is handled in a time that the host model has.
        assert metric(point, "run_handler_cpu_time") > 0.1 * handled


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


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_what_a_rank_does_in_finalize_counts_nowhere(
    first: int, simulated: bool, tmp_path: Path
) -> None:
    """One rank ends long before the others, which its barrier sends tiny messages to."""
    text = f"""
        world.Barrier()
        if rank != {first}:
            time.sleep(0.2)
        """
    point = point_of(tmp_path, text, ranks=3, simulated=simulated)
    sent = [point["counters"][f"rank{number}"]["send_tiny"] for number in range(3)]
    assert sent == [2, 2, 2]  # rounds of the barrier


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pass_on(5)", "the program's work, from the last return from MPI_Init to each rank's MP"),
        ("MPI.Pcontrol(1)\npass_on(5)\nMPI.Pcontrol(0)", "the sections marked by MPI_Pcontrol: "),
    ],
)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_the_report_tells_the_part_and_its_share_as_the_result_has_it(
    engine: str, text: str, told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = tmp_path / "result.json"
    own = ("--engine", engine, "--report", "--json", str(result))
    program = mpi_program(tmp_path, text, MPI4PY + HEAD)
    assert main(["mpirun", "-n", "2", *own, *program]) == 0
    [line] = [each for each in capfd.readouterr().err.splitlines() if "Figures cover" in each]
    assert line.startswith(f"Figures cover {told}")
    (point,) = json.loads(result.read_text())["points"]
    assert f": {metric(point, 'work_share'):.3g} % of a whole run." in line
