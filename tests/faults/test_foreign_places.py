"""No command writes below a place in which another user may rename: one sentence, exit code 2, and
nothing there has changed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.users import ANOTHER, needs_two_users

from shrimpmx.cli import main

SIMULATED = ("--engine", "simulated")
RUN = ("run", "smoke/pingpong", "iterations=2", "warmup=1", "repeats=1", "size_bytes=0,64")
MPIRUN = ("mpirun", "-n", "2", *SIMULATED)
EXPLORE = ("explore", "-n", "2", *SIMULATED)
REPRODUCE = ("reproduce", "IC-14", "platform=none", *SIMULATED)

BINDING = ("binding", "--root", "ROOT", "--interface", "eth2", "--mac", "00:60:dd:47:00:01")
TABLE = "            CPU0\n 30:          7  PCI-MSI  eth2-rx-0\n"

# Behind each stands a path below the place.
PLACES: dict[str, tuple[str, ...]] = {
    "run": (*RUN, *SIMULATED, "--output"),
    "run-real": (*RUN, "--output"),
    "run-trace": (*RUN, *SIMULATED, "--trace", "--capture", "--output"),
    "run-json": (*RUN, *SIMULATED, "--json"),
    "mpirun": (*MPIRUN, "--output"),
    "mpirun-trace": (*MPIRUN, "--trace", "--output"),
    "mpirun-json": (*MPIRUN, "--json"),
    "mpirun-profile": (*MPIRUN, "--profile"),
    "explore": (*EXPLORE, "--output"),
    "explore-json": (*EXPLORE, "--json"),
    "explore-plot": (*EXPLORE, "--plot"),
    "reproduce": (*REPRODUCE, "--output"),
    "reproduce-json": (*REPRODUCE, "--json"),
    "report": ("report", "RESULT", "--output"),
    "plot": ("plot", "RESULT", "--output"),
    "export": ("export", "RESULT", "--csv"),
    "compare": ("compare", "RESULT", "RESULT", "--json"),
    "calibrate": ("calibrate", "--json"),
    "platform": ("calibrate", "--write-platform"),
    "binding": (*BINDING, "--output"),
    "top": ("top", "--json"),
    **{
        name: (name, "--json")
        for name in ("bench", "caches", "clean", "counters", "doctor", "list", "validate")
    },
    "place": ("place", "smoke/pingpong", "--json"),
}
# These write to the user's cache.
CACHED = {"calibrate": ("calibrate",), "binding": BINDING}
# These write beside the result that they read.
BESIDE = {
    "report": ("report",),
    "plot": ("plot",),
    "resume": (*RUN, *SIMULATED, "--resume", "--output"),
}


def _owned(place: Path) -> Path:
    os.chown(place, ANOTHER, ANOTHER)
    return place


def _open(place: Path) -> Path:
    place.chmod(0o777)
    return place


def _linked(place: Path) -> Path:
    link = place.with_name("link")
    link.symlink_to(place)
    os.lchown(link, ANOTHER, ANOTHER)
    return link


KINDS: dict[str, Callable[[Path], Path]] = {"owned": _owned, "open": _open, "linked": _linked}
REASONS = {
    "owned": f"belongs to user {ANOTHER}",
    "open": "every user may write",
    "linked": f"is a symbolic link of user {ANOTHER}",
}


@pytest.fixture(scope="module")
def result() -> Iterator[Path]:
    """A small result in a directory that all users may pass through."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        path = Path(place, "result")
        assert main([*RUN, *SIMULATED, "--output", str(path)]) == 0
        (path.parent / "proc").mkdir()
        (path.parent / "proc/interrupts").write_text(TABLE)
        (path.parent / "proc/irq/30").mkdir(parents=True)
        (path.parent / "proc/irq/30/smp_affinity").write_text("1\n")
        yield path


@pytest.fixture
def place(result: Path) -> Iterator[Path]:
    """A directory beside that result."""
    with tempfile.TemporaryDirectory(dir=result.parent) as around:
        Path(around).chmod(0o755)
        path = Path(around, "place")
        path.mkdir()
        yield path


def words_of(words: Sequence[str], result: Path) -> list[str]:
    """A command's words, with the paths of what it reads."""
    paths = {"RESULT": str(result), "ROOT": str(result.parent)}
    return [paths.get(word, word) for word in words]


def files_of(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes() if path.is_file() else b""
        for path in place.rglob("*")
    }


@pytest.mark.nightly("each place", but=6)
@needs_two_users
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLACES)
def test_no_command_writes_where_others_may_rename(
    name: str,
    kind: str,
    result: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("shrimpmx.cli.mpirun.py_spy", lambda: "py-spy")
    place.joinpath("old").write_text("old")
    below = str(KINDS[kind](place) / ("new.toml" if name == "platform" else "new"))
    program = ["true"] if PLACES[name][0] in ("mpirun", "explore") else []
    assert main([*words_of(PLACES[name], result), below, *program]) == 2
    said = capsys.readouterr().err
    assert REASONS[kind] in said
    assert len(said.splitlines()) == 1
    assert files_of(place) == {"old": b"old"}


@needs_two_users
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CACHED)
def test_nothing_is_kept_in_a_cache_where_others_may_rename(
    name: str,
    kind: str,
    result: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(KINDS[kind](place)))
    assert main(words_of(CACHED[name], result)) == 2
    assert REASONS[kind] in capsys.readouterr().err
    assert files_of(place) == {}


@pytest.mark.nightly("each place", but=5)
@needs_two_users
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BESIDE)
def test_no_command_writes_beside_a_result_where_others_may_rename(
    name: str, kind: str, result: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(result, place, dirs_exist_ok=True)
    before = files_of(place)
    assert main([*BESIDE[name], str(KINDS[kind](place))]) == 2
    assert REASONS[kind] in capsys.readouterr().err
    assert files_of(place) == before
