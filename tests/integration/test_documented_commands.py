"""Every command of the README, of the documents and of claims' causes is run, shortened: as many
points as it names, one run each, few messages.
"""

from __future__ import annotations

import glob
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.conditions import patient, wait_until
from support.documents import PAGES, TUTORIAL, examples, is_live, own_commands
from support.tree import ROOT

from shrimpmx.bench.run import benchmarks
from shrimpmx.cli import main, parse
from shrimpmx.cli.options import take_scenario
from shrimpmx.cluster.live.runs import live_runs
from shrimpmx.experiment.engines import chosen_engine
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.papers.causes import CAUSES
from shrimpmx.settings.assignments import split_setting

# What every run of a scenario is shortened by; the axes that a command does not set have one value.
SHORT = {"repeats": "1", "iterations": "3", "warmup": "1"}
# Of a scenario that would take the dilation that a calibration proposes.
LITTLE_DILATED = {"time_dilation": "2"}
BUILD_FILES = ("setup.py", "setup.cfg", "pyproject.toml")
# Commands that are not run here, and why.
ELSEWHERE = {
    ".venv/bin/python -m pytest": "is the suite itself",
    ".venv/bin/python tools/chaos.py": "takes minutes; tests/faults/test_chaos.py plays a few",
    ".venv/bin/python tools/collectives.py": "takes minutes; is run by hand",
    ".venv/bin/python tools/compare_mpi.py": "takes ten minutes and other MPIs; is run by hand",
    ".venv/bin/python tools/compare_simulators.py": "takes a minute and other simulators",
    ".venv/bin/python tools/floors.py": "takes a minute; tests/integration/test_floors.py runs it",
    ".venv/bin/python tools/mutations.py": "breaks the clone that it runs in; is run by hand",
    ".venv/bin/python tools/nas_plain.py": "takes a minute; test_nas.py runs a step",
    ".venv/bin/python tools/schedules.py": "compiles the project once more; make schedules runs it",
    ".venv/bin/python tools/fuzz.py": "compiles the project once more; is run by hand",
    ".venv/bin/python tools/soak.py": "takes half an hour; test_soak.py sends a few messages",
    ".venv/bin/python tools/goldens.py": "writes into tests/support; is run by hand",
    ".venv/bin/python tools/simulated_scale.py": "takes a minute; test_simulated_scale.py runs it",
    ".venv/bin/python tools/verdict_ranges.py": "takes minutes; test_verdict_ranges.py runs one",
    ".venv/bin/python tools/seeds.py": "takes minutes; test_simulation_seeds.py runs 200 seeds",
    "dask": "needs a network; tests/integration/test_sweeps_on_dask.py starts a cluster",
    "pip install": "installs from the network",
    "python -m http.server": "serves until it is ended; is run by hand",
    "py-spy": "is not one of our dependencies; py-spy is run by hand",
    "shrimpmx lesson": "takes half a minute; test_lesson_in_browser.py writes them",
    "shrimpmx lab": "serves until it is ended; tests/unit/test_lab.py asks it",
    "shrimpmx mpirun -n 4 --profile": "needs py-spy, which is run by hand",
    "shrimpmx run --scheduler": "needs a cluster; test_sweeps_on_dask.py has one",
    "shrimpmx caches": "takes half a minute in valgrind; tests/integration/test_caches.py runs it",
    "shrimpmx run coalescing/table5_interrupts": "a program; test_nas.py runs it",
    "shrimpmx run coalescing/table4_nas --set 'program=NPB": "needs NPB; test_compiled_programs.py "
    "runs a program in its place",
    "shrimpmx run multiqueue/fig5_alltoall": "a program; test_imb_cluster.py runs it",
    "shrimpmx fit": "takes minutes; tests/unit/test_fit.py fits a few costs",
    "shrimpmx explore --engine simulated --set platform=cluster.toml": "needs a fit",
    "shrimpmx run smoke/pingpong --engine simulated --set platform=cluster.toml": "needs a fit",
    "shrimpmx mpirun --engine simulated --set platform=cluster.toml": "needs a fit",
    "shrimpmx validate": "takes minutes; tests/integration/test_validate.py runs a part",
}
# What a newcomer reads. The commands of other pages run nightly.
FIRST_PAGES = ("README.md", "tutorial.md", "c-and-fortran.md")


def when(group: str) -> tuple[pytest.MarkDecorator, ...]:
    """The marks of a page's commands, which look at each other's results."""
    if group in FIRST_PAGES:
        return ()
    return (pytest.mark.nightly("pages for those who read on", group=group),)


