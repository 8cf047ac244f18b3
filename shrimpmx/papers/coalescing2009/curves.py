"""What the claims about the paper's plots are made of, figures 4 to 6, point by point.

The plots have no tables behind them: of each point there is what the text says of its kind.
"""

from __future__ import annotations

import itertools

from shrimpmx.papers.claim import SIMULATED, Statistic, statistic_of
from shrimpmx.papers.coalescing2009 import figures
from shrimpmx.papers.coalescing2009.predicates import (
    ASLEEP,
    AWAKE,
    DISABLED,
    HIGHER,
    NO_EFFECT,
    ONE_CORE,
    OPEN_MX,
    SCATTERED,
    SMALL,
    STREAM,
    TIMEOUT,
    at_most,
    ratio,
    same,
    sized,
)
from shrimpmx.results.expectation_kinds import Expectation, Growth, Place, Ratio

# Messages of a single packet beside the empty one.
SINGLE = (32, 1024)
MTUS = (1500, 9000)
# A message of 160 pull replies with each of them, in 5 blocks.
REPLIES_160 = (234_880, 1_434_880)


def by_delay() -> tuple[Statistic, ...]:
    """Message rates of figure 4: on hosts as they are by default less than half without
    coalescing; on no hosts less with a longer delay; what sleeping and scattering cost is less with
    fewer interrupts (IV-B1). On the eight cores of simulated hosts.
    """
    delays = (5, 15, 35, figures.DELAY_US)
    curve: list[Place] = [DISABLED, *({**TIMEOUT, "rx_usecs": delay} for delay in delays)]
    default = at_most(
        "message rate of default hosts without coalescing against 75 µs",
        *("message_rate", {**_delayed(DISABLED), **SCATTERED, **ASLEEP}, TIMEOUT),
        figures.LESS_WITHOUT,
    )
    rising = (
        Ratio(
            text=f"message rate at {longer['rx_usecs']:g} µs against "
            f"{shorter.get('rx_usecs', 0):g} µs",
            metric="message_rate",
            of=longer,
            to=_delayed(shorter),
            at_least=1 / (1 + NO_EFFECT),
        )
        for shorter, longer in itertools.pairwise(curve)
    )
    return (
        _on_simulated(default, figures.STREAM_RATE * figures.LESS_WITHOUT, figures.STREAM_RATE),
        *map(_on_simulated, rising),
        _on_simulated(_gain("keeping cores awake", {**SCATTERED, **AWAKE}, ASLEEP)),
        _on_simulated(_gain("binding interrupts", {**ASLEEP, **ONE_CORE}, SCATTERED)),
    )


def _delayed(place: Place) -> Place:
    """A place of figure 4; without coalescing it stands at the paper's delay in the scenario."""
    return {"rx_usecs": figures.DELAY_US, **place}


def _gain(text: str, of: Place, to: Place) -> Growth:
    """What a setting gains without coalescing, by what it gains with 75 µs."""
    return Growth(
        text=f"gain of {text} without coalescing against 75 µs",
        metric="message_rate",
        of={**_delayed(DISABLED), **of},
        to=to,
        one=TIMEOUT,
        other={**TIMEOUT, **to},
        at_least=HIGHER,
    )


def _on_simulated(expected: Expectation, *absolute: float) -> Statistic:
    paper = (absolute[0] / absolute[1],) if absolute else ()
    return statistic_of(figures.CORES, expected, *paper, absolute=absolute, engine=SIMULATED)


def by_size() -> tuple[Statistic, ...]:
    """Half round trips of figure 5 at 75 µs against none: single packets wait for the whole delay
    (IV-B3).
    """
    return tuple(
        ratio(
            f"half round trip of {size} B at 75 µs against without",
            *(figures.FIG5, "half_round_trip", sized(TIMEOUT, size), DISABLED),
            *(figures.HALF_ROUND_TRIP["timeout"], figures.HALF_ROUND_TRIP["disabled"]),
            shares=("IC-6",),
        )
        for size in SINGLE
    )


def both_at_each_size() -> tuple[Statistic, ...]:
    """Half round trips of figure 6: with Open-MX coalescing messages of a single packet take as
    long as with none, no message takes longer than with 75 µs, and Stream is the same (IV-C1).
    """
    metric, most = "half_round_trip", 1 + NO_EFFECT
    return (
        *(
            statistic_of(
                figures.FIG6,
                same(
                    f"half round trip of {size} B with Open-MX against none",
                    *(metric, sized(OPEN_MX, size), DISABLED),
                ),
            )
            for size in (SMALL, *SINGLE)
        ),
        statistic_of(
            figures.FIG6,
            at_most("half round trip with Open-MX against 75 µs", metric, OPEN_MX, TIMEOUT, most),
            shares=("IC-6",),
        ),
        statistic_of(
            figures.FIG6,
            same("half round trip with Stream against Open-MX", metric, STREAM, OPEN_MX),
        ),
    )


def by_mtu() -> tuple[Statistic, ...]:
    """An MTU of 9000 (IV-A): what a strategy takes by what none does is the same for small
    messages, where the MTU does not matter. Large ones of as many frames behave as in table II:
    slower at 75 µs, and with Open-MX as without coalescing; beside it, how far the ratios differ.
    """

    def growth(words: str, of: Place, sizes: tuple[int, int]) -> Growth:
        short, long = (
            {"mtu": mtu, "size_bytes": size} for mtu, size in zip(MTUS, sizes, strict=True)
        )
        return Growth(
            text=f"{of['coalescing']} against none, {words}: MTU 9000 by 1500",
            metric="half_round_trip",
            of={**of, **long},
            to=DISABLED,
            one=short,
            other={**DISABLED, **short},
            at_least=1 / (1 + NO_EFFECT),
            at_most=1 + NO_EFFECT,
        )

    large = {"mtu": MTUS[1], "size_bytes": REPLIES_160[1]}
    words = "against none, 160 replies of 9000 B"
    return (
        *(
            statistic_of(
                figures.MTU,
                growth(words, of, sizes),
                decides=sizes != REPLIES_160,
            )
            for words, sizes in (
                ("0 B", (0, 0)),
                ("128 B", (128, 128)),
                ("160 replies", REPLIES_160),
            )
            for of in (TIMEOUT, OPEN_MX)
        ),
        statistic_of(
            figures.MTU,
            Ratio(
                text=f"timeout {words}",
                metric="half_round_trip",
                of={**TIMEOUT, **large},
                to=DISABLED,
                at_least=HIGHER,
            ),
            shares=("IC-15",),
        ),
        statistic_of(
            figures.MTU,
            same(
                f"open-mx {words}",
                *("half_round_trip", {**OPEN_MX, **large}, DISABLED),
                figures.AS_DISABLED,
            ),
            shares=("IC-15",),
        ),
    )
