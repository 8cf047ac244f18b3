"""IMB Alltoall of 16 processes, one per core of two nodes, by where packets are handled.

Paper: Goglin 2010 (multiqueue), 4.5 and figure 5.
What must come out: a single queue takes longer than a queue for each process, on average 1.3 times;
bound to one core it gets worse as messages grow, since that core becomes the limit. What is handed
over between cores, and how packets are shared out among them, can be counted on any machine. Times
need a CPU for each of 16 cores and one for the NICs: claim MQ-7 judges them, beside native MX.
"""

from shrimpmx.experiment.scenario import Equals, Near, Ratio, Scenario

CORES = 8
# 20 calls of a size, or as many as move 2 MiB; its table is not for a report of many runs.
ARGUMENTS = f"Alltoall -npmin {2 * CORES} -msglen /dev/fd/3 -iter 20,2 -iter_policy off -sync off"
SCRIPT = (
    "file=$(mktemp) && echo {size_bytes} > $file && exec 3< $file && rm $file &&"
    ' exec "$@" > /dev/null'
)
SMALLER, LARGE = (128, 4096, 65_536), {"size_bytes": 1 << 20}
IN_TURN, ONE_CORE, MULTIQUEUE = (
    {"nic": "ethernet", "irq_binding": name, "copy_offload": False}
    for name in ("round-robin", "0", "per-queue")
)


def takes(text: str, of: dict, to: dict, at_least: float) -> Ratio:
    """The time at one place by that at another, with a CPU for each core and one for the NICs."""
    cpus = 2 * CORES + 1
    return Ratio(text=text, metric="run_time", of=of, to=to, at_least=at_least, cpus=cpus)


scenario = Scenario(
    name="multiqueue/fig5_alltoall",
    title="Alltoall of 16 processes: does each need a queue of its own?",
    source="Goglin 2010, section 4.5 and figure 5",
    shows="IMB's Alltoall, an MPI program, on two nodes of eight cores with a process each. The"
    " packets of one queue are handled on all cores in turn (round-robin), or on core 0; or each"
    " process has a queue, and runs on the core that handles its packets (per-queue). mx is native"
    " MX, whose NIC handles packets itself. Times and counts are those of the same number of calls"
    " of a size, without the program's start and warm-up.",
    parameters={
        "workload": "mpi",
        "program": "shrimpmx.applications.imb",
        "arguments": ARGUMENTS,
        "script": SCRIPT,
        "ranks": 2 * CORES,
        "cores": CORES,
        # Processes that share a CPU give way to each other.
        "wait": "sched",
        "deadline_s": 300,
    },
    sweep={
        "size_bytes": (*SMALLER, 1 << 20),
        "nic": ("ethernet", "mx"),
        "copy_offload": (False, True),
        "irq_binding": ("round-robin", "0", "per-queue", "auto"),
    },
    without=(
        {"nic": "ethernet", "irq_binding": "auto"},
        {"nic": "mx", "irq_binding": ("round-robin", "0", "per-queue")},
        {"nic": "mx", "copy_offload": True},
        {"size_bytes": SMALLER, "copy_offload": True},
        {"irq_binding": ("round-robin", "0"), "copy_offload": True},
    ),
    adjusted=(
        # Open-MX 0.9.2: its frames, and its event ring, whose slots both sides write.
        ({"nic": "ethernet"}, {"coalescing": "disabled", "mtu": 9000, "event_ring": "reset"}),
        ({"nic": "ethernet"}, {"wire_format": "compatible"}),
        ({"irq_binding": "per-queue"}, {"rx_queues": CORES, "process_binding": "auto"}),
    ),
    compare="irq_binding",
    rows="size_bytes",
    columns="irq_binding",
    repeats=3,
    metrics=("run_time", "run_interrupts", "busiest_core", "events_handed_over"),
    expectations=(
        takes(
            "cores in turn take longer than a queue each (paper: 1.3)", IN_TURN, MULTIQUEUE, 1.01
        ),
        takes("one core takes longer than all", {**ONE_CORE, **LARGE}, IN_TURN, 1.01),
        Near(
            text="7 of 8 events are handed over in turn",
            metric="events_handed_over",
            of={**IN_TURN, **LARGE},
            value=87.5,
            tolerance=0.05,
        ),
        Equals(text="with a queue each none", metric="events_handed_over", of=MULTIQUEUE, value=0),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
