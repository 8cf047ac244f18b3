"""What applications say without mpi4py, and without an MPI library for it."""

from __future__ import annotations

import pytest

from shrimpmx.applications import refuse_without_mpi


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (ModuleNotFoundError("No module named 'mpi4py'"), "pip install mpi4py"),
        (ImportError("libmpi.so.12: cannot open"), "shrimpmx mpirun"),
        (RuntimeError("cannot load MPI library"), "MPI4PY_LIBMPI"),
    ],
)
def test_the_advice_fits_what_is_missing(
    error: Exception, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        refuse_without_mpi("imb", error)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == 1
    assert ("pip" in said) == isinstance(error, ModuleNotFoundError)
