"""`shrimpmx reproduce`: run what the papers' claims need, print each beside what was measured."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.markup import escape

from shrimpmx.cli.beside import write_beside
from shrimpmx.cli.engines import (
    BOTH,
    ENGINES,
    REAL,
    SIMULATED,
    add_engine_options,
    are_elsewhere,
    check_engine_options,
    chosen_engine,
    engine_words,
)
from shrimpmx.cli.spreading import cluster_of, runs_beside
from shrimpmx.cli.sweeping import (
    add_sweep_options,
    add_words,
    bar_for,
    check_sweep_options,
    checked_points,
    costs_for,
    costs_to_keep,
    default_output,
    executor_for,
    kept_platforms,
    resume_command,
    say_how_to_go_on,
    settings_to_go_on,
    stem_of,
    sweep_of,
    take_settings,
    varying_axes,
    without_deadline,
)
from shrimpmx.cli.terminal import console
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.errors import AgentError, InputError, MachineError
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.platform_files import platforms_to_keep
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.recording import Recording
from shrimpmx.experiment.remote.dispatch import Cluster
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.native.streams import put, while_read
from shrimpmx.papers.claim import CLAIMS_FILE, Claim, Finding, judge, scenarios_of
from shrimpmx.papers.claims_report import print_claims, print_findings
from shrimpmx.papers.evidence import Evidence
from shrimpmx.papers.frozen import frozen
from shrimpmx.papers.further_runs import ComparableRuns
from shrimpmx.papers.known import (
    PAPERS,
    chosen,
    hosts_of,
    narrowed,
    on_hosts,
    papers_of,
)
from shrimpmx.results.environment import environment
from shrimpmx.results.expectation import CLAIM_RUNS, PointData
from shrimpmx.results.json_file import read_json, write_json
from shrimpmx.results.outside import disturbance_words
from shrimpmx.results.result import (
    PRINTED_FILE,
    RUN_FILE,
    SCHEMA,
    ResultDirectory,
    check_schema,
)
from shrimpmx.results.sameness import SOFTWARE, check_environment
from shrimpmx.results.soundness import COSTS_WORDS, are_costs
from shrimpmx.results.words import SIMULATED_WORDS

Document = dict[str, Any]


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "reproduce",
        description="Run what the papers' claims need, and print the papers' figures beside those "
        "of this machine, with a verdict for each claim.",
    )
    meaning = f"papers ({', '.join(PAPERS)}) or claims such as IC-9; default: all"
    add_words(parser, "PAPER | ID", meaning, "*")
    add_sweep_options(parser)
    add_engine_options(parser, both=True)
    parser.add_argument(
        "--beside",
        action="store_true",
        help="run what stands beside the claims, too: figures that decide about none",
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="run the claims' scenarios whole, as for pictures, and what stands beside: not only "
        "the points that decide",
    )
    parser.add_argument("--list", action="store_true", help="print the claims, run nothing")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Run the scenarios of the claims and judge these; returns 0, whatever the verdicts.

    Raises InputError, MachineError, AgentError.
    """
    asked = take_settings(options)
    claims = chosen(asked, PAPERS)
    if options.list:
        return _list(claims, options.json)
    options.beside |= options.whole
    if not options.beside:
        claims = [claim.deciding_only() for claim in claims]
    check_sweep_options(options)
    check_engine_options(options)
    if are_elsewhere(options):
        raise InputError(
            "claims are judged by real runs of one machine, which is this one: --scheduler needs "
            "--engine simulated"
        )
    output = options.output or default_output("-".join(["reproduce", *papers_of(claims, PAPERS)]))
    go_on = partial(_go_on, asked, options, output)
    if options.engine != BOTH:
        _reproduce(asked, claims, options, output, go_on)
        _write_page(output)
        return 0
    documents = []
    # Simulated hosts take minutes, real processes longer.
    for engine in (SIMULATED, REAL):
        place = output / engine
        own = {"engine": engine, "json": None, "workers": options.workers, "resume": False}
        if engine == REAL:
            own["workers"] = 1
        if options.resume:
            own["resume"] = (engine == SIMULATED and not output.exists()) or place.exists()
        alone = argparse.Namespace(**{**vars(options), **own})
        documents += _reproduce(asked, claims, alone, place, go_on)
    if options.json:
        write_json(options.json, {"schema": SCHEMA, "claims": documents})
    _write_page(output)
    return 0


