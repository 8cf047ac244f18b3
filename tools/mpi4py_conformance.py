"""mpi4py's own tests on 1 to 4 ranks: what passes, what fails, what is refused.

    pip download --no-binary :all: --no-deps mpi4py==4.1.2
    python tools/mpi4py_conformance.py mpi4py-4.1.2.tar.gz
    python tools/mpi4py_conformance.py mpi4py-4.1.2 --only test_p2p_buf test_comm --ranks 2,4

Each test file runs by itself under `shrimpmx mpirun`, and under MPICH where Debian's package mpich
is installed; mpi4py's demonstrations and benchmarks run, too. A case that failed on any rank has
failed. A file that takes too long is stopped, and the others go on. Writes conformance.json, of
which `shrimpmx report` makes a page.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools")]

from conformance_rank import REFUSED  # noqa: E402
from conformance_table import (  # noqa: E402
    FileResult,
    Results,
    document_of,
    file_result,
    without_paths,
)
from other_mpis import Mpi, mpich  # noqa: E402

from shrimpmx.errors import ShrimpmxError  # noqa: E402
from shrimpmx.page.conformance import CONFORMANCE_FILE  # noqa: E402
from shrimpmx.results.json_file import write_json  # noqa: E402

GET = "pip download --no-binary :all: --no-deps mpi4py==4.1.2"
OUTPUT = Path("results/conformance") / CONFORMANCE_FILE
END_S = 10.0  # for what has been told to end
SLOTS = 64  # for the ranks, those that they start, and those of the case before, which are ending
# What needs no refused call: options of mpi4py.bench, and programs in the folder demo, each with
# its number of ranks and standard input.
BENCH = {"helloworld": 4, "ringtest": 4, "pingpong -l 20 -m 65536": 2}
DEMOS = {
    "compute-pi/cpi-cco.py": (4, "100\n0\n"),
    "helloworld.py": (4, ""),
    "init-fini/test_?.py": (2, ""),
    "mpi-ref-v1/ex-*.py": (4, ""),
    "nxtval/nxtval-threads.py": (4, ""),
    "osu_[bl]*.py": (2, ""),
    "osu_[ags]*.py": (4, ""),
    "osu_m*.py": (2, ""),
    "reductions/test_reductions.py": (4, ""),
    "sequential/test_seq.py": (4, ""),
    "threads/sendrecv.py": (2, ""),
}


class BadInputError(Exception):
    """A sentence."""


@dataclass(frozen=True)
class Program:
    """A program of mpi4py: its name, what stands behind `python`, and its standard input."""

    name: str
    ranks: int
    words: list[str]
    given: str = ""


def ours(limit_s: float) -> Mpi:
    """Ranks that block: with more ranks than idle CPUs all other ways take many times as long."""
    command = (sys.executable, "-m", "shrimpmx", "mpirun", "--set", "wait=block")
    command = (*command, "--slots", str(SLOTS), "--timeout", str(limit_s), "-n")
    python_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return Mpi("shrimpmx", command, {"PYTHONPATH": python_path})


def has_room(mpi: Mpi, ranks: int) -> bool:
    """Whether it can be run here: MPICH's ranks spin, and take hours where they share a CPU."""
    return mpi.name == "shrimpmx" or ranks <= len(os.sched_getaffinity(0))


def run(
    mpi: Mpi, ranks: int, words: Sequence[str], limit_s: float, cwd: Path, given: str = ""
) -> tuple[str, str]:
    """Run a Python program; how it ended ("" for well), and what it said."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*mpi.command, str(ranks), sys.executable, *words],
            env=os.environ | mpi.variables | {"MPIEXEC_TIMEOUT": str(round(limit_s))},
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            start_new_session=True,
            text=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(given, timeout=limit_s + END_S)
        is_hung = process.poll() is None or process.returncode == 124
        _end(process)
        said.seek(0)
        text = said.read()
    is_hung = is_hung or "APPLICATION TIMED OUT" in text
    return (
        "hung" if is_hung else f"exit code {process.returncode}" * (process.returncode != 0),
        text,
    )


def _end(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)


def run_file(mpi: Mpi, folder: Path, file: str, ranks: int, limit_s: float) -> FileResult:
    """Run a test file of mpi4py on so many ranks."""
    with tempfile.TemporaryDirectory() as directory:
        words = [str(ROOT / "tools/conformance_rank.py"), str(folder / "test"), file, directory]
        end, _ = run(mpi, ranks, words, limit_s, folder)
        return file_result(file, ranks, Path(directory), end)


def programs(folder: Path) -> Iterator[Program]:
    """mpi4py's benchmarks and demonstrations."""
    for words, ranks in BENCH.items():
        yield Program(
            f"mpi4py.bench {words.split()[0]}", ranks, ["-m", "mpi4py.bench", *words.split()]
        )
    for pattern, (ranks, given) in DEMOS.items():
        for path in sorted((folder / "demo").glob(pattern)):
            yield Program(str(path.relative_to(folder)), ranks, [str(path)], given)


