"""What goes from core to core on the way of a packet: the ledger of hand-overs.

Paper: Goglin 2010 (multiqueue), 2.1, 3.1 and 4.2.
What must come out, on any machine: with interrupts to 8 cores in turn each packet finds the
endpoint's descriptor with another core, and 7 of 8 events are written on another core than their
process's. With a queue for each endpoint, and its process on that queue's core, nothing is handed
over, of one pair or of eight: all packets of an endpoint come by one queue, to one core. A single
core for all interrupts keeps descriptors, but its events go to the processes of other cores. The
event ring is that of the paper's Open-MX, 0.9.2, whose slots both sides write: what went to another
core comes back, which handovers_per_packet counts as well. Its frames are the paper's too.
"""

from shrimpmx.experiment.scenario import Equals, Near, Scenario

CORES = 8
IN_TURN, ONE_CORE, MULTIQUEUE = (
    {"irq_binding": name} for name in ("round-robin", "0", "per-queue")
)
ONE_EMPTY = {"pairs": 1, "size_bytes": 0}
LARGE = {"size_bytes": 1 << 20}
NOTHING = ("endpoint_handovers", "pull_handovers", "events_handed_over", "queue_changes")

scenario = Scenario(
    name="multiqueue/ledger",
    title="The ledger: what does each packet move from core to core?",
    source="Goglin 2010, sections 2.1, 3.1 and 4.2",
    shows="Two nodes of 8 cores, without coalescing: interrupts go to all cores in turn"
    " (round-robin), to core 0, or those of 8 queues to a core each (per-queue). Processes begin on"
    " core 3 and those behind it; with per-queue, opening an endpoint moves its process to the"
    " core of its queue. Counted is what a handler found with another core: the endpoint's"
    " descriptor, a pull handle, or an event whose process is elsewhere, and its slot on the way"
    " back: event ring and frames are Open-MX 0.9.2's, as the paper's. Counts hold however many"
    " CPUs there are; processes block, so that many can share one.",
    parameters={
        "workload": "pingpong",
        "coalescing": "disabled",
        "cores": CORES,
        "rank_core": 3,
        "wait": "block",
        # Open-MX 0.9.2: its frames, and its event ring, whose slots both sides write.
        "mtu": 9000,
        "wire_format": "compatible",
        "event_ring": "reset",
        "deadline_s": 120,
    },
    sweep={
        "pairs": (1, 8),
        "size_bytes": (0, 32_768, 1 << 20),
        "irq_binding": ("round-robin", "0", "per-queue"),
    },
    without=({"pairs": 8, "size_bytes": 32_768}, {"pairs": 8, **ONE_CORE}),
    adjusted=(
        (MULTIQUEUE, {"rx_queues": CORES, "process_binding": "auto"}),
        # 800 messages: as many for each core.
        (ONE_EMPTY, {"iterations": 760, "warmup": 40}),
        ({"size_bytes": 32_768}, {"iterations": 60, "warmup": 4}),
        (LARGE, {"iterations": 14, "warmup": 2}),
    ),
    compare="irq_binding",
    rows="size_bytes",
    columns="irq_binding",
    repeats=3,
    metrics=(
        *("events_handed_over", "endpoint_handovers", "pull_handovers"),
        *("handovers_per_packet", "queue_changes"),
    ),
    expectations=(
        Near(
            text="7 of 8 events are handed over in turn",
            metric="events_handed_over",
            of={**IN_TURN, **ONE_EMPTY},
            value=87.5,
            tolerance=0.01,
            exact=True,
        ),
        Near(
            text="each packet finds the descriptor with another core",
            metric="endpoint_handovers",
            of={**IN_TURN, **ONE_EMPTY},
            value=1,
            tolerance=0.01,
            exact=True,
        ),
        *(
            Equals(text=f"with queues no {name}", metric=name, of={**MULTIQUEUE, **LARGE}, value=0)
            for name in NOTHING
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
