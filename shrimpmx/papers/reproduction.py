"""A reproduction: the scenarios that claims need, run and kept, and the verdicts on the claims."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.errors import InputError
from shrimpmx.experiment.engines import ENGINES
from shrimpmx.experiment.execute import checked_points, executor_for, sweep_of
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.machine_costs import costs_for, costs_to_keep
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.platform_files import kept_platforms, platforms_to_keep
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress_bar import progress_for
from shrimpmx.experiment.recording import Recording
from shrimpmx.experiment.remote.dispatch import Cluster
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.experiment.workers import runs_beside
from shrimpmx.papers.claim import CLAIMS_FILE, Claim, scenarios_of
from shrimpmx.papers.comparable_runs import ComparableRuns
from shrimpmx.papers.digests import rule_digests
from shrimpmx.papers.evidence import Evidence
from shrimpmx.papers.finding import Finding, judge
from shrimpmx.papers.registry import check_claims, held_out_of, hosts_of, narrowed, on_hosts
from shrimpmx.results.environment import SOFTWARE, check_environment, environment
from shrimpmx.results.expectation import CLAIM_RUNS, PointData
from shrimpmx.results.json_file import read_json, write_json
from shrimpmx.results.result import (
    PRINTED_FILE,
    SCHEMA,
    ResultDirectory,
    check_schema,
    stem_of,
)
from shrimpmx.results.soundness import COSTS_WORDS, are_costs
from shrimpmx.settings.assignments import without_deadline

Document = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What a reproduction is asked for: `claims`, with the `command` that asks for them, under
    these `settings` and this `seed`; with `beside` also what stands beside them, `whole`: their
    scenarios whole, as for pictures. `workers`: how many processes simulate points.
    """

    claims: Sequence[Claim]
    command: Sequence[str]
    settings: Sequence[str]
    seed: int
    beside: bool
    whole: bool
    workers: int


class _ReproductionDirectory(ResultDirectory):
    """Its results lie in directories of their own, one per scenario."""

    @property
    def run_path(self) -> Path:
        """Where claims.json lies."""
        return self.path / CLAIMS_FILE

    def _may_be_replaced(self, goes_on: bool) -> bool:
        return False


# A scenario, and the group of figures that the values of its hosts were fitted without.
Key = tuple[str, str]


