"""Runs of which a rank spoils what it shares with the others and with its supervisor, each drawn
from a seed, and what may come of them.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from support.conditions import patient
from support.leaks import CRASHES, ProcessState, end_children, settled_changes

PROGRAM = Path(__file__).with_name("spoiling_program.py")
ENGINES = ("forked", "simulated")
# The exit code of a run that does not end by itself.
LATE = 124
# Damaged memory may do nothing, make ranks wait for ever, or fail or crash a rank.
DAMAGED = (0, 1, 3, LATE, *(128 + number for number in CRASHES))
# What a rank spoils, and the exit codes that a run may then have.
KINDS: dict[str, tuple[int, ...]] = {
    "control": DAMAGED,
    "node": DAMAGED,
    "heap": DAMAGED,
    "plan": DAMAGED,
    "queue": (3,),
    "forged": (0, 3, LATE),
    "flood": (0, 3, LATE),
    "files": (0, 3),
    "wishes": (3, LATE),
}
# After so long without an end a run of such a kind is given up, and one of another kind, s.
TIMEOUT_S, LONG_TIMEOUT_S = 8, 40
LIMIT_S = 60.0


@dataclass(frozen=True)
class Spoiled:
    """What a rank spoils, in a run of MPI or of a program that joins."""

    seed: int
    kind: str
    way: str
    engine: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.engine} engine: {self.kind} of {self.way}"


def draw_spoiled(seed: int, engine: str, kind: str | None = None) -> Spoiled:
    """What the rank of that seed spoils; only a simulation grants wishes."""
    draw = random.Random(seed)
    kinds = [name for name in KINDS if name != "wishes" or engine == "simulated"]
    drawn = draw.choice(kinds)
    return Spoiled(seed, kind or drawn, draw.choice(["mpi", "mpi", "join"]), engine)


def command_of(run: Spoiled) -> list[str]:
    """The command that runs it."""
    words = [str(PROGRAM), run.way, run.kind, str(run.seed)]
    timeout_s = TIMEOUT_S if LATE in KINDS[run.kind] else LONG_TIMEOUT_S
    head = [sys.executable, "-m", "shrimpmx"]
    engine = ["--engine", run.engine]
    if run.way == "mpi":
        options = ["-n", "2", "--nodes", "2", "--timeout", str(timeout_s), *engine]
        return [*head, "mpirun", *options, sys.executable, *words]
    sets = [f"program={PROGRAM}", f"arguments={' '.join(words[1:])}", "coalescing=stream"]
    return [*head, "run", *sets, f"deadline-s={timeout_s}", *engine]


def faults_of(run: Spoiled) -> list[str]:
    """What is wrong with its end, in words."""
    before = ProcessState.now()
    with tempfile.TemporaryDirectory() as directory:
        found = _ended(run, directory)
    left = settled_changes(before)
    if left:
        end_children(before)
    return found + left


def _ended(run: Spoiled, directory: str) -> list[str]:
    with subprocess.Popen(
        command_of(run),
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            said = process.communicate(timeout=patient(LIMIT_S))[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return [f"{run} hangs:\n{process.communicate()[1].decode(errors='replace')}"]
    lines, found = said.splitlines(), []
    # One that joins is given up by the run's own deadline.
    allowed = (
        KINDS[run.kind] if run.way == "mpi" else {3 if c == LATE else c for c in KINDS[run.kind]}
    )
    # An agent reads what ranks write, and ends with a sentence of its own.
    if re.search(r"^shrimpmx: (?!rank)\S+ \(.*\) was killed by SIG", said, re.M):
        found.append("an agent that crashed")
    if process.returncode not in allowed:
        found.append(f"exit code {process.returncode}")
    if "shrimpmx/__main__.py" in said:  # of a rank's program there may be one
        found.append("a traceback")
    if not all(
        letter.isprintable() or letter == "\t" for line in said.split("\n") for letter in line
    ):
        found.append("a command for the terminal")
    if process.returncode and not (lines and lines[-1].startswith("shrimpmx")):
        found.append("no sentence")
    return [f"{run}: {', '.join(found)}:\n{said}"] if found else []
