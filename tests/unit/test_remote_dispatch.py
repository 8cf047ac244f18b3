"""Which run goes where, on a cluster whose workers are made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shrimpmx.errors import AgentError, DeadlineError, InputError, RankEndedError, ShrimpmxError
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress import Quiet
from shrimpmx.experiment.remote.dispatch import LOST_MAX, Place, Remote
from shrimpmx.experiment.remote.messages import Job, Task, reply_of_error, reply_of_run
from shrimpmx.experiment.run_data import run_data
from shrimpmx.experiment.scenario import Ratio, Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.soundness import single_run_flaw

METRICS = ("half_round_trip",)
# Four points: the axis `compare` keeps two of them on one machine, the expectation of `together`
# all of them.
APART = Scenario(
    name="x",
    title="A title",
    sweep={"size_bytes": (0, 32768), "coalescing": ("timeout", "open-mx")},
    compare="coalescing",
    repeats=3,
    metrics=METRICS,
)
TOGETHER = APART.model_copy(
    update={
        "expectations": (
            Ratio(
                metric="half_round_trip",
                of={"size_bytes": 0, "coalescing": "timeout"},
                to={"size_bytes": 32768},
                at_most=1,
                text="small ones are faster",
            ),
        )
    }
)


# What machines say that their own work costs.
COSTS = {"interrupt": 3000.0}


def environment_of(machine: str) -> dict[str, Any]:
    return {"cpu_model": machine, "topology": {"cpus": [0, 1]}, "time": "now"}


class FakeCluster:
    """Makes each run at once; a worker is lost with its run after so many of its runs."""

    address = "nowhere"

    def __init__(self, places: dict[str, Place], lasts: dict[str, int] | None = None) -> None:
        self._places, self._lasts = dict(places), lasts or {}
        self._pending: list[tuple[str, Task]] = []
        # Which point was run where, by the machine's name.
        self.made: list[tuple[str, int]] = []
        # What the tasks of each machine said about it.
        self.told: dict[str, list[dict[str, Any] | None]] = {}
        self.given_up: list[Any] = []

    def places(self) -> dict[str, Place]:
        return dict(self._places)

    def begin(self, worker: str, job: str, task: str) -> Any:
        assert Job.model_validate_json(job).metrics == METRICS
        run = (worker, Task.model_validate_json(task))
        self.told.setdefault(self._places[worker].machine, []).append(run[1].machine)
        self._pending.append(run)
        return id(run[1])

    def ended(self) -> Iterator[tuple[Any, str | None]]:
        pending, self._pending = self._pending, []
        for worker, task in pending:
            if self._lasts.get(worker) == 0:
                self._places.pop(worker, None)
                continue
            if worker in self._lasts:
                self._lasts[worker] -= 1
            yield id(task), self._reply(self._places[worker].machine, task)

    def _reply(self, machine: str, task: Task) -> str:
        self.made.append((machine, task.index))
        outcome = Outcome(np.full(50, 20_000.0), {}, placement={"processes": []})
        run = run_data(task.point, outcome, METRICS, "any", [])
        told = {"name": machine, "environment": environment_of(machine), "costs": COSTS}
        return reply_of_run({**run, "machine": told})

    def give_up(self, runs: Iterable[Any]) -> None:
        self.given_up += runs


def unused(point: Point, seed: int) -> Outcome:
    raise AssertionError("this machine makes no run")


def sweep_on(
    cluster: FakeCluster, scenario: Scenario = APART, *, real: bool = True, **options: Any
) -> Sweep:
    job = Job(engine="forked", metrics=METRICS, directory="/", needed_costs=())
    return Sweep(scenario, unused, beside=Remote(cluster, job, real=real), **options)


def machines_by_point(cluster: FakeCluster) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for machine, point in cluster.made:
        found.setdefault(point, set()).add(machine)
    return found


TWO = {"a:1": Place("a", 1), "b:1": Place("b", 1)}


class Told(Quiet):
    """Progress that keeps what the sweep waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited: list[str] = []

    def waits_for(self, words: str) -> None:
        self.awaited.append(words)


def test_progress_is_told_of_runs_and_of_missing_workers() -> None:
    told = Told()
    sweep_on(FakeCluster(TWO), progress=told).run()
    assert told.awaited[0] == "2 runs on 2 workers"
    told, empty = Told(), FakeCluster({})

    def ended() -> Iterator[tuple[Any, str | None]]:
        empty._places.update(TWO)
        return iter(())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(empty, "ended", ended)
        patch.setattr(told, "waits_for", stop_at(told))
        with pytest.raises(KeyboardInterrupt):
            sweep_on(empty, progress=told).run()
    assert told.awaited == ["a worker of nowhere", "2 runs on 2 workers"]


