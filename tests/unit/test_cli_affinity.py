"""`shrimpmx affinity`: the tables, a change of a run that goes on, and what is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from support.live_run import RUN, LiveRun, only_our_runs

from shrimpmx.cli import main
from shrimpmx.cluster.live import runs

CHANGE = ("--node", "0", "--vector", "1")


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    only_our_runs(monkeypatch)


@pytest.fixture
def live() -> Iterator[LiveRun]:
    run = LiveRun()
    run.open_endpoint(core=1)
    yield run
    run.close()


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["affinity", *arguments]) == 0
    return capsys.readouterr().out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["affinity", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def test_the_table_is_that_of_proc_interrupts_with_affinities_and_processes(
    live: LiveRun, capsys: pytest.CaptureFixture[str]
) -> None:
    live.interrupt(0, 0, 123)
    live.interrupt(1, 1, 45)
    before = bytes(live.node.segment.view()), live.mappings()
    lines = [line.split() for line in printed(capsys).splitlines() if line]
    assert lines == [
        ["run", RUN],
        ["command", *runs.command_of(live.identity).split()],
        ["node", "0,", "cores", "0-1"],
        ["CPU0", "CPU1"],
        ["0:", "123", "0", "shrimpmx-edge", "node0-rx-0", "affinity", "0", "rank0@1"],
        ["1:", "0", "45", "shrimpmx-edge", "node0-rx-1", "affinity", "1"],
    ]
    assert (bytes(live.node.segment.view()), live.mappings()) == before


@pytest.mark.usefixtures("live")
def test_a_change_names_its_run_where_several_are_live(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (ours,) = runs.live_runs()
    other = dataclasses.replace(ours, run_id="0" * 8)
    monkeypatch.setattr(runs, "live_runs", lambda: [other, ours])
    assert RUN in refusal(capsys, *CHANGE, "--cores", "0")
    assert main(["affinity", RUN, *CHANGE, "--cores", "0"]) == 0


@pytest.mark.parametrize(
    ("where", "cores"),
    [
        (("--cores", "0"), (0,)),
        (("--cores", "0-1"), (0, 1)),
        (("--mask", "3"), (0, 1)),
        (("--mask", "00000000,00000001"), (0,)),
    ],
)
def test_a_change_counts_at_once(
    live: LiveRun, capsys: pytest.CaptureFixture[str], where: tuple[str, ...], cores: object
) -> None:
    before = live.mappings()
    said = printed(capsys, RUN, *CHANGE, *where)
    assert said.startswith("node 0, vector 1: interrupts go to core")
    assert said.endswith("before, to core 1\n")
    assert live.node.affinity(1) == cores
    assert live.node.affinity(0) == (0,)
    assert live.mappings() == before


def test_what_is_refused_changes_nothing(live: LiveRun, capsys: pytest.CaptureFixture[str]) -> None:
    before = bytes(live.node.segment.view())
    for cores in ("", " "):
        assert "at least one core" in refusal(capsys, *CHANGE, "--cores", cores)
    assert "at least one core" in refusal(capsys, *CHANGE, "--mask", "0")
    assert "names core 2, but a node's cores are 0-1" in refusal(capsys, *CHANGE, "--cores", "0-2")
    assert "names core 35" in refusal(capsys, *CHANGE, "--mask", "8,00000001")
    for cores in ("x", "0-", "1-0", "0;1"):
        assert "is no list of cores" in refusal(capsys, *CHANGE, "--cores", cores)
    for mask in ("", "xyz", "0x3", "-1"):
        assert "is no mask of cores" in refusal(capsys, *CHANGE, f"--mask={mask}")
    missing = ("--node", "0", "--vector", "2", "--cores", "0")
    assert "node 0 has no vector 2; its vectors are 0-1" in refusal(capsys, *missing)
    negative = ("--node", "0", "--vector", "-1", "--cores", "0")
    assert "no vector -1" in refusal(capsys, *negative)
    assert "no node 4; its nodes are 0" in refusal(
        capsys, "--node", "4", "--vector", "0", "--cores", "0"
    )
    assert "no node 4" in refusal(capsys, "--node", "4")
    assert "--cores LIST or --mask HEX" in refusal(capsys, *CHANGE)
    assert "--node N --vector V" in refusal(capsys, "--cores", "0")
    assert "--node N --vector V" in refusal(capsys, "--vector", "0", "--cores", "0")
    assert "not allowed with" in refusal(capsys, *CHANGE, "--cores", "0", "--mask", "1")
    assert "invalid int value" in refusal(capsys, "--node", "x")
    assert f"(live: {RUN})" in refusal(capsys, "unknown")
    assert bytes(live.node.segment.view()) == before


@pytest.mark.parametrize(
    ("nic_kind", "handlers", "generator", "node", "why"),
    [
        ("vmmc", True, False, "0", "its NIC, vmmc, interrupts the core of the process"),
        ("mx", False, False, "0", "its NIC, mx, handles packets itself"),
        ("ethernet", True, True, "1", "it is played by the traffic generator"),
    ],
)
def test_a_node_without_vectors_says_why(
    capsys: pytest.CaptureFixture[str],
    nic_kind: str,
    handlers: bool,
    generator: bool,
    node: str,
    why: str,
) -> None:
    run = LiveRun(queues=1, nic_kind=nic_kind, handlers=handlers, generator=generator)
    try:
        sentence = f"node {node}: no interrupt vectors to steer: {why}"
        assert sentence in printed(capsys)
        change = ("--node", node, "--vector", "0", "--cores", "0")
        assert sentence in refusal(capsys, *change)
    finally:
        run.close()


def test_without_a_live_run_there_is_nothing_to_steer(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no run is live on this machine; start one first" in refusal(
        capsys, *CHANGE, "--cores", "0"
    )
