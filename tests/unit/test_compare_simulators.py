"""tools/compare_simulators.py: what is not installed is said, and costs no other figure."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import compare_simulators
import pytest


def test_a_simulator_that_is_not_installed_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    own, simgrid, ns3 = compare_simulators.table([2], 40)[2:]
    assert math.isfinite(float(own.split("|")[2]))  # a difference of times: 0 under load
    assert "smpicc is not installed" in simgrid
    assert "g++ is not installed" in ns3


def test_a_command_that_fails_is_a_reason() -> None:
    with pytest.raises(compare_simulators.MissingError, match="ended with 3: broken"):
        compare_simulators.cpu_s(
            [sys.executable, "-c", "import sys; sys.stderr.write('broken'); sys.exit(3)"]
        )


def test_a_figure_is_of_the_rounds_beyond_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_simulators, "cpu_s", lambda words: 1.0 + 1e-3 * int(words[1]))
    figure = compare_simulators.message_us(lambda nodes, rounds: ["", str(rounds)], 10, 1000)
    assert figure == pytest.approx(100)


def test_a_ring_needs_two_nodes() -> None:
    with pytest.raises(SystemExit):
        compare_simulators.main(["--nodes", "1"])
