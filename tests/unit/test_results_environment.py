"""The environment of a result: the commit of the clone that shrimpmx is run from."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shrimpmx.results import environment


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory in which the module lies as in a clone."""
    module = tmp_path / "shrimpmx" / "results" / "environment.py"
    module.parent.mkdir(parents=True)
    module.write_text("")
    monkeypatch.setattr(environment, "_PACKAGE", tmp_path / "shrimpmx")
    environment.commit.cache_clear()
    yield tmp_path
    environment.commit.cache_clear()


def git(place: Path, *words: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(place), *own, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_the_commit_is_that_of_the_clone_and_says_whether_files_have_changed(clone: Path) -> None:
    git(clone, "init", "-q")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "one")
    head = git(clone, "rev-parse", "HEAD")[:12]
    assert environment.commit() == head
    environment.commit.cache_clear()
    (clone / "shrimpmx" / "results" / "environment.py").write_text("changed")
    assert environment.commit() == f"{head}-dirty"


def test_the_code_is_that_which_the_process_has_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = environment.environment()["code"]
    monkeypatch.setattr(environment, "installed_digest", lambda: "edited since")
    assert environment.environment()["code"] == environment.software()["code"] == loaded


def test_what_is_no_clone_has_no_commit(clone: Path) -> None:
    assert environment.commit() == {"unavailable": "not run from a clone"}


def test_without_git_there_is_no_commit(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clone / ".git").mkdir()
    monkeypatch.setenv("PATH", str(clone))
    found = environment.commit()
    assert isinstance(found, dict)
    assert "git" in found["unavailable"]


@pytest.mark.parametrize(
    ("text", "name"),
    [("processor: 0\nmodel name\t: Some CPU\n", "Some CPU"), ("processor: 0\n", ""), (None, "")],
)
def test_the_cpus_name_is_the_kernels_or_what_else_is_known(
    text: str | None, name: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/cpuinfo").write_text(text)
    assert environment.cpu_model(tmp_path) == (name or platform.processor() or platform.machine())


def test_a_simulated_run_is_of_no_machine() -> None:
    machine = {"name": "one", "costs": {}, "environment": {}}
    assert environment.same_machine(None, None)
    assert not environment.same_machine(machine, None)
    document = {"points": [{"measured_on": 0}, {}], "machines": [machine]}
    assert environment.machine_lines(document) == ["1 points were measured on one (an unknown CPU)"]
