"""`run --scheduler`: a sweep on workers of a Dask cluster."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.conditions import patient
from support.dask_cluster import LocalDask, tls_settings

from shrimpmx.cli import main

pytest.importorskip("distributed", reason="pip install shrimpmx[dask]")
from dask import config as dask_config
from distributed import get_worker, rpc

from shrimpmx.experiment.remote import dask_cluster
from shrimpmx.experiment.remote.inert import NamedError

# A policy of the user's own, in a file that no worker can import. It does `deed` when a run
# begins.
SCENARIO = """
import fcntl, os, signal
from shrimpmx.nic.policy import Policy
from shrimpmx.experiment.scenario import Scenario

PLACE = {place!r}

def once(name):
    try:
        os.close(os.open(os.path.join(PLACE, name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

class Own(Policy):
    def __init__(self):
        {deed}

    def on_dma_complete(self, now_ns, marked, dma_pending):
        return True

scenario = Scenario(
    name="own", title="A policy of one's own",
    parameters={{"workload": "pingpong", "iterations": 20, "warmup": 2, "wait": "block"}},
    sweep={{"size_bytes": (0, 5000), "coalescing": ("disabled", "own")}},
    compare="coalescing", repeats=2,
    metrics=("half_round_trip", "interrupts_per_message"), policies={{"own": Own}},
)
"""
SIMULATED = ("--engine", "simulated")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalDask]:
    cluster = LocalDask(tmp_path_factory.mktemp("dask"))
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def dask(scheduler: LocalDask) -> LocalDask:
    scheduler.start_workers(3)
    return scheduler


class Sweeps:
    """Runs a scenario with a policy that does `deed`."""

    def __init__(self, place: Path, deed: str = "pass") -> None:
        self.place = place
        self._file = place / "own.py"
        self._file.write_text(SCENARIO.format(place=str(place), deed=deed))

    def run(self, name: str, *options: str) -> int:
        return main(["run", str(self._file), *options, "--output", str(self.place / name)])

    def document(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.place / name / "run.json").read_text())
        return found

    def text(self, name: str) -> str:
        """A result, but for the time of day."""
        document = self.document(name)
        assert document["complete"]
        del document["begun"], document["environment"]["time"]
        return json.dumps(document)


def test_a_scheduler_without_workers_is_refused(
    scheduler: LocalDask,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dask_cluster, "WORKERS_S", 0.1)
    assert Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", scheduler.address) == 2
    assert_refused(capsys, "no workers")
    # It says what it waits for before it gives up.
    monkeypatch.setattr(dask_cluster, "SAY_S", 0.0)
    assert Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", scheduler.address) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert f"dask worker {scheduler.address}" in said[0]
    monkeypatch.undo()
    monkeypatch.setattr(dask_cluster, "WORKERS_S", 0.1)
    assert Sweeps(tmp_path).run("out", "--scheduler", scheduler.address) == 2
    assert_refused(capsys, "machine=1")
    assert not (tmp_path / "out").exists()


def test_workers_give_the_bytes_of_one_process(dask: LocalDask, tmp_path: Path) -> None:
    sweeps = Sweeps(tmp_path)
    assert sweeps.run("here", *SIMULATED) == 0
    assert sweeps.run("there", *SIMULATED, "--scheduler", dask.address) == 0
    assert sweeps.text("here") == sweeps.text("there")


@pytest.mark.nightly("each sweep that goes on")
def test_what_was_measured_is_not_measured_again(
    dask: LocalDask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The fifth policy fails, once.
    deed = "assert any(once(str(number)) for number in range(4)) or not once('failed')"
    sweeps = Sweeps(tmp_path, deed)
    words = (*SIMULATED, "--scheduler", dask.address)
    assert sweeps.run("there", *words) == 3
    assert f"--scheduler {dask.address}" in capsys.readouterr().err
    kept = sorted((tmp_path / "there" / "points").iterdir())
    assert 0 < len(kept) < 8
    for path in kept:
        _mark(path)
    assert sweeps.run("there", *words, "--resume") == 0
    points = sweeps.document("there")["points"]
    assert sum(point["counters"]["rank0"]["moves"] for point in points) == MARK * len(kept)


# What no rank counts.
MARK = 1_000_003


def _mark(path: Path) -> None:
    run = json.loads(path.read_text())
    run["counters"]["rank0"]["moves"] = MARK
    path.write_text(json.dumps(run))


@pytest.mark.nightly("each kind of sweep")
def test_real_runs_take_turns_and_tell_their_machine(dask: LocalDask, tmp_path: Path) -> None:
    # While a policy is made the machine is locked.
    deed = """
        place = os.open("/dev/shm", os.O_RDONLY)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            once("unlocked")
        except BlockingIOError:
            once("locked")
        finally:
            os.close(place)
    """
    sweeps = Sweeps(tmp_path, deed.strip())
    assert sweeps.run("there", "--scheduler", dask.address) == 0
    assert (tmp_path / "locked").exists()
    assert not (tmp_path / "unlocked").exists()
    document = sweeps.document("there")
    [machine] = document["machines"]
    assert {"name", "environment", "costs"} <= machine.keys()
    assert {point["measured_on"] for point in document["points"]} == {0}
    assert "cpu_model" in machine["environment"]
    assert "cpu_model" not in document["environment"]


def test_a_worker_with_another_build_is_refused(
    dask: LocalDask,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = {**dask_cluster.software(), "code": "another"}
    monkeypatch.setattr(dask_cluster, "software", lambda: other)
    assert Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", dask.address) == 2
    assert_refused(capsys, "another build")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://[::1]:1", "localhost:1"])
def test_an_address_without_a_scheduler_is_refused(
    address: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 0.2)
    assert Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", address) == 2
    assert_refused(capsys, f"{address}: dask scheduler")


@pytest.mark.parametrize(
    "address", ["localhost", "head", "localhost:nonsense", "tls://head", "::1"]
)
@pytest.mark.parametrize("options", [(), ("--trust-network",)])
def test_an_address_needs_a_port(
    options: tuple[str, ...], address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--scheduler", address, *options)
    assert Sweeps(tmp_path).run("out", *SIMULATED, *words) == 2
    assert_refused(capsys, f"{address} address tls://head:8786")


@pytest.mark.nightly("each address")
@pytest.mark.parametrize("address", ["wss://127.0.0.1:1", "wss://no-such-host.invalid:1"])
def test_tls_in_a_web_socket_is_no_open_network(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", address) == 2
    assert "--trust-network" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "address", ["tcp://head:8786", "head:8786", "tcp://10.0.0.1:1", "ws://a:1"]
)
def test_a_network_without_tls_is_refused(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", address) == 2
    assert_refused(capsys, f"{address}: tls:// --trust-network")


@pytest.mark.nightly("each kind of network")
def test_a_network_that_is_trusted_needs_no_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--scheduler", "tcp://no-such-host.invalid:1", "--trust-network")
    assert Sweeps(tmp_path).run("out", *SIMULATED, *words) == 2
    assert_refused(capsys, "no Dask scheduler answers")


@pytest.mark.parametrize("part", ["describe", "measure", "error", "event"])
def test_no_answer_of_a_worker_is_executed(
    dask: LocalDask,
    part: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = f"{tmp_path}/read-by-"

    def answer(*_words: str) -> object:
        class Hostile:
            """Its pickle makes a directory, named by the process that reads it."""

            def __reduce__(self) -> tuple[Any, ...]:
                return eval, (f"(os := __import__('os')).mkdir({place!r} + str(os.getpid()))",)

        if part == "error":
            raise RuntimeError(Hostile())
        if part == "event":
            data = pickle.dumps(Hostile())
            get_worker().log_event("warn", {"message": data, "category": data})
            get_worker().log_event("print", {"args": ("said by a worker",)})
        return Hostile()

    name = "describe" if part == "describe" else "measure"
    monkeypatch.setattr(dask_cluster.worker, name, answer)
    ended = Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", dask.address)
    assert ended == (2 if part == "describe" else 3)
    said = capsys.readouterr()
    assert "worker" in said.err
    assert "said by a worker" not in said.out + said.err
    assert not Path(f"{place}{os.getpid()}").exists()


HOSTILE_ANSWERS = [None, "text", [1], {"type": "Scheduler", "workers": {"a": {}}}, {"workers": 1}]


@pytest.mark.parametrize("answer", [*HOSTILE_ANSWERS, {"type": "Worker"}, NamedError("words")])
def test_a_scheduler_that_says_other_things_is_refused(
    dask: LocalDask,
    answer: object,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def identity(_server: object, **_words: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(rpc, "identity", identity, raising=False)
    assert Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", dask.address) == 2
    assert_refused(capsys, f"Dask scheduler {dask.address}")


@pytest.mark.nightly("each answer", but=2)
@pytest.mark.parametrize("answer", [*HOSTILE_ANSWERS, NamedError("words")])
def test_a_scheduler_that_says_other_things_later_ends_the_sweep(
    dask: LocalDask,
    answer: object,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def identity(**_words: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    class Scheduler:
        """In place of the client's: another answer to one question."""

        def __init__(self, whole: object) -> None:
            self.whole, self.identity = whole, identity

        def __getattr__(self, name: str) -> Any:
            return getattr(self.whole, name)

    wait_for_workers = dask_cluster.DaskCluster.wait_for_workers

    def waiting(cluster: Any) -> None:
        cluster._client.scheduler = Scheduler(cluster._client.scheduler)
        wait_for_workers(cluster)

    monkeypatch.setattr(dask_cluster.DaskCluster, "wait_for_workers", waiting)
    assert Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", dask.address) == 3
    assert f"scheduler at {dask.address} sent an invalid answer" in capsys.readouterr().err


@pytest.mark.nightly("seconds of silence")
@pytest.mark.parametrize("silent", ["worker", "scheduler"])
def test_who_says_nothing_is_not_waited_for(
    silent: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = LocalDask(tmp_path)
    wait_for_workers = dask_cluster.DaskCluster.wait_for_workers

    def waiting(connected: Any) -> None:
        [stopped] = [cluster.scheduler] if silent == "scheduler" else cluster.workers
        os.kill(stopped.pid, signal.SIGSTOP)
        wait_for_workers(connected)

    monkeypatch.setattr(dask_cluster.DaskCluster, "wait_for_workers", waiting)
    for name in ("SILENT_S", "DESCRIBE_S", "CONNECT_S"):
        monkeypatch.setattr(dask_cluster, name, patient(5.0))
    try:
        cluster.start_workers(1)
        ended = Sweeps(tmp_path).run("out", *SIMULATED, "--scheduler", cluster.address)
    finally:
        cluster.close()
    said = capsys.readouterr().err
    assert (ended, f"{silent}" in said) == (3 if silent == "scheduler" else 2, True)
    assert "has gone" in said if silent == "scheduler" else "nothing in" in said


def test_tls_is_used_where_the_address_asks_for_it(
    dask: LocalDask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, sweeps = tls_settings(tmp_path), Sweeps(tmp_path)
    cluster = LocalDask(tmp_path, settings)
    try:
        assert sweeps.run("none", *SIMULATED, "--scheduler", cluster.address) == 2
        assert_refused(capsys, f"{cluster.address} docs/sweeps.md")
        with dask_config.set(settings):
            cluster.start_workers(1)
            assert sweeps.run("there", *SIMULATED, "--scheduler", cluster.address) == 0
            with dask_config.set({"distributed.comm.require-encryption": True}):
                capsys.readouterr()
                assert sweeps.run("plain", *SIMULATED, "--scheduler", dask.address) == 2
                assert_refused(capsys, f"{dask.address} docs/sweeps.md")
    finally:
        cluster.close()
    assert sweeps.document("there")["complete"]


@pytest.mark.nightly("each other death")
def test_a_scheduler_that_is_killed_ends_the_sweep_which_goes_on_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = LocalDask(tmp_path)
    try:
        cluster.start_workers(2)
        sweeps = Sweeps(tmp_path, f'once("killed") and os.kill({cluster.scheduler.pid}, 9)')
        assert sweeps.run("out", *SIMULATED, "--scheduler", cluster.address) == 3
    finally:
        cluster.close()
    assert f"the scheduler at {cluster.address} has gone" in capsys.readouterr().err
    assert sweeps.run("out", *SIMULATED, "--resume") == 0
    assert sweeps.run("here", *SIMULATED) == 0
    assert sweeps.text("out") == sweeps.text("here")


# The last tests: each ends a worker.
def test_runs_of_a_killed_worker_are_made_again(dask: LocalDask, tmp_path: Path) -> None:
    deed = 'once("killed") and os.kill(os.getppid(), signal.SIGKILL)'
    sweeps = Sweeps(tmp_path, deed)
    assert sweeps.run("there", *SIMULATED, "--scheduler", dask.address) == 0
    assert (tmp_path / "killed").exists()
    assert sweeps.run("here", *SIMULATED) == 0
    assert sweeps.text("here") == sweeps.text("there")


@pytest.mark.nightly("each other death")
def test_a_run_whose_worker_ends_before_it_has_sent_it_is_made_again(
    dask: LocalDask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched, killed = dask_cluster.DaskCluster._fetched, []

    def killing(cluster: Any, run: Any) -> str | None:
        if not killed:
            [address] = cluster._client.who_has([run])[run.key]
            [pid] = cluster._client.run(os.getpid, workers=[address]).values()
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return fetched(cluster, run)

    monkeypatch.setattr(dask_cluster.DaskCluster, "_fetched", killing)
    sweeps = Sweeps(tmp_path)
    assert sweeps.run("there", *SIMULATED, "--scheduler", dask.address) == 0
    assert killed
    assert sweeps.document("there")["complete"]
