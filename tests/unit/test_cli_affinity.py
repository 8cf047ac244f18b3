"""`shrimpmx affinity`: the tables, a change of a run that goes on, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.cli import assert_refused
from support.live_run import RUN, LiveRun, only_our_runs

from shrimpmx.cli import main
from shrimpmx.cluster.live import runs
from shrimpmx.settings.core_lists import format_core_list

CHANGE = ("--node", "0", "--vector", "1")


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    only_our_runs(monkeypatch)


@pytest.fixture
def live() -> Iterator[LiveRun]:
    run = LiveRun(clock="monotonic")
    run.open_endpoint(core=1)
    yield run
    run.close()


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["affinity", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], words: str, *arguments: str) -> None:
    """One sentence with all these words and values."""
    assert main(["affinity", *arguments]) == 2
    assert_refused(capsys, words)


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
    other = ours._replace(run_id="0" * 8)
    monkeypatch.setattr(runs, "live_runs", lambda: [other, ours])
    refused(capsys, f"{RUN} 00000000", *CHANGE, "--cores", "0")
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
    listed = format_core_list(live.node.affinity(1))
    assert [
        word for word in said.replace(",", "").replace(":", "").split() if word[0].isdigit()
    ] == [*("0", "1", listed, "1")]
    assert live.node.affinity(1) == cores
    assert live.node.affinity(0) == (0,)
    assert live.mappings() == before


def test_what_is_refused_changes_nothing(live: LiveRun, capsys: pytest.CaptureFixture[str]) -> None:
    before = bytes(live.node.segment.view())
    for cores in ("", " "):
        refused(capsys, "at least one core", *CHANGE, "--cores", cores)
    refused(capsys, "at least one core", *CHANGE, "--mask", "0")
    refused(capsys, "core 2, 0-1", *CHANGE, "--cores", "0-2")
    refused(capsys, "core 35", *CHANGE, "--mask", "8,00000001")
    for cores in ("x", "0-", "1-0", "0;1"):
        refused(capsys, f"'{cores}' list", *CHANGE, "--cores", cores)
    for mask in ("", "xyz", "0x3", "-1"):
        refused(capsys, f"'{mask}' mask", *CHANGE, f"--mask={mask}")
    refused(capsys, "node 0 vector 2; 0-1", "--node", "0", "--vector", "2", "--cores", "0")
    refused(capsys, "vector -1", "--node", "0", "--vector", "-1", "--cores", "0")
    refused(capsys, "node 4; 0", "--node", "4", "--vector", "0", "--cores", "0")
    refused(capsys, "node 4;", "--node", "4")
    refused(capsys, "--cores --mask", *CHANGE)
    refused(capsys, "--node --vector", "--cores", "0")
    refused(capsys, "--node --vector", "--vector", "0", "--cores", "0")
    refused(capsys, "--mask --cores", *CHANGE, "--cores", "0", "--mask", "1")
    refused(capsys, "--node 'x'", "--node", "x")
    refused(capsys, f"'unknown' {RUN}", "unknown")
    assert bytes(live.node.segment.view()) == before


@pytest.mark.parametrize(
    ("nic_kind", "handlers", "generator", "node", "why"),
    [
        ("vmmc", True, False, "0", "NIC, vmmc, process"),
        ("mx", False, False, "0", "NIC, mx, itself"),
        ("ethernet", True, True, "1", "generator"),
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
    run = LiveRun(
        queues=1, nic_kind=nic_kind, handlers=handlers, generator=generator, clock="monotonic"
    )
    try:
        said = printed(capsys)
        assert [word for word in why.split() if word not in said] == []
        assert "affinity" not in said.splitlines()[-1]
        change = ("--node", node, "--vector", "0", "--cores", "0")
        refused(capsys, f"node {node} {why}", *change)
    finally:
        run.close()


def test_a_simulated_run_is_not_steered(capsys: pytest.CaptureFixture[str]) -> None:
    run = LiveRun(clock="virtual")
    try:
        before = bytes(run.node.segment.view())
        refused(capsys, f"run {RUN} is simulated", *CHANGE, "--cores", "1")
        assert bytes(run.node.segment.view()) == before
    finally:
        run.close()


def test_without_a_live_run_there_is_nothing_to_steer(capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "no run live", *CHANGE, "--cores", "0")
