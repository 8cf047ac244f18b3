"""Policies and waiting strategies of a user's own in MPI programs."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest
from support.conditions import patient

from shrimpmx.cli import main

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

Captured = pytest.CaptureFixture[str]
OWN = """
    from shrimpmx.nic.policy import Policy
    from shrimpmx.wait.waiting_strategy import WaitingStrategy

    class Pairs(Policy):
        waiting = 0

        def on_dma_complete(self, now_ns, marked, dma_pending):
            self.waiting += 1
            if self.deadline_ns is None:
                self.deadline_ns = now_ns + 20_000
            return self.waiting >= 2

        def on_raised(self, now_ns, cause):
            self.waiting, self.deadline_ns = 0, None

    class Never(Policy):
        def on_dma_complete(self, now_ns, marked, dma_pending):
            return False

    class Sleeper(WaitingStrategy):
        def idle(self, waited_ns):
            return "yield" if waited_ns < 10_000 else "sleep"

    class Failing(WaitingStrategy):
        def idle(self, waited_ns):
            raise OverflowError("so long")
    """
EXCHANGE = """
from mpi4py import MPI
world = MPI.COMM_WORLD
for _ in range(20):
    world.allreduce(1)
"""


@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_rules_of_a_users_own_reach_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured, engine: str
) -> None:
    """mpi4py leaves MPI when Python is gone, where the rank sleeps."""
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(textwrap.dedent(OWN))
    Path("exchange.py").write_text(EXCHANGE)
    words = ["-n", "2", "--engine", engine, "--output", "kept"]
    own = ["--set", "coalescing=own.py:Pairs", "--set", "wait=own.py:Sleeper"]
    assert main(["mpirun", *words, *own, sys.executable, "exchange.py"]) == 0
    assert "coalescing own.py:Pairs, wait own.py:Sleeper" in capfd.readouterr().err
    kept = json.loads(Path("kept/run.json").read_text())
    assert {"own.py", "exchange.py"} <= set(kept["code"])
    account = kept["points"][0]["accounts"]["rank0"]
    assert account["yields"] > 0
    assert account["spin_ns"] == 0


@pytest.mark.nightly("each engine")
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_packets_that_a_policy_never_reports_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured, engine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(textwrap.dedent(OWN))
    Path("exchange.py").write_text(EXCHANGE)
    limit = f"{patient(5):g}"
    words = ["-n", "2", "--engine", engine, "--timeout", limit, "--set", "coalescing=own.py:Never"]
    assert main(["mpirun", *words, sys.executable, "exchange.py"]) == 124
    said = capfd.readouterr().err.splitlines()[-1]
    assert "policy 'own.py:Never' never asked for" in said


def test_a_strategy_that_fails_in_a_program_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(textwrap.dedent(OWN))
    Path("exchange.py").write_text(EXCHANGE)
    own = ["--set", "wait=own.py:Failing", "--timeout", str(patient(30))]
    assert main(["mpirun", "-n", "2", *own, sys.executable, "exchange.py"]) != 0
    assert "so long" in capfd.readouterr().err
