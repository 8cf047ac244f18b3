"""Results on disk: atomic, resumable, and one sentence for every kind of damage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.users import ANOTHER, needs_two_users

from shrimpmx.errors import InputError, MachineError
from shrimpmx.results.json_file import json_place, read_json, write_json
from shrimpmx.results.result import ResultDirectory, load_result

POINT: dict[str, Any] = {
    "params": {"size_bytes": 0},
    "metrics": {"half_round_trip": {"unit": "us", "samples": [1.0, 2.0]}},
    "counters": {"node0.nic": {"irq_raised": 3}},
}
# What is kept of one run while the sweep goes on.
RUN: dict[str, Any] = {
    **POINT,
    "accounts": {"rank0": {"waits": 3}},
    "usage": {},
    "state": "near",
    "cache_line_round_trip_ns": [100.0, None],
    "per_message": {},
    "placement": {"processes": [{"cpu": 0}]},
    "host_costs_ns": {"packet": 0},
    "mode": "two-node",
    "disturbed": False,
}
HEAD: dict[str, Any] = {
    "scenario": "x",
    "settings": {"points": [{"size_bytes": 0}]},
    "seed": 1,
    "environment": {},
    "placement": {},
}


def begun(path: Path) -> ResultDirectory:
    directory = ResultDirectory(path)
    directory.begin(HEAD)
    return directory


def begin(path: Path, resume: bool) -> bool:
    with ResultDirectory(path).beginning(resume) as has_begun:
        return has_begun


def test_points_are_kept_one_by_one(tmp_path: Path) -> None:
    directory = begun(tmp_path / "r")
    directory.add_point(7, RUN)
    assert directory.finished_points() == {7: RUN}
    directory.check_incomplete(HEAD, ("scenario", "settings", "seed"))


def test_a_point_that_was_not_flushed_before_the_machine_failed_is_to_be_made_again(
    tmp_path: Path,
) -> None:
    directory = begun(tmp_path / "r")
    directory.add_point(7, RUN, flush=False)
    directory.add_point(8, RUN, flush=False)
    directory.point_path(8).write_text("")
    assert directory.finished_points() == {7: RUN}


def test_a_complete_result_loads_and_has_no_single_files(tmp_path: Path) -> None:
    directory = begun(tmp_path / "r")
    directory.add_point(0, RUN)
    directory.finish({**HEAD, "points": [POINT]}, complete=True)
    assert load_result(tmp_path / "r")["points"] == [POINT]
    assert load_result(tmp_path / "r" / "run.json")["complete"] is True
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["run.json"]
    page = f"shrimpmx report {tmp_path / 'r'}"
    with pytest.raises(InputError, match=f"complete result, so there is nothing to resume.*{page}"):
        directory.check_incomplete(HEAD, ())
    with pytest.raises(InputError, match=f"already holds a result.*{page}"):
        begin(tmp_path / "r", resume=False)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("complete", [False, True])
def test_only_single_files_of_a_complete_result_are_superfluous(
    complete: bool, resume: bool, tmp_path: Path
) -> None:
    """Its process was killed before it removed them."""
    directory = begun(tmp_path / "r")
    directory.finish({**HEAD, "points": [POINT]}, complete)
    directory.add_point(0, RUN)
    if resume:
        assert begin(tmp_path / "r", resume)
    else:
        with pytest.raises(InputError, match="already holds a result"):
            begin(tmp_path / "r", resume)
    assert (tmp_path / "r" / "points").exists() == (not complete)
    assert load_result(tmp_path / "r")["points"] == [POINT]


def test_another_result_is_not_overwritten(tmp_path: Path) -> None:
    begun(tmp_path / "r")
    with pytest.raises(InputError, match="already holds a result"):
        ResultDirectory(tmp_path / "r").begin(HEAD)
    unfinished = tmp_path / "r" / "points" / ".shrimpmx-0123456789abcdef"
    unfinished.parent.mkdir(exist_ok=True)
    unfinished.touch()
    ResultDirectory(tmp_path / "r").add_point(0, RUN)
    with pytest.raises(InputError, match="already holds a result; add --resume"):
        begin(tmp_path / "r", resume=False)
    assert unfinished.exists()
    assert begin(tmp_path / "r", resume=True)
    assert not unfinished.exists()


def test_what_a_run_left_that_was_killed_as_it_began_is_no_other_file(tmp_path: Path) -> None:
    left = tmp_path / "r" / ".shrimpmx-0123456789abcdef"
    other = tmp_path / "r" / "notes"
    other.parent.mkdir()
    for path in (left, other):
        path.touch()
    with pytest.raises(InputError, match="holds other files"):
        begin(tmp_path / "r", resume=False)
    assert left.exists()
    other.unlink()
    assert not begin(tmp_path / "r", resume=False)
    assert list((tmp_path / "r").iterdir()) == []


def test_a_place_is_tried_out_before_it_is_needed(tmp_path: Path) -> None:
    begin(tmp_path / "new" / "r", resume=False)
    assert list((tmp_path / "new" / "r").iterdir()) == []
    assert json_place(str(tmp_path / "r.json")) == tmp_path / "r.json"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    for place in ("/", "/etc", str(tmp_path)):
        with pytest.raises(InputError, match="holds other files"):
            begin(Path(place), resume=False)
    with pytest.raises(InputError, match="there is no directory"):
        json_place(str(tmp_path / "no" / "r.json"))
    assert not (tmp_path / "no").exists()


def test_resuming_with_other_settings_is_refused(tmp_path: Path) -> None:
    directory = begun(tmp_path / "r")
    with pytest.raises(InputError, match="another seed than asked for"):
        directory.check_incomplete({**HEAD, "seed": 2}, ("scenario", "seed"))


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in RUN.items() if name != key}


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        *(
            (without(key), f"'{key}' is missing")
            for key in (
                *("params", "metrics", "counters", "accounts", "usage", "state"),
                *("placement", "cache_line_round_trip_ns", "mode"),
            )
        ),
        ({**RUN, "accounts": 3}, "'accounts' is not an object with the figures of each process"),
        (
            {**RUN, "usage": {"rank0": 3}},
            "'usage' is not an object with the figures of each process",
        ),
        ({**RUN, "counters": {"n": {"x": "3"}}}, "'counters' is not an object of counters"),
        ({**RUN, "per_message": {"n": [1]}}, "'per_message' is not an object of counters"),
        ({**RUN, "state": "close"}, "'state' is not a state of the CPUs"),
        ({**RUN, "placement": []}, "'placement' is not a placement of processes on CPUs"),
        ({**RUN, "placement": {"processes": [{}]}}, "'placement' is not a placement"),
        ({**RUN, "cache_line_round_trip_ns": 3}, "ns' is not a list of times"),
        ({**RUN, "steered": [-1]}, "'steered' is not a list of nodes"),
        ({**RUN, "mode": None}, "'mode' is not a mode"),
        ({**RUN, "time_dilation": "2"}, "'time_dilation' is not a number above 0"),
        ({**RUN, "metrics": {"x": {"samples": []}}}, "metric 'x' has no samples"),
    ],
)
def test_a_damaged_run_is_one_sentence(run: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    directory = begun(tmp_path / "r")
    directory.add_point(3, run)
    with pytest.raises(InputError) as caught:
        directory.finished_points()
    assert str(caught.value).startswith(f"point {directory.point_path(3)} is damaged: ")
    assert sentence in str(caught.value)


def test_a_file_among_the_runs_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    directory = begun(tmp_path / "r")
    write_json(directory.point_path(3).with_name("3a.json"), {"schema": 1, **RUN})
    with pytest.raises(InputError, match=r"3a\.json is damaged: its name is not a run's number"):
        directory.finished_points()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"schema": 1})
    with pytest.raises(MachineError, match="not a number"):
        write_json(path, {"bad": float("nan")})
    assert read_json(path, "result") == {"schema": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


@needs_two_users
@pytest.mark.parametrize("resume", [False, True])
def test_a_directory_of_another_user_takes_no_result(resume: bool, tmp_path: Path) -> None:
    directory = begun(tmp_path / "r") if resume else ResultDirectory(tmp_path)
    os.chown(directory.path, ANOTHER, ANOTHER)
    with pytest.raises(InputError, match=f"belongs to user {ANOTHER}"):
        begin(directory.path, resume)


@needs_two_users
def test_a_pipe_of_another_user_takes_no_result(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    os.mkfifo(path)
    os.chown(path, ANOTHER, ANOTHER)
    with pytest.raises(InputError, match="another user's pipe; give another place"):
        json_place(str(path))
    with pytest.raises(MachineError, match="another user's pipe; give another place"):
        write_json(path, {"schema": 1})


def test_unwritable_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match=r"cannot be written: .*give another place"):
        write_json(tmp_path / "file" / "run.json", {})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "does not exist"),
        ("{", "is damaged: no JSON at line 1, column 2"),
        ("[]", "is damaged: it holds no JSON object"),
        ('{"schema": 9}', "has schema 9, this version of shrimpmx reads schema 1"),
        ("{}", "another program: it has no 'schema'"),
        ('{"schema": 1}', "is damaged: 'scenario' is missing"),
        (json.dumps({"schema": 1, **HEAD, "points": 3}), "'points' is not a list"),
        (json.dumps({"schema": 1, **HEAD, "points": [3]}), "a point is no JSON object"),
        (json.dumps({"schema": 1, **HEAD, "points": [{}]}), "'params' is missing"),
        (
            json.dumps({"schema": 1, **HEAD, "points": [{**POINT, "metrics": {"a": {}}}]}),
            "metric 'a' has neither samples nor a reason",
        ),
    ],
)
def test_damage_is_one_sentence(tmp_path: Path, content: str | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError) as caught:
        load_result(tmp_path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
