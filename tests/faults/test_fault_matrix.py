"""The fault matrix in short: every packet type under every fault, at 30 %."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.fault_matrix import FAULTS, TYPES, Cell, Direction, Matrix
from support.tree import ROOT
from support.virtual_cluster import VirtualCluster


@pytest.mark.nightly("each fault of each packet", but=22)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("ptype", TYPES)
def test_every_message_arrives_once_intact_and_in_order(ptype: str, fault: str) -> None:
    cell = Matrix(seed=1, messages=15).cell(ptype, fault, 0.3)
    assert cell.faults > 0
    assert cell.bad == 0, cell
    assert cell.received == cell.sent >= 30


@pytest.mark.parametrize("what", ["damaged", "disordered", "lost", "doubled"])
def test_the_matrix_sees_what_it_looks_for(what: str) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    cell = Cell("tiny", "lost", 0.3)
    way = Direction(cell, one, other, partner)
    way.fill([20] * 4)
    if what == "damaged":
        way.lengths[1] = 21
    elif what == "disordered":
        cluster.wait(other, other.irecv(bytearray(32), 0, 0))
    elif what == "lost":
        way.lengths.append(20)
    else:
        one.isend(b"", partner, 1)
    way.post()
    for _ in range(20):
        cluster.step()
        cluster.advance(10_000)
        way.take()
    way.finish()
    assert getattr(cell, what) > 0
    assert cell.bad > 0


def test_the_tool_prints_its_table_and_says_when_all_is_well() -> None:
    program = [
        sys.executable, "-c",
        "import sys; sys.argv = ['fault_matrix', '--quick']; sys.path.insert(0, 'tools')\n"
        "import fault_matrix; fault_matrix.TYPES = ('tiny', 'nack_mcp')\n"
        "raise SystemExit(fault_matrix.main())",
    ]  # fmt: skip
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reordered by 40" in done.stdout
    assert "0 lost, 0 doubled, 0 damaged, 0 out of order" in done.stdout.splitlines()[-1]
