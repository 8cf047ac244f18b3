"""Coalescing strategies by name: what each is, and what is no strategy."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from support.tree import ROOT

from shrimpmx.errors import InputError
from shrimpmx.nic.adaptive import AdaptiveRate, Dim, DimCqe, MarksAdaptive
from shrimpmx.nic.names import make_policy
from shrimpmx.nic.strategies import Disabled, OpenMx, PollingWatchdog, Stream, TimedPolicy, Timeout
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import COALESCING, COALESCING_NAMES

KINDS = {
    "disabled": Disabled,
    "timeout": Timeout,
    "open-mx": OpenMx,
    "stream": Stream,
    "adaptive": AdaptiveRate,
    "marks-adaptive": MarksAdaptive,
    "dim": Dim,
    "dim-cqe": DimCqe,
    "watchdog": PollingWatchdog,
    "napi-defer": Disabled,
    "irq-suspend": Disabled,
}


@pytest.mark.parametrize("name", COALESCING_NAMES)
def test_policies_by_name(name: str) -> None:
    given = {"coalescing": name, "rx_usecs": 20, "rx_frames": 5, "adaptive_conservative": True}
    policy = make_policy(NicParameters.model_validate(given), 2.0)
    assert type(policy) is KINDS[name]
    assert make_policy(policy) is policy
    # Times in the parameters are dilated already, those of hardware are not.
    if isinstance(policy, TimedPolicy):
        assert policy.delay_ns == 20_000
        assert policy.mark_resets_timer
    if isinstance(policy, Timeout):
        assert policy.frames == (5 if name == "timeout" else 0)
    if isinstance(policy, AdaptiveRate):
        assert policy.interval_ns == 100_000
        assert policy.conservative
    if isinstance(policy, Dim):
        assert policy.delay_ns == 16_000


@pytest.mark.parametrize("name", COALESCING_NAMES)
def test_each_strategy_is_documented(name: str) -> None:
    row = COALESCING[name]
    page = (ROOT / "docs/coalescing.md").read_text()
    assert f"## {name}\n" in page
    section = " ".join(page.partition(f"## {name}\n")[2].partition("\n## ")[0].split())
    assert f"wins when {row.wins}" in section
    for key in ("rule", "knobs", "source"):
        assert f"- {key}: " in section


def test_each_policy_says_when_it_wins() -> None:
    for kind in set(KINDS.values()):
        assert "Wins when " in (kind.__doc__ or "")
        assert "Source: " in (kind.__doc__ or "")


def test_a_watchdog_needs_a_delay() -> None:
    with pytest.raises(ValidationError, match="rx_usecs cannot be 0 with watchdog coalescing"):
        NicParameters(coalescing="watchdog", rx_usecs=0, rx_frames=3)


@pytest.mark.parametrize("name", ["timeout", "open-mx", "stream"])
def test_without_a_limit_each_packet_raises(name: str) -> None:
    assert type(make_policy(NicParameters(coalescing=name, rx_usecs=0))) is Disabled
    assert type(make_policy(NicParameters(coalescing=name, rx_usecs=1))) is KINDS[name]
    frames = make_policy(NicParameters(coalescing=name, rx_usecs=0, rx_frames=3))
    assert type(frames) is (Timeout if name == "timeout" else Disabled)


@pytest.mark.parametrize(
    "given",
    [
        {"coalescing": "timeout", "rx_frames": 3},
        *({"coalescing": n} for n in ("disabled", "adaptive", "dim", "napi-defer")),
    ],
)
def test_the_others_do_without(given: dict[str, object]) -> None:
    assert NicParameters.model_validate({**given, "rx_usecs": 0}).rx_usecs == 0


def test_a_watchdog_never_raises_for_nothing() -> None:
    with pytest.raises(ValidationError, match="cannot be false with watchdog"):
        NicParameters(coalescing="watchdog", mark_resets_timer=False)


def test_something_else_is_no_policy() -> None:
    with pytest.raises(InputError, match="'fast' is neither"):
        make_policy("fast")  # type: ignore[arg-type]
