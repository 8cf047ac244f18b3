"""The simulated run without valgrind: machines, plans, callgrind's files; and the cache metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.conditions import patient

from shrimpmx.bench.caches import callgrind, receive_rounds, simulation
from shrimpmx.bench.caches.callgrind import (
    Cost,
    SimulatedCaches,
    caches_of,
    cost_of,
    simulated_caches,
)
from shrimpmx.bench.caches.simulation import plan, simulate
from shrimpmx.bench.caches.surroundings import Surroundings
from shrimpmx.errors import AgentError, InputError, MachineError
from shrimpmx.results.cache_metrics import NO_HANDLER, NOT_COUNTED
from shrimpmx.results.metrics import METRICS, Outcome

ROUNDS = [(0, 5, 20), (128, 5, 20), (32_768, 2, 3), (1 << 20, 2, 1)]

DUMP = f"""# callgrind format
version: 1
desc: D1 cache: 32768 B, 64 B, 8-way associative
desc: LL cache: 4194304 B, 64 B, 16-way associative
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw

fn=(1) {callgrind.METHOD}take_turn
cfn=(2) {callgrind.METHOD}handler_side
calls=3 10
51 100 20 10 1 4 5 0 2 1
cfn=(3) somebody_else
calls=1 10
51 1000 1000 1000 0 0 0 0 0 0

fn=(2)
10 7 1 1 0 0 0 0 0 0