# In the order of the pages: a command may look at the result of one before.
COMMANDS = [
    pytest.param(command, id=f"{page.name}-{number}", marks=when(page.name))
    for page in PAGES
    for number, command in enumerate(own_commands(page))
    if not is_live(command)
] + [
    pytest.param(f"shrimpmx {each.command}", id="-".join(each.claims), marks=when("causes"))
    for each in CAUSES
]
# The README's results, which other pages look at, and the commands that make them.
MADE = {
    found[1]: command
    for command in own_commands(ROOT / "README.md")
    if (found := re.search(r"^shrimpmx run .*--output (\S+)", command))
}
SCENARIOS = [
    pytest.param(page, number, id=f"{page.name}-{number}")
    for page in PAGES
    if page != TUTORIAL
    for number, _ in enumerate(examples(page, "scenario = Scenario("))
]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with what a clone has, and a calibration of its own, taken quickly."""
    place = tmp_path_factory.mktemp("clone")
    for each in ("scenarios", "results-archive", "shrimpmx", "tools", "Makefile", *BUILD_FILES):
        (place / each).symlink_to(ROOT / each)
    example = next(examples(ROOT / "docs/programs.md", "shrimpmx.join()"))
    (place / "yours.py").write_text(example)
    (place / "ring.py").write_text(next(examples(ROOT / "docs/mpirun.md", "mpi4py")))
    (place / "pool.py").write_text(next(examples(ROOT / "docs/mpirun.md", "MPIPoolExecutor")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.chdir(place)
        assert main(["calibrate", "--seconds", "0.02"]) == 0
        yield place


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.timeout(180)
def test_commands(command: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "--output" not in command:
        for word in MADE.keys() & set(command.split()):
            # The README's commands may run another day.
            assert Path(word).exists() or run(MADE[word]) == 0
    assert run(command) == 0, f"{command}: {capsys.readouterr().err}"


@pytest.mark.timeout(120)
def test_commands_that_look_at_a_live_run(workplace: Path) -> None:
    found = [command for page in PAGES for command in own_commands(page) if is_live(command)]
    ending = [command for command in found if "--watch" in command]
    assert len(found) > 8
    live = start_live_run()
    try:
        for command in [command for command in found if command not in ending]:
            assert run_live(command, live.pid) == 0, command
    finally:
        live.send_signal(signal.SIGINT)
    # These go on until the run ends, if it has not ended already.
    for command in ending:
        assert run_live(command, live.pid) in (0, 2), command
    assert live.wait(patient(50)) == 3


@pytest.mark.parametrize(("page", "number"), SCENARIOS)
def test_scenarios_of_the_documents(page: Path, number: int, workplace: Path) -> None:
    path = workplace / f"{page.stem}{number}.py"
    path.write_text(list(examples(page, "scenario = Scenario("))[number])
    assert run(f"shrimpmx run {path}") == 0


@pytest.mark.nightly("a page for those who read on", group="counters.md")
def test_counters_in_a_script(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = "results/pingpong"
    assert Path(place).exists() or run(f"shrimpmx run smoke/pingpong --output {place}") == 0
    capsys.readouterr()
    exec(next(examples(ROOT / "docs/counters.md", place)), {})
    assert "size_bytes" in capsys.readouterr().out


def run(command: str) -> int:
    """Run a command in the current directory, shortened; its exit code."""
    if any(command.startswith(start) for start in ELSEWHERE):
        if command.startswith("shrimpmx"):
            parse(shlex.split(command)[1:])
        return 0
    program = command.split()[0]
    assert program in HANDLERS, f"nothing here knows how to run {command!r}"
    return HANDLERS[program](command)


def run_live(command: str, pid: int) -> int:
    """Run one that shows a live run: that of the process `pid`, for a moment."""
    words = shlex.split(command)[1:]
    if words[0] == "top":
        short = ["--interval", "0.3", "--once"]
        if "--count" in words:
            short = ["--interval", "0.3"]
            words[words.index("--count") + 1] = "2"
        words = [*(word for word in words if word != "--once"), *short]
    this_run = next((run.run_id for run in live_runs() if run.pid == pid), "over")
    ids = [word for word in words[1:2] if not word.startswith("-")]
    return main([words[0], this_run, *words[1 + len(ids) :]])


def start_live_run() -> subprocess.Popen[bytes]:
    """A long ping-pong that sleeps most of the time, with the cores that `affinity` names."""
    settings = ("cores=9", "rx_queues=2", "size_bytes=0", "coalescing=timeout", "repeats=1")
    settings = (*settings, "iterations=1000000", f"deadline_s={patient(90):g}")
    arguments = ["run", "smoke/pingpong", *settings]
    process = subprocess.Popen(
        [sys.executable, "-m", "shrimpmx", *arguments, "--output", "results/live"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: any(run.pid == process.pid for run in live_runs()), "it runs", 30)
    return process


def _shrimpmx(command: str) -> int:
    words = shlex.split(command)[1:]
    shorter: dict[str, Callable[[list[str]], list[str]]] = {
        "run": _short_run,
        "reproduce": lambda words: [*words, *({"--list"} - set(words))],
        "bench": _one_part,
        "explore": _one_setting,
        "calibrate": lambda words: [*words, "--show"],  # `workplace` has measured
        "plot": _with_results,
    }
    words = shorter.get(words[0], list)(words)
    if words[0] in ("mpirun", "explore") and "python" in words:
        if find_spec("mpi4py") is None:
            parse(words)
            return 0
        words[words.index("python")] = sys.executable
    if words[0] == "bench":
        return _bench(*words)
    if words[0] in ("plot", "explore"):  # the drawing library keeps its fonts open
        return subprocess.run([sys.executable, "-m", "shrimpmx", *words], check=False).returncode
    return main(words)


def _short_run(words: list[str]) -> list[str]:
    """The command with few messages, and one value of each axis that it does not name."""
    options = parse(words)
    scenario = load_scenario(find_scenario(take_scenario(options)))
    given = dict(split_setting(setting) for setting in options.settings)
    settings = {axis: _as_set(values[0]) for axis, values in scenario.sweep.items()}
    if scenario.parameters.get("platform") == "myri10g-2009":
        settings |= LITTLE_DILATED
    settings |= {key.replace("-", "_"): value for key, value in given.items()} | SHORT
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word != "--set" and ("=" not in word or before == "--what-if")
    ]
    return [*kept, *map("=".join, settings.items())]


def _as_set(value: object) -> str:
    """A value as --set takes it."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _one_setting(words: list[str]) -> list[str]:
    """`explore` with a single setting, once."""
    parse(words)
    lists = ["--coalescing", "stream", "--placement", "one-core", "--wait", "block"]
    start = next(words.index(word) for word in ("python", "./ring") if word in words)
    settings = [word.partition(",")[0] for word in words[:start] if word != "--"]
    return [*settings, *lists, "--runs", "1", *words[start:]]


