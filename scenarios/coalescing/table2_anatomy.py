"""One message of 234 880 bytes, packet by packet, and every interrupt that it raises.

Paper: Goglin and Furmento 2009 (coalescing), IV-C3 and table II. The paper calls the message
"234 kiB"; 160 pull replies of 1468 bytes in 5 blocks of 32 are 234 880 bytes. What must come out:
a rendezvous, 5 pull requests, 160 pull replies and a notify, exactly; 12 of them marked. Without
coalescing many interrupts (92.4 in the paper), with the timeout few (14.4), with Open-MX
coalescing as few (13.7), though it is as fast as no coalescing (708 us against 705; the timeout
762). Of the marks the rendezvous' saves most (20 us), the notify's nothing.
"""

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Equals, Ratio, Scenario

MARKS = ("rndv", "pull-request", "pull-reply", "notify")
# All that this message needs, and each switched off in turn.
MARK_SETS = (MARKS, *(tuple(mark for mark in MARKS if mark != off) for off in MARKS))
ALL = {"marks": list(MARKS)}
NO_RNDV, NO_NOTIFY = {"marks": list(MARK_SETS[1])}, {"marks": list(MARK_SETS[4])}
OPEN_MX, TIMEOUT = {"coalescing": "open-mx"}, {"coalescing": "timeout"}
DISABLED = {"coalescing": "disabled"}
PACKETS = {
    "packets_per_message": 167,
    "pull_requests_per_message": 5,
    "pull_replies_per_message": 160,
}


def ratio(text: str, metric: str, of: dict, to: dict, least: float, most: float) -> Ratio:
    """The metric at `of` by that at `to` lies between the two."""
    return Ratio(text=text, metric=metric, of=of, to=to, at_least=least, at_most=most)


scenario = Scenario(
    name="coalescing/table2_anatomy",
    title="Anatomy of one large message: which packet raises which interrupt?",
    source="Goglin and Furmento 2009, section IV-C3 and table II",
    shows="A large message is a rendezvous, pull requests for blocks of 32 frames, of which 4 are "
    "on their way at a time, their pull replies, and a notify; the receiver pulls. Each "
    "column is a rule by which the NIC interrupts, each row a set of packets that are marked:"
    " all, or all but one. Only open-mx and stream look at marks. Interrupts are those of "
    "both hosts and of all that a message moves, its delayed acknowledgement included. Where "
    "a block is longer on the line than the timer, that expires between two marks, too.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "anatomy",
        "size_bytes": 234_880,
        "iterations": 24,
        "warmup": 3,
        "delay_us": 25_000,
        "wait": "spin",
    },
    sweep={"coalescing": PAPER_COALESCING_NAMES, "marks": MARK_SETS},
    # These do not look at marks.
    without=tuple(
        {**place, "marks": some} for place in (DISABLED, TIMEOUT) for some in MARK_SETS[1:]
    ),
    # From figure 5 on no core sleeps: to a sleeping one a message takes 15 to 20 us on these hosts
    # (multiqueue, 4.3), and here 10.
    simulated=(({}, {"idle": "awake"}),),
    compare="coalescing",
    rows="marks",
    columns="coalescing",
    repeats=5,
    metrics=(
        *("transfer", "interrupts_per_message"),
        *("interrupts_marked", "interrupts_deferred", "interrupts_timeout"),
        *(*PACKETS, "marked_per_message", "acks_per_message"),
    ),
    expectations=(
        *(Equals(text=f"{n} {name}", metric=name, of={}, value=n) for name, n in PACKETS.items()),
        Equals(text="12 marked packets", metric="marked_per_message", of=ALL, value=12),
        *(
            ratio(text, "interrupts_per_message", {**of, **ALL}, TIMEOUT, least, most)
            for text, of, least, most in (
                ("many interrupts without coalescing (paper: 6.4 times)", DISABLED, 3, 100),
                ("Open-MX takes as few as a timeout (paper: 0.95)", OPEN_MX, 0.67, 1.5),
            )
        ),
        *(
            ratio(text, "transfer", of, {**ALL, **to}, least, most)
            for text, of, to, least, most in (
                ("as fast as no coalescing (paper: 1.004)", {**OPEN_MX, **ALL}, DISABLED, 0.1, 1.1),
                ("a timeout is slower (paper: 1.08)", {**TIMEOUT, **ALL}, OPEN_MX, 1.03, 10),
                ("the rendezvous' mark pays (paper: 1.03)", {**OPEN_MX, **NO_RNDV}, {}, 1.01, 10),
                ("the notify's does not (paper: 1)", {**OPEN_MX, **NO_NOTIFY}, {}, 0.9, 1.1),
            )
        ),
    ),
    sections=("interrupts", "timeline"),
    timelines=tuple(
        {"coalescing": name, **ALL} for name in ("open-mx", *PAPER_COALESCING_NAMES[:2])
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
