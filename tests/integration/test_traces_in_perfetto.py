"""Traces of runs in Perfetto's trace processor, which a worker of the suite compiles once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.perfetto import TraceProcessor, check_interrupts

from shrimpmx.cli import main

SIMULATED = ("--engine", "simulated", "--set=warmup=5", "--set=repeats=1")
ON_CPUS = "select distinct name from slice where category = 'cpu'"
# The words with which each kind of agent begins its records of a ping-pong.
AGENT_WORDS = {
    "node{}.nic": (
        *("frame sent: medium", "frame arrived: medium", "DMA complete: medium"),
        *("interrupt wished", "interrupt raised"),
    ),
    "node{}.irq0": ("interrupt taken", "poll begins", "event for endpoint 0: medium", "poll ends"),
    "rank{}": ("isend", "received", "wait begins", "wait ends: ready", "acknowledged"),
}


@pytest.mark.timeout(180)  # for the compiler of the trace processor
def test_a_trace_tells_what_every_agent_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["run", "smoke/pingpong"]
    for setting in (
        *("size_bytes=4096", "coalescing=stream", "iterations=5", "warmup=1"),
        *("repeats=1", "wait=block"),
    ):
        arguments += ["--set", setting]
    check_interrupts(arguments, tmp_path / "r", monkeypatch)
    [path] = (tmp_path / "r" / "traces").glob("*.txt")
    lines = [each.split(maxsplit=2) for each in path.read_text().splitlines()]
    times = [float(time_us) for time_us, _, _ in lines]
    assert times == sorted(times)
    assert times[0] == 0
    told: dict[str, list[str]] = {}
    for _, agent, words in lines:
        told.setdefault(agent, []).append(words)
    for node in range(2):
        for agent, wanted in AGENT_WORDS.items():
            found = told[agent.format(node)]
            for words in wanted:
                assert any(each.startswith(words) for each in found), (agent, node, words)
    # Each of the six messages there and back again, with each of its packets, once.
    assert [each.split(",")[0] for each in told["rank1"] if each.startswith("received")] == [
        f"received: message {number}" for number in range(1, 7)
    ]
    arrived = [each for each in told["node1.nic"] if each.startswith("frame arrived: medium")]
    assert len(arrived) >= 18
    assert all(any(f"{number}.{packet} 0>1" in each for each in arrived)
               for number in range(1, 7) for packet in range(3))  # fmt: skip


@pytest.mark.nightly("each scenario")
@pytest.mark.parametrize("scenario", ["smoke/pingpong", "smoke/waiting"])
def test_every_interrupt_is_in_the_trace(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", scenario, *SIMULATED, "--set=iterations=5"]
    check_interrupts(words, tmp_path / "r", monkeypatch)


@pytest.mark.timeout(180)
def test_who_had_the_cpus_of_hosts_is_in_the_trace(tmp_path: Path) -> None:
    platform = ["--set=platform=myri10g-2009", "--set=coalescing=open-mx", "--set=size_bytes=0"]
    words = ["run", "smoke/pingpong", *SIMULATED, "--set=iterations=50", *platform, "--trace"]
    assert main([*words, "--output", str(tmp_path / "r")]) == 0
    [path] = (tmp_path / "r" / "traces").glob("*.pftrace")
    with TraceProcessor(path) as processor:
        names = {name for (name,) in processor.query(ON_CPUS)}
    assert {"rank0", "rank1", "node0.irq0", "node1.irq0"} <= names
    # A NIC of its own hardware has no CPU.
    assert all(name.startswith(("rank", "node")) for name in names), names
