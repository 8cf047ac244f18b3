"""The papers and their claims, and what is meant by a name that a user gives."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.papers.claim import Claim
from shrimpmx.papers.coalescing2009 import claims as coalescing
from shrimpmx.papers.evidence import NO_PLATFORM, points_of
from shrimpmx.papers.multiqueue2010 import claims as multiqueue
from shrimpmx.papers.waiting1997 import claims as waiting
from shrimpmx.results.expectation_kinds import Expectation
from shrimpmx.settings.platform import Platform

PAPERS: Mapping[str, Sequence[Claim]] = {
    "coalescing": coalescing.CLAIMS,
    "multiqueue": multiqueue.CLAIMS,
    "waiting": waiting.CLAIMS,
}


def chosen(names: Iterable[str], papers: Mapping[str, Sequence[Claim]]) -> list[Claim]:
    """The claims that `names` means, papers or ids, in the order of the papers; all without one.

    InputError at a name that is neither.
    """
    by_id = {claim.id: claim for claims in papers.values() for claim in claims}
    wanted: set[str] = set()
    for name in names:
        if name.lower() in papers:
            wanted |= {claim.id for claim in papers[name.lower()]}
        elif name.upper() in by_id:
            wanted.add(name.upper())
        else:
            raise InputError(
                f"there is no paper or claim {name!r}; {_hint(name, list(papers), list(by_id))} "
                "(shrimpmx reproduce --list shows them)"
            )
    return [claim for claim in by_id.values() if not wanted or claim.id in wanted]


def _hint(name: str, papers: Sequence[str], ids: Sequence[str]) -> str:
    spelt = {each.lower(): each for each in (*papers, *ids)}
    near = difflib.get_close_matches(name.lower(), spelt, n=3)
    if near:
        return f"did you mean {' or '.join(repr(spelt[each]) for each in near)}?"
    return f"papers are {', '.join(papers)}, claims {ids[0]} to {ids[-1]}"


_TABLE = re.compile(r"(?:table|figure) \w+")


def group_of(claim: Claim) -> frozenset[str]:
    """The claims whose figures are this one's as well, itself among them: those about its tables
    and plots of its paper, and those that it shares figures with, and so on. What one of them sets
    a value by, the others are not held out from.
    """
    alone = frozenset({claim.id})
    return next((group for group in groups() if claim.id in group), alone)


def group_name(group: frozenset[str]) -> str:
    """The name of a group: its first claim."""
    order = [each.id for known in PAPERS.values() for each in known if each.id in group]
    return (order or sorted(group))[0]


@functools.cache
def groups() -> tuple[frozenset[str], ...]:
    """All claims, in groups of those that share figures."""
    found: list[frozenset[str]] = []
    marks: list[set[str]] = []
    for paper, known in PAPERS.items():
        for claim in known:
            own = {f"{paper} {table}" for table in _TABLE.findall(claim.source)}
            own |= {claim.id, *(other for each in claim.statistics for other in each.shares)}
            ids = frozenset({claim.id})
            for index in reversed([i for i, mark in enumerate(marks) if mark & own]):
                own |= marks.pop(index)
                ids |= found.pop(index)
            marks.append(own)
            found.append(ids)
    return tuple(found)


def papers_of(claims: Iterable[Claim], papers: Mapping[str, Sequence[Claim]]) -> list[str]:
    """The papers that the claims come from."""
    ids = {claim.id for claim in claims}
    return [paper for paper, known in papers.items() if any(each.id in ids for each in known)]


def check_claims(points: Iterable[Point]) -> None:
    """InputError if a value of a user's own platform is calibrated by what is no claim."""
    profiles = [(point, point.parameters.platform.profile) for point in points]
    own = {each.shown["platform"]: one for each, one in profiles if isinstance(one, Platform)}
    named = [
        (given, key, name)
        for given, platform in own.items()
        for key, entry in platform.entries()
        for name in entry.calibrated_by
    ]
    if not named:
        return
    claims = [claim.id for known in PAPERS.values() for claim in known]
    for given, key, name in named:
        if name not in claims:
            raise InputError(
                f"platform {given}: {name!r} in calibrated_by of {key} is no claim "
                f"(`shrimpmx reproduce --list` shows all{did_you_mean(name, claims)}); describe a "
                "figure of your own in source"
            )


def hosts_of(scenario: str, claims: Iterable[Claim]) -> str:
    """The platform that stands for the hosts of the claims that need a scenario; '' if none."""
    for claim in claims:
        if any(each.scenario == scenario for each in claim.statistics):
            return claim.host
    return ""


def held_out_of(claim: Claim) -> str:
    """The group without which values of the claim's hosts were fitted, to judge it by; "" if its
    figures had no part in them.
    """
    platform, group = PLATFORMS.get(claim.host), group_name(group_of(claim))
    has_fit = platform and any(group in each.without for _, each in platform.entries())
    return group if has_fit else ""


def on_hosts(scenario: Scenario, host: str, held_out: str = "") -> Scenario:
    """The scenario on simulated hosts: those of platform `host`, where it names none itself, with
    the values of a fit without the group `held_out`. Hosts of none are left out beside others: they
    are this machine, which is not simulated.
    """
    scenario = scenario.on(real=False)
    if held_out:
        parameters = {**scenario.parameters, "held_out": held_out}
        scenario = scenario.model_copy(update={"parameters": parameters})
    axis = scenario.sweep.get("platform", ())
    others = tuple(value for value in axis if value != NO_PLATFORM)
    if others:
        sweep = {**scenario.sweep, "platform": others}
        return scenario.model_copy(update={"sweep": sweep})
    if axis or not host or "platform" in scenario.parameters:
        return scenario
    parameters = {**scenario.parameters, "platform": host}
    return scenario.model_copy(update={"parameters": parameters})


def narrowed(scenario: Scenario, expectations: Sequence[Expectation]) -> Scenario:
    """The scenario with the points alone that the expectations compare; all where it has none of
    those.
    """
    points = scenario.points()
    needed = {each.index for expected in expectations for each in points_of(expected, points)}
    shown = [each.shown for each in points if each.index in needed]
    if not shown:
        return scenario
    sweep = {
        axis: tuple(value for value in values if any(each[axis] == _plain(value) for each in shown))
        for axis, values in scenario.sweep.items()
    }
    few = scenario.model_copy(update={"sweep": sweep})
    spare = [
        {axis: each.shown[axis] for axis in sweep}
        for each in few.points()
        if each.shown not in shown
    ]
    return few.model_copy(update={"without": (*scenario.without, *spare)})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