def _one_part(words: list[str]) -> list[str]:
    """`bench` with a quick figure in place of those that it names, if there are such."""
    options = parse(words)
    names = [benchmark.name for benchmark in benchmarks(chosen_engine())]
    for part in options.only or []:
        assert any(one.startswith(part) for one in names), part
    kept = ["--json", str(options.json)] if options.json else []
    return ["bench", *kept, "--only", "ring_pass", "--seconds", "0.02"]


@cache
def _bench(*words: str) -> int:
    """What many commands come to, shortened, is run once."""
    return main(list(words))


def _with_results(words: list[str]) -> list[str]:
    """`plot` with its directories; where an earlier command would have made one, a directory of
    the results that there are.
    """
    found: list[str] = []
    for word in words:
        if "*" in word and not glob.glob(word):
            for path in sorted(Path("results").glob("*/run.json")):
                shutil.copytree(path.parent, Path(word.replace("*", "made"), path.parent.name))
        found += sorted(glob.glob(word)) if "*" in word else [word]
    return found if "--format" in found else [*found, "--format", "svg"]


def _python(command: str) -> int:
    """A scenario file as a program of its own."""
    words = ["run", *shlex.split(command)[1:]]
    return subprocess.run([sys.executable, *_short_run(words)[1:]], check=False).returncode


def _make(command: str) -> int:
    """That the target is there, and what it would do."""
    done = subprocess.run([*shlex.split(command), "--dry-run"], capture_output=True, check=False)
    return done.returncode


def _shell(command: str) -> int:
    if command.startswith("cc ") and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return subprocess.run(command, shell=True, check=False).returncode


HANDLERS: dict[str, Callable[[str], int]] = {
    "shrimpmx": _shrimpmx,
    "python": _python,
    "make": _make,
    **dict.fromkeys(("mkdir", "echo", "cat"), _shell),
}
