"""Ping-pong of an empty message: on which core is its interrupt handled, and where is its process?

Paper: Goglin 2010 (multiqueue), 4.2 and table I.
What must come out: an interrupt that goes to all cores in turn is slower (11.4 us) than any other.
Of one that is bound to a core, best is a process on another core that shares a cache (9.34 us),
then other cores (10.32 and 10.25 us), then the same core (10.96 us). A queue of one's own, with
the process on its core, lies between (10.10 us).

The paper's nodes have 8 cores, all of them busy; here they have two, which two CPUs can show: the
interrupts of one node then go to the core where the other's process polls. In turn, each second
one goes to the CPU of the NICs, and half round trips alternate between about 17 and 32 us: so means
of 16 in a row are compared, as the paper's benchmark gives a mean. On a machine with 17 CPUs
`--set cores=8 --set rx_queues=8` is the paper's. Event ring and frames are its Open-MX 0.9.2's.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

ROUND_ROBIN = {"irq_binding": "round-robin", "distance": "any"}
SAME_CORE, SHARED_CACHE = ({"irq_binding": "0", "distance": name} for name in ("SC", "S$"))
MULTIQUEUE = {"irq_binding": "per-queue", "distance": "SC"}
DISTANCES = ("any", "SC", "S$", "SP", "OP")


def slower(text: str, of: dict, to: dict) -> Ratio:
    """The half round trip at `of` is longer than that at `to`."""
    return Ratio(text=text, metric="mean_half_round_trip", of=of, to=to, at_least=1.01)


scenario = Scenario(
    name="multiqueue/table1_binding",
    title="Latency: where are interrupts handled, and where does the process run?",
    source="Goglin 2010, section 4.2 and table I",
    shows="Two nodes send an empty message to and fro, with an interrupt for each packet; processes"
    " poll. One queue's interrupts go to all cores of a node in turn (round-robin) or to core 0,"
    " and the process runs on that core (SC), on one that shares a cache with it (S$), on"
    " another one of the package (SP), or of another package (OP). per-queue: each endpoint has a"
    " queue, each queue a core, and opening the endpoint moves the process there. Distances that"
    " the CPUs have not are not measured. Event ring and frames are Open-MX 0.9.2's, as"
    " the paper's.",
    parameters={
        "workload": "pingpong",
        "size_bytes": 0,
        "coalescing": "disabled",
        "cores": 2,
        # Open-MX 0.9.2: its frames, and its event ring, whose slots both sides write.
        "mtu": 9000,
        "wire_format": "compatible",
        "event_ring": "reset",
        # All cores of the paper's nodes are busy: none of them sleeps.
        "idle": "awake",
        "iterations": 2000,
        "warmup": 200,
        "wait": "spin",
    },
    sweep={"irq_binding": ("round-robin", "0", "per-queue"), "distance": DISTANCES},
    without=(
        *({"irq_binding": "round-robin", "distance": name} for name in DISTANCES[1:]),
        {"irq_binding": "0", "distance": "any"},
        *({"irq_binding": "per-queue", "distance": name} for name in DISTANCES if name != "SC"),
    ),
    adjusted=(
        *(({"distance": name}, {"rank_core": 1}) for name in ("S$", "SP", "OP")),
        ({"irq_binding": "per-queue"}, {"rx_queues": 2, "process_binding": "auto"}),
    ),
    # The paper's eight, which real processes have no CPUs for.
    simulated=(({"irq_binding": "round-robin"}, {"cores": 8}),),
    compare="distance",
    rows="irq_binding",
    columns="distance",
    # What differs from run to run is more than what does within one.
    repeats=16,
    metrics=("mean_half_round_trip", "handovers_per_packet", "events_handed_over"),
    expectations=(
        slower("in turn is slower than the same core (paper: 1.04)", ROUND_ROBIN, SAME_CORE),
        slower("in turn is slower than a shared cache (paper: 1.22)", ROUND_ROBIN, SHARED_CACHE),
        slower(
            "in turn is slower than a queue of one's own (paper: 1.13)", ROUND_ROBIN, MULTIQUEUE
        ),
        slower(
            "a shared cache is better than the same core (paper: 1.17)", SAME_CORE, SHARED_CACHE
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