def run_program(mpi: Mpi, folder: Path, program: Program, limit_s: float) -> str:
    """Run one of mpi4py's programs in its folder; "runs", or what was in the way."""
    directory = (folder / program.name).parent if program.name.startswith("demo") else folder
    end, text = run(mpi, program.ranks, program.words, limit_s, directory, program.given)
    if refused := REFUSED.search(text):
        return f"refused: {refused[1]}"
    last = next((line for line in reversed(text.splitlines()) if "Error" in line), "")
    return f"{end}: {without_paths(last)[:100]}".rstrip(": ") if end else "runs"


def unpacked(source: Path, scratch: Path) -> Path:
    """The folder of mpi4py's source distribution."""
    folder = source
    if source.is_file():
        try:
            with tarfile.open(source) as archive:
                archive.extractall(scratch, filter="data")
        except tarfile.TarError:
            raise BadInputError(f"{source} is not an archive; get one by `{GET}`") from None
        folder = next((path.parent for path in scratch.glob("*/test")), scratch)
    if not (folder / "test/main.py").exists():
        raise BadInputError(f"{source} is not mpi4py's source distribution; get it by `{GET}`")
    return folder.resolve()


def wanted_files(folder: Path, only: Sequence[str] | None) -> list[str]:
    files = sorted(path.stem for path in (folder / "test").glob("test_*.py"))
    chosen = [Path(name).stem for name in only or files]
    for name in chosen:
        if name not in files:
            raise BadInputError(f"there is no test file {name}.py in {folder / 'test'}")
    return chosen


def numbers(text: str) -> list[int]:
    """Rank counts with commas between them."""
    found = [int(word) for word in text.split(",") if re.fullmatch(r"[1-9]\d?", word)]
    if len(found) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"must be numbers of ranks, as 1,2,4, not {text!r}")
    return found


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise BadInputError(message)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, nargs="?", help=f"the .tar.gz or its folder ({GET})")
    parser.add_argument("--only", nargs="+", metavar="FILE", help="these test files, no programs")
    parser.add_argument("--ranks", type=numbers, default=[1, 2, 3, 4], help="(1,2,3,4)")
    parser.add_argument("--timeout", type=float, default=90.0, help="of a file, s (90)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"({OUTPUT})")
    parser.add_argument("--alone", action="store_true", help="leave MPICH out")
    options = parser.parse_args(arguments)
    if options.source is None:
        raise BadInputError(f"name mpi4py's source distribution; get it by `{GET}`")
    if not options.source.exists():
        raise BadInputError(f"there is no {options.source}; get it by `{GET}`")
    if not 1 <= options.timeout <= 3600:
        raise BadInputError(f"--timeout must be from 1 to 3600, not {options.timeout:g}")
    return options


def conform(options: argparse.Namespace, scratch: Path) -> None:
    """Run everything, and write the document."""
    folder = unpacked(options.source, scratch)
    # Workers of a pool, which start by themselves, load the functions of the test files.
    paths = (str(folder / "test"), os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    files = wanted_files(folder, options.only)
    mpis = [ours(options.timeout), *([] if options.alone else filter(None, [mpich(scratch)]))]
    results: Results = {}
    ran: dict[str, list[str]] = {}

    def write() -> None:  # after each file: who interrupts it keeps what was done
        names = [mpi.name for mpi in mpis]
        write_json(options.output, document_of(folder.name, names, results, ran))

    for file in files:
        for ranks, mpi in itertools.product(options.ranks, mpis):
            if not has_room(mpi, ranks):
                continue
            result = run_file(mpi, folder, file, ranks, options.timeout)
            results.setdefault((mpi.name, ranks), {})[file] = result
            tell(f"{file} on {ranks} ranks of {mpi.name}: {dict(result.counts())} {result.end}")
        write()
    for program in () if options.only else programs(folder):
        found = [
            run_program(mpi, folder, program, options.timeout)
            if has_room(mpi, program.ranks)
            else "not run"
            for mpi in mpis
        ]
        ran[f"{program.name}, {program.ranks} ranks"] = found
        tell(f"{program.name}: {found}")
    write()


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            conform(options_of(arguments), Path(scratch))
    except (BadInputError, ShrimpmxError, OSError) as error:
        tell(f"mpi4py_conformance.py: {error}")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