fn=(4) another
cfn=(2)
calls=1 10
60 10 2 1 0 0 0 0 0 0
"""


def test_a_machine_is_a_name_or_two_sizes() -> None:
    assert simulated_caches("clovertown-2007").options() == [
        "--I1=32768,8,64",
        "--D1=32768,8,64",
        "--LL=4194304,16,64",
    ]
    assert simulated_caches("this").options() == []
    assert simulated_caches("16k, 1M") == SimulatedCaches(16 << 10, 1 << 20)


@pytest.mark.parametrize(
    "text", ["pentium", "one-l3-8", "32K", "32K,4M,8M", "30K,4M", "0,4M", "100,4M"]
)
def test_another_machine_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError):
        simulated_caches(text)


def test_the_cost_of_a_method_is_that_of_its_calls(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text(DUMP)
    cost = cost_of(tmp_path / "dump", callgrind.HANDLER)
    assert cost == Cost(110, 33, 10, 3)
    assert cost.miss_rate == 30
    assert caches_of(tmp_path / "dump") == [
        "D1 cache: 32768 B, 64 B, 8-way associative",
        "LL cache: 4194304 B, 64 B, 16-way associative",
    ]
    assert Cost().miss_rate is None


def test_a_method_that_callgrind_did_not_find_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text(DUMP)
    with pytest.raises(AgentError, match="symbols"):
        cost_of(tmp_path / "dump", callgrind.LIBRARY)


def test_the_methods_are_called_what_callgrind_looks_for() -> None:
    """Whether the compiler keeps them as functions under these names."""
    library = Path(receive_rounds.__file__).read_bytes()
    for name in (callgrind.HANDLER, callgrind.LIBRARY, callgrind.WARM, callgrind.MEASURED):
        assert (callgrind.METHOD + name).encode() + b"\0" in library


def test_a_plan_counts_the_packets_that_are_asked_for() -> None:
    small, large = plan([0, 1 << 20], 100)
    assert small == (0, 1100, 100)
    assert large == (1 << 20, 2, 2)
    with pytest.raises(InputError, match="do not fit"):
        plan([0], 100_000)


def play(rounds: list[tuple[int, int, int]], copy_offload: bool) -> list[int]:
    """The same run without valgrind; packets by size."""
    surroundings = Surroundings(8192, copy_offload)
    from_node, to_others = os.pipe()
    from_others, to_node = os.pipe()
    wanted = {**surroundings.names(), "from_others": from_others, "to_others": to_others}
    arguments = json.dumps({**wanted, "rounds": rounds})
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", simulation.TARGET, arguments],
            pass_fds=(from_others, to_others),
            stdout=subprocess.PIPE,
            text=True,
        )
        os.close(from_others)
        os.close(to_others)
        surroundings.play(rounds, from_node, to_node, deadline_s=patient(50))
        printed, _ = process.communicate(timeout=patient(50))
        assert process.returncode == 0
        return [int(line) for line in printed.split()]
    finally:
        os.close(from_node)
        os.close(to_node)
        surroundings.close()


@pytest.mark.parametrize("copy_offload", [False, True])
def test_the_node_under_test_handles_each_packet_of_each_message(copy_offload: bool) -> None:
    tiny, small, medium, large = play(ROUNDS, copy_offload)
    assert (tiny, small) == (20, 20)
    assert medium == 3 * 23
    # 715 replies, at least; what it is asked for, and what begins and ends either message.
    assert 715 < large < 760
    assert large <= simulation.packets_of(1 << 20) + 2


def test_a_run_may_end_with_a_message_of_any_size() -> None:
    assert play([(0, 2, 5)], copy_offload=False) == [5]


def test_without_valgrind_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MachineError, match="install Debian's package valgrind"):
        simulate(ROUNDS, SimulatedCaches(), copy_offload=False)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('while [ "$1" != "$PYTHON" ]; do shift; done; exec "$@"', "found no function"),
        ("echo nobody expects this >&2; exit 3", "ended with exit code 3: nobody expects this"),
    ],
)
def test_a_simulated_run_that_counts_nothing_says_why(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    valgrind = tmp_path / "valgrind"
    valgrind.write_text(f"#!/bin/sh\n{script}\n")
    valgrind.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTHON", sys.executable)
    with pytest.raises(AgentError, match=said):
        simulate([(0, 2, 5)], SimulatedCaches(), copy_offload=False)


@pytest.mark.nightly("seconds of a limit")
def test_a_simulated_run_that_stands_still_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "START_S", patient(3.0))
    monkeypatch.setattr(simulation, "PACKET_S", 0)
    told = tmp_path / "pid"
    valgrind = tmp_path / "valgrind"
    valgrind.write_text(f"#!/bin/sh\necho $$ > {told}\nexec /bin/sleep 600\n")
    valgrind.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentError, match=r"has not ended after \d+ s, so valgrind was stopped"):
        simulate(ROUNDS, SimulatedCaches(), copy_offload=False)
    assert not Path("/proc", told.read_text().strip()).exists()


HANDLER = {"cache_references_user": 200, "cache_misses_user": 50, "l1d_read_misses_user": 90}
RANK = {"cache_references_user": 100, "cache_misses_user": 1, "l1d_read_misses_user": 30}
REASON = "this CPU or its virtual machine does not give the counter"


def outcome(**more: object) -> Outcome:
    counters = {"node0.irq0": {"recv_packets": 10}}
    return Outcome(np.empty(0), counters, ranks=("rank0",), **more)  # type: ignore[arg-type]


def test_handler_and_rank_have_miss_rates_of_their_own() -> None:
    given = outcome(hardware={"node0.irq0": HANDLER, "rank0": RANK, "node0.nic": {}})
    names = (
        *("cache_misses_handler", "cache_misses_rank"),
        *("cache_misses_per_packet", "l1_misses_per_packet"),
    )
    figures = [METRICS[name].compute(given) for name in names]
    assert [float(np.asarray(figure)[0]) for figure in figures] == [25, 1, 5.1, 12]


@pytest.mark.parametrize("name", ["cache_misses_handler", "cache_misses_rank"])
def test_without_counters_there_is_a_reason(name: str) -> None:
    assert METRICS[name].compute(outcome()) == NOT_COUNTED
    processes = ("node0.irq0", "rank0")
    absent = {process: {"cache_references_user": REASON} for process in processes}
    given = outcome(hardware={process: {} for process in processes}, hardware_absent=absent)
    assert METRICS[name].compute(given) == f"cache_references_user: {REASON}"


def test_a_nic_that_needs_no_handler_has_no_misses_of_one() -> None:
    given = outcome(hardware={"rank0": RANK, "node0.nic": {}})
    assert METRICS["cache_misses_handler"].compute(given) == NO_HANDLER
    assert float(np.asarray(METRICS["cache_misses_rank"].compute(given))[0]) == 1
