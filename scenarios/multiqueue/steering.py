"""Processes that move from core to core: does the queue follow them, or do they lose it?

Paper: Goglin 2010 (multiqueue), 3.1 and 3.2, where the process is moved to its queue once; the
queue that follows (aRFS) and steering by software (RPS) are Linux's, and this comparison is ours.
What must come out: as long as no process moves, a queue for each endpoint with its process on that
queue's core hands over no event, as the paper has it. Once processes move, three of four events of
four cores are handed over, as with one queue whose interrupts go to all cores in turn; a queue that
follows has most of them stay.
"""

from shrimpmx.experiment.scenario import Bound, Equals, Ratio, Scenario

ENDPOINT, ARFS, RSS, RPS = ({"steering": name} for name in ("endpoint", "arfs", "rss", "rps"))
STAY, MOVE = {"move_every": 0}, {"move_every": 100}

scenario = Scenario(
    name="multiqueue/steering",
    title="Does the process follow its queue, or the queue its process?",
    source="Goglin 2010, sections 3.1 and 3.2; the comparison is ours",
    shows="Two nodes of four cores send a small message to and fro, with an interrupt for each"
    " packet. The process of each node stays where it is, or moves to the next core every"
    " move_every round trips. endpoint: the endpoint's number chooses the queue, and opening it"
    " moves the process to that queue's core (multiqueue). arfs: the queue of the core that the"
    " process runs on. rss: a hash that knows no Open-MX, so one queue, whose interrupts go to all"
    " cores in turn. rps: one queue, whose handler on core 3 hands packets on to core 0, where"
    " opening the endpoint has moved the process.",
    parameters={
        "workload": "pingpong",
        "size_bytes": 128,
        "coalescing": "disabled",
        "cores": 4,
        "rank_core": 1,
        "rx_queues": 4,
        "iterations": 4000,
        "warmup": 400,
        # Processes that meet on one CPU give way to each other.
        "wait": "sched",
    },
    sweep={"move_every": (0, 100), "steering": ("endpoint", "arfs", "rss", "rps")},
    adjusted=(
        (ENDPOINT, {"process_binding": "auto"}),
        (RSS, {"rx_queues": 1, "irq_binding": "round-robin"}),
        (RPS, {"rx_queues": 1, "irq_binding": "3", "process_binding": "auto"}),
    ),
    compare="steering",
    rows="steering",
    columns="move_every",
    repeats=3,
    metrics=(
        *("events_handed_over", "half_round_trip", "endpoint_handovers"),
        *("queue_changes", "flow_moves", "moves"),
    ),
    expectations=(
        Equals(
            text="nothing is handed over to a process that stays on its queue's core",
            metric="events_handed_over",
            of={**ENDPOINT, **STAY},
            value=0,
        ),
        Bound(text="processes move", metric="moves", of=MOVE, at_least=8),
        Bound(text="queues follow", metric="flow_moves", of={**ARFS, **MOVE}, at_least=8),
        *(
            Ratio(
                text=f"a queue that follows hands over less than {words}",
                metric="events_handed_over",
                of={**ARFS, **MOVE},
                to=to,
                at_most=0.5,
            )
            for words, to in (("one that does not", ENDPOINT), ("cores in turn", RSS))
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
