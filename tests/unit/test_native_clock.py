"""Clocks: what a calibration gives. How well the machine's clocks agree is no test of ours."""

from __future__ import annotations

import pytest

from shrimpmx.errors import InputError
from shrimpmx.native import clock


def test_the_monotonic_clock_and_the_counter_go_forward() -> None:
    times = [clock.now_ns() for _ in range(1000)]
    assert times == sorted(times)
    first = clock.ticks()
    assert clock.ticks() >= first or not clock.tsc_is_steady()


@pytest.mark.parametrize("kind", ["monotonic", "virtual"])
def test_a_clock_without_a_scale(kind: str) -> None:
    fields = clock.calibrate(kind)
    assert (fields["kind"], fields["multiplier"]) == (kind, 0)


def test_an_unknown_kind_is_an_input_error() -> None:
    with pytest.raises(InputError, match="not 'sundial'"):
        clock.calibrate("sundial")


def test_a_counter_that_is_not_steady_gives_the_monotonic_clock() -> None:
    expected = "tsc" if clock.tsc_is_steady() else "monotonic"
    assert clock.calibrate("tsc")["kind"] == expected


def test_the_scaled_counter_reads_as_the_monotonic_clock_would() -> None:
    fields = clock.calibrate("tsc")
    for _ in range(100):
        # Both readings of the monotonic clock bracket the one between, but for the error of
        # the scale: 100 us would be far more than a calibration of 20 ms can be off here.
        before = clock.now_ns()
        between = clock.read_calibrated(fields)
        after = clock.now_ns()
        assert before - 100_000 <= between <= after + 100_000


def test_a_scale_of_one_half_over_more_than_64_bits() -> None:
    if clock.calibrate("tsc")["kind"] != "tsc":
        pytest.skip("this machine's counter is not steady")
    now = clock.ticks()
    # 2**45 ticks ago, about four hours; times the multiplier this passes 2**64.
    fields: dict[str, str | int | float] = {
        "kind": "tsc",
        "shift": 32,
        "multiplier": 1 << 31,
        "ticks_base": (now - 2**45) % 2**64,
        "ns_base": 7,
    }
    assert 0 <= clock.read_calibrated(fields) - (7 + 2**44) < 10_000_000_000