def _write_page(output: Path) -> None:
    """The page of a reproduction; none of claims that need no run."""
    results = [path.parent for path in sorted(output.rglob(RUN_FILE))]
    if results:
        write_beside(output, results, sorted(output.rglob(CLAIMS_FILE)))


def _go_on(
    asked: Sequence[str], options: argparse.Namespace, output: Path, settings: Iterable[str]
) -> str:
    """The command that goes on after an interruption, with these settings."""
    return resume_command(
        _command(asked, options), options, settings, output, engine_words(options)
    )


def _reproduce(
    asked: Sequence[str],
    claims: Sequence[Claim],
    options: argparse.Namespace,
    output: Path,
    go_on: Callable[[Iterable[str]], str],
) -> list[Document]:
    """Reproduce claims on one engine; what is kept of each."""
    engine = chosen_engine(options.engine)
    with cluster_of(options, engine) as cluster:
        reproduction = Reproduction(asked, claims, options, output, engine, cluster)
        _run(options, reproduction, go_on)
    return [finding.as_dict() for finding in reproduction.findings()]


def _run(
    options: argparse.Namespace,
    reproduction: Reproduction,
    go_on: Callable[[Iterable[str]], str],
) -> None:
    output = reproduction.output
    with reproduction.opened():
        claims, parts = len(reproduction.claims), len(reproduction.parts)
        runs = reproduction.runs_total
        with while_read():
            print(f"claims: {claims}; scenarios: {parts}; runs: {runs}")
        try:
            with run_log(output):
                reproduction.run()
        except (AgentError, MachineError, KeyboardInterrupt) as error:
            command = go_on(settings_to_go_on(options, reproduction.points, error))
            say_how_to_go_on(reproduction.runs_done, runs, output, command, error)
            raise
        finally:
            reproduction.keep(options.json)
        _print(options, reproduction)


def _print(options: argparse.Namespace, reproduction: Reproduction) -> None:
    """Print what came of a reproduction."""
    terminal = console()
    with while_read():
        if options.settings:
            terminal.print(escape(f"set: {', '.join(options.settings)}"), soft_wrap=True)
        if not reproduction.engine.is_real:
            terminal.print(SIMULATED_WORDS)
        print_findings(reproduction.findings(), terminal)
        if disturbed := disturbance_words(reproduction.made()):
            terminal.print(
                f"\nnote: {disturbed}; these decide nothing but what the protocol alone decides",
                soft_wrap=True,
            )
        put(f"\nresult: {reproduction.output}")


def _command(asked: Sequence[str], options: argparse.Namespace) -> list[str]:
    given = {"--beside": options.beside, "--whole": options.whole}
    return ["reproduce", *asked, *(option for option, is_given in given.items() if is_given)]


def _list(claims: Sequence[Claim], json_path: Path | None) -> int:
    if json_path:
        shown = {"id", "kind", "source", "setup", "paper"}
        write_json(json_path, {"claims": [claim.model_dump(include=shown) for claim in claims]})
    print_claims(claims, console())
    return 0


class _ReproductionDirectory(ResultDirectory):
    """Its results lie in directories of their own, one per scenario."""

    @property
    def run_path(self) -> Path:
        """Where claims.json lies."""
        return self.path / CLAIMS_FILE

    def _may_be_replaced(self, goes_on: bool) -> bool:
        return False