@dataclass
class ScenarioRuns:
    """A scenario that claims need: `key` as they call it; `done`: its result, once complete.

    `runs_before` were kept by an interrupted reproduction.
    """

    key: Key
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
        request: Request,
        output: Path,
        engine: Engine,
        cluster: Cluster | None,
        *,
        resume: bool,
    ) -> None:
        self._request, self.claims, self._resume = request, request.claims, resume
        self.output, self.engine, self._cluster = output, engine, cluster
        self._directory = _ReproductionDirectory(output)
        self._cpus = self.engine.cpus()
        self._platforms = kept_platforms(output / CLAIMS_FILE, resume=resume)
        self._held_out = {claim.id: self._held_out_of(claim) for claim in self.claims}
        self._needed = {
            (name, group): expected
            for group in dict.fromkeys(self._held_out.values())
            for name, expected in scenarios_of(
                [claim for claim in self.claims if self._held_out[claim.id] == group],
                engine.name,
                self._cpus,
            ).items()
        }
        self._files = {name: find_scenario(name) for name, _ in self._needed}
        self._scenarios = {key: self._scenario(key, each) for key, each in self._needed.items()}
        self._costs: Costs | None = None
        self._environment = environment()
        self.parts: list[ScenarioRuns] = []

    def _held_out_of(self, claim: Claim) -> str:
        """Of the values that simulated hosts of a paper have; a user's own are as they are."""
        own = any(each.startswith("platform=") for each in self._request.settings)
        return "" if own or self.engine.is_real else held_out_of(claim)

    def _scenario(self, key: Key, expected: Sequence[Any]) -> Scenario:
        name, held_out = key
        declared = load_scenario(self._files[name])
        runs = max(declared.repeats, CLAIM_RUNS)
        declared = declared.model_copy(update={"repeats": runs})
        if not self.engine.is_real:
            declared = on_hosts(declared, hosts_of(name, self.claims), held_out)
        scenario = declared.changed(self._request.settings, self._platforms)
        self._platforms |= scenario.platforms
        # What cannot be used is told, even where no claim needs it.
        check_claims(checked_points(scenario))
        return scenario if self._request.whole else narrowed(scenario, expected)

    def _part(self, key: Key, scenario: Scenario) -> ScenarioRuns:
        name, held_out = key
        apart = f"-without-{held_out}" if held_out else ""
        directory = self._directory.path / f"{stem_of(scenario.name)}{apart}"
        engine, request = self.engine, self._request
        recording = Recording(printed=directory / PRINTED_FILE, axes=scenario.varying_axes)
        executor = executor_for(scenario, self._costs, engine, recording)
        sweep = sweep_of(
            scenario,
            executor,
            directory,
            None,
            self._costs,
            engine,
            settings=request.settings,
            seed=request.seed,
            command=request.command,
        )
        if engine.is_real:
            sweep.order = ComparableRuns(self._needed[key])
        sweep.beside = runs_beside(
            request.workers, self._cluster, engine, scenario, self._files[name]
        )
        return ScenarioRuns(key, scenario, sweep, ResultDirectory(directory))

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
            "beside": self._request.beside,
            "settings": without_deadline(self._request.settings),
            "seed": self._request.seed,
            **self.engine.describe(),
            **costs_to_keep(self._costs),
            **platforms_to_keep(self._platforms),
            "frozen": rule_digests(self._platforms),
            "environment": self._environment,
        }

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Make the directory, or check the rest of an interrupted reproduction there, and hold it
        for this process alone.

        InputError unless it can be written, and is of the same claims, settings and seed.
        """
        with self._directory.beginning(self._resume) as resume:
            self._begin(resume)
            yield

    def _begin(self, resume: bool) -> None:
        stored = self._stored() if resume else {}
        # Once for all scenarios: they emulate one platform with one dilation.
        self._costs = costs_for(self.points, stored.get("costs"), self.engine)
        self.parts = [self._part(key, each) for key, each in self._scenarios.items()]
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
            ("frozen", "other rules or values of platforms"),
            ("beside", f"{'no' if self._request.beside else 'the'} option --beside"),
        ):
            if stored.get(key) != asked[key]:
                raise InputError(
                    f"{self._directory.path} holds a reproduction with {what}: give another "
                    "--output"
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
                bar = progress_for(
                    title, part.scenario.varying_axes, before, self.runs_total, begun_s
                )
                part.sweep.progress = self.engine.onlooker = bar
                part.done = part.sweep.run()
            before += len(part.sweep.plans)

    def made(self) -> list[PointData]:
        """The points of all scenarios that are complete."""
        return [point for part in self.parts if part.done for point in part.done["points"]]

    def findings(self) -> list[Finding]:
        """The verdicts on those claims whose scenarios are complete."""
        return [
            judge(claim, results, evidence)
            for claim in self.claims
            for results, evidence in [self._of_group(self._held_out[claim.id])]
            if all(
                each.scenario in results
                for each in claim.statistics_to_run(self.engine.name, self._cpus)
            )
        ]

    def _of_group(self, held_out: str) -> tuple[Mapping[str, Document], Evidence]:
        """The results on hosts that were fitted without a group, by scenario, and how they came
        about.
        """
        scenarios = {n: each for (n, group), each in self._scenarios.items() if group == held_out}
        results = {
            part.key[0]: part.done
            for part in self.parts
            if part.done is not None and part.key[1] == held_out
        }
        return results, Evidence(scenarios, self.engine.is_real, self._cpus)

    def keep(self, json_path: Path | None) -> None:
        """Write the findings into the result, and to `json_path` as well."""
        complete = all(part.done is not None for part in self.parts)
        claims = [finding.as_dict() for finding in self.findings()]
        document = {**self._head(), "complete": complete, "claims": claims}
        write_json(self._directory.run_path, document)
        if json_path:
            write_json(json_path, document)
