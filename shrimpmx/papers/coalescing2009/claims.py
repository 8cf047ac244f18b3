"""What Goglin and Furmento 2009 measured: IC-1 to IC-23, and in `claims_in_text.py` the rest.

Finding a Tradeoff between Host Interrupt Load and MPI Latency over Ethernet, Cluster 2009. Units
are those of the metrics. The paper's figures lie in `figures.py`; how a predicate
follows from one: `predicates.py`.
"""

from __future__ import annotations

from functools import partial

from shrimpmx.papers.claim import REAL, SIMULATED, Claim, statistic_of
from shrimpmx.papers.coalescing2009 import claims_in_text, figures, nas
from shrimpmx.papers.coalescing2009.predicates import (
    ADAPTIVE,
    ALL,
    ASLEEP,
    AWAKE,
    DISABLED,
    HIGHER,
    LARGE,
    LOWER,
    MEDIUM,
    NO_EFFECT,
    ONE_CORE,
    OPEN_MX,
    OTHER_CORE,
    OWN_RATE_NS,
    PLATFORM,
    SCATTERED,
    SCATTERED_CPUS,
    SLOW_NS,
    SMALL,
    STREAM,
    TIMEOUT,
    at_most,
    deferred,
    interrupts,
    misordered,
    moved,
    of_dropped,
    on_cores,
    on_simulated_cores,
    overtaken,
    packets,
    rate_kept,
    rate_order,
    ratio,
    same,
    saved,
    sized,
    unmarked_words,
    without,
)
from shrimpmx.results.expectation_kinds import Bound, Near, Order, Ratio

# Its hosts; where a claim is of this machine as it is, `own_costs` says so.
_claim = partial(Claim, host="myri10g-2009")

