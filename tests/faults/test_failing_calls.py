"""Commands of which a system call fails: a sentence, nothing left behind, and they go on.

The first calls of each kind here; tools/failing_calls.py goes on to the last one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.failing_calls import compiled, outcomes

pytest.importorskip("mpi4py")

# How many calls of each command are made to fail. What a command never calls has none.
TRIED = {
    "workers": {"fork": 3, "thread": 4, "fsync": 4},
    "mpirun": {"fork": 6, "thread": 2, "mq_open": 3, "size": 4, "mmap": 4, "write": 3},
    "mpirun-simulated": {"fork": 3, "mq_open": 3, "size": 4, "mmap": 4},
    "run-simulated": {"open": 4, "write": 3},
    "resumed": {"open": 4, "write": 3, "fsync": 3},
}
CASES = [(command, call) for command, calls in TRIED.items() for call in calls]


@pytest.mark.nightly("each kind of call in each command")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("command", "call"), CASES)
def test_a_call_that_fails_ends_a_command_in_order(command: str, call: str, tmp_path: Path) -> None:
    numbers = range(1, TRIED[command][call] + 1)
    found = list(outcomes(compiled(tmp_path), tmp_path, command, call, numbers))
    assert found, "the command makes no such call"
    assert [str(each) for each in found if each.faults] == []
