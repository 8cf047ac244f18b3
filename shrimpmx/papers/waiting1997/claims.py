"""What Damianakis, Chen and Felten 1997 measured: WC-1 to WC-10, and in
`claims_in_text.py` the rest.

Reducing Waiting Costs in User-Level Communication, IPPS 1997. Units are those of the metrics. The
paper's figures lie in `figures.py`; how a predicate follows from one: `predicates.py`.
"""

from __future__ import annotations

from functools import partial

from shrimpmx.papers.claim import Claim, statistic_of
from shrimpmx.papers.coalescing2009.predicates import HIGHER, LOWER
from shrimpmx.papers.waiting1997 import claims_in_text, figures
from shrimpmx.papers.waiting1997.predicates import (
    BLOCK,
    FIVE_PAIRS,
    LONG_DELAY,
    NEXT_TO_NONE,
    NOTIFIED,
    NOTIFY,
    ONE_WAKE_UP,
    OWN_COSTS,
    SCHED,
    SHORT_DELAYS,
    SHRIMP,
    SPIN,
    SPIN_BLOCK,
    SPIN_NOTIFY,
    SPIN_SCHED,
    bad_with_company,
    best_or_equal,
    calls,
    each_sample,
    equals,
    five_pairs,
    joins,
    many_yields,
    of_handlers,
    ranked,
    ratio,
    share_found,
    similar,
    sometimes,
    suffers_less,
    tips,
    without_interrupts,
)
from shrimpmx.results.expectation_kinds import Near, Within

_claim = partial(Claim, host=figures.PLATFORM)