def stop_at(told: Told) -> Callable[[str], None]:
    """Interrupt the sweep when it is told for the second time."""

    def waits_for(words: str) -> None:
        told.awaited.append(words)
        if len(told.awaited) == 2:
            raise KeyboardInterrupt

    return waits_for


def test_what_is_compared_is_made_by_one_machine() -> None:
    cluster = FakeCluster(TWO)
    document = sweep_on(cluster).run()
    assert len(cluster.made) == 12
    by_point = machines_by_point(cluster)
    assert by_point[0] == by_point[1] != by_point[2] == by_point[3]
    assert {machine["name"] for machine in document["machines"]} == {"a", "b"}
    places = [point["measured_on"] for point in document["points"]]
    assert places[0] == places[1] != places[2] == places[3]


def test_what_an_expectation_compares_is_made_by_one_machine() -> None:
    cluster = FakeCluster(TWO)
    sweep_on(cluster, TOGETHER).run()
    by_point = machines_by_point(cluster)
    assert by_point[0] == by_point[2]


def test_a_machine_that_is_lost_leaves_nothing_that_others_go_on_with(tmp_path: Path) -> None:
    cluster = FakeCluster(TWO, lasts={"a:1": 2})
    document = sweep_on(cluster, output=tmp_path / "out").run()
    assert Counter(machine for machine, _ in cluster.made) == {"a": 2, "b": 12}
    assert len(cluster.given_up) == 1
    assert [machine["name"] for machine in document["machines"]] == ["b"]
    assert all(len(point["states"]) == 3 for point in document["points"])


def test_what_the_machine_has_begun_it_goes_on_with(tmp_path: Path) -> None:
    lost = FakeCluster({"a:1": Place("a", 1)}, lasts={"a:1": 4})
    lost.give_up = lambda runs: interrupted(list(runs))  # type: ignore[method-assign]
    output = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        sweep_on(lost, output=output).run()
    again = FakeCluster(TWO)
    document = sweep_on(again, output=output, resume=True).run()
    assert document["complete"]
    assert len(again.made) == 12 - 4
    assert Counter(machine for machine, _ in again.made) == {"a": 2, "b": 6}


def test_a_resumed_sweep_keeps_the_costs_of_its_machines(tmp_path: Path) -> None:
    lost = FakeCluster({"a:1": Place("a", 1)}, lasts={"a:1": 4})
    lost.give_up = lambda runs: interrupted(list(runs))  # type: ignore[method-assign]
    output = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        sweep_on(lost, output=output).run()
    assert lost.told["a"][0] is None
    again = FakeCluster(TWO)
    sweep_on(again, output=output, resume=True).run()
    assert [(told or {}).get("costs") for told in again.told["a"]] == [COSTS] * 2
    assert again.told["b"][0] is None


def interrupted(runs: list[Any]) -> None:
    if runs:
        raise KeyboardInterrupt


def test_a_run_that_is_lost_with_every_worker_ends_the_sweep() -> None:
    places = {f"a:{number}": Place("a", 1) for number in range(LOST_MAX + 2)}
    cluster = FakeCluster(places, lasts=dict.fromkeys(places, 0))
    one = APART.changed(["repeats=1", "size_bytes=0", "coalescing=timeout"])
    with pytest.raises(AgentError, match="lost"):
        sweep_on(cluster, one, real=False).run()


def test_a_worker_makes_as_many_runs_at_a_time_as_it_has_cores() -> None:
    cluster = FakeCluster({"a:1": Place("a", 3)})
    most = []
    begin = cluster.begin

    def counted(worker: str, job: str, task: str) -> Any:
        run = begin(worker, job, task)
        most.append(len(cluster._pending))
        return run

    cluster.begin = counted  # type: ignore[method-assign]
    sweep_on(cluster, real=False).run()
    assert max(most) == 3
    assert len(cluster.made) == 12


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (InputError("bad"), InputError),
        (DeadlineError("late", "rank0"), DeadlineError),
        (RankEndedError("gone", "rank1", 7), AgentError),
    ],
)
def test_an_error_of_a_run_is_raised_here(
    error: ShrimpmxError, raised: type[ShrimpmxError]
) -> None:
    class Failing(FakeCluster):
        def _reply(self, machine: str, task: Task) -> str:
            return reply_of_error(error, "what the log says")

    with pytest.raises(raised, match=str(error)) as caught:
        sweep_on(Failing(TWO)).run()
    assert type(caught.value) is raised


def test_a_run_of_another_machine_is_kept_with_it(tmp_path: Path) -> None:
    sweep = sweep_on(FakeCluster(TWO), output=tmp_path / "out")
    sweep.run()
    run = dict(sweep.runs[0])
    assert single_run_flaw(run) is None
    assert "machine" in (single_run_flaw({**run, "machine": {"name": "a"}}) or "")