CLAIMS: tuple[Claim, ...] = (
    _claim(
        id="IC-1",
        kind="ratio",
        source="IV-B1 and figure 4",
        setup="A stream of 128 B messages to the emulated platform, whose cores may sleep; "
        "interrupts to one core, or to eight simulated cores in turn: no coalescing "
        "against 75 µs.",
        paper="433 k msg/s at 75 µs, less than half of that without",
        statistics=tuple(
            statistic_of(
                scenario,
                at_most(
                    "message rate without coalescing against 75 µs",
                    "message_rate",
                    {**place, **DISABLED, **ASLEEP},
                    TIMEOUT,
                    figures.LESS_WITHOUT,
                ),
                figures.LESS_WITHOUT,
                absolute=(figures.STREAM_RATE * figures.LESS_WITHOUT, figures.STREAM_RATE),
                engine=engine,
            )
            for scenario, place, engine in (
                (figures.FIG4, {**PLATFORM, **ONE_CORE}, REAL),
                (figures.CORES, SCATTERED, SIMULATED),
            )
        ),
    ),
    _claim(
        id="IC-2",
        kind="ratio",
        source="IV-B1 and figure 4",
        setup="The same stream, an interrupt per packet, scattered over two cores of this "
        "machine or eight simulated ones, so that most interrupts reach a sleeping core: "
        "cores kept awake against cores free to sleep.",
        paper="message rate markedly higher with cores kept awake",
        statistics=on_cores(
            "message rate with cores awake against sleeping",
            {**DISABLED, **SCATTERED, **AWAKE},
            ASLEEP,
        ),
    ),
    _claim(
        id="IC-3",
        kind="ratio",
        source="IV-B1 and figure 4",
        setup="The same stream, an interrupt per packet: interrupts bound to the process's "
        "core, on simulated hosts also to another core, against scattered interrupts.",
        paper="message rate higher with bound interrupts",
        statistics=(
            *on_cores(
                "message rate with interrupts bound to the process's core against scattered",
                {**DISABLED, **ONE_CORE, **ASLEEP},
                SCATTERED,
            ),
            on_simulated_cores(
                "message rate with interrupts bound to another core against scattered",
                {**DISABLED, **OTHER_CORE, **ASLEEP},
                SCATTERED,
            ),
        ),
        variant=("irq_binding",),
        note="the paper does not say whether that core is the process's",
    ),
    _claim(
        id="IC-4",
        kind="ratio",
        source="IV-B2",
        setup="Invalid 128 B packets, dropped by the receive handler: coalescing against an "
        "interrupt each, on this machine and on the platform; on one core, or on eight "
        "simulated cores in turn.",
        paper="965 ns per packet with an interrupt each, 774 ns coalesced",
        statistics=of_dropped(
            "host time per packet coalesced against an interrupt each",
            *({**TIMEOUT, **ONE_CORE}, DISABLED),
            *(figures.PER_PACKET["timeout"], figures.PER_PACKET["disabled"]),
            simulated={**TIMEOUT, **SCATTERED},
        ),
    ),
    _claim(
        id="IC-5",
        kind="ratio",
        source="IV-B2",
        setup="The same packets, an interrupt each: interrupts bound to one core against "
        "scattered over two.",
        paper="about 40 ns less when bound",
        statistics=of_dropped(
            "host time per packet with interrupts bound against scattered",
            *({**DISABLED, **ONE_CORE}, SCATTERED),
            figures.PER_PACKET["disabled"] - figures.SAVED_BY_BINDING_NS,
            figures.PER_PACKET["disabled"],
            cpus=SCATTERED_CPUS,
        ),
    ),
    _claim(
        id="IC-6",
        kind="ratio",
        source="IV-B3 and figure 5",
        setup="Ping-pong of small messages: 75 µs against no coalescing.",
        paper="about 10 µs rises to about 75 µs",
        statistics=(
            ratio(
                "half round trip of an empty message at 75 µs against without",
                *(figures.FIG5, "half_round_trip"),
                sized(TIMEOUT, SMALL),
                DISABLED,
                *(figures.HALF_ROUND_TRIP["timeout"], figures.HALF_ROUND_TRIP["disabled"]),
            ),
        ),
    ),
    _claim(
        id="IC-7",
        kind="ratio",
        source="IV-B3 and figure 5",
        setup="Ping-pong of large messages: 75 µs against no coalescing.",
        paper="higher throughput with coalescing",
        statistics=(
            statistic_of(
                figures.FIG5,
                at_most(
                    "half round trip of 1 MiB at 75 µs against without",
                    *("half_round_trip", sized(TIMEOUT, LARGE), DISABLED, LOWER),
                ),
            ),
        ),
        variant=("idle",),
    ),
    _claim(
        id="IC-8",
        kind="order",
        source="IV-C1 and figure 6",
        setup="Ping-pong of 0 B and of 1 MiB with Open-MX coalescing, without any, and with 75 µs.",
        paper="small messages as fast as without coalescing, large ones as fast as with 75 µs, "
        "faster than without",
        statistics=(
            statistic_of(
                figures.FIG6,
                Order(
                    text="half round trip of an empty message",
                    metric="half_round_trip",
                    tiers=(
                        (sized(TIMEOUT, SMALL),),
                        (sized(OPEN_MX, SMALL), sized(DISABLED, SMALL)),
                    ),
                    tolerance=NO_EFFECT,
                ),
                shares=("IC-6",),
            ),
            statistic_of(
                figures.FIG6,
                same(
                    "half round trip of 1 MiB with Open-MX against 75 µs",
                    *("half_round_trip", sized(OPEN_MX, LARGE), TIMEOUT),
                ),
            ),
            statistic_of(
                figures.FIG6,
                at_most(
                    "half round trip of 1 MiB with Open-MX against none",
                    *("half_round_trip", sized(OPEN_MX, LARGE), DISABLED, LOWER),
                ),
            ),
        ),
    ),
    _claim(
        id="IC-9",
        kind="order",
        source="IV-C2 and table I",
        setup="Message rate of empty messages by strategy.",
        paper="75 µs 490 k, Stream 435 k, Open-MX 423 k, disabled 252 k msg/s",
        statistics=(
            rate_order(SMALL, (TIMEOUT,), (STREAM, OPEN_MX), (DISABLED,)),
            rate_kept(SMALL),
        ),
    ),
    _claim(
        id="IC-10",
        kind="order",
        source="IV-C2 and table I",
        setup="Message rate of 32 KiB messages by strategy.",
        paper="Stream 14 691, Open-MX 14 533, 75 µs 14 507, disabled 6 476 msg/s",
        statistics=(rate_order(MEDIUM, (STREAM, OPEN_MX, TIMEOUT), (DISABLED,)), rate_kept(MEDIUM)),
    ),
    _claim(
        id="IC-11",
        kind="order",
        source="IV-C2 and table I",
        setup="Message rate of 1 MiB messages by strategy.",
        paper="75 µs 452, Open-MX 451, Stream 447, disabled 334 msg/s",
        statistics=(rate_order(LARGE, (TIMEOUT, OPEN_MX, STREAM), (DISABLED,)), rate_kept(LARGE)),
    ),
    _claim(
        id="IC-12",
        kind="count",
        source="IV-C2",
        setup="A stream of empty messages: interrupts with Stream against Open-MX.",
        paper="Stream raises about half of Open-MX's interrupts",
        statistics=(
            statistic_of(
                figures.TABLE1,
                Ratio(
                    text="interrupts per message with Stream against Open-MX",
                    metric="interrupts_per_message",
                    of=sized(STREAM, SMALL),
                    to=OPEN_MX,
                    at_least=figures.STREAM_INTERRUPTS * 0.85,
                    at_most=figures.STREAM_INTERRUPTS * 1.15,
                ),
                figures.STREAM_INTERRUPTS,
            ),
        ),
    ),
    _claim(
        id="IC-13",
        kind="count",
        source="IV-C2",
        setup="A stream of empty messages with Open-MX, at its own rate and slower: unmarked "
        "packets, which are acknowledgements.",
        paper="unmarked packets are up to 20 % of the traffic",
        statistics=(
            *(
                statistic_of(
                    figures.UNMARKED,
                    Near(
                        text=f"packets without a mark, {words}",
                        metric="unmarked_share",
                        of={"tx_gap_ns": gap_ns},
                        value=figures.UNMARKED_SHARE,
                    ),
                    figures.UNMARKED_SHARE,
                    decides=decides,
                )
                for words, gap_ns, decides in (
                    ("at the stream's own rate", OWN_RATE_NS, True),
                    ("where the receiver keeps up", SLOW_NS, False),
                )
            ),
            statistic_of(
                figures.UNMARKED,
                Bound(
                    text="packets without a mark, at any rate",
                    metric="unmarked_share",
                    of={},
                    # The paper gives it rounded.
                    at_most=figures.UNMARKED_SHARE + 0.5,
                ),
                figures.UNMARKED_SHARE,
                invariant="a receiver acknowledges four messages at least with each packet",
            ),
        ),
        note="a receiver that lags behind acknowledges up to 64 messages with one packet",
    ),
    _claim(
        id="IC-14",
        kind="count",
        source="IV-C3 and table II",
        setup='One message of 234 880 B, the paper\'s "234 kiB": its packets, and the interrupts '
        "of both hosts.",
        paper="160 replies in 5 blocks of 32, 167 packets with the requests; 92.4 / 14.4 / 13.7 "
        "interrupts: disabled / 75 µs / Open-MX",
        statistics=(
            interrupts("interrupts without coalescing", DISABLED),
            interrupts("interrupts at 75 µs", TIMEOUT),
            interrupts("interrupts with Open-MX", OPEN_MX),
            packets("packets, acknowledgements apart", "packets_per_message"),
            packets("pull requests", "pull_requests_per_message"),
            packets("pull replies", "pull_replies_per_message"),
        ),
    ),
    _claim(
        id="IC-15",
        kind="ratio",
        source="IV-C3 and table II",
        setup="The same message: its transfer time.",
        paper="705 µs disabled, 762 µs at 75 µs, 708 µs with Open-MX",
        statistics=(
            ratio(
                "transfer time at 75 µs against without coalescing",
                *(figures.TABLE2, "transfer"),
                {**TIMEOUT, **ALL},
                DISABLED,
                *(figures.TRANSFER["timeout"], figures.TRANSFER["disabled"]),
            ),
            statistic_of(
                figures.TABLE2,
                same(
                    "transfer time with Open-MX against without coalescing",
                    *("transfer", {**OPEN_MX, **ALL}, DISABLED),
                    figures.AS_DISABLED,
                ),
                figures.TRANSFER["open-mx"] / figures.TRANSFER["disabled"],
                absolute=(figures.TRANSFER["open-mx"], figures.TRANSFER["disabled"]),
            ),
        ),
    ),
    _claim(
        id="IC-16",
        kind="ratio",
        source="IV-C3",
        setup="The same message with Open-MX: each kind of packet without its mark.",
        paper="marks save 20 µs (rendezvous), 5 µs (pull requests), 2 µs (last pull replies), "
        "nothing (notify)",
        statistics=(
            saved("rndv"),
            saved("pull-request"),
            saved("pull-reply"),
            statistic_of(
                figures.TABLE2,
                same(unmarked_words("notify"), "transfer", without("notify"), ALL, HIGHER - 1),
                1.0,
                absolute=(figures.TRANSFER["open-mx"],) * 2,
            ),
        ),
    ),
    _claim(
        id="IC-17",
        kind="ratio",
        source="IV-C4 and table III",
        setup="A message of 32 KiB, with its mark 0, 1 or 3 fragments early, or its last fragment "
        "overtaking as many others: Stream against Open-MX.",
        paper="156 / 177 / 177 µs with Open-MX, 156 / 171 / 174 µs with Stream",
        statistics=(
            misordered(
                "Open-MX with the mark 1 early against in order",
                *({**OPEN_MX, **moved(1)}, moved(0)),
            ),
            misordered(
                "Open-MX with the mark 3 early against in order",
                *({**OPEN_MX, **moved(3)}, moved(0)),
            ),
            misordered("Stream against Open-MX, mark 1 early", {**STREAM, **moved(1)}, OPEN_MX),
            misordered("Stream against Open-MX, mark 3 early", {**STREAM, **moved(3)}, OPEN_MX),
            *(
                statistic_of(
                    figures.TABLE3,
                    at_most(
                        f"Stream against Open-MX, {degree} really overtaken",
                        *("transfer", {**STREAM, **overtaken(degree)}, OPEN_MX, LOWER),
                    ),
                )
                for degree in (1, 3)
            ),
        ),
    ),
    _claim(
        id="IC-18",
        kind="count",
        source="IV-C4",
        setup="The same message with Stream: how often the early interrupt is deferred to the end.",
        paper="30 % with the mark 1 early, 15 % with the mark 3 early",
        statistics=tuple(
            statistic_of(
                figures.TABLE3, Near(**deferred(degree), value=share), share, shares=("IC-12",)
            )
            for degree, share in figures.DEFERRED.items()
        ),
    ),
    _claim(
        id="IC-19",
        kind="ratio",
        source="IV-D and table IV",
        setup="NAS kernels, 16 ranks on 2 nodes, by strategy.",
        paper="disabling never helps (IS C 11.6 % slower); on IS Open-MX gains 7 to 8 %, Stream "
        "1 to 2.5 %",
        cpus=nas.CPUS,
        statistics=nas.run_times(),
        note=nas.CLASSES,
    ),
    _claim(
        id="IC-20",
        kind="count",
        source="IV-D and table V",
        setup="NAS IS, three of its ten iterations, 16 ranks on 2 nodes: interrupts by strategy, "
        "against 75 µs.",
        paper="disabled 22 times as many; Open-MX +16 to 19 %; Stream +17 to 21 %",
        statistics=nas.interrupts_of_sort(),
        note=nas.CLASSES,
    ),
    _claim(
        id="IC-21",
        kind="ratio",
        source="III-B and VI",
        setup="Delay of unmarked packets of another protocol next to a marked stream, at the "
        "stream's full rate and at a quarter of it.",
        paper="undisturbed by marks",
        statistics=tuple(
            statistic_of(
                figures.OTHER,
                at_most(
                    f"delay of the other protocol's packets with {name} against 75 µs",
                    *("other_delay", place, TIMEOUT, 1 + NO_EFFECT),
                ),
            )
            for name, place in (("Open-MX", OPEN_MX), ("Stream", STREAM))
        ),
        note="on simulated hosts it takes eight cores; for Stream it depends on the rate of the "
        "other protocol, since both streams are even and fall in step with the timer",
    ),
    _claim(
        id="IC-22",
        kind="ratio",
        source="VI",
        setup="Ping-pong of small messages: adaptive coalescing against 75 µs. NAS IS: against "
        "Open-MX.",
        paper="helps micro-benchmarks, but helps real applications less than marks do",
        statistics=(
            statistic_of(
                figures.TRADE_OFF,
                at_most(
                    "half round trip with adaptive coalescing against 75 µs",
                    *("half_round_trip", sized(ADAPTIVE, SMALL), TIMEOUT, LOWER),
                ),
            ),
            nas.adaptive_sort(),
        ),
    ),
    _claim(
        id="IC-23",
        kind="count",
        source="III-C",
        setup="A stream of empty messages with Stream: the longest deferral of an interrupt.",
        paper="an interrupt is deferred at most until the coalescing timeout expires",
        statistics=(
            statistic_of(
                figures.TABLE1,
                Bound(
                    text="longest deferral",
                    metric="deferral_longest",
                    of=sized(STREAM, SMALL),
                    at_most=figures.DELAY_US,
                ),
                figures.DELAY_US,
                invariant="the firmware's own timer ends each deferral",
            ),
        ),
    ),
    *claims_in_text.CLAIMS,
)
