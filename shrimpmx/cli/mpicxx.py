"""`shrimpmx mpicxx`: see mpicc.py."""

from __future__ import annotations

from functools import partial

from shrimpmx.cli import mpicc

add_parser = partial(mpicc.add_parser, name="mpicxx")
