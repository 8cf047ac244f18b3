"""Commands of a clone whose compiled modules are missing, of another Python, or out of date."""

from __future__ import annotations

import _ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tree import ROOT

from shrimpmx.native.loading import build_words

TAG = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
SCRIPT = "from shrimpmx.cli import main; raise SystemExit(main(['list']))"
# How a command begins.
ENTRIES = {
    "script": ["-c", SCRIPT],
    "module": ["-m", "shrimpmx", "list"],
    "run": ["-m", "shrimpmx", "run", "smoke/pingpong"],
    "simulated": ["-m", "shrimpmx", "run", "smoke/pingpong", "--engine", "simulated"],
    "mpirun": ["-m", "shrimpmx", "mpirun", "-n", "2", "true"],
    "scenario": ["scenarios/smoke/pingpong.py"],
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A directory with links to the package's files, which are one's own to change."""
    own = tmp_path / "clone"
    for name in ("shrimpmx", "scenarios"):
        shutil.copytree(
            ROOT / name,
            own / name,
            copy_function=os.symlink,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    (own / "setup.py").touch()
    return own


def library_of(clone: Path) -> Path:
    """The library of all compiled modules."""
    [file] = clone.glob(f"shrimpmx/native/compiled.{TAG}*.so")
    return file


def started(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", *words],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": str(clone), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def remove(file: Path) -> None:
    file.unlink()


def damage(file: Path) -> None:
    file.unlink()
    file.write_bytes(b"not for a linker")


def confuse(file: Path) -> None:
    file.unlink()
    shutil.copy(_ctypes.__file__, file)  # any other module will do


def age(file: Path) -> None:
    file.rename(file.with_name(file.name.replace(TAG, "cpython-32")))


@pytest.mark.nightly("each command", but=6)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (remove, "is missing, or not compiled for Python 3"),
        (damage, "are not of one version"),
        (confuse, "are not of one version"),
        (age, "is compiled for another Python"),
    ],
)
def test_a_command_says_what_to_compile(
    entry: str, spoil: Callable[[Path], None], told: str, clone: Path
) -> None:
    spoil(library_of(clone))
    done = started(clone, *ENTRIES[entry])
    assert done.returncode == 2
    [sentence] = [each for each in done.stderr.splitlines() if "ranks on" not in each]
    assert sentence.startswith("shrimpmx: ")
    assert told in sentence
    assert f"cd {clone} && {sys.executable} setup.py build_ext --inplace" in sentence
    assert done.stdout == ""


def test_a_program_of_mpi_says_so_too(clone: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    shutil.rmtree(clone / "shrimpmx")
    shutil.copytree(ROOT / "shrimpmx", clone / "shrimpmx")  # ranks get the path that links lead to
    # One that was built by itself comes before the library.
    (clone / "shrimpmx/mpi" / library_of(clone).name.replace("compiled", "schedule")).touch()
    program = [sys.executable, "-P", "-c", "from mpi4py import MPI"]
    done = started(clone, "-m", "shrimpmx", "mpirun", "-n", "1", "--", *program)
    assert done.returncode == 2
    assert "are not of one version" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_installed_is_to_be_installed_again(clone: Path) -> None:
    (clone / "setup.py").unlink()
    library_of(clone).unlink()
    done = started(clone, "-m", "shrimpmx", "list")
    assert done.returncode == 2
    assert "pip install --force-reinstall shrimpmx" in done.stderr
    assert "setup.py" not in done.stderr


def test_a_library_that_is_missing_is_named(clone: Path) -> None:
    done = started(clone, "-c", f"import sys; sys.modules['pydantic'] = None; {SCRIPT}")
    assert done.returncode == 2
    assert "has no module 'pydantic', which shrimpmx needs" in done.stderr
    assert done.stderr.strip().endswith(f"-m pip install {clone}")


@pytest.mark.parametrize(
    "error",
    [
        AttributeError("module 'shrimpmx.nic.names' has no attribute '__pyx_capi__'"),
        TypeError("C function shrimpmx.a.b has wrong signature (expected int, got long)"),
        ValueError("shrimpmx.a.B size changed, may indicate binary incompatibility"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_fills_a_compiled_module_tells_it_from_other_errors(error: Exception) -> None:
    filling = compile("def fill(error): raise error", "a.pyx", "exec")
    space: dict[str, Callable[[Exception], None]] = {}
    exec(filling, space)
    for name, told in (("init shrimpmx.host.endpoint", True), ("init numpy.core", False)):
        space["fill"].__code__ = space["fill"].__code__.replace(co_name=name)
        with pytest.raises(type(error)) as caught:
            space["fill"](error.with_traceback(None))
        assert bool(build_words(caught.value)) == told
