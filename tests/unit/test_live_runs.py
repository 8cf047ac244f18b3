"""Which live run an onlooker means: real, simulated, dead, or in another container."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import pytest
from support.cli import assert_refused
from support.live_run import LiveRun, only_our_runs

from shrimpmx.cli import main
from shrimpmx.cluster.live import runs
from shrimpmx.native import segment
from shrimpmx.native.segment import RunIdentity

ID = {"real": "aaaa_real", "other": "bbbb_real", "simulated": "cccc_simulated"}
FOREIGN = "dddd_foreign"


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    only_our_runs(monkeypatch)


@contextlib.contextmanager
def going_on(monkeypatch: pytest.MonkeyPatch, kinds: Sequence[str]) -> Iterator[None]:
    """Runs of these kinds, the oldest first."""
    with contextlib.ExitStack() as stack:
        for kind in kinds:
            clock = "virtual" if kind == "simulated" else "monotonic"
            stack.callback(LiveRun(ID[kind], clock=clock).close)
        found = {run.run_id: run for run in runs.live_runs()}
        ordered = [found[ID[kind]] for kind in kinds]
        monkeypatch.setattr(runs, "live_runs", lambda: ordered)
        yield


@pytest.mark.parametrize("kinds", list(itertools.permutations(ID)))
@pytest.mark.parametrize("command", ["top --once --interval 0.01", "affinity", "counters --all"])
def test_the_newest_real_run_is_meant_whatever_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kinds: Sequence[str],
    command: str,
) -> None:
    newest = [kind for kind in kinds if kind != "simulated"][-1]
    with going_on(monkeypatch, kinds):
        assert main(command.split()) == 0
    assert f"run {ID[newest]}" in capsys.readouterr().out


@pytest.fixture
def of_another_build(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(segment, "BUILD_STAMP", segment.BUILD_STAMP ^ 1)
        run = LiveRun(FOREIGN, clock="monotonic")
    yield
    run.close()


@pytest.mark.usefixtures("of_another_build")
@pytest.mark.parametrize("command", ["top --once --interval 0.01", "affinity", "counters --all"])
@pytest.mark.parametrize("kind", ["real", None])
def test_a_run_of_another_build_is_meant_only_where_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    kind: str | None,
) -> None:
    foreign = [run for run in runs.live_runs() if run.run_id == FOREIGN]
    with going_on(monkeypatch, [kind] if kind else []):
        ours = runs.live_runs()
        monkeypatch.setattr(runs, "live_runs", lambda: [*ours, *foreign])
        assert main(command.split()) == (0 if kind else 2)
    if kind:
        assert f"run {ID[kind]}" in capsys.readouterr().out
    else:
        assert_refused(capsys, "another build")


@pytest.mark.parametrize("kinds", [("simulated",), ("real", "simulated")])
def test_a_simulated_run_is_counted_but_not_live(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kinds: Sequence[str]
) -> None:
    with going_on(monkeypatch, kinds):
        for command in ("affinity", "counters --all"):
            assert main([*command.split(), ID["simulated"]]) == 0
            assert f"run {ID['simulated']}" in capsys.readouterr().out
        assert main(["top", "--once", ID["simulated"]]) == 2
        assert_refused(capsys, f"{ID['simulated']} simulated counters")


def test_where_all_are_simulated_there_is_nothing_to_watch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with going_on(monkeypatch, ["simulated"]):
        assert main(["counters", "--all"]) == 0
        capsys.readouterr()
        assert main(["top", "--once"]) == 2
        assert_refused(capsys, f"{ID['simulated']} simulated counters")


@pytest.mark.parametrize(("second", "code"), [("simulated", 0), ("other", 2)])
def test_a_change_needs_an_id_beside_another_real_run_only(
    monkeypatch: pytest.MonkeyPatch, second: str, code: int
) -> None:
    with going_on(monkeypatch, ["real", second]):
        assert main(["affinity", "--node", "0", "--vector", "1", "--cores", "0"]) == code


def test_runs_of_another_container_or_of_the_dead_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = LiveRun()
    try:
        assert [found.run_id for found in runs.live_runs()] == [run.identity.run_id]
        namespace = segment.pid_namespace()
        monkeypatch.setattr(segment, "pid_namespace", lambda: namespace + 1)
        assert runs.live_runs() == []
        monkeypatch.undo()
        only_our_runs(monkeypatch)
        monkeypatch.setattr(RunIdentity, "is_alive", lambda _self: False)
        assert runs.live_runs() == []
    finally:
        run.close()
