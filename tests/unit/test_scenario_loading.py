"""Loading a scenario file: each way it can be wrong is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrimpmx.errors import InputError
from shrimpmx.study.loading import docstring_of, find_scenario, list_scenarios, load_scenario

REPOSITORY = Path(__file__).parents[2]
IMPORT = "from shrimpmx.study.scenario import Scenario\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "wrong.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def (:", "does not parse: invalid syntax at line 1"),
        ("\0", "does not parse: "),
        ("x = 1", "has no object named `scenario`; end it with scenario = Scenario(...)"),
        ("scenario = 3", "must be a shrimpmx.study.scenario.Scenario, not int"),
        ("import nothing_of_that_name", "fails at line 1: ModuleNotFoundError: "),
        ("x = 1\nraise RuntimeError('no')", "fails at line 2: RuntimeError: no"),
        (IMPORT + "scenario = Scenario(name='x')", "title is missing and has no default"),
        (
            IMPORT + "scenario = Scenario(name='x', title='t', metrics=('fast',))",
            "metrics names 'fast', which is no metric; there are: half_round_trip, ",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario(written(tmp_path, text))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_scenario(tmp_path / "none.py")
    with pytest.raises(InputError, match=r"scenario file none\.py does not exist"):
        find_scenario("none.py")
    with pytest.raises(InputError, match="is a directory; give a scenario file"):
        find_scenario(str(tmp_path))


def test_scenarios_are_found_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_scenario("smoke/pingpong").name == "pingpong.py"


@pytest.mark.parametrize(
    "path",
    [path for _, path in list_scenarios([REPOSITORY / "scenarios"])],
    ids=lambda path: path.stem,
)
def test_each_scenario_of_the_project(path: Path) -> None:
    scenario = load_scenario(path)
    directory = REPOSITORY / "scenarios"
    assert scenario.name == str(path.relative_to(directory).with_suffix(""))
    assert scenario.points()
    # Of a user's program nothing is known before it has run.
    assert scenario.expectations or "program" in scenario.parameters
    assert "What must come out" in docstring_of(path)
    assert "Paper:" in docstring_of(path)
    assert len(path.read_text().splitlines()) <= 100


def test_listing_has_each_scenario_once() -> None:
    names = [name for name, _ in list_scenarios([REPOSITORY / "scenarios"])]
    assert {"smoke/pingpong", "smoke/message_rate", "smoke/waiting"} <= set(names)
    assert len(names) == len(set(names))
