"""Programs of `shrimpmx mpirun` whose ranks hear signals."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.conditions import patient, wait_until

# Each rank says when it listens, and with a handler of which signals.
LISTENS = """
import os
import signal
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
heard = []


def hear(number, frame):
    heard.append(number)


def up():
    print(f"up {world.rank}", flush=True)
    world.Barrier()


def say(words):
    print(f"{words} {world.rank}", flush=True)


"""
engines = pytest.mark.parametrize("engine", ["forked", "simulated"])


@contextmanager
def running(
    engine: str, ranks: int, text: str, place: Path, *options: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A run whose ranks all listen."""
    place.write_text(LISTENS + textwrap.dedent(text))
    words = ["mpirun", "--engine", engine, "-n", str(ranks), *options, sys.executable, str(place)]
    with (
        open(place.with_name("output"), "w") as output,
        open(place.with_name("errors"), "w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "shrimpmx", *words],
            stdout=output,
            stderr=errors,
            process_group=0,
        ) as process,
    ):
        try:
            wait_until(lambda: _printed(place.parent).count("up ") == ranks, "all ranks are up", 50)
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[bytes], directory: Path) -> tuple[list[str], str, int]:
    """What the ranks said beside "up", what the launcher did, and its exit code."""
    code = process.wait(patient(60))
    said = [line for line in _printed(directory).splitlines(True) if not line.startswith("up ")]
    return sorted(said), (directory / "errors").read_text(), code


def _printed(directory: Path) -> str:
    return (directory / "output").read_text()


def all_of(words: str, ranks: int) -> list[str]:
    return [f"{words} {rank}\n" for rank in range(ranks)]
