"""The NAS Parallel Benchmarks, class S: verified over the emulated Ethernet, and what they refuse.

All of them run one after the other in one start of the ranks. A benchmark of the table is covered
where it takes that number of ranks.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program
from support.tree import ROOT

from shrimpmx.cli import main

pytest.importorskip("mpi4py")

KERNELS = """
from shrimpmx.applications.nas import __main__ as nas

def codes(names):
    return {name: nas.main([name, "S"]) for name in names}

def runs_here(name):
    kernel = nas.kernel_named(name)
    return kernel.takes_ranks(size, kernel.problems["S"])

runnable = [name for name in nas.KERNELS if runs_here(name)]
"""
VERIFIED = """
assert size > 1 or runnable == list(nas.KERNELS)
assert set(codes(runnable).values()) == {0}
"""
# Another generator of random numbers, and a flow that differs by a millionth: the problems are not
# the official ones.
CORRUPTED = """
from shrimpmx.applications.nas import exact_solution, random_numbers

exact_solution.COEFFICIENTS *= 1 + 1e-6
for function in (random_numbers.seed_after, random_numbers.states, random_numbers.uniform):
    function.__defaults__ = (*function.__defaults__[:-1], 5**11)
assert runnable == list(nas.KERNELS)
assert set(codes(runnable).values()) == {1}
"""
LITTLE_MEMORY = """
nas.free_memory_bytes = lambda: 1000
assert set(codes(runnable).values()) == {2}
"""
# Each point has its number in the whole grid, so that each ghost shows where it comes from.
GHOSTS = """
from shrimpmx.applications.nas.ghost_exchange import GhostExchange
from shrimpmx.applications.nas.grid_levels import grid_level

for points in (2, 8):
    level = grid_level(rank, size, points)
    whole = np.pad(np.arange(float(points**3)).reshape(3 * [points]), 1, mode="wrap")
    here = tuple(slice(axis.first, axis.first + axis.points + 2) for axis in level.axes)
    grid = np.zeros(level.shape)
    grid[1:-1, 1:-1, 1:-1] = whole[here][1:-1, 1:-1, 1:-1]
    GhostExchange(level, world).fill(grid)
    assert (grid == whole[here]).all()
"""
# The same between the cells of BT and SP, but at the edges of the grid.
FACES = """
from shrimpmx.applications.nas.adi.faces import exchange_faces
from shrimpmx.applications.nas.adi.multipartition import Multipartition
from shrimpmx.applications.nas.flow.cell import AXES, GHOSTS

points = 12
whole = np.pad(np.arange(float(points**3)).reshape(3 * [points]), GHOSTS, constant_values=-1)
partition = Multipartition(points, size, rank)
heres = [
    tuple(slice(low, low + n + 2 * GHOSTS) for low, n in zip(cell.low, cell.size))
    for cell in partition.cells
]
fields = [np.full(whole[here].shape, -1.0) for here in heres]
for cell, field, here in zip(partition.cells, fields, heres):
    field[cell.owned] = whole[here][cell.owned]
exchange_faces(world, partition, fields)
for cell, field, here in zip(partition.cells, fields, heres):
    for axis in AXES:
        line = list(cell.owned)
        line[axis] = slice(None)
        assert (field[tuple(line)] == whole[here][tuple(line)]).all()
"""
# As on many ranks: along one axis there are more than a coarse grid has points.
RANKS_LEFT_OUT = """
from shrimpmx.applications.nas import grid_levels

