"""What makes the runs of a sweep: this process, several on this machine, or other machines."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.errors import InputError
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.loading import ScenarioFile
from shrimpmx.experiment.remote.dispatch import Cluster, Remote
from shrimpmx.experiment.remote.messages import Job, OwnFile, OwnRule, text_of
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Beside
from shrimpmx.experiment.workers import measured_beside
from shrimpmx.settings.user_code import OwnClass


@contextlib.contextmanager
def cluster_of(options: argparse.Namespace, engine: Engine) -> Iterator[Cluster | None]:
    """The machines that --scheduler names; None without it. InputError if they cannot be had."""
    if options.scheduler is None:
        yield None
        return
    try:
        from shrimpmx.experiment.remote.dask_cluster import connected
    except ModuleNotFoundError as error:
        raise InputError(
            f"--scheduler needs Dask, and there is no {error.name}: install shrimpmx[dask]"
        ) from error
    trusted = options.trust_network
    with connected(options.scheduler, real=engine.is_real, trust_network=trusted) as cluster:
        yield cluster


def runs_beside(
    options: argparse.Namespace,
    cluster: Cluster | None,
    engine: Engine,
    scenario: Scenario,
    file: ScenarioFile,
) -> Beside | None:
    """What makes the runs of a scenario of `file`: the `cluster`, or as many processes as
    --workers says; None: this process.
    """
    if cluster is not None:
        return Remote(cluster, job_of(engine, scenario, file), real=engine.is_real)
    workers: int = options.workers
    return None if workers == 1 else functools.partial(measured_beside, workers=workers)


def job_of(engine: Engine, scenario: Scenario, file: ScenarioFile) -> Job:
    """What other machines need for the runs of a scenario of `file`."""
    points = scenario.points()
    used = {point.policy for point in points} | {point.wait for point in points}
    rules = {
        name: OwnRule.of(Path(rule.file), rule.source, name=rule.name)
        for name, rule in {**scenario.policies, **scenario.waits}.items()
        if isinstance(rule, OwnClass) and name in used
    }
    own_code: dict[str, Any] = {"rules": rules} if rules else {}
    if used - {*rules, ""}:
        own_code["scenario"] = OwnFile.of(file.path, text_of(file.path, file.source))
    return Job(
        engine=engine.name,
        metrics=scenario.metrics,
        directory=os.getcwd(),
        needed_costs=tuple(sorted(needed_costs(points))),
        **own_code,
    )