CLAIMS: tuple[Claim, ...] = (
    _claim(
        id="WC-1",
        kind="count",
        source="figure 1 and 3.3",
        setup="Five pairs on two nodes: system calls and runs of the scheduler per wait, for "
        "seven strategies, on the paper's machine; in addition, yields at this machine's "
        "own costs.",
        paper="spin makes no system calls; block and notify make one in each wait, with 1 "
        "reschedule; sched reschedules 6 times or more in a wait, spin-sched 3 times or "
        "more; the hybrids make calls only sometimes",
        statistics=(
            equals(
                figures.FIG1,
                "system calls per wait with spin",
                *("system_calls_per_wait", {**SHRIMP, **SPIN}, 0.0),
                "a rank that spins has no code that makes any",
            ),
            *calls(BLOCK),
            *calls(NOTIFY),
            many_yields(SCHED),
            many_yields(SPIN_SCHED),
            sometimes(SPIN_BLOCK, BLOCK),
            sometimes(SPIN_NOTIFY, NOTIFY),
            sometimes(SPIN_SCHED, SCHED),
            *(many_yields(wait, OWN_COSTS) for wait in (SCHED, SPIN_SCHED)),
        ),
    ),
    _claim(
        id="WC-2",
        kind="order",
        source="5.1 and figure 2",
        setup="Ping-pong of one word, 0 to 600 µs of computing before each send, a spin limit of "
        "300 µs: round trip by strategy.",
        paper="spin lowest, sched not much worse, block above it, notify above block; the "
        "hybrids behave like spin below their limit, like their second strategy above "
        "it; spin-notify has a constant overhead",
        statistics=(
            *ranked(
                figures.FIG2,
                "round trip of the pure strategies",
                "round_trip",
                ((NOTIFY,), (BLOCK,), (SCHED,)),
                shares=NOTIFIED,
            ),
            statistic_of(
                figures.FIG2,
                ratio("sched against spin", "round_trip", {**SHRIMP, **SCHED}, SPIN, least=LOWER),
            ),
            joins(SPIN_SCHED, SPIN, SHORT_DELAYS[1]),
            joins(SPIN_BLOCK, SPIN, SHORT_DELAYS[1]),
            statistic_of(
                figures.FIG2,
                ratio(
                    f"spin-notify against spin, delay {SHORT_DELAYS[1]} µs",
                    "round_trip",
                    {**SHRIMP, **SPIN_NOTIFY, "delay_us": SHORT_DELAYS[1]},
                    SPIN,
                    least=HIGHER,
                ),
                shares=NOTIFIED,
            ),
            joins(SPIN_SCHED, SCHED, LONG_DELAY),
            joins(SPIN_BLOCK, BLOCK, LONG_DELAY),
            joins(SPIN_NOTIFY, NOTIFY, LONG_DELAY, shares=NOTIFIED),
        ),
    ),
    _claim(
        id="WC-3",
        own_costs=True,
        kind="order",
        source="5.1 and figure 3",
        setup="Five pairs at once, 0 to 300 µs of computing before each send, at the costs of "
        "the paper's machine: time and reschedules by strategy. In addition, the same at "
        "this machine's own costs, and time by the cost of a reschedule.",
        paper="spin worst by far; notify 36 % above block; sched worse still; spin-sched 50 % "
        "below sched in yields and time; spin-block best",
        statistics=(
            *(
                statistic
                for words, waits in (
                    ("", (SPIN, SCHED, BLOCK, SPIN_BLOCK)),
                    (" with notify", (SCHED, NOTIFY, BLOCK)),
                )
                for statistic in ranked(
                    figures.FIG3,
                    f"wall time by strategy{words}",
                    "wall_time",
                    tuple(({**FIVE_PAIRS, **wait},) for wait in waits),
                )
            ),
            five_pairs(
                "wall time of notify against block",
                "wall_time",
                NOTIFY,
                BLOCK,
                figures.NOTIFY_BY_BLOCK,
            ),
            *(
                five_pairs(
                    f"{words} of spin-sched against sched",
                    metric,
                    SPIN_SCHED,
                    SCHED,
                    figures.SPIN_SCHED_BY_SCHED,
                )
                for words, metric in (("reschedules", "reschedules"), ("wall time", "wall_time"))
            ),
            statistic_of(
                figures.FIG3,
                ratio(
                    "reschedules of spin-block against block",
                    "reschedules",
                    {**SHRIMP, **FIVE_PAIRS, **SPIN_BLOCK},
                    BLOCK,
                    most=NEXT_TO_NONE,
                ),
            ),
            *tips(),
        ),
        note="waiting/tipping_point shows at which costs of a reschedule and of an interrupt the "
        "order tips",
    ),
    _claim(
        id="WC-4",
        kind="ratio",
        source="3.1",
        setup="A wake-up by the interrupt handler itself or by a user-level handler, in a "
        "ping-pong of one word: CPU time of ranks and handlers per message, and round trip, at "
        "this machine's own costs.",
        paper="the user-level handler costs at least 10 µs more for each message, on a Pentium of "
        "60 MHz",
        statistics=of_handlers(),
        own_costs=True,
    ),
    _claim(
        id="WC-5",
        kind="ratio",
        source="3.2",
        setup="Waits for messages after fixed, uniform, exponential, bimodal and adverse "
        "delays: cost of spin-block divided by that of the optimal off-line policy.",
        paper="never more than 2 times, whatever the arrivals",
        statistics=(
            statistic_of(
                figures.COMPETITIVE,
                Within(
                    text="cost of spin-block over the optimum",
                    metric="competitive_ratio",
                    of=SPIN_BLOCK,
                    at_most=figures.COMPETITIVE_MOST * (1 + figures.LOOK_US / figures.T_BLOCK_US),
                ),
                figures.COMPETITIVE_MOST,
                invariant="no arrivals make a limit of T_block cost more: a theorem",
            ),
        ),
    ),
    _claim(
        id="WC-6",
        kind="ratio",
        source="5.1",
        setup="ttcp over stream sockets, one way, by strategy and message size: throughput.",
        paper="similar to the micro-benchmarks (no order of strategies given; tested here: of two "
        "strategies the slower one there does not have the higher throughput)",
        statistics=similar(),
    ),
    _claim(
        id="WC-7",
        kind="order",
        source="5.2 and figure 4",
        setup="A file service that reads blocks cached on the other node, alone, next to nice "
        "processes (time per block) and next to CPU hogs (CPU time per block).",
        paper="spin-block best or equal in all three; without company block worse "
        "than spin; with company both bad, spin-block less so",
        statistics=(
            *ranked(
                "waiting/fig4_file_system",
                "time per block, alone",
                "block_time",
                tuple(
                    tuple({"company": "alone", **wait} for wait in tier)
                    for tier in ((BLOCK,), (SPIN, SPIN_BLOCK))
                ),
            ),
            *(
                judged(company, other, costs)
                for costs in (SHRIMP, OWN_COSTS)
                for company in ("nice", "hog")
                for other in (SPIN, BLOCK)
                for judged in (best_or_equal, suffers_less)
            ),
            *(
                bad_with_company(company, wait)
                for company in ("nice", "hog")
                for wait in (SPIN, BLOCK)
            ),
        ),
    ),
    _claim(
        id="WC-8",
        kind="count",
        source="5.1",
        setup="The five pairs of WC-3: waits that end before the rank gives up its CPU, and "
        "messages found while spinning.",
        paper="spin-block tends to run partners at the same time: in the common case it takes "
        "messages while it spins, block does not",
        statistics=share_found(),
    ),
    _claim(
        id="WC-9",
        kind="count",
        source="2.2 and 4",
        setup="A process waits for any of 1 to 512 flags: sleeps and wake-ups per wait, and waits "
        "ended by a flag other than the one written.",
        paper="1 wake-up of the waiter for a change of any flag",
        statistics=(
            statistic_of(
                figures.FLAGS,
                Near(
                    text="wake-ups per sleep with block",
                    metric="wakes_per_sleep",
                    of=BLOCK,
                    value=1.0,
                ),
                1.0,
                invariant=ONE_WAKE_UP,
            ),
            # A rank that is woken and finds nothing sleeps again before its wait ends.
            each_sample(figures.FLAGS, "sleeps per wait with block", "sleeps_per_wait", BLOCK, 1.0),
            each_sample(
                figures.FLAGS, "wake-ups per wait with block", "wakes_per_wait", BLOCK, 1.0
            ),
            equals(
                figures.FLAGS,
                "waits that a wrong flag ended",
                *("wrong_flags", {}, 0.0, ONE_WAKE_UP),
            ),
        ),
    ),
    _claim(
        id="WC-10",
        kind="count",
        source="5.1 and figure 2",
        setup="Ping-pong of one word with spin-block, all messages within the spin limit: "
        "interrupts per wait.",
        paper="no interrupts",
        statistics=tuple(
            without_interrupts(delay, costs)
            for costs in (SHRIMP, OWN_COSTS)
            for delay in SHORT_DELAYS
        ),
    ),
    *claims_in_text.CLAIMS,
)
