"""What the paper says beside its tables, point by point of its plots, and in passing: IC-24 on."""

from __future__ import annotations

from functools import partial

from shrimpmx.papers.claim import Claim, Statistic, statistic_of
from shrimpmx.papers.coalescing2009 import curves, figures
from shrimpmx.papers.coalescing2009.predicates import (
    DISABLED,
    LOWER,
    MEDIUM,
    NO_EFFECT,
    OPEN_MX,
    STREAM,
    TIMEOUT,
    at_most,
    deferred,
    sized,
)
from shrimpmx.results.expectation_kinds import Ratio, Within
from shrimpmx.results.words import size_words

# What can happen happens in one of a hundred cases at least, % (ours).
SOMETIMES = 1.0
# Bytes of the message of table II.
ANATOMY = 234_880


def _bounces() -> tuple[Statistic, ...]:
    """A message moves less from core to core with marks than with others (III-B)."""
    return tuple(
        statistic_of(
            figures.BOUNCES,
            at_most(
                f"hand-overs per message of {size_words(size)}, Open-MX against {to['coalescing']}",
                *("handovers_per_message", sized(OPEN_MX, size), to, LOWER),
            ),
        )
        for size in (MEDIUM, ANATOMY)
        for to in (TIMEOUT, DISABLED)
    )


def _deferred_further() -> tuple[Statistic, ...]:
    """How often Stream defers at the degrees that table III leaves out: between what it does there,
    or less than that (IV-C4).
    """
    one, three = figures.DEFERRED[1], figures.DEFERRED[3]
    return tuple(
        statistic_of(
            figures.TABLE3,
            Within(**deferred(degree), at_least=least, at_most=most),
            shares=("IC-12",),
        )
        for degree, least, most in ((2, three, one), (4, SOMETIMES, three))
    )


def _suits_both() -> tuple[Statistic, ...]:
    """A program with both kinds of phases is faster with Open-MX than with a timeout, for which
    small messages wait, and than without coalescing, which slows large ones down (II-C, IV-C5).
    """
    return tuple(
        statistic_of(
            figures.PHASES,
            at_most(
                f"time of a program of mixed phases, Open-MX against {to['coalescing']}",
                *("run_time", OPEN_MX, to, LOWER),
            ),
        )
        for to in (DISABLED, TIMEOUT)
    )


def _closed_loop() -> tuple[Statistic, ...]:
    """Marks slow no closed loop of another protocol down (VI)."""
    return tuple(
        statistic_of(
            figures.CLOSED_LOOP,
            Ratio(
                text=f"rate of the other protocol's packets, {of['coalescing']} against 75 µs",
                metric="other_packet_rate",
                of=of,
                to=TIMEOUT,
                at_least=1 / (1 + NO_EFFECT),
            ),
        )
        for of in (OPEN_MX, STREAM)
    )


_claim = partial(Claim, host="myri10g-2009")

CLAIMS: tuple[Claim, ...] = (
    _claim(
        id="IC-24",
        kind="order",
        source="IV-B1, IV-B4 and figure 4",
        setup="A stream of 128 B messages to a host of eight cores, coalescing delays of 0 to 75 "
        "µs, as four curves: cores free to sleep or kept awake, interrupts scattered or bound.",
        paper="default hosts with sleeping cores and scattered interrupts: 433 k msg/s at 75 "
        "µs, less than half of that without; coalescing helps, since fewer cores are "
        "woken and more packets are processed at once",
        statistics=curves.by_delay(),
    ),
    _claim(
        id="IC-25",
        kind="ratio",
        source="IV-B3 and figure 5",
        setup="Ping-pong of further sizes of a single packet: 75 µs against no coalescing.",
        paper="a single packet waits for the whole delay, about 75 µs instead of 10",
        statistics=curves.by_size(),
        variant=("idle",),
    ),
    _claim(
        id="IC-26",
        kind="ratio",
        source="IV-C1 and figure 6",
        setup="Ping-pong of all sizes, 0 B to 1 MiB: Open-MX coalescing against 75 µs; against "
        "none, for messages of one packet; Stream against Open-MX.",
        paper="small messages as if disabled, large ones as with 75 µs; Stream the same",
        statistics=curves.both_at_each_size(),
    ),
    _claim(
        id="IC-27",
        kind="ratio",
        source="IV-A",
        setup="Ping-pong with an MTU of 9000: time with 75 µs and with Open-MX coalescing, divided "
        "by the time without. Small messages are compared with the same ratio at an MTU of 1500, "
        "large ones of 160 frames with table II.",
        paper="jumbo frames show the same behaviour for small messages, and for proportionally "
        "longer large ones",
        statistics=curves.by_mtu(),
    ),
    _claim(
        id="IC-28",
        kind="count",
        source="III-B",
        setup="One message at a time, of 32 KiB and of 234 880 B, to a host of eight cores with "
        "interrupts to all of them in turn: hand-overs of descriptors between cores.",
        paper="with marks all fragments of a message, or replies to a request, are processed by "
        "one core; timeouts scatter them over cores",
        statistics=_bounces(),
    ),
    _claim(
        id="IC-29",
        kind="count",
        source="IV-C4",
        setup="A message of 32 KiB with Stream, its mark 2 and 4 fragments early: how often the "
        "early interrupt is deferred to the end.",
        paper="interrupts deferred by 3 or 4 packets: 30 % of early ones with the mark 1 early, "
        "15 % with the mark 3 early",
        statistics=_deferred_further(),
    ),
    _claim(
        id="IC-30",
        kind="ratio",
        source="II-C and IV-C5",
        setup="A program with alternating phases of small and of large messages: its time, by "
        "strategy.",
        paper="satisfying for different metrics, without tuning by hand: small messages as if "
        "disabled, large ones as with 75 µs",
        statistics=_suits_both(),
        variant=("tx_interrupts", "send_cost_ns"),
        note="on simulated hosts it rests on interrupts of completed sends, and on 1.5 to 3 µs of "
        "the sender per packet",
    ),
    _claim(
        id="IC-31",
        kind="ratio",
        source="III-B and VI",
        setup="Packets of another protocol in a closed loop, like TCP's, next to a marked "
        "stream: packets per second.",
        paper="TCP/IP is not disturbed by marks",
        statistics=_closed_loop(),
        note="44 packets of 1500 B are unanswered at a time, and as many messages; a lost packet "
        "is not resent",
    ),
)