@dataclass
class Part:
    """A scenario that claims need: `name` as they call it; `done`: its result, once complete.

    `runs_before` were kept by an interrupted reproduction.
    """

    name: str
    scenario: Scenario
    sweep: Sweep
    directory: ResultDirectory
    done: Document | None = None
    runs_before: int = 0

    def find_kept(self) -> None:
        """Take what an interrupted reproduction left of it. InputError if that is damaged."""
        self.done = self.sweep.kept()
        self.sweep.resume = self.directory.run_path.exists()
        self.runs_before = len(self.sweep.finished())

    @property
    def runs_done(self) -> int:
        """How many of its runs are kept."""
        if self.done is not None:
            return len(self.sweep.plans)
        return self.sweep.runs_done or self.runs_before


class Reproduction:
    """The claims that were asked for, the scenarios that they need, and what came of both."""

    def __init__(
        self,
        asked: Sequence[str],
        claims: Sequence[Claim],
        options: argparse.Namespace,
        output: Path,
        engine: Engine,
        cluster: Cluster | None,
    ) -> None:
        self._asked, self.claims, self._options = asked, claims, options
        self.output, self.engine, self._cluster = output, engine, cluster
        self._directory = _ReproductionDirectory(output)
        self._cpus = self.engine.cpus()
        self._platforms = kept_platforms(options, CLAIMS_FILE)
        self._needed = scenarios_of(claims, engine.name, self._cpus)
        self._files = {name: find_scenario(name) for name in self._needed}
        self._scenarios = {name: self._scenario(name, each) for name, each in self._needed.items()}
        self._evidence = Evidence(self._scenarios, engine.is_real, self._cpus)
        self._costs: Costs | None = None
        self._environment = environment()
        self.parts: list[Part] = []

    def _scenario(self, name: str, expected: Sequence[Any]) -> Scenario:
        declared = load_scenario(self._files[name])
        runs = max(declared.repeats, CLAIM_RUNS)
        declared = declared.model_copy(update={"repeats": runs})
        if not self.engine.is_real:
            declared = on_hosts(declared, hosts_of(name, self.claims))
        scenario = declared.changed(self._options.settings, self._platforms)
        self._platforms |= scenario.platforms
        checked_points(scenario)  # what cannot be used is told, even where no claim needs it
        return scenario if self._options.whole else narrowed(scenario, expected)

    def _part(self, name: str, scenario: Scenario) -> Part:
        directory = self._directory.path / stem_of(scenario.name)
        engine = self.engine
        recording = Recording(printed=directory / PRINTED_FILE, axes=varying_axes(scenario))
        executor = executor_for(scenario, self._costs, engine, recording)
        options = self._options
        sweep = sweep_of(
            scenario,
            executor,
            directory,
            None,
            self._costs,
            engine,
            settings=options.settings,
            seed=options.seed,
            command=_command(self._asked, options),
        )
        if engine.is_real:
            sweep.order = ComparableRuns(self._needed[name])
        sweep.beside = runs_beside(options, self._cluster, engine, scenario, self._files[name])
        return Part(name, scenario, sweep, ResultDirectory(directory))

    @property
    def runs_total(self) -> int:
        """How many runs all scenarios have."""
        return sum(len(part.sweep.plans) for part in self.parts)

    @property
    def runs_done(self) -> int:
        """How many of them are kept."""
        return sum(part.runs_done for part in self.parts)

    @property
    def points(self) -> list[Point]:
        """The points of all scenarios."""
        return [point for each in self._scenarios.values() for point in each.points()]

    def _head(self) -> Document:
        return {
            "schema": SCHEMA,
            "asked": [claim.id for claim in self.claims],
            "beside": self._options.beside,
            "settings": without_deadline(self._options.settings),
            "seed": self._options.seed,
            **self.engine.describe(),
            **costs_to_keep(self._costs),
            **platforms_to_keep(self._platforms),
            "frozen": frozen(self._platforms),
            "environment": self._environment,
        }

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Make the directory, or check the rest of an interrupted reproduction there, and hold it
        for this process alone.

        InputError unless it can be written, and is of the same claims, settings and seed.
        """
        with self._directory.beginning(self._options.resume) as resume:
            self._begin(resume)
            yield

    def _begin(self, resume: bool) -> None:
        stored = self._stored() if resume else {}
        # Once for all scenarios: they emulate one platform with one dilation.
        self._costs = costs_for(self.points, stored.get("costs"), self.engine)
        self.parts = [self._part(name, each) for name, each in self._scenarios.items()]
        if resume:
            for part in self.parts:
                part.find_kept()
            self._check_environment(stored)
        else:
            write_json(self._directory.run_path, {**self._head(), "complete": False, "claims": []})

    def _check_environment(self, stored: Document) -> None:
        """InputError if the reproduction cannot go on here; what is complete may be judged by
        another version.
        """
        complete = all(part.done is not None for part in self.parts)
        apart = SOFTWARE if complete else ()
        made_in = [part.done["environment"] for part in self.parts if part.done is not None]
        kept = stored.get("environment") or (made_in or [{}])[0]
        check_environment(self._directory.path, kept, self._environment, apart)
        self._environment = kept

    def _stored(self) -> Document:
        """What an interrupted reproduction has left, with the costs that it was made with."""
        path = self._directory.run_path
        stored = read_json(path, "reproduction")
        check_schema(stored, "reproduction", path)
        stored.setdefault("engine", ENGINES[0])  # older ones do not say it
        asked = self._head()
        for key, what in (
            ("asked", "other claims"),
            ("settings", "other settings"),
            ("seed", "another seed"),
            ("engine", "another engine"),
            ("frozen", "other rules, or other values of platforms,"),
            ("beside", f"claims {'without' if self._options.beside else 'with'} --beside, other"),
        ):
            if stored.get(key) != asked[key]:
                raise InputError(
                    f"{self._directory.path} holds a reproduction of {what} than asked for; "
                    "give another --output, or the same claims, settings and seed"
                )
        if "costs" in stored and not are_costs(stored["costs"]):
            raise InputError(f"reproduction {path} is damaged: 'costs' is not {COSTS_WORDS}")
        if not isinstance(stored.get("environment", {}), dict):
            raise InputError(f"reproduction {path} is damaged: 'environment' is not an object")
        return stored

    def run(self) -> None:
        """Run what is not there yet, scenario by scenario."""
        before, begun_s = 0, time.monotonic()
        for number, part in enumerate(self.parts, 1):
            if part.done is None:
                title = f"{number}/{len(self.parts)} {part.scenario.name}"
                bar = bar_for(title, part.scenario, before, self.runs_total, begun_s)
                part.sweep.progress = self.engine.onlooker = bar
                part.done = part.sweep.run()
            before += len(part.sweep.plans)

    def made(self) -> list[PointData]:
        """The points of all scenarios that are complete."""
        return [point for part in self.parts if part.done for point in part.done["points"]]

    def findings(self) -> list[Finding]:
        """The verdicts on those claims whose scenarios are complete."""
        engine = self.engine.name
        results: Mapping[str, Document] = {
            part.name: part.done for part in self.parts if part.done is not None
        }
        return [
            judge(claim, results, self._evidence)
            for claim in self.claims
            if all(each.scenario in results for each in claim.statistics_to_run(engine, self._cpus))
        ]

    def keep(self, json_path: Path | None) -> None:
        """Write the findings into the result, and to `json_path` as well."""
        complete = all(part.done is not None for part in self.parts)
        claims = [finding.as_dict() for finding in self.findings()]
        document = {**self._head(), "complete": complete, "claims": claims}
        write_json(self._directory.run_path, document)
        if json_path:
            write_json(json_path, document)
