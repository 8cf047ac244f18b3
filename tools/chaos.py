"""Random runs whose processes are killed, stopped, continued and throttled at random moments.

    python tools/chaos.py --minutes 1
    python tools/chaos.py --deaths 2000
    python tools/chaos.py --seeds 1-500
    python tools/chaos.py --seed 7

Each seed draws a run, of any kind of NIC, workload, coalescing and waiting strategy or an MPI
program, and torments for its processes: at moments, at points of their trace, or while they join.
Behind each run stand checks: the exit code, and a sentence that names the right process; nothing is
left of the run; the survivors have all their messages, and no packet was handled that had not come;
it ended in time. A finding prints the seed, the scene, what was done, and where the run's files
are; the exit code is 1. The same seed draws the same again, though its moments fall otherwise.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import inputs

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.chaos import play  # noqa: E402
from support.chaos_scenes import draw_scene  # noqa: E402
from support.chaos_verdicts import Played  # noqa: E402

MINUTES = 1.0
REPORT_S = 10.0
# From so long a gap between two looks on a report tells of it.
STILL_S = 1.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(2)


def parsed() -> argparse.Namespace:
    """The options. Exits with code 2 and a sentence if they cannot be used."""
    parser = _Parser(prog="chaos.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, help="play this one alone")
    parser.add_argument("--seeds", type=inputs.seeds, metavar="A-B", help="play these")
    parser.add_argument("--minutes", type=float, help=f"play so long ({MINUTES:g})")
    parser.add_argument("--deaths", type=int, help="play until so many processes were killed")
    options = parser.parse_args()
    given = [name for name, value in vars(options).items() if value is not None]
    if len(given) > 1 and not {"minutes", "deaths"}.issuperset(given):
        parser.error(f"--{given[0]} and --{given[1]} exclude each other: give one of them")
    inputs.check(options, {"seed": inputs.SEED, "minutes": (0, 10_000), "deaths": (1, 10**9)})
    if importlib.util.find_spec("mpi4py") is None:
        parser.error("some scenes are MPI programs, which need mpi4py: pip install mpi4py")
    if not given:
        options.minutes = MINUTES
    return options


def seeds_of(options: argparse.Namespace) -> Iterator[int]:
    """The seeds to play; without end where time or deaths end them."""
    if options.seed is not None:
        return iter((options.seed,))
    return iter(options.seeds) if options.seeds is not None else count(1)


def report(played: Played, findings: list[str], directory: Path) -> str:
    """A scene and what came of it, in some lines."""
    scene = played.scene
    deeds = [
        f"{deed.action} {deed.process} (pid {deed.pid}) at {deed.at_s:.3f} s"
        for deed in played.deeds
    ]
    lines = [f"seed {scene.seed}: {scene}", f"  done: {'; '.join(deeds) or 'nothing'}"]
    lines += [f"  end: {played.outcome}", *(f"  FINDING: {finding}" for finding in findings)]
    if played.unseen_s > STILL_S:
        lines.append(f"  not looked at for {played.unseen_s:.1f} s: did the machine stand still?")
    return "\n".join([*lines, f"  files: {directory}"] if findings else lines)


def play_all(options: argparse.Namespace, directory: Path, done: Counter[str]) -> None:
    """Play scenes until seeds, time or deaths are up, and add to the sums."""
    began = told = time.monotonic()
    until = math.inf if options.minutes is None else began + 60 * options.minutes
    for seed in seeds_of(options):
        now = time.monotonic()
        if now > until or (options.deaths and done["deaths"] >= options.deaths):
            return
        if now > told + REPORT_S:
            print(f"before seed {seed}: {words(done, now - began)}", flush=True)
            told = now
        files = directory / str(seed)
        played, findings = play(draw_scene(seed), files)
        note(done, played, findings)
        if findings or options.seed is not None:
            print(report(played, findings, files), flush=True)
        if not findings:
            shutil.rmtree(files, ignore_errors=True)


def note(done: Counter[str], played: Played, findings: list[str]) -> None:
    """Add a run to the sums."""
    done["runs"] += 1
    done["deaths"] += len(played.done("kill"))
    done["stops"] += len(played.done("stop", "hold", "flutter"))
    done["throttled"] += len(played.done("nice", "idle"))
    done["findings"] += bool(findings)


def words(done: Counter[str], seconds: float) -> str:
    """The sums in a line."""
    return (
        f"{done['runs']} runs, {done['deaths']} deaths, {done['stops']} stops, "
        f"{done['throttled']} throttled, {done['findings']} with findings, {seconds:.0f} s"
    )


def main() -> int:
    """Play scenes; returns the exit code."""
    options = parsed()
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    began = time.monotonic()
    done: Counter[str] = Counter()
    interrupted = False
    try:
        play_all(options, directory, done)
    except KeyboardInterrupt:
        interrupted = True
    if not done["findings"]:
        shutil.rmtree(directory, ignore_errors=True)
    print(words(done, time.monotonic() - began))
    return 1 if done["findings"] else 128 + signal.SIGINT if interrupted else 0


if __name__ == "__main__":
    raise SystemExit(main())
