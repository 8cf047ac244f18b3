"""Digests of what is settled before the first judgement: the rules, and the platforms' values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from shrimpmx.experiment.loading import find_scenario
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.papers import claim, comparable_runs, effects, evidence, finding
from shrimpmx.papers.claim import Claim
from shrimpmx.papers.registry import PAPERS
from shrimpmx.results import (
    cache_metrics,
    competitive,
    disturbance,
    expectation,
    expectation_kinds,
    judging,
    metric,
    metrics,
    multiqueue_metrics,
    runs,
    statistics,
    waiting_metrics,
)
from shrimpmx.settings.platform import Platform

# The code that computes figures and judges, beside what the claims themselves say.
_CODE = (
    *(claim, effects, evidence, finding, comparable_runs, expectation, expectation_kinds, judging),
    *(metric, metrics, cache_metrics, multiqueue_metrics, waiting_metrics),
    *(competitive, disturbance, runs, statistics),
)


def rule_digests(own: Mapping[str, Platform]) -> dict[str, str]:
    """Digests of the rules by which claims are judged, of the scenarios that they compare, and of
    the values of all platforms, the user's `own` among them.
    """
    platforms = {**PLATFORMS, **own}
    values = {name: each.model_dump(mode="json") for name, each in platforms.items()}
    return {**_of_this_version(), "platforms": _digest(values)}


@cache
def _of_this_version() -> dict[str, str]:
    claims: list[Claim] = [each for known in PAPERS.values() for each in known]
    scenarios = sorted({one.scenario for each in claims for one in each.statistics})
    code = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in _CODE]
    return {
        "rules": _digest([[each.model_dump(mode="json") for each in claims], code]),
        "scenarios": _digest([find_scenario(name).source.decode() for name in scenarios]),
    }


def _digest(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
