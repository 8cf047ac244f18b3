"""The verdicts of chaos: what is a finding, and what is not; its scenes; what its tool says."""

from __future__ import annotations

import runpy
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from support import chaos
from support.chaos_scenes import SUPERVISOR, Scene, draw_scene
from support.chaos_verdicts import Deed, Outcome, Played, findings_of
from support.clusters import generator_stream, pingpong_pair
from support.tree import ROOT

from shrimpmx.settings.strategies import COALESCING_NAMES, WAIT_NAMES

SEEDS = 600
KILLED = "rank0 (pid 70) was killed by SIGKILL"
STOPPED = "the run did not end within 5 s because of node0.irq0 (stopped)"
TOLD = "shrimpmx: node0.irq0 (pid 71) is stopped, and its work waits"
KILL, HOLD = Deed("kill", "rank0", 70, 0.3), Deed("hold", "node0.irq0", 71, 0.3)
LOST = {"rank0": KILLED, "rank1": "message 3 ended with remote-endpoint-closed"}


def played(
    outcome: Outcome, *deeds: Deed, survive: bool = False, heard: str = "", received: int = 55
) -> Played:
    """A ping-pong of 55 messages, and how it ended."""
    spec = pingpong_pair(50, warmup=5, survive=survive)
    counters = {f"node{node}.nic": {"tx_packets": 60, "rx_packets": 60} for node in (0, 1)}
    counters |= {f"node{node}.irq0": {"recv_packets": 59} for node in (0, 1)}
    counters |= {f"rank{number}": {"recv_messages": received} for number in (0, 1)}
    waiting = {node: {("rx", 0): 1, ("link", 0): 7} for node in (0, 1)}
    return Played(Scene(1, (), 5.0, spec), list(deeds), outcome, heard, counters, waiting)


def well(**lost: str) -> Outcome:
    """The run went to its end."""
    return Outcome(0, lost=lost, samples=["rank0", "rank1"])


@pytest.mark.parametrize(
    "good",
    [
        played(well()),
        played(Outcome(3, KILLED), KILL),
        played(Outcome(3, STOPPED), HOLD, heard=TOLD),
        played(Outcome(3, STOPPED), replace(HOLD, at_s=4.0)),
        played(well(**LOST), KILL, survive=True),
        played(well(), replace(KILL, at_work=False)),
        played(Outcome(killed_by=9), Deed("kill", SUPERVISOR, 69, 0.1)),
        played(Outcome(3, "interrupted by Ctrl-C", True), Deed("interrupt", SUPERVISOR, 69, 0.1)),
        played(well(), Deed("interrupt", SUPERVISOR, 69, 0.1)),
    ],
)
def test_what_is_no_finding(good: Played) -> None:
    assert findings_of(good) == []


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (played(well(), KILL), "ended well, though kill hit rank0"),
        (played(well(), HOLD), "ended well, though hold hit node0.irq0"),
        (played(well(), KILL, survive=True), "not among the lost"),
        (played(well(rank1="wrong data"), KILL, survive=True), "without a reason: wrong data"),
        (played(well(rank1=LOST["rank1"])), "lost without a reason"),
        (played(Outcome(3, KILLED)), "none that was killed"),
        (played(Outcome(3, KILLED), replace(KILL, pid=7)), "none that was killed"),
        (played(Outcome(3, "rank1 failed: lost"), KILL), "none that was killed"),
        (played(Outcome(1, KILLED), KILL), "exit code is 1, not 3"),
        (played(Outcome(3, ""), KILL), "no one sentence"),
        (played(Outcome(3, f"{KILLED}\nmore"), KILL), "no one sentence"),
        (played(Outcome(3, STOPPED), HOLD), "nothing said at once that node0.irq0"),
        (played(Outcome()), "exit code None"),
        (played(Outcome(1, "no"), Deed("kill", SUPERVISOR, 69, 0.1)), "outlived its death"),
        (played(Outcome(1, "no"), Deed("interrupt", SUPERVISOR, 69, 0.1)), "ended the run other"),
        (played(well(), received=54), "rank0 received 54 messages, not 55"),
        (played(Outcome(0, samples=["rank0"])), "rank1 left no samples"),
    ],
)
def test_what_is_a_finding(bad: Played, words: str) -> None:
    assert any(words in finding for finding in findings_of(bad)), findings_of(bad)