grid_levels.process_grid = lambda ranks: (ranks, 1, 1)
assert codes(["MG"]) == {"MG": 0}
"""
LOSSY = ("loss=0.02", "resend_delay_ns=5000000", "pull_resend_delay_ns=5000000")


def run(directory: Path, text: str, ranks: int, *settings: str) -> int:
    words = [word for setting in settings for word in ("--set", setting)]
    program = mpi_program(directory, KERNELS + text, MPI4PY)
    return main(["mpirun", "-n", str(ranks), *words, *program])


@pytest.mark.nightly("each number of ranks", but=1)
@pytest.mark.timeout(180)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_each_is_verified(ranks: int, tmp_path: Path) -> None:
    assert run(tmp_path, VERIFIED, ranks) == 0


def test_parts_of_a_transform_a_product_and_a_sweep_make_the_whole(tmp_path: Path) -> None:
    assert run(tmp_path, 'assert set(codes(["FT", "CG", "LU"]).values()) == {0}', 2) == 0


@pytest.mark.nightly("packets lost at length")
@pytest.mark.timeout(180)
def test_each_is_verified_although_packets_are_lost(tmp_path: Path) -> None:
    assert run(tmp_path, VERIFIED, 4, *LOSSY) == 0


@pytest.mark.nightly("four times the ranks of another test")
@pytest.mark.timeout(180)
def test_sixteen_ranks_are_verified_although_packets_are_lost(tmp_path: Path) -> None:
    assert run(tmp_path, 'assert codes(["IS"]) == {"IS": 0}', 16, *LOSSY) == 0


@pytest.mark.parametrize("ranks", [1, 4])
def test_ghosts_are_the_points_of_neighbours(ranks: int, tmp_path: Path) -> None:
    assert run(tmp_path, GHOSTS + FACES, ranks) == 0


def test_a_coarse_grid_may_leave_ranks_out(tmp_path: Path) -> None:
    assert run(tmp_path, RANKS_LEFT_OUT, 4) == 0


@pytest.mark.nightly("each benchmark")
@pytest.mark.timeout(180)
def test_a_wrong_result_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, CORRUPTED, 4) == 0
    said = capfd.readouterr().out
    assert said.count("FAILED") == 8
    assert "WRONG" in said
    assert "successful" not in said


def test_a_sort_may_be_shorter(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-m", "shrimpmx.applications.nas", "IS", "S", "--iterations", "3"]
    assert main(["mpirun", "-n", "2", sys.executable, *words]) == 0
    said = capfd.readouterr().out
    assert "2048, 3 iterations" in said
    assert "right ranks of test keys: 15, official 15: holds" in said


def test_too_little_memory_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, LITTLE_MEMORY, 2) == 0
    said = capfd.readouterr()
    assert said.out == ""
    assert "nas: IS needs about 0.0 GB" in said.err


@pytest.mark.nightly("each mistake", but=2)
@pytest.mark.parametrize(
    ("ranks", "words", "said"),
    [
        (3, "is s", ("IS", "power of two", "not 3", "take 2 or 4")),
        (5, "bt s", ("BT", "square", "not 5", "take 4 or 9")),
        (2, "XY S", ("argument KERNEL", "XY", "BT", "IS")),
        (2, "IS D", ("argument CLASS", "'D'", "'S', 'W', 'A', 'B'")),
        (2, "CG S --iterations 3", ("CG cannot have 3 iterations", "IS", "1 to 10")),
        (2, "IS S --iterations 11", ("IS cannot have 11 iterations", "1 to 10")),
    ],
)
def test_a_mistake_is_refused_in_one_sentence(
    ranks: int, words: str, said: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    command = (sys.executable, "-m", "shrimpmx.applications.nas", *words.split())
    assert main(["mpirun", "-n", str(ranks), *command]) == 2
    printed = capfd.readouterr()
    [sentence] = [line for line in printed.err.splitlines() if "nas" in line]
    assert printed.out == ""
    assert sentence.startswith("nas: ")
    assert [word for word in said if word not in sentence] == []


PLAIN = [sys.executable, "tools/nas_plain.py", "--turns", "1", "--steps", "1"]


def test_the_plain_forms_come_to_the_same_results() -> None:
    words = [*PLAIN, "BT", "CG", "FT", "IS", "LU", "MG", "SP"]
    assert subprocess.run(words, cwd=ROOT, check=False).returncode == 0


def test_a_wrong_plain_form_is_named(tmp_path: Path) -> None:
    corrupted = tmp_path / "corrupted.py"
    corrupted.write_text(
        "import sys\n"
        f"sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tools')!r}]\n"
        "import nas_plain, nas_plain_flow, nas_plain_kernels\n"
        "nas_plain_flow.DISSIPATION *= 1.01\n"
        "nas_plain_kernels.LAPLACIAN = (-2.6, 0, 0.16, 0.08)\n"
        f"sys.exit(nas_plain.main({PLAIN[2:]!r} + sys.argv[1:]))\n"
    )
    for name in ("LU", "MG"):
        words = [sys.executable, str(corrupted), name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert f"nas_plain.py: {name} S: " in done.stderr
