"""NAS kernels of 16 processes, one per core of two nodes, by where packets are handled.

Paper: Goglin 2010 (multiqueue), 4.6 and table III.
What must come out, in seconds of class B with one queue whose interrupts go to all cores in turn,
to one core, with a queue for each process, and with native MX: CG 34.62, 34.32, 33.68, 32.23; MG
4.14, 4.19, 4.02, 3.93; FT 22.80, 23.06, 21.34, 19.61; IS 11.84, 10.83, 1.25, 1.33 (class C: 14.69,
14.17, 5.62, 6.30). IS has about 11 times fewer cache misses with a queue for each process.

Times need a CPU for each of 16 cores and one for the NICs, and misses a CPU that counts them. What
is handed over between cores is counted on any machine.
"""

from shrimpmx.experiment.scenario import Equals, Near, Ratio, Scenario

CORES = 8
SORT = {"arguments": "is A"}
IN_TURN, MULTIQUEUE = (
    {"nic": "ethernet", "irq_binding": name} for name in ("round-robin", "per-queue")
)

scenario = Scenario(
    name="multiqueue/table3_nas",
    title="NAS: does an application need a queue for each process?",
    source="Goglin 2010, section 4.6 and table III",
    shows="16 processes compute on two nodes of eight cores. The packets of one queue are handled"
    " on all cores in turn (round-robin), or on core 0; or each process has a queue, and runs on"
    " the core that handles its packets (per-queue). mx is native MX, whose NIC handles packets"
    " itself. The time is that of NPB's timed part. Class A instead of B and C.",
    parameters={
        "workload": "mpi",
        "program": "shrimpmx.applications.nas",
        "ranks": 2 * CORES,
        "cores": CORES,
        # Processes that share a CPU give way to each other; the link loses nothing.
        "wait": "sched",
        "resend_delay_ns": 60_000_000_000,
        "pull_resend_delay_ns": 60_000_000_000,
        "hardware_counters": True,
        "deadline_s": 600,
    },
    sweep={
        "arguments": ("cg A", "ft A", "is A", "mg A"),
        "nic": ("ethernet", "mx"),
        "irq_binding": ("round-robin", "0", "per-queue", "auto"),
    },
    without=(
        {"nic": "ethernet", "irq_binding": "auto"},
        {"nic": "mx", "irq_binding": ("round-robin", "0", "per-queue")},
    ),
    adjusted=(
        # Open-MX 0.9.2: its frames, and its event ring, whose slots both sides write.
        (
            {"nic": "ethernet"},
            {
                "coalescing": "disabled",
                "mtu": 9000,
                "wire_format": "compatible",
                "event_ring": "reset",
            },
        ),
        ({"irq_binding": "per-queue"}, {"rx_queues": CORES, "process_binding": "auto"}),
    ),
    compare="irq_binding",
    rows="arguments",
    columns="irq_binding",
    repeats=3,
    metrics=("run_time", "cache_misses_handler", "events_handed_over", "busiest_core"),
    expectations=(
        Ratio(
            text="IS takes longer with cores in turn than with a queue each (paper: 9.5 and 2.6)",
            metric="run_time",
            of={**SORT, **IN_TURN},
            to=MULTIQUEUE,
            at_least=1.01,
            cpus=2 * CORES + 1,
        ),
        Near(
            text="7 of 8 events are handed over in turn",
            metric="events_handed_over",
            of={**SORT, **IN_TURN},
            value=87.5,
            tolerance=0.05,
        ),
        Equals(
            text="with a queue each none is",
            metric="events_handed_over",
            of=MULTIQUEUE,
            value=0,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
