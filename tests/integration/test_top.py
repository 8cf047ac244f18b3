"""Looking at a running cluster and steering its interrupts: `shrimpmx top` and `affinity`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.clusters import DEADLINE_S, run
from support.conditions import wait_until

from shrimpmx.cli import main
from shrimpmx.cluster.live.attach import AttachedRun
from shrimpmx.cluster.live.runs import live_runs
from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.mx_workloads import WORKLOADS
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.native.segment import RunIdentity
from shrimpmx.settings.host import HostParameters, WaitParameters

MESSAGE, GO_ON, LAST = 1, b"\1", b"\0"


def until_told(context: MxRank) -> RankSamples:
    """Rank 0 sends a message to rank 1 and back, again and again, until its file is gone."""
    going_on = Path(context.options["while"])
    byte = bytearray(GO_ON)
    rounds = 0
    while byte != LAST:
        if context.number == 0:
            byte[:] = GO_ON if going_on.exists() else LAST
            context.endpoint.send(bytes(byte), context.partner, MESSAGE)
        context.endpoint.recv(byte, MESSAGE)
        if context.number == 1:
            context.endpoint.send(bytes(byte), context.partner, MESSAGE)
        rounds += 1
    return {"rounds": np.array([rounds])}


def _cluster(going_on: Path) -> bool:
    """Run two nodes of two cores until the file is gone; whether all went well.

    The file steered.json beside it then has the nodes whose interrupts were sent elsewhere.
    """
    WORKLOADS["until-told"] = until_told
    options = {"while": str(going_on)}
    spec = ClusterSpec(
        ranks=tuple(RankSpec(node, "until-told", options=options) for node in (0, 1)),
        host=HostParameters(cores=2, irq_binding="0"),
        wait=WaitParameters(strategy="block"),
    )
    result = run(spec)
    going_on.with_name("steered.json").write_text(json.dumps(result.steered))
    rounds = [result.samples[f"rank{number}"]["rounds"].tolist() for number in (0, 1)]
    return rounds[0] == rounds[1]


class Background:
    """The cluster, run by a child of this process."""

    def __init__(self, going_on: Path) -> None:
        self.going_on = going_on
        going_on.touch()
        self.pid = os.fork()
        if self.pid == 0:
            status = 2
            try:
                status = int(not _cluster(going_on))
            finally:
                os._exit(status)
        wait_until(lambda: self.runs(), "the cluster is live", DEADLINE_S)
        self.identity = self.runs()[0]

    def runs(self) -> list[RunIdentity]:
        return [run for run in live_runs() if run.pid == self.pid]

    def messages(self) -> int:
        with AttachedRun(self.identity) as attached:
            return attached.reading().agents["rank0"].counters["recv_messages"]

    def steered(self) -> list[int]:
        """The nodes that its result says were steered."""
        nodes: list[int] = json.loads(self.going_on.with_name("steered.json").read_text())
        return nodes

    def end(self) -> int:
        """Let it end; its exit code."""
        self.going_on.unlink()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Background]:
    background = Background(tmp_path / "going-on")
    try:
        wait_until(lambda: background.messages() > 10, "messages are exchanged", DEADLINE_S)
        yield background
    finally:
        if background.going_on.exists():
            os.kill(background.pid, signal.SIGTERM)
            os.waitpid(background.pid, 0)


def test_top_shows_a_running_cluster(
    cluster: Background, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document = tmp_path / "top.json"
    command = ["top", cluster.identity.run_id, "--once", "--interval", "0.5"]
    assert main([*command, "--json", str(document)]) == 0
    [look] = map(json.loads, document.read_text().splitlines())
    assert (look["run"], look["nodes"]) == (cluster.identity.run_id, 2)
    view = look["view"]
    assert [(core["node"], core["core"]) for core in view["cores"]] == [
        *((0, 0), (0, 1), (1, 0), (1, 1)),
    ]
    processes = {process["name"]: process for process in view["processes"]}
    for name in ("rank0", "rank1"):
        assert processes[name]["received"] > 0
        assert processes[name]["busy"] > 0
    for node in (0, 1):
        assert view["cores"][2 * node]["packets"] > 0
        assert view["queues"][node]["affinity"] == [0]
        assert view["queues"][node]["endpoints"][0]["process"] == f"rank{node}"
    assert "node1.core0" in capsys.readouterr().out
    assert cluster.end() == 0
    assert cluster.steered() == []


def test_interrupts_go_where_they_are_sent_while_the_run_goes_on(
    cluster: Background, capsys: pytest.CaptureFixture[str]
) -> None:
    name = cluster.identity.run_id
    with AttachedRun(cluster.identity) as attached:
        node = attached.nodes[0]
        assert node.interrupt_counts()[1] == [0]
        change = ["affinity", name, "--node", "0", "--vector", "0"]
        assert main([*change, "--cores", "1"]) == 0
        assert "go to core 1 from now on; before, to core 0" in capsys.readouterr().out
        wait_until(lambda: node.interrupt_counts()[1][0] > 10, "core 1 gets interrupts")
        [before] = node.interrupt_counts()[0]
        wait_until(lambda: node.interrupt_counts()[1][0] > 100, "core 1 gets more of them")
        assert node.interrupt_counts()[0] == [before]
        assert attached.nodes[1].interrupt_counts()[1] == [0]

        assert main([*change, "--cores", ""]) == 2
        assert main([*change, "--cores", "2"]) == 2
        assert node.affinity(0) == (1,)
        capsys.readouterr()
        assert main(["affinity", name, "--node", "0"]) == 0
        assert "affinity 1  rank0@0" in capsys.readouterr().out
        assert main([*change, "--cores", "0"]) == 0
    messages = cluster.messages()
    wait_until(lambda: cluster.messages() > messages, "messages are still exchanged")
    assert cluster.end() == 0
    assert cluster.steered() == [0], "also if all is as before at the end"


def test_a_view_ends_with_its_run_and_keeps_nothing_of_it(
    cluster: Background, capsys: pytest.CaptureFixture[str]
) -> None:
    with AttachedRun(cluster.identity) as attached:
        assert cluster.end() == 0
        assert not attached.is_live()
        assert attached.reading().agents["rank0"].counters["recv_messages"] > 10
    assert cluster.identity.segment_name("") not in Path("/proc/self/maps").read_text()
    assert main(["top", cluster.identity.run_id, "--once"]) == 2
    assert "no live run whose id begins with" in capsys.readouterr().err