def test_packets_from_nowhere_and_packets_that_vanish_are_findings() -> None:
    too_many, vanished = played(well()), played(well())
    too_many.counters["node0.nic"]["tx_packets"] = 59
    vanished.counters["node1.irq0"]["recv_packets"] = 58
    assert findings_of(too_many) == ["120 packets came and 0 were dropped, of 119"]
    assert findings_of(vanished) == ["node 1: 60 packets came, 58 were handled, 1 are left"]


def test_of_a_generator_only_the_node_under_test_handles_packets() -> None:
    spec = generator_stream(50)
    counters = {"node0.nic": {"rx_packets": 60}, "node0.irq0": {"recv_packets": 60}}
    counters |= {"node1.generator": {"generated_packets": 60}, "rank0": {}}
    waiting = {0: {("rx", 0): 0}, 1: {("link", 0): 0}}
    outcome = Outcome(0, samples=["rank0"])
    assert findings_of(Played(Scene(1, (), 5.0, spec), [], outcome, "", counters, waiting)) == []


def test_an_mpi_program_has_exit_codes_of_its_own() -> None:
    scene = Scene(1, (), 5.0, words=("-n", "2", "ring.py"))
    by_signal = Outcome(128 + signal.SIGKILL, f"{KILLED}, and the others were ended")
    assert findings_of(Played(scene, [KILL], by_signal)) == []
    assert findings_of(Played(scene, [HOLD], Outcome(124, STOPPED), TOLD)) == []
    done = Outcome(3, "the run was done, but did not end because of node0.irq0 (stopped)")
    assert findings_of(Played(scene, [HOLD], done, TOLD)) == []
    assert findings_of(Played(scene, outcome=Outcome(0), heard="25.0 µs a hop\n")) == []
    assert findings_of(Played(scene, outcome=Outcome(0))) != []


def test_a_seed_draws_the_same_again_and_others_draw_everything() -> None:
    scenes = [draw_scene(seed) for seed in range(SEEDS)]
    assert [str(scene) for scene in scenes[:50]] == [str(draw_scene(seed)) for seed in range(50)]
    specs = [scene.spec for scene in scenes if scene.spec is not None]
    assert {spec.nic.nic_kind for spec in specs} == {"ethernet", "mx", "vmmc"}
    assert {spec.nic.coalescing for spec in specs} == set(COALESCING_NAMES)
    assert {spec.wait.strategy for spec in specs} == set(WAIT_NAMES)
    assert {spec.survive for spec in specs} == {True, False}
    assert any(scene.spec is None for scene in scenes)
    actions = {torment.action for scene in scenes for torment in scene.torments}
    assert actions == {"kill", "stop", "hold", "flutter", "nice", "idle", "interrupt"}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The words of the tool's command line; its scenes are not played, and the third is bad."""

    def play(scene: Scene, directory: Path) -> tuple[Played, list[str]]:
        directory.mkdir()
        return Played(scene, [KILL]), ["it was so"] * (scene.seed == 3)

    monkeypatch.setattr(chaos, "play", play)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = [str(ROOT / "tools" / "chaos.py")]
    monkeypatch.setattr(sys, "argv", words)
    return words


@pytest.mark.parametrize(
    ("words", "code", "sums"),
    [
        (["--seeds", "1-2"], 0, "2 runs, 2 deaths, 0 stops, 0 throttled, 0 with findings"),
        (["--deaths", "5"], 1, "5 runs, 5 deaths, 0 stops, 0 throttled, 1 with findings"),
        (["--seed", "2"], 0, "1 runs, 1 deaths"),
        (["--minutes", "0"], 0, "0 runs"),
    ],
)
def test_the_tool_sums_up_and_tells_findings(
    tool: list[str], words: list[str], code: int, sums: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tool += words
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(tool[0], run_name="__main__")
    said = capsys.readouterr().out
    assert caught.value.code == code
    assert sums in said.splitlines()[-1]
    assert ("seed 3: " in said and "FINDING: it was so" in said) == (code == 1)
    files = [line.partition(":")[2].strip() for line in said.splitlines() if "files: " in line]
    assert all(Path(path).is_dir() for path in files)
    assert bool(files) == (code == 1)
