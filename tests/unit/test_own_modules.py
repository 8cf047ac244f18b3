"""How the package finds its own modules."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.tree import ROOT

import shrimpmx
from shrimpmx import errors, native
from shrimpmx.native import clock, cores

NAMED = ("__name__", "__package__", "__file__", "__cached__", "__path__")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with the finder, and nothing else."""
    home = tmp_path / "shrimpmx"
    home.mkdir()
    (home / "__init__.py").write_bytes((ROOT / "shrimpmx/__init__.py").read_bytes())
    return home


def told(package: Path, statements: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", statements],
        cwd=package.parent,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("module", [errors, native])
def test_modules_have_what_the_standard_finder_gives_them(module: object) -> None:
    name, path = vars(module)["__name__"], shrimpmx.__path__
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    assert spec is not None
    standard = vars(importlib.util.module_from_spec(spec))
    assert {each: vars(module).get(each) for each in NAMED} == {
        each: standard.get(each) for each in NAMED
    }


def test_compiled_modules_are_in_one_library() -> None:
    assert clock.__file__ == cores.__file__
    assert clock.__spec__ is not None
    assert clock.__spec__.name == clock.__name__ == "shrimpmx.native.clock"


def test_a_changed_source_is_loaded(package: Path) -> None:
    source = package / "told.py"
    source.write_text("print('first')")
    assert told(package, "import shrimpmx.told") == "first\n"
    [bytecode] = package.glob("__pycache__/told.*.pyc")
    before = bytecode.read_bytes()
    assert told(package, "import shrimpmx.told") == "first\n"
    source.write_text("print('changed')")
    assert told(package, "import shrimpmx.told") == "changed\n"
    assert bytecode.read_bytes() != before


def test_spoiled_bytecode_is_made_anew(package: Path) -> None:
    (package / "told.py").write_text("print('first')")
    told(package, "import shrimpmx.told")
    [bytecode] = package.glob("__pycache__/told.*.pyc")
    bytecode.write_bytes(b"")
    assert told(package, "import shrimpmx.told") == "first\n"


def test_bytecode_may_be_kept_elsewhere(package: Path, tmp_path: Path) -> None:
    (package / "told.py").write_text("print(__cached__)")
    kept = tmp_path / "kept"
    place = told(package, "import shrimpmx.told", PYTHONPYCACHEPREFIX=str(kept)).strip()
    assert Path(place).is_relative_to(kept)
    assert Path(place).exists()


def test_code_of_a_moved_package_names_its_file(package: Path, tmp_path: Path) -> None:
    (package / "told.py").write_text("def tell(): pass\nprint(tell.__code__.co_filename)")
    told(package, "import shrimpmx.told")
    moved = tmp_path / "moved" / package.name
    moved.parent.mkdir()
    package.rename(moved)
    assert told(moved, "import shrimpmx.told").strip() == str(moved / "told.py")
